"""Labels keep their kind from the door to the model file and back; what is no label is refused."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from pdftime.data.labels import check_labels, classes_from_json, classes_to_json, codes_of, encode
from pdftime.errors import DataError

text = st.text(max_size=5).filter(lambda label: not label.endswith("\0"))  # numpy drops a trailing NUL
octets = st.binary(max_size=5).filter(lambda label: not label.endswith(b"\0"))
whole_floats = st.integers(-(2**53), 2**53).map(float)
plain = st.one_of(text, octets, st.integers(), st.booleans(), whole_floats)
numpy_scalars = st.one_of(
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.integers(-1000, 1000).map(np.float32),
    st.booleans().map(np.bool_),
    text.map(np.str_),
    octets.map(np.bytes_),
)
one_kind = st.one_of(*(st.lists(kind, min_size=1) for kind in (text, octets, st.integers(), whole_floats)))
any_labels = st.one_of(one_kind, st.lists(st.one_of(plain, numpy_scalars), min_size=1))


def objects(*labels):
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


def as_json(classes):
    """To JSON text and back."""
    return classes_from_json(json.loads(json.dumps(classes_to_json(classes))))


# What is let in


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (["a", "b"], "U"),
        (("a", "b"), "U"),
        ([1, 2], "i"),
        ([True, False], "b"),
        ([b"a", b"b"], "S"),
        ([1.0, 2.0], "f"),
        ([np.int8(1), np.int8(2)], "i"),
        ([np.str_("a"), np.str_("b")], "U"),
        (np.array(["a", "b"]), "U"),
        (np.array([b"a", b"b"]), "S"),
        (np.array([1, 2], np.uint8), "u"),
        (np.array([1, 2], np.longdouble), "f"),
        (objects("a", "b"), "O"),
        (objects(1, 2), "i"),
        (objects(True, False), "b"),
        (objects(b"a", b"b"), "O"),
        ([1, "a"], "O"),
        ([True, "a"], "O"),
        ([1, 2.0], "O"),
        (["a", b"a"], "O"),
        ([2**70, 1], "O"),
        ([2**63, -1], "O"),
        (objects(2**63, -1), "O"),
    ],
)
def test_labels_keep_their_kind_and_value(y, kind):
    labels = check_labels(y, 2)
    assert labels.dtype.kind == kind
    assert labels.tolist() == list(y)
    assert [isinstance(label, bool) for label in labels.tolist()] == [isinstance(label, bool) for label in y]


@pytest.mark.parametrize("dtype", ["i1", "i8", "u2", ">i4", "f2", "f8", "?", "U3", "S3"])
def test_an_array_of_labels_is_taken_as_it_is(dtype):
    y = np.array([0, 1, 1], dtype)
    assert check_labels(y, 3) is y


def test_numbers_are_not_turned_into_text_beside_text():
    assert [type(label) for label in check_labels([1, "a", b"a"], 3)] == [int, str, bytes]


@pytest.mark.parametrize("y", [np.array([[1], [2]]), [["a"], ["b"]], [("a",), ("b",)], objects(1, "a")[:, None]])
def test_a_column_is_read_as_a_row_with_the_warning_of_scikit_learn(y):
    with pytest.warns(DataConversionWarning, match="column-vector y was passed when a 1d array was expected"):
        labels = check_labels(y, 2)
    assert labels.shape == (2,)


def test_an_ordinary_y_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_labels(["a", "b"], 2)


# What is refused

NAN = float("nan")
REFUSED = {
    "None": ([None, "a"], r"label of case 0 is missing \(None\)"),
    "only None": ([None, None], "label of case 0 is missing"),
    "None in objects": (objects("a", None), "label of case 1 is missing"),
    "NaN": (np.array([1.0, NAN]), r"label of case 1 is missing \(NaN\)"),
    "NaN in a list": ([NAN, 1.0], "label of case 0 is missing"),
    "NaN beside text": (["a", NAN], r"label of case 1 is missing \(nan\)"),
    "numpy NaN beside text": (["a", np.float32("nan")], "label of case 1 is missing"),
    "too few": (["a"], "y has 1 labels and X has 2 cases"),
    "too many": (["a", "b", "a"], "y has 3 labels and X has 2 cases"),
    "none at all": ([], "y has 0 labels and X has 2 cases"),
    "continuous": (np.array([0.5, 1.0]), "Unknown label type: continuous"),
    "continuous in a list": ([0.5, 1.0], "Unknown label type: continuous"),
    "continuous beside whole": ([1, 0.5], "Unknown label type: continuous"),
    "continuous beside text": (["a", 0.5], "Unknown label type: continuous"),
    "infinite": ([1.0, float("inf")], "Unknown label type: continuous"),
    "infinite in objects": (objects("a", -float("inf")), "Unknown label type: continuous"),
    "complex": ([1j, 2j], "Unknown label type: y has dtype complex128"),
    "complex beside text": (["a", 2j], r"Unknown label type: the label of case 1 is 2j \(complex\)"),
    "dates": (np.array(["2020", "2021"], "datetime64[Y]"), "Unknown label type: y has dtype datetime64"),
    "a date beside text": (["a", np.datetime64("2020")], "Unknown label type: the label of case 1"),
    "nested": ([["a", "b"], ["c", "d"]], r"y has shape \(2, 2\); expected one label per case, shape \(2,\)"),
    "tuples": ([("a", 1), ("b", 2)], r"y has shape \(2, 2\)"),
    "nested, unequal": ([["a"], ["c", "d"]], "y holds labels of unequal shape"),
    "tuples of unequal length": ([(1,), (2, 3)], "y holds labels of unequal shape"),
    "a tuple beside text": (["a", (1, 2)], r"label of case 1 is \(1, 2\) \(tuple\)"),
    "a tuple beside a list": ([(1, 2), [1, 2]], r"label of case 0 is \(1, 2\) \(tuple\)"),
    "tuples in objects": (objects((1, 2), (3,)), r"label of case 0 is \(1, 2\) \(tuple\)"),
    "sets": ([{1}, {2}], r"label of case 0 is \{1\} \(set\)"),
    "3-D": (np.zeros((2, 1, 1), int), r"y has shape \(2, 1, 1\)"),
    "a scalar": (3, r"y has shape \(\)"),
    "a text": ("ab", r"y has shape \(\)"),
    "masked": (np.ma.masked_equal([1, 2], 2), "y is a masked array; every case needs a label"),
}


@pytest.mark.parametrize(("y", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_label_is_refused_with_a_sentence(y, sentence):
    with pytest.raises(DataError, match=sentence):
        check_labels(y, 2)


# Codes


@settings(deadline=None)
@given(any_labels)
def test_classes_at_codes_are_the_labels(y):
    labels = check_labels(y, len(y))
    classes, codes = encode(labels)
    assert classes[codes].tolist() == labels.tolist()
    assert codes.dtype == np.int64
    assert set(codes.tolist()) == set(range(len(classes)))
    assert len(set(classes.tolist())) == len(classes)
    np.testing.assert_array_equal(codes_of(labels, classes, "y"), codes)


@settings(deadline=None)
@given(any_labels, st.randoms())
def test_classes_do_not_depend_on_the_order_of_the_cases(y, random):
    classes = encode(check_labels(y, len(y))).classes.tolist()
    random.shuffle(y)
    assert encode(check_labels(y, len(y))).classes.tolist() == classes


@settings(deadline=None)
@given(one_kind)
def test_classes_of_one_kind_are_sorted(y):
    assert encode(check_labels(y, len(y))).classes.tolist() == sorted(set(y))


def test_classes_of_mixed_kinds_are_sorted_by_kind_and_value():
    classes, codes = encode(check_labels(["b", 10, b"z", "a", 9, True, -1.0], 7))
    assert classes.tolist() == [-1.0, True, 9, 10, "a", "b", b"z"]
    assert codes.tolist() == [5, 3, 6, 4, 2, 1, 0]


def test_labels_that_are_equal_are_one_class():
    classes, codes = encode(check_labels([1, "a", 1.0, np.int8(1)], 4))
    assert classes.tolist() == [1, "a"]
    assert codes.tolist() == [0, 1, 0, 0]


def test_known_classes_are_found_in_labels_of_another_width():
    classes = encode(np.array(["left", "right"])).classes
    assert codes_of(np.array(["right"], "U9"), classes, "y").tolist() == [1]
    assert codes_of(np.array([2, 1], np.int8), np.array([1, 2]), "y").tolist() == [1, 0]
    assert codes_of(objects("right", "left"), classes, "y").tolist() == [1, 0]


def test_a_label_of_no_known_class_is_refused_by_name():
    with pytest.raises(DataError, match=r"y_val holds labels \['c'\] that are not among the classes \['a', 'b'\]"):
        codes_of(np.array(["a", "c", "c"]), np.array(["a", "b"]), "y_val")


def test_text_and_bytes_are_not_the_same_class():
    with pytest.raises(DataError, match="y holds labels"):
        codes_of(np.array([b"a"]), np.array(["a", "b"]), "y")


# JSON


@settings(deadline=None)
@given(any_labels)
def test_classes_survive_json(y):
    classes = encode(check_labels(y, len(y))).classes
    back = as_json(classes)
    assert back.dtype == classes.dtype
    assert back.tolist() == classes.tolist()
    for before, after in zip(classes.tolist(), back.tolist(), strict=True):
        assert isinstance(after, bool) == isinstance(before, (bool, np.bool_))
        assert isinstance(after, str) == isinstance(before, str)


@pytest.mark.parametrize("dtype", ["i1", "i8", "u2", "u8", ">i4", "f2", "f4", "f8", "g", "?", "U3", "S3"])
def test_classes_of_every_dtype_survive_json(dtype):
    classes = np.array([0, 1], dtype)
    back = as_json(classes)
    assert back.dtype == classes.dtype
    assert back.tolist() == classes.tolist()


def test_a_foreign_dtype_is_refused_on_the_way_back():
    with pytest.raises(DataError, match="Classes have dtype complex128"):
        classes_from_json({"dtype": "<c16", "values": [1]})
