"""check_series, the one door: what it lets in, what it makes of it, and the sentence for what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import DataError, DataTypeError, PDFTimeError

NUMERIC = [
    *(np.float16, np.float32, np.float64, np.longdouble),
    *(np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
    np.bool_,
]


def ones(*shape, dtype=float):
    return np.ones(shape, dtype)


# What is let in


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("shape", [(3, 2, 5), (3, 5)])
def test_a_numeric_array_is_neither_copied_nor_converted(dtype, shape):
    X = ones(*shape, dtype=dtype)
    cases = check_series(X)
    assert np.shares_memory(cases.X, X)
    assert cases.X.dtype == dtype
    assert cases.X.shape == (3, shape[1] if len(shape) == 3 else 1, 5)
    assert cases.lengths.tolist() == [5, 5, 5]
    assert cases.lengths.dtype == np.int64
    assert cases.equal_length
    assert not cases.has_missing
    assert cases.y is None


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::2],
        lambda X: X[:, :, ::-1],
        lambda X: X.transpose(0, 2, 1),
        np.asfortranarray,
        lambda X: X.astype(X.dtype.newbyteorder()),
        lambda X: np.broadcast_to(X[:1], X.shape),
    ],
    ids=["strided", "reversed", "transposed", "fortran", "big-endian", "broadcast"],
)
def test_any_memory_layout_is_taken_as_it_is(view):
    X = view(np.random.default_rng(0).normal(size=(4, 3, 6)))
    cases = check_series(X)
    assert np.shares_memory(cases.X, X)
    np.testing.assert_array_equal(cases.X, X)


def test_a_read_only_array_is_accepted_and_left_alone():
    X = np.random.default_rng(0).normal(size=(4, 3, 6))
    X.flags.writeable = False
    assert np.shares_memory(check_series(X).X, X)


def test_a_memory_mapped_array_stays_on_disk(tmp_path):
    path = tmp_path / "series.npy"
    np.save(path, np.random.default_rng(0).normal(size=(4, 3, 6)))
    X = np.load(path, mmap_mode="r")
    assert np.shares_memory(check_series(X).X, X)


def test_two_dimensions_mean_one_channel():
    X = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(check_series(X).X, X[:, None, :])


def test_nested_lists_of_numbers_are_an_array():
    assert check_series([[1, 2, 3], [4, 5, 6]]).X.shape == (2, 1, 3)
    assert check_series([[[1, 2, 3]], [[4, 5, 6]]]).X.shape == (2, 1, 3)


@pytest.mark.parametrize("container", [list, tuple, lambda items: np.array([*items, None], object)[:-1]])
@pytest.mark.parametrize("as_case", [np.asarray, np.ndarray.tolist], ids=["arrays", "lists"])
def test_cases_of_unequal_length_are_put_side_by_side(container, as_case):
    items = [np.full((2, 5), 1.0), np.full((2, 3), 2.0), np.full((2, 4), 3.0)]
    cases = check_series(container([as_case(item) for item in items]))
    assert cases.X.shape == (3, 2, 5)
    assert cases.lengths.tolist() == [5, 3, 4]
    assert not cases.equal_length
    assert not cases.has_missing
    for index, item in enumerate(items):
        np.testing.assert_array_equal(cases.series(index), item)
        assert np.isnan(cases.X[index, :, item.shape[1] :]).all()


def test_lists_of_one_dimensional_cases_have_one_channel():
    cases = check_series([np.arange(5.0), np.arange(3.0)])
    assert cases.X.shape == (2, 1, 5)
    assert cases.lengths.tolist() == [5, 3]


def test_a_list_of_cases_of_equal_length_is_an_array():
    cases = check_series([ones(2, 5), ones(2, 5)])
    assert cases.X.shape == (2, 2, 5)
    assert cases.equal_length


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((np.float32, np.float32), np.float32),
        ((np.float16, np.float32), np.float32),
        ((np.float32, np.float64), np.float64),
        ((np.int64, np.int64), np.float64),
        ((np.uint8, np.bool_), np.float32),
        ((np.longdouble, np.float32), np.longdouble),
    ],
)
def test_unequal_lengths_get_a_floating_type_that_holds_them_all(dtypes, expected):
    cases = check_series([ones(1, 3, dtype=dtypes[0]), ones(1, 2, dtype=dtypes[1])])
    assert cases.X.dtype == expected


def test_objects_that_are_numbers_become_floats():
    X = np.array([[1, 2.5, True], [np.int8(4), np.nan, 6]], object)
    cases = check_series(X)
    assert cases.X.dtype == np.float64
    np.testing.assert_array_equal(cases.X[:, 0], [[1, 2.5, 1], [4, np.nan, 6]])


def test_a_series_set_passes_the_door_unchanged():
    first = check_series([ones(2, 5), ones(2, 3)], ["a", "b"], channel_names=["u", "v"], name="pair")
    again = check_series(first)
    assert np.shares_memory(again.X, first.X)
    assert again.lengths.tolist() == [5, 3]
    assert again.y.tolist() == ["a", "b"]
    assert again.channel_names == ("u", "v")
    assert again.name == "pair"


def test_a_series_set_takes_what_is_given_beside_it():
    first = check_series(ones(2, 1, 4), ["a", "b"], channel_names=["u"], name="pair")
    again = check_series(first, [0, 1], lengths=[4, 2], channel_names=["w"], name="other")
    assert again.y.tolist() == [0, 1]
    assert again.lengths.tolist() == [4, 2]
    assert again.channel_names == ("w",)
    assert again.name == "other"


def test_a_list_and_the_same_series_padded_with_nan_are_one():
    padded = np.full((2, 2, 5), np.nan)
    padded[0], padded[1, :, :3] = 1.0, 2.0
    a, b = check_series([padded[0], padded[1, :, :3]]), check_series(padded)
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.lengths, b.lengths)


# Lengths and missing values


def test_a_tail_that_is_nan_in_every_channel_lies_behind_the_end():
    X = ones(3, 2, 6)
    X[1, :, 4:] = np.nan
    X[2, :, 1:] = np.nan
    cases = check_series(X)
    assert cases.lengths.tolist() == [6, 4, 1]
    assert not cases.has_missing
    assert cases.series(1).shape == (2, 4)


def test_a_tail_that_is_nan_in_some_channels_only_is_missing():
    X = ones(1, 2, 6)
    X[0, 0, 4:] = np.nan
    cases = check_series(X)
    assert cases.lengths.tolist() == [6]
    assert cases.has_missing


@pytest.mark.parametrize("time", [slice(0, 2), slice(2, 4)], ids=["beginning", "middle"])
def test_nan_before_the_last_value_is_missing(time):
    X = ones(2, 1, 6)
    X[0, :, time] = np.nan
    cases = check_series(X)
    assert cases.lengths.tolist() == [6, 6]
    assert cases.has_missing


def test_a_nan_tail_is_missing_where_lengths_say_that_it_belongs():
    X = ones(2, 1, 6)
    X[:, :, 4:] = np.nan
    cases = check_series(X, lengths=[6, 4])
    assert cases.lengths.tolist() == [6, 4]
    assert cases.has_missing
    assert not cases.take([1]).has_missing


def test_a_nan_tail_of_a_case_in_a_list_lies_behind_its_end_too():
    cases = check_series([np.array([[1.0, 2.0, np.nan]]), ones(1, 5)])
    assert cases.lengths.tolist() == [2, 5]


@pytest.mark.parametrize("dtype", NUMERIC)
def test_lengths_can_be_given_for_any_dtype(dtype):
    cases = check_series(ones(2, 1, 6, dtype=dtype), lengths=np.array([6, 2], np.uint8))
    assert cases.lengths.tolist() == [6, 2]
    assert cases.lengths.dtype == np.int64
    assert not cases.has_missing


def test_given_lengths_are_not_shared_with_the_caller():
    lengths = np.array([4, 4])
    cases = check_series(ones(2, 1, 6, dtype=np.float32), lengths=lengths)
    lengths[:] = 1
    assert cases.lengths.tolist() == [4, 4]


def test_tails_are_found_in_every_chunk(monkeypatch):
    monkeypatch.setattr(SeriesSet.chunks, "__defaults__", (7,))
    X = ones(5, 1, 6)
    X[3, :, 2:] = np.nan
    X[4, :, 0] = np.nan
    cases = check_series(X)
    assert cases.lengths.tolist() == [6, 6, 6, 2, 6]
    assert cases.has_missing
    X[2, 0, 1] = np.inf
    with pytest.raises(DataError, match="case 2, channel 0, time point 1"):
        check_series(X)


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=3, max_dims=3, max_side=5),
        elements=st.sampled_from([np.float32("nan"), np.float32(0), np.float32(1)]),
    )
)
def test_lengths_and_missing_agree_with_their_definition(X):
    ends = [max((t + 1 for t in range(X.shape[2]) if not np.isnan(x[:, t]).all()), default=0) for x in X]
    if 0 in ends:
        with pytest.raises(DataError, match=f"Case {ends.index(0)} holds only missing values"):
            check_series(X)
        return
    cases = check_series(X)
    assert cases.lengths.tolist() == ends
    assert cases.has_missing == any(np.isnan(x[:, :end]).any() for x, end in zip(X, ends, strict=True))
    assert cases.equal_length == (min(ends) == X.shape[2])
    np.testing.assert_array_equal(check_series([cases.series(i) for i in range(len(cases))]).lengths, ends)


# Names and labels


def test_channels_are_numbered_if_they_have_no_names():
    assert check_series(ones(2, 3, 4)).channel_names == ("channel_0", "channel_1", "channel_2")


def test_channel_names_are_kept_as_text():
    assert check_series(ones(2, 2, 4), channel_names=["x", 7]).channel_names == ("x", "7")


def test_labels_and_name_travel_with_the_series():
    cases = check_series(ones(2, 3), ["up", "down"], name="lift")
    assert cases.y.tolist() == ["up", "down"]
    assert cases.name == "lift"


def test_a_column_of_labels_is_read_as_a_row_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        cases = check_series(ones(2, 3), np.array([["a"], ["b"]]))
    assert cases.y.tolist() == ["a", "b"]


# SeriesSet


@pytest.fixture
def five():
    X = np.arange(5 * 2 * 3, dtype=float).reshape(5, 2, 3)
    return check_series(X, list("abcde"), lengths=[3, 2, 1, 3, 2], channel_names=["u", "v"], name="five")


def test_sizes_are_those_of_the_array(five):
    assert (five.n_cases, five.n_channels, five.n_timepoints, len(five)) == (5, 2, 3, 5)


def test_series_gives_one_case_without_its_tail(five):
    assert five.series(1).shape == (2, 2)
    np.testing.assert_array_equal(five.series(2), five.X[2, :, :1])
    assert np.shares_memory(five.series(0), five.X)


@pytest.mark.parametrize(
    "indices",
    [[3, 1], np.array([3, 1]), np.array([False, True, False, True, False]), slice(1, 4, 2), slice(0, 0)],
)
def test_take_moves_lengths_and_labels_along(five, indices):
    part = five.take(indices)
    np.testing.assert_array_equal(part.X, five.X[indices])
    np.testing.assert_array_equal(part.lengths, five.lengths[indices])
    np.testing.assert_array_equal(part.y, five.y[indices])
    assert part.channel_names == five.channel_names
    assert part.name == five.name


def test_take_without_labels_has_none():
    assert check_series(ones(3, 2, 4)).take([0, 2]).y is None


@pytest.mark.parametrize("cells", [1, 6, 13, 30, 1000])
def test_chunks_are_views_that_add_up_to_the_whole(five, cells):
    chunks = list(five.chunks(cells))
    assert all(np.shares_memory(chunk.X, five.X) for chunk in chunks)
    assert all(len(chunk) == 1 or chunk.X.size <= cells for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), five.X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), five.y)
    np.testing.assert_array_equal(np.concatenate([chunk.lengths for chunk in chunks]), five.lengths)


def test_a_series_set_cannot_be_changed_by_assignment(five):
    with pytest.raises(AttributeError):
        five.X = None


# What is refused

EXPECTED = r"Expected \(n_cases, n_channels, n_timepoints\)"
INF, NAN = float("inf"), float("nan")
RAGGED = [[[1, 2, 3], [1, 2]], [[1, 2, 3], [1, 2]]]
OBJECTS = np.array([[[1.0, 2.0], [3.0, 4.0]]], object)
REFUSED = {
    "empty list": ([], DataError, r"X has 0 sample\(s\)"),
    "no cases": (ones(0, 2, 5), DataError, r"0 sample\(s\) \(shape=\(0, 2, 5\)\).*no cases"),
    "no channels": (ones(3, 0, 5), DataError, r"0 feature\(s\).*needs a channel and a time point"),
    "no time points": (ones(3, 2, 0), DataError, r"0 feature\(s\) \(shape=\(3, 2, 0\)\)"),
    "no time points, 2-D": ([[], []], DataError, r"0 feature\(s\)"),
    "a number": (5.0, DataError, r"shape \(\), too few dimensions"),
    "1-D": (ones(7), DataError, r"shape \(7,\), too few dimensions.*X.reshape\(1, -1\)"),
    "1-D objects": (np.array([1, 2, 3], object), DataError, r"shape \(3,\)"),
    "4-D": (ones(2, 2, 2, 2), DataError, rf"too many dimensions. {EXPECTED}"),
    "list of 3-D": ([ones(2, 2, 2)] * 2, DataError, "too many dimensions"),
    "all NaN": (np.array([[1.0, 2.0], [NAN, NAN]]), DataError, r"Case 1 holds only missing values \(NaN\)"),
    "all NaN in a list": ([[1.0, 2.0], [NAN]], DataError, "Case 1 holds only missing values"),
    "infinity": (np.array([[[1, 2], [3, INF]]]), DataError, "case 0, channel 1, time point 1.*infinity"),
    "minus infinity": (np.array([[1, 2], [-INF, 4]]), DataError, "case 1, channel 0, time point 0"),
    "infinity in a list": ([[1.0, 2.0], [INF]], DataError, "infinite value in case 1"),
    "None": (np.array([[1.0, None]], object), DataTypeError, r"X holds None at \(0, 1\).*as NaN"),
    "None in lists": ([[1.0, 2.0], [3.0, None]], DataTypeError, r"X holds None at \(1, 1\)"),
    "None in a short case": ([[1.0, 2.0], [None]], DataTypeError, r"Case 1 holds None at \(0,\)"),
    "nothing at all": (None, DataTypeError, "X holds None"),
    "text": (np.array([["a", "b"]]), DataTypeError, "X has dtype <U1; expected numbers"),
    "digits as text": (np.array([["1", "2"]]), DataTypeError, "expected numbers"),
    "a text": ("abc", DataTypeError, "expected numbers"),
    "text in an object array": (np.array([[1.0, "b"]], object), DataTypeError, r"text 'b' at \(0, 1\)"),
    "text in a short case": ([[1.0, 2.0], ["b"]], DataTypeError, "Case 1 has dtype <U1"),
    "dates": (np.array([["2020-01-01"]], "datetime64[D]"), DataTypeError, "datetime64.*expected numbers"),
    "a dictionary cell": (
        np.array([[1.0, {}]], object),
        DataTypeError,
        "X holds a cell that is not a number",
    ),
    "3-D objects": (OBJECTS, DataTypeError, "3-D array of Python objects.*X.astype"),
    "complex": (
        ones(2, 3, dtype=complex),
        DataTypeError,
        "Complex data not supported: X has dtype complex128",
    ),
    "complex 1-D": (ones(3, dtype=complex), DataTypeError, "Complex data not supported"),
    "complex cell": (np.array([[1.0, 2j]], object), DataTypeError, "Complex data not supported: X holds 2j"),
    "complex numpy cell": (np.array([[1.0, np.complex64(2j)]], object), DataTypeError, "Complex data"),
    "complex in a list": ([ones(1, 3), ones(1, 2, dtype=complex)], DataTypeError, "Case 1 has dtype complex"),
    "sparse matrix": (sparse.csr_matrix(ones(2, 3)), DataTypeError, "X is a sparse matrix.*X.toarray"),
    "sparse array": (sparse.coo_array(ones(2, 3)), DataTypeError, "X is a sparse matrix"),
    "ragged channels": (RAGGED, DataError, "channels of case 0 differ in length.*with NaN"),
    "a case with other channels": (
        [ones(2, 3), ones(3, 3)],
        DataError,
        "Case 1 has 3 channels and case 0 has 2",
    ),
    "a case of one number": ([[1.0, 2.0], 3.0], DataError, r"Case 1 has shape \(\)"),
    "an empty case": ([[1.0, 2.0], []], DataError, r"Case 1 has shape \(1, 0\)"),
    "a 3-D case": ([ones(2, 3, 1), ones(2, 4, 1)], DataError, r"Case 0 has shape \(2, 3, 1\)"),
    "masked array": (np.ma.masked_equal(ones(2, 3), 1), DataError, "X is a masked array.*filled"),
    "masked case": ([ones(1, 3), np.ma.ones((1, 3))], DataError, "Case 1 is a masked array"),
}


@pytest.mark.parametrize(("X", "kind", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_series_that_cannot_be_used_are_refused_with_a_sentence(X, kind, sentence):
    with pytest.raises(kind, match=sentence) as caught:
        check_series(X)
    assert isinstance(caught.value, PDFTimeError)
    assert isinstance(caught.value, ValueError)
    assert (kind is DataTypeError) == isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("lengths", "sentence"),
    [
        ([0, 3], "lengths go from 0 to 3; expected 1 to 5"),
        ([-1, 3], "lengths go from -1 to 3"),
        ([2, 6], "lengths go from 2 to 6"),
        ([5], r"lengths has shape \(1,\).*expected 2 whole numbers"),
        ([[5], [5]], r"lengths has shape \(2, 1\)"),
        ([5.0, 5.0], "dtype float64; expected 2 whole numbers"),
        ([True, True], "dtype bool"),
        (5, r"lengths has shape \(\)"),
    ],
)
def test_impossible_lengths_are_refused(lengths, sentence):
    with pytest.raises(DataError, match=sentence):
        check_series(ones(2, 1, 5), lengths=lengths)


def test_a_case_that_is_missing_up_to_its_stated_length_is_refused():
    X = ones(2, 1, 5)
    X[1, :, :3] = np.nan
    with pytest.raises(DataError, match="Case 1 holds only missing values"):
        check_series(X, lengths=[5, 3])


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"], [1, "1"], "ab"])
def test_channel_names_must_be_as_many_as_channels_and_different(names):
    with pytest.raises(DataError, match=r"channel_names are .* expected 2 different names"):
        check_series(ones(2, 2, 5), channel_names=names)


def test_a_bad_label_is_refused_at_the_same_door():
    with pytest.raises(DataError, match="y has 1 labels and X has 2 cases"):
        check_series(ones(2, 5), ["a"])
