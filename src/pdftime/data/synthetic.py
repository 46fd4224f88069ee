"""Generated problems with known answers: which moments, channels or frequencies make the class.

Every problem comes from `default_rng([seed, crc32(name)])`; the fresh cases do not depend on how many
training cases there are. Classes are balanced, and nothing outside the marked moments tells the class.
`noise_level` is the standard deviation of the noise beside motifs of about unit power, `missing` the fraction
of values that are lost (NaN), wherever they lie.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """A generated problem: cases to learn from, fresh cases of the same kind, and where the class is made."""

    name: str
    """The name in `PROBLEMS`."""
    description: str
    """What makes the class, in a sentence."""
    train: SeriesSet
    """Labelled cases to learn from."""
    fresh: SeriesSet
    """Labelled cases of the same kind, drawn independently."""
    train_moments: Mask
    """(n_cases, n_channels, n_timepoints), true where the class of a training case is made."""
    fresh_moments: Mask
    """The same for the fresh cases."""
    frequencies: tuple[float, float] | None = None
    """The band that makes the class, in cycles per time point; None if time makes it."""
    train_groups: Ints | None = None
    """(n_cases,) number of the motif in each training case, if a class has several; None otherwise."""
    fresh_groups: Ints | None = None
    """The same for the fresh cases."""


class Drawn(NamedTuple):
    """Cases as a problem draws them, before they are checked and named."""

    X: Floats
    y: Ints
    moments: Mask
    groups: Ints | None = None
    lengths: Ints | None = None


MOTIFS: dict[str, Callable[[Floats], Floats]] = {
    # four at a time make one class of `motifs`
    "bump": lambda u: np.sin(np.pi * u),
    "chirp": lambda u: np.sin(2 * np.pi * (u + 2.5 * u**2)),
    "spikes": lambda u: (np.abs(u - 0.15) < 0.1) * 1.0 + (np.abs(u - 0.85) < 0.1) * 1.0,
    "saw": lambda u: 2 * ((2 * u) % 1) - 1,
    "dip": lambda u: -np.sin(np.pi * u),
    "burst": lambda u: np.sin(2 * np.pi * 6 * u),
    "steps": lambda u: np.where(u < 0.5, 1.0, -1.0),
    "notch": lambda u: np.where(np.abs(u - 0.5) < 0.2, -1.0, 0.5),
    "ramp": lambda u: 2 * u - 1,
    "wave": lambda u: np.sin(2 * np.pi * 3 * u),
    "box": lambda u: np.where(np.abs(u - 0.5) < 0.2, 1.0, -0.5),
    "trill": lambda u: np.sin(2 * np.pi * (6 * u - 2.5 * u**2)),
}
"""Shapes over 0 <= u <= 1 that are planted into noise."""


def motifs(
    n_cases: int = 120,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    motifs_per_class: int = 2,
    n_fresh: int = 240,
    noise_level: float = 0.4,
    missing: float = 0.0,
) -> Problem:
    """Three classes, each of several quite different motifs; one of them is planted somewhere in noise."""
    _check_range("motifs_per_class", motifs_per_class, 1, 4)
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("alpha", "beta", "gamma")
    names = list(MOTIFS)
    width = n_timepoints // 4

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, variant = _balanced(rng, n, len(classes), motifs_per_class)
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        starts = rng.integers(0, n_timepoints - width + 1, n)
        for case in range(n):
            here = np.s_[case, 0, starts[case] : starts[case] + width]
            X[here] += _motif(rng, names[4 * y[case] + variant[case]], width)
            moments[here] = True
        return Drawn(X, y, moments, groups=y * motifs_per_class + variant)

    description = f"The class is one of {motifs_per_class} motifs of its own, planted somewhere in noise."
    return _problem("motifs", description, classes, draw, size)


def channels(
    n_cases: int = 120,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_channels: int = 4,
    channel: int = 2,
    n_fresh: int = 240,
    noise_level: float = 0.5,
    missing: float = 0.0,
) -> Problem:
    """Several channels; the motif in one of them makes the class, the others hold motifs without meaning."""
    _check_range("n_channels", n_channels, 2)
    _check_range("channel", channel, 0, n_channels - 1)
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("bump", "saw", "wave")
    width = n_timepoints // 4

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, n_channels, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        starts = rng.integers(0, n_timepoints - width + 1, (n, n_channels))
        decoys = rng.integers(0, len(classes), (n, n_channels))
        for case, each in np.ndindex(n, n_channels):
            here = np.s_[case, each, starts[case, each] : starts[case, each] + width]
            X[here] += _motif(rng, classes[y[case] if each == channel else decoys[case, each]], width)
            moments[here] = each == channel
        return Drawn(X, y, moments)

    description = f"The motif in channel {channel} makes the class; the same motifs elsewhere mean nothing."
    return _problem("channels", description, classes, draw, size)


def frequency(
    n_cases: int = 90,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 0.8,
    missing: float = 0.0,
) -> Problem:
    """The frequency of a lasting oscillation of random phase makes the class; a faster one means nothing."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("slow", "medium", "quick")
    cycles = np.round(n_timepoints * np.array([0.06, 0.1, 0.14]))  # whole cycles: no leakage out of the band
    decoys = np.arange(n_timepoints // 4, 2 * n_timepoints // 5)
    time = np.arange(n_timepoints) / n_timepoints

    def oscillation(rng: np.random.Generator, cycles: NDArray[Any]) -> Floats:
        phase = rng.uniform(0, 1, (len(cycles), 1, 1))
        sine: Floats = np.sin(2 * np.pi * (cycles[:, None, None] * time + phase))
        return sine * rng.uniform(0.8, 1.2, phase.shape)

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        X += oscillation(rng, cycles[y]) + oscillation(rng, rng.choice(decoys, n))
        return Drawn(X, y, np.ones(X.shape, bool))

    return _problem(
        "frequency",
        "The frequency of the slower of two oscillations makes the class, at any phase and at all moments.",
        classes,
        draw,
        size,
        frequencies=(float(cycles[0] - 0.5) / n_timepoints, float(cycles[-1] + 0.5) / n_timepoints),
    )


def lengths(
    n_cases: int = 90,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    shortest: int | None = None,
    n_fresh: int = 240,
    noise_level: float = 0.5,
    missing: float = 0.0,
) -> Problem:
    """Series of unequal length, from `shortest` (two fifths of the longest) on; a motif makes the class."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("bump", "saw", "steps")
    width = n_timepoints // 5
    least = 2 * width if shortest is None else shortest
    _check_range("shortest", least, width, n_timepoints)

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        ends = rng.integers(least, n_timepoints + 1, n)
        ends[0] = n_timepoints  # the array is as long as its longest series
        starts = rng.integers(0, ends - width + 1)
        for case in range(n):
            here = np.s_[case, 0, starts[case] : starts[case] + width]
            X[here] += _motif(rng, classes[y[case]], width)
            moments[here] = True
            X[case, :, ends[case] :] = np.nan
        return Drawn(X, y, moments, lengths=ends)

    description = "A motif somewhere in noise makes the class; the length of the series means nothing."
    return _problem("lengths", description, classes, draw, size)


def order(
    n_cases: int = 120,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 0.5,
    missing: float = 0.0,
) -> Problem:
    """Both classes hold the same two motifs; which of them comes first makes the class."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("bump first", "saw first")
    width = n_timepoints // 5
    room = n_timepoints - 2 * width

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        starts = np.sort(rng.integers(0, room + 1, (n, 2)), axis=1) + np.array([0, width])
        for case in range(n):
            for motif, start in zip(("bump", "saw"), starts[case, :: 1 - 2 * y[case]], strict=True):
                here = np.s_[case, 0, start : start + width]
                X[here] += _motif(rng, motif, width)
                moments[here] = True
        return Drawn(X, y, moments)

    description = "Every series holds a bump and a saw; which of them comes first makes the class."
    return _problem("order", description, classes, draw, size)


def lowvar(
    n_cases: int = 1000,
    n_timepoints: int = 200,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 1.0,
    missing: float = 0.0,
) -> Problem:
    """The field's LowVar: in one of two noisy channels values stay near +1.5 or -1.5 for 10 to 20 time points.

    The values of the quiet stretch are N(+-1.5, 0.1); the class is the channel and the sign. The noise around it is
    autoregressive (NARMA of order 2) with white noise on top.
    """
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("first low", "first high", "second low", "second high")

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _autoregressive(rng, (n, 2, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        widths = rng.integers(10, 21, n)
        starts = rng.integers(0, n_timepoints - widths + 1)
        for case in range(n):
            here = np.s_[case, y[case] // 2, starts[case] : starts[case] + widths[case]]
            X[here] = rng.normal(1.5 if y[case] % 2 else -1.5, 0.1, widths[case])
            moments[here] = True
        return Drawn(X, y, moments)

    description = "A short quiet stretch at +1.5 or -1.5 in one of two channels; channel and sign make the class."
    return _problem("lowvar", description, classes, draw, size)


def pulses(
    n_cases: int = 400,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 0.25,
    missing: float = 0.0,
) -> Problem:
    """Shapes defined by frequency: pulses, up then down or down then up, every 10 or every 17 time points.

    Which shape and how often make the class. The rest of the series is noise; but where the pulses lie tells how
    often they come, so a map must name all of them.
    """
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("up, often", "down, often", "up, rarely", "down, rarely")
    pulse = np.array([1.75, 2.0, 1.75, -1.75, -2.0, -1.75])

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        for case in range(n):
            period = 10 if y[case] < 2 else 17
            cells = np.arange(rng.integers(period), n_timepoints - len(pulse) + 1, period)[:, None] + np.arange(6)
            X[case, 0, cells] += pulse if y[case] % 2 == 0 else -pulse
            moments[case, 0, cells] = True
        return Drawn(X, y, moments)

    description = "Pulses of two shapes come every 10 or every 17 time points; shape and frequency make the class."
    return _problem("pulses", description, classes, draw, size)


def ramps(
    n_cases: int = 400,
    n_timepoints: int = 200,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 0.5,
    missing: float = 0.0,
) -> Problem:
    """Combinations: one after the other, two ramps in two of four channels; which of them rise makes the class."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("falling, falling", "rising, rising", "rising, falling")
    rising = np.array([[False, False], [True, True], [True, False]])

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _autoregressive(rng, (n, 4, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        widths = rng.integers(15, 31, (n, 2))
        for case in range(n):
            first = rng.integers(0, n_timepoints // 2 - widths[case, 0] + 1)
            second = rng.integers(n_timepoints // 2, n_timepoints - widths[case, 1] + 1)
            places = zip(rng.permutation(4)[:2], (first, second), widths[case], rising[y[case]], strict=True)
            for channel, start, width, up in places:
                here = np.s_[case, channel, start : start + width]
                X[here] += np.linspace(-2.0, 2.0, width) * (1.0 if up else -1.0)
                moments[here] = True
        return Drawn(X, y, moments)

    description = "Two ramps, one after the other, in two of four channels; which of them rise makes the class."
    return _problem("ramps", description, classes, draw, size)


def decoy(
    n_cases: int = 400,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_fresh: int = 240,
    noise_level: float = 0.4,
    missing: float = 0.0,
) -> Problem:
    """Three channels, all with bumps and dips; only the first two matter, and only in the first 40% of the time."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("dip, dip", "dip, bump", "bump, dip", "bump, bump")
    early = 2 * n_timepoints // 5
    width = n_timepoints // 8

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 3, n_timepoints), noise_level)
        moments = np.zeros(X.shape, bool)
        signs = rng.choice([-1.0, 1.0], (n, 3, 2))
        signs[:, 0, 0], signs[:, 1, 0] = 2.0 * (y // 2) - 1.0, 2.0 * (y % 2) - 1.0
        for case, channel, late in np.ndindex(n, 3, 2):
            start = rng.integers(early, n_timepoints - width + 1) if late else rng.integers(0, early - width + 1)
            here = np.s_[case, channel, start : start + width]
            X[here] += signs[case, channel, late] * _motif(rng, "bump", width)
            moments[here] = channel < 2 and not late
        return Drawn(X, y, moments)

    description = "Signs of early bumps in two of three channels make the class; all other bumps mean nothing."
    return _problem("decoy", description, classes, draw, size)


def noise(
    n_cases: int = 90,
    n_timepoints: int = 100,
    seed: int = 0,
    *,
    n_fresh: int = 300,
    noise_level: float = 1.0,
    missing: float = 0.0,
) -> Problem:
    """Nothing but noise with labels by chance: whoever does better than chance has seen the answers."""
    size = _Size(n_cases, n_fresh, n_timepoints, seed, missing)
    classes = ("heads", "tails")

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        y, _ = _balanced(rng, n, len(classes))
        X = _noise(rng, (n, 1, n_timepoints), noise_level)
        return Drawn(X, y, np.zeros(X.shape, bool))

    description = "Nothing makes the class: noise with labels by chance."
    return _problem("noise", description, classes, draw, size)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "motifs": motifs,
    "channels": channels,
    "frequency": frequency,
    "lengths": lengths,
    "order": order,
    "lowvar": lowvar,
    "pulses": pulses,
    "ramps": ramps,
    "decoy": decoy,
    "noise": noise,
}
"""Every problem by its name."""


def make_problem(name: str, **options: Any) -> Problem:
    """The problem of this name; options are the arguments of its function.

    >>> from pdftime.data.synthetic import make_problem
    >>> problem = make_problem("order", n_cases=4, n_fresh=2)
    >>> problem.train.X.shape, sorted(problem.train.y.tolist())
    ((4, 1, 100), ['bump first', 'bump first', 'saw first', 'saw first'])
    """
    if name not in PROBLEMS:
        raise ConfigError(f"There is no problem {name!r}; choose one of {', '.join(PROBLEMS)}.")
    known = inspect.signature(PROBLEMS[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ConfigError(f"Problem {name!r} has no option {unknown[0]!r}; it has {', '.join(known)}.")
    return PROBLEMS[name](**options)


@dataclass(frozen=True)
class _Size:
    """What every problem is asked for."""

    n_cases: int
    n_fresh: int
    n_timepoints: int
    seed: int
    missing: float

    def __post_init__(self) -> None:
        _check_range("n_fresh", self.n_fresh, 1)
        _check_range("n_timepoints", self.n_timepoints, 60)  # finer motifs than that would look alike
        _check_range("seed", self.seed, 0)
        if not 0 <= self.missing < 1:
            raise ConfigError(f"missing is {self.missing}; expected a fraction, at least 0 and below 1.")


def _problem(
    name: str,
    description: str,
    classes: tuple[str, ...],
    draw: Callable[[np.random.Generator, int], Drawn],
    size: _Size,
    *,
    frequencies: tuple[float, float] | None = None,
) -> Problem:
    """Training and fresh cases of a problem, each from a generator of its own."""
    _check_range("n_cases", size.n_cases, len(classes))
    parts = np.random.default_rng([size.seed, zlib.crc32(name.encode())]).spawn(2)
    train, fresh = draw(parts[0], size.n_cases), draw(parts[1], size.n_fresh)
    return Problem(
        name=name,
        description=description,
        train=_series(parts[0], train, classes, size.missing, name),
        fresh=_series(parts[1], fresh, classes, size.missing, f"{name}, fresh"),
        train_moments=train.moments,
        fresh_moments=fresh.moments,
        frequencies=frequencies,
        train_groups=train.groups,
        fresh_groups=fresh.groups,
    )


def _series(rng: np.random.Generator, drawn: Drawn, classes: tuple[str, ...], missing: float, name: str) -> SeriesSet:
    """Drawn cases through the door, in float32 and with a fraction of their values lost."""
    X = drawn.X.astype(np.float32)
    n_cases, _, n_timepoints = X.shape
    lengths = np.full(n_cases, n_timepoints) if drawn.lengths is None else drawn.lengths
    lost = rng.random(X.shape) < missing
    lost[:, :, 0] = False
    lost[np.arange(n_cases), :, lengths - 1] = False  # a lost end would make the series shorter
    X[lost] = np.nan
    return check_series(X, np.array(classes)[drawn.y], lengths=lengths, name=name)


def _balanced(rng: np.random.Generator, n_cases: int, n_classes: int, n_variants: int = 1) -> tuple[Ints, Ints]:
    """Class and variant of each case, in random order, every number of them as equal as can be."""
    position = rng.permutation(n_cases)
    return position % n_classes, position // n_classes % n_variants


def _noise(rng: np.random.Generator, shape: tuple[int, ...], level: float) -> Floats:
    if not 0 <= level < np.inf:
        raise ConfigError(f"noise_level is {level}; expected a standard deviation, at least 0.")
    return level * rng.standard_normal(shape)


def _autoregressive(rng: np.random.Generator, shape: tuple[int, int, int], level: float) -> Floats:
    """White noise of this level on a NARMA process of order 2 driven by uniform noise."""
    drive = rng.uniform(0.0, 0.5, shape)
    slow = np.zeros(shape)
    for t in range(2, shape[2]):
        before = slow[..., t - 1]
        recent = before + slow[..., t - 2]
        slow[..., t] = 0.3 * before + 0.05 * before * recent + 1.5 * drive[..., t - 2] * drive[..., t - 1] + 0.1
    return slow + _noise(rng, shape, level)


def _motif(rng: np.random.Generator, name: str, width: int) -> Floats:
    """A motif of about unit power."""
    shape = MOTIFS[name](np.linspace(0, 1, width))
    scaled: Floats = shape * rng.uniform(0.8, 1.2) / np.sqrt(np.mean(shape**2))
    return scaled


def _check_range(what: str, value: int, least: int, most: int | None = None) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{what} is {value!r}; expected a whole number {limits}.")
