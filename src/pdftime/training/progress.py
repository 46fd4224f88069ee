"""ProgressBar: epochs, time left and losses on the terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pdftime.training.loop import Run


class ProgressBar:
    """A callback that draws one bar per member; silent where the output is not a terminal."""

    def __init__(self, *, enabled: bool, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=console,
            disable=not (enabled and console.is_terminal),
        )
        self._task = self._progress.add_task("training", total=None, losses="", visible=False)

    def begin(self, description: str) -> None:
        self._progress.reset(self._task, description=description, losses="", visible=True)

    def __call__(self, run: Run) -> None:
        last = run.history[-1]
        losses = f"loss {last['loss']:.3f}"
        if "validation_accuracy" in last:
            losses += f"  validation {last['validation_accuracy']:.3f}"
        self._progress.update(self._task, completed=run.epoch, total=run.n_epochs, losses=losses)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
