"""Peak memory of this process, from Linux's /proc."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS = Path("/proc/self/status")
EVERY_SECONDS = 0.005


def status_bytes(name: str) -> int:
    """A line of /proc/self/status: VmRSS (now), VmHWM (the peak), RssAnon (now, without mapped files)."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])


@contextmanager
def extra_memory() -> Iterator[list[int]]:
    """The list gets one number at the end: bytes above those at the beginning, at the peak, exactly."""
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew; ru_maxrss would hold the parent's
    before, peak = status_bytes("VmRSS"), list[int]()
    yield peak
    peak.append(status_bytes("VmHWM") - before)


@contextmanager
def extra_anonymous_memory() -> Iterator[list[int]]:
    """The same without pages of mapped files, which the system may take back; sampled, as no peak is kept."""
    before, peak, done = status_bytes("RssAnon"), list[int](), threading.Event()
    seen = [before]

    def watch() -> None:
        while not done.wait(EVERY_SECONDS):
            seen.append(max(seen.pop(), status_bytes("RssAnon")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield peak
    done.set()
    watcher.join()
    peak.append(seen[0] - before)
