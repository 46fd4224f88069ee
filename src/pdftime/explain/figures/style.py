"""One look for all figures: widths, colours that colour-blind readers can tell apart, and names shown as they are."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from pdftime.data.label_text import text_of
from pdftime.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.4, 7.0
"""Inches: the width of a text column, and of a page."""
MIN_WIDTH, MAX_WIDTH = 2.5, 40.0
TEXT, SMALL = 7.0, 6.0
"""Points."""
LETTER = 0.54
"""How wide a letter is on average, as a share of its size."""
INK, GREY, PALE = "#222222", "#6E6E6E", "#D0D0D0"
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, WINE, OLIVE, INDIGO = "#E69F00", "#56B4E9", "#882255", "#999933", "#332288"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK, WINE, OLIVE, INDIGO)
"""Of Okabe and Ito, without the yellow that white paper swallows; then three of Tol's."""
MARKERS = "os^DvP*"
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (4, 1.5, 1, 1.5)), (0, (1, 1.2)), (0, (7, 2)))
LOOK: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "figure.titlesize": TEXT,
    "figure.labelsize": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
    "axes.labelpad": 2.0,
    "axes.titlepad": 3.0,
    "lines.linewidth": 1.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "pdftime",
    "pdf.fonttype": 42,
}

P = ParamSpec("P")


class Look(NamedTuple):
    """How one of several classes or lines is drawn; no two of the first 70 are alike."""

    colour: str
    marker: str
    dashes: Any


def look_of(number: int) -> Look:
    """
    >>> len({look_of(number)[:2] for number in range(70)})
    70
    """
    turn, place = divmod(number, len(COLOURS))
    return Look(COLOURS[place], MARKERS[(place + turn) % len(MARKERS)], DASHES[number % len(DASHES)])


def need_matplotlib() -> None:
    """A clear sentence where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError("Figures need matplotlib: pip install 'pdftime[figures]'.") from error


@contextmanager
def look() -> Iterator[None]:
    """Our look for as long as something is drawn."""
    need_matplotlib()
    import matplotlib

    with matplotlib.rc_context(LOOK):
        yield


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A drawing function in our look, whose texts stand as they were given: `a_$b$` is no formula."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with look():
            figure = draw(*args, **kwargs)
            _keep_texts(figure)
        return figure

    return drawn


def _keep_texts(figure: Figure) -> None:
    """No text is a formula, and ticks that are made later look like those made now."""
    from matplotlib.text import Text

    for axes in figure.axes:
        axes.tick_params(labelsize=SMALL)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)
        text.set_usetex(False)


def new_figure(width: float, height: float, *, square: bool = False) -> Figure:
    """An empty figure, in inches, that makes room for its own labels; `square` panels are kept close together."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise ConfigError(
            f"width is {width:g} inches; expected {MIN_WIDTH:g} to {MAX_WIDTH:g}. "
            f"A column of text is {COLUMN:g} wide, a page {PAGE:g}."
        )
    room = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02, compress=square)
    return Figure(figsize=(width, height), facecolor="white", layout=room)


def signed_colours() -> Colormap:
    """What speaks against is vermillion, what speaks for is blue; pale enough for a black line on top."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("signed", ["#DE7A33", "#F4C3A3", "#FFFFFF", "#A3CFE8", "#3D97CC"])


def name_of(label: Any) -> str:
    """A class label or a channel's name on one line, without what cannot be printed.

    >>> name_of(1.0), name_of("a_$b$"), name_of(b"up\\n")
    ('1', 'a_$b$', 'up')
    """
    text = text_of(label)
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split()) or "(no name)"


def short(label: Any, n_letters: int) -> str:
    """A name of at most so many letters; of a longer one the end is left out.

    >>> short("walking upstairs", 8)
    'walking…'
    """
    name = name_of(label)
    return name if len(name) <= n_letters else name[: max(n_letters - 1, 1)].rstrip() + "…"


def room_for(inches: float, points: float = TEXT) -> int:
    """How many letters fit on a line.

    >>> room_for(3.4)
    64
    """
    return max(int(inches * 72 / (points * LETTER)), 4)


def wrapped(text: str, inches: float, points: float = TEXT) -> str:
    """A text in lines of this width."""
    return textwrap.fill(text, room_for(inches, points))


def headline(figure: Figure, text: str) -> None:
    """A sentence over the whole figure."""
    figure.suptitle(wrapped(text, figure.get_figwidth() - 0.2), x=0.5, ha="center")


def legend(target: Figure | Axes, entries: Sequence[tuple[Artist, str]], **options: Any) -> None:
    """A legend of exactly these artists and names, also of names that begin with an underscore."""
    options = {"frameon": False, "handlelength": 1.8, "columnspacing": 1.2, "handletextpad": 0.5, **options}
    target.legend([artist for artist, _ in entries], [name for _, name in entries], **options)


def legend_below(figure: Figure, entries: Sequence[tuple[Artist, str]]) -> None:
    """A legend under the panels, in as many columns as the width holds."""
    inches = [0.4 + LETTER * len(name) * SMALL / 72 for _, name in entries]
    columns = len(entries)
    while columns > 1 and _legend_width(inches, columns) > figure.get_figwidth() - 0.1:
        columns -= 1
    legend(figure, entries, loc="outside lower center", ncols=columns)


def _legend_width(inches: Sequence[float], columns: int) -> float:
    """The width of entries that are dealt to columns one column after the other, the first ones one longer."""
    rows, longer = divmod(len(inches), columns)
    ends = [(place + 1) * rows + min(place + 1, longer) for place in range(columns)]
    return sum(max(inches[start:end]) for start, end in pairwise([0, *ends]))
