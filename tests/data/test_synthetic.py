"""Generated problems: deterministic, balanced, learnable, and decided where they say and nowhere else."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier

from pdftime.data.series import SeriesSet
from pdftime.data.synthetic import MOTIFS, PROBLEMS, make_problem
from pdftime.errors import ConfigError

PLANTED = ["lowvar", "pulses", "ramps", "decoy"]  # of varying width, or where the place is part of the class
WITH_SIGNAL = [name for name in PROBLEMS if name not in ("noise", *PLANTED)]
IN_TIME = [name for name in WITH_SIGNAL if name != "frequency"]
VARIANTS = [(name, {}) for name in WITH_SIGNAL] + [
    ("motifs", {"motifs_per_class": 1}),
    ("motifs", {"motifs_per_class": 4}),
]


def parts(problem):
    """(series, moments, groups) of the training and of the fresh cases."""
    return (
        (problem.train, problem.train_moments, problem.train_groups),
        (problem.fresh, problem.fresh_moments, problem.fresh_groups),
    )


def band(problem):
    """Which Fourier coefficients of a series lie in the discriminative band."""
    found = np.fft.rfftfreq(problem.train.n_timepoints)
    low, high = problem.frequencies
    return (low < found) & (found < high)


def inside(problem):
    """What the answer says decides the class, one flat array per part."""
    if problem.frequencies:
        return [np.abs(np.fft.rfft(cases.X[:, 0])[:, band(problem)]) for cases, _, _ in parts(problem)]
    return [cases.X[moments].reshape(len(cases), -1) for cases, moments, _ in parts(problem)]


def refilled(problem):
    """The series with values from elsewhere in the place of what decides the class, one (n, c, t) array per part."""
    rng = np.random.default_rng(5)
    return [
        np.where(moments, rng.choice(cases.X[~moments], cases.X.shape), cases.X)
        for cases, moments, _ in parts(problem)
    ]


def outside(problem):
    """The series without what decides the class, one (n, c, t) array per part."""
    if problem.frequencies:
        spectra = [np.fft.rfft(cases.X) * ~band(problem) for cases, _, _ in parts(problem)]
        return [np.fft.irfft(spectrum, problem.train.n_timepoints) for spectrum in spectra]
    return [np.nan_to_num(np.where(moments, 0, cases.X)) for cases, moments, _ in parts(problem)]


def nearest_neighbour_accuracy(problem, features):
    train, fresh = (part.reshape(len(part), -1) for part in features)
    return KNeighborsClassifier(3).fit(train, problem.train.y).score(fresh, problem.fresh.y)


def convolution_accuracy(problem, series, n_kernels=300):
    """Random dilated kernels, each on one channel: share, maximum and mean place of outputs; then ridge."""
    rng = np.random.default_rng(7)
    n_train = len(series[0])
    X = np.nan_to_num(np.concatenate(series))
    _, n_channels, n_timepoints = X.shape
    features = []
    for _ in range(n_kernels):
        kernel = rng.standard_normal(7)
        dilation = int(2 ** rng.uniform(0, np.log2((n_timepoints - 1) / 6)))
        x = np.pad(X[:, rng.integers(n_channels)], ((0, 0), (3 * dilation, 3 * dilation)))
        out = sum(weight * x[:, i * dilation :][:, :n_timepoints] for i, weight in enumerate(kernel))
        high = out > rng.choice(out[:n_train].ravel())
        place = (high * np.arange(n_timepoints)).sum(1) / (1 + high.sum(1))
        features += [high.mean(1), out.max(1), place]
    table = np.stack(features, axis=1)
    table = (table - table[:n_train].mean(0)) / (table[:n_train].std(0) + 1e-9)
    ridge = RidgeClassifierCV(np.logspace(0, 4, 5)).fit(table[:n_train], problem.train.y)
    return ridge.score(table[n_train:], problem.fresh.y)


def beyond_chance(accuracy, problem):
    """Distance from guessing, in standard deviations of a binomial count."""
    chance = 1 / len(set(problem.train.y.tolist()))
    return abs(accuracy - chance) / np.sqrt(chance * (1 - chance) / len(problem.fresh))


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_the_marked_moments_alone_tell_the_class(name, options):
    problem = make_problem(name, **options)
    assert nearest_neighbour_accuracy(problem, inside(problem)) >= 0.97


@pytest.mark.parametrize("name", WITH_SIGNAL)
def test_whole_series_are_learnable(name):
    problem = make_problem(name)
    accuracy = convolution_accuracy(problem, [problem.train.X, problem.fresh.X])
    assert accuracy >= 0.95


@pytest.mark.parametrize("motifs_per_class", [1, 4])
def test_one_and_four_motifs_per_class_are_learnable(motifs_per_class):
    problem = make_problem("motifs", motifs_per_class=motifs_per_class)
    assert convolution_accuracy(problem, [problem.train.X, problem.fresh.X]) >= 0.95


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_outside_the_marked_moments_tells_the_class(name):
    problem = make_problem(name, n_fresh=900)
    rest = refilled(problem) if name in PLANTED else outside(problem)
    assert beyond_chance(convolution_accuracy(problem, rest), problem) < 4
    assert beyond_chance(nearest_neighbour_accuracy(problem, rest), problem) < 4


@pytest.mark.parametrize("name", IN_TIME)
def test_moments_marked_in_the_wrong_place_would_be_noticed(name):
    problem = make_problem(name, n_fresh=900)
    shifted = [np.roll(moments, 8, axis=2) for _, moments, _ in parts(problem)]
    leaking = replace(problem, train_moments=shifted[0], fresh_moments=shifted[1])
    assert beyond_chance(convolution_accuracy(leaking, outside(leaking)), leaking) > 6


@pytest.mark.parametrize("name", IN_TIME)
def test_where_the_moments_lie_does_not_tell_the_class(name):
    problem = make_problem(name, n_fresh=900)
    places = [problem.train_moments, problem.fresh_moments]
    assert beyond_chance(nearest_neighbour_accuracy(problem, places), problem) < 4


def test_lengths_of_series_do_not_tell_the_class():
    problem = make_problem("lengths", n_fresh=900)
    sizes = [problem.train.lengths, problem.fresh.lengths]
    assert beyond_chance(nearest_neighbour_accuracy(problem, sizes), problem) < 4


def test_wrong_channels_hold_the_same_motifs_without_meaning():
    problem = make_problem("channels", n_fresh=900)
    others = [cases.X[:, [0, 1, 3]] for cases, _, _ in parts(problem)]
    assert beyond_chance(convolution_accuracy(problem, others), problem) < 4
    assert problem.train_moments.any(axis=(0, 2)).tolist() == [False, False, True, False]
    power = problem.train.X.astype(float).var(axis=(0, 2))
    assert power.max() / power.min() < 1.2


def test_order_cannot_be_told_from_the_marked_values_in_any_order():
    problem = make_problem("order", n_fresh=900)
    unordered = [np.sort(part, axis=1) for part in inside(problem)]
    assert beyond_chance(nearest_neighbour_accuracy(problem, unordered), problem) < 4


@pytest.mark.parametrize("name", ["lowvar", "pulses", "decoy"])
def test_planted_series_are_learnable(name):
    problem = make_problem(name)
    assert convolution_accuracy(problem, [problem.train.X, problem.fresh.X]) >= 0.9


def test_lowvar_is_a_quiet_stretch_whose_channel_and_sign_make_the_class():
    problem = make_problem("lowvar")
    for cases, moments, _ in parts(problem):
        assert cases.X.shape[1:] == (2, 200)
        widths = moments.sum(axis=(1, 2))
        assert widths.min() == 10
        assert widths.max() == 20
        for x, marked, label in zip(cases.X, moments, cases.y, strict=True):
            channel = int(marked.any(axis=1).argmax())
            assert marked.any(axis=1).sum() == 1
            quiet = x[marked]
            assert quiet.std() < 0.25
            assert abs(abs(quiet.mean()) - 1.5) < 0.15
            assert label == f"{('first', 'second')[channel]} {'high' if quiet.mean() > 0 else 'low'}"
        assert 0.9 < cases.X[~moments].std() < 1.1
    still = make_problem("lowvar", noise_level=0.0)
    rest = still.train.X[:, :, 5:][~still.train_moments[:, :, 5:]]  # the autoregressive part alone
    assert 0.05 < rest.std() < 0.3
    assert 0.2 < rest.mean() < 0.4


def test_pulses_come_as_often_as_their_class_says():
    problem = make_problem("pulses", noise_level=0.0)
    for x, marked, label in zip(problem.train.X[:, 0], problem.train_moments[:, 0], problem.train.y, strict=True):
        starts = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(int)])) == 1)
        assert set(np.diff(starts)) == {10 if "often" in label else 17}
        assert marked.sum() == (x != 0.0).sum() == 6 * len(starts)
        assert all((x[start] > 0.0) == label.startswith("up") for start in starts)


def test_ramps_rise_and_fall_as_their_class_says_in_two_channels():
    problem = make_problem("ramps", noise_level=0.0)
    assert problem.train.n_channels == 4
    for x, marked, label in zip(problem.train.X, problem.train_moments, problem.train.y, strict=True):
        channels = np.flatnonzero(marked.any(axis=1))
        assert len(channels) == 2
        words = []
        for channel in sorted(channels, key=lambda channel: int(marked[channel].argmax())):
            ramp = x[channel, marked[channel]]
            words.append("rising" if ramp[-1] > ramp[0] else "falling")
        assert ", ".join(words) == label


def test_only_early_bumps_of_two_channels_count_in_decoy():
    problem = make_problem("decoy", noise_level=0.0)
    assert problem.train.X.shape[1:] == (3, 100)
    assert not problem.train_moments[:, 2].any()
    assert not problem.train_moments[:, :, 40:].any()
    assert (problem.train_moments.any(axis=2) == [True, True, False]).all()
    for x, marked, label in zip(problem.train.X, problem.train_moments, problem.train.y, strict=True):
        words = ["bump" if x[channel, marked[channel]].sum() > 0 else "dip" for channel in (0, 1)]
        assert ", ".join(words) == label
    assert (np.abs(problem.train.X[:, :, 40:]).max(axis=2) > 0.5).all()  # the decoys are there


def test_noise_marks_no_moment_and_cannot_be_learned():
    problem = make_problem("noise")
    assert not problem.train_moments.any()
    assert not problem.fresh_moments.any()
    accuracy = convolution_accuracy(problem, [problem.train.X, problem.fresh.X])
    assert beyond_chance(accuracy, problem) < 4


def test_frequency_marks_all_moments_and_a_band_that_holds_the_class():
    problem = make_problem("frequency")
    assert problem.train_moments.all()
    low, high = problem.frequencies
    assert 0 < low < high < 0.25  # the meaningless oscillations begin at a quarter cycle per time point
    assert type(low) is float


@pytest.mark.parametrize("name", PROBLEMS)
def test_parts_have_the_form_they_promise(name):
    problem = make_problem(name)
    assert problem.name == name
    assert problem.description.endswith(".")
    for cases, moments, groups in parts(problem):
        assert isinstance(cases, SeriesSet)
        assert cases.X.dtype == np.float32
        assert cases.n_timepoints == (200 if name in ("lowvar", "ramps") else 100)
        assert moments.shape == cases.X.shape
        assert moments.dtype == bool
        assert cases.y.dtype.kind == "U"
        assert not cases.has_missing
        assert (groups is not None) == (name == "motifs")
    assert (400 <= len(problem.train) <= 1000) if name in PLANTED else (90 <= len(problem.train) <= 120)
    assert 150 <= len(problem.fresh) <= 300
    assert problem.train.channel_names == problem.fresh.channel_names


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n_cases", [90, 100, 101])
def test_classes_are_balanced(name, n_cases):
    problem = make_problem(name, n_cases=n_cases, n_fresh=n_cases)
    for cases, _, _ in parts(problem):
        counts = np.unique(cases.y, return_counts=True)[1]
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == n_cases


@pytest.mark.parametrize("name", PROBLEMS)
def test_same_seed_gives_the_same_problem_and_another_seed_another(name):
    once, twice, other = make_problem(name, seed=3), make_problem(name, seed=3), make_problem(name, seed=4)
    for one, two, three in zip(parts(once), parts(twice), parts(other), strict=True):
        np.testing.assert_array_equal(one[0].X, two[0].X)
        np.testing.assert_array_equal(one[0].y, two[0].y)
        np.testing.assert_array_equal(one[1], two[1])
        assert not np.array_equal(one[0].X, three[0].X, equal_nan=True)
    assert not np.array_equal(once.train.X[:60], once.fresh.X[:60], equal_nan=True)


@pytest.mark.parametrize("name", PROBLEMS)
def test_fresh_cases_do_not_depend_on_the_number_of_training_cases(name):
    few, many = make_problem(name, n_cases=10), make_problem(name, n_cases=50)
    np.testing.assert_array_equal(few.fresh.X, many.fresh.X)
    np.testing.assert_array_equal(few.fresh.y, many.fresh.y)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_global_generator_is_neither_used_nor_touched(name):
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    first = make_problem(name).train.X
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(1)
    np.testing.assert_array_equal(make_problem(name).train.X, first)


def test_motifs_tell_which_motif_each_case_holds():
    problem = make_problem("motifs", motifs_per_class=4, n_cases=120)
    assert np.unique(problem.train_groups, return_counts=True)[1].tolist() == [10] * 12
    for group in range(12):
        assert len(set(problem.train.y[problem.train_groups == group].tolist())) == 1
    templates = np.stack([inside(problem)[0][problem.train_groups == group].mean(axis=0) for group in range(12)])
    nearest = np.argmin(((inside(problem)[1][:, None] - templates) ** 2).sum(axis=2), axis=1)
    assert (nearest == problem.fresh_groups).mean() >= 0.97


def test_motifs_of_one_class_are_quite_different():
    shapes = np.stack([shape(np.linspace(0, 1, 25)) for shape in MOTIFS.values()])
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    for first in range(12):
        for second in range(first + 1, 12):
            overlap = np.correlate(shapes[first], shapes[second], "full").max()
            assert overlap < (0.8 if first // 4 == second // 4 else 0.9), (first, second, overlap)


def test_lengths_vary_and_moments_stay_inside():
    problem = make_problem("lengths")
    for cases, moments, _ in parts(problem):
        assert cases.lengths.min() < 50
        assert cases.lengths.max() == 100
        behind = np.arange(100) >= cases.lengths[:, None]
        assert not moments[:, 0][behind].any()
        assert np.isnan(cases.X[:, 0][behind]).all()
        assert (moments.sum(axis=(1, 2)) == 20).all()
    assert make_problem("lengths", shortest=90).train.lengths.min() >= 90


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_fraction_of_values_can_be_missing_without_shortening_a_series(name):
    whole, holed = make_problem(name), make_problem(name, missing=0.2)
    assert holed.train.has_missing
    np.testing.assert_array_equal(whole.train.lengths, holed.train.lengths)
    known = ~np.isnan(holed.train.X)
    np.testing.assert_array_equal(holed.train.X[known], whole.train.X[known])
    inner = np.arange(whole.train.n_timepoints) < whole.train.lengths[:, None, None]
    lost = np.isnan(holed.train.X)[np.broadcast_to(inner, known.shape)].mean()
    assert 0.15 < lost < 0.25
    np.testing.assert_array_equal(whole.fresh_moments, holed.fresh_moments)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("n_timepoints", [60, 173])
def test_other_lengths_keep_the_class_in_the_moments(name, options, n_timepoints):
    problem = make_problem(name, n_timepoints=n_timepoints, **options)
    assert problem.train.n_timepoints == n_timepoints
    assert nearest_neighbour_accuracy(problem, inside(problem)) >= 0.95


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_takes_the_common_options(name):
    found = inspect.signature(PROBLEMS[name]).parameters
    assert list(found)[:3] == ["n_cases", "n_timepoints", "seed"]
    assert {"n_fresh", "noise_level", "missing"} <= set(found)
    assert PROBLEMS[name].__name__ == name


def test_an_unknown_problem_is_refused_with_the_known_names():
    with pytest.raises(ConfigError, match="no problem 'motif'; choose one of motifs, channels"):
        make_problem("motif")


def test_an_unknown_option_is_refused_with_the_known_options():
    with pytest.raises(ConfigError, match="'order' has no option 'n_channels'; it has n_cases, n_timepoints"):
        make_problem("order", n_channels=3)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("motifs", {"motifs_per_class": 5}, "motifs_per_class is 5; expected a whole number from 1 to 4"),
        ("motifs", {"motifs_per_class": 0}, "motifs_per_class is 0"),
        ("motifs", {"n_cases": 2}, "n_cases is 2; expected a whole number at least 3"),
        ("motifs", {"n_cases": 12.0}, "n_cases is 12.0"),
        ("order", {"n_fresh": 0}, "n_fresh is 0"),
        ("order", {"n_timepoints": 30}, "n_timepoints is 30; expected a whole number at least 60"),
        ("order", {"seed": -1}, "seed is -1"),
        ("order", {"missing": 1.0}, "missing is 1.0"),
        ("order", {"missing": float("nan")}, "missing is nan"),
        ("order", {"noise_level": -1.0}, "noise_level is -1.0"),
        ("channels", {"channel": 4}, "channel is 4; expected a whole number from 0 to 3"),
        ("channels", {"n_channels": 1}, "n_channels is 1"),
        ("lengths", {"shortest": 10}, "shortest is 10; expected a whole number from 20 to 100"),
    ],
)
def test_an_impossible_option_is_refused_by_name(name, options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make_problem(name, **options)
