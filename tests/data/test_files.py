"""Every file type: what is written is read back, what cannot be held is refused, no file is half written."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import pdftime
from pdftime.data.files import SUFFIXES, TEXTS, read_series, write_series
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import SeriesFileError

ONE_CHANNEL_ONLY = (".tsv", ".txt")
TYPED = (".parquet", ".npz")
NEEDS_LABELS = (".tsv", ".txt")
FORMS: list[tuple[str, dict[str, Any]]] = [
    *((suffix, {}) for suffix in SUFFIXES),
    *((f"{suffix}.gz", {}) for suffix in TEXTS),
    (".csv", {"form": "long"}),
    (".parquet", {"form": "long"}),
    (".csv.gz", {"form": "long"}),
]
WITHOUT_TAIL = [(suffix, options) for suffix, options in FORMS if suffix in (".ts", ".npz") or options]
every_form = pytest.mark.parametrize(("suffix", "options"), FORMS)


def base(suffix: str) -> str:
    return suffix.removesuffix(".gz")


def there_and_back(cases: SeriesSet, path: Path, options: dict[str, Any] | None = None) -> SeriesSet:
    write_series(cases, path, **(options or {}))
    return read_series(path)


def assert_same_series(found: SeriesSet, cases: SeriesSet) -> None:
    """The same values to the bit, in the dtype they had."""
    assert found.lengths.tolist() == cases.lengths.tolist()
    assert found.n_channels == cases.n_channels
    for index in range(len(cases)):
        series = found.series(index).astype(cases.X.dtype)
        assert np.array_equal(series, cases.series(index), equal_nan=True)
        assert np.array_equal(np.signbit(series), np.signbit(cases.series(index)))


def a_set(n_channels: int = 1, lengths: tuple[int, ...] = (5, 5, 5), y: Any = ("up", "down", "up")) -> SeriesSet:
    rng = np.random.default_rng(7)
    return check_series([rng.normal(size=(n_channels, length)) for length in lengths], y, name="Little")


@every_form
def test_one_channel_comes_back(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    found = there_and_back(a_set(), tmp_path / f"Little{suffix}", options)
    assert_same_series(found, a_set())
    assert found.y.tolist() == ["up", "down", "up"]
    assert found.name == "Little"


@every_form
def test_several_channels_come_back_or_are_refused(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    cases = a_set(n_channels=3)
    if base(suffix) in ONE_CHANNEL_ONLY:
        with pytest.raises(SeriesFileError, match="cannot hold 3 channels"):
            write_series(cases, tmp_path / f"x{suffix}", **options)
        return
    assert_same_series(there_and_back(cases, tmp_path / f"x{suffix}", options), cases)


@every_form
def test_unequal_lengths_come_back(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    cases = a_set(n_channels=1 if base(suffix) in ONE_CHANNEL_ONLY else 2, lengths=(3, 6, 1))
    assert_same_series(there_and_back(cases, tmp_path / f"x{suffix}", options), cases)


@every_form
def test_values_behind_the_end_are_never_written_as_values(
    tmp_path: Path, suffix: str, options: dict[str, Any]
) -> None:
    cases = check_series(np.ones((2, 1, 4)), ["a", "b"], lengths=[4, 2])
    assert_same_series(there_and_back(cases, tmp_path / f"x{suffix}", options), cases)


@every_form
def test_missing_values_come_back(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    X = np.arange(12.0).reshape(2, 1, 6)
    X[0, 0, 0] = X[1, 0, 2] = np.nan
    found = there_and_back(check_series(X, ["a", "b"]), tmp_path / f"x{suffix}", options)
    assert np.array_equal(found.X, X, equal_nan=True)
    assert found.has_missing


@every_form
def test_a_missing_end_is_kept_or_refused_but_never_cut_off(
    tmp_path: Path, suffix: str, options: dict[str, Any]
) -> None:
    X = np.arange(12.0).reshape(2, 1, 6)
    X[0, 0, 4:] = np.nan
    cases = check_series(X, ["a", "b"], lengths=[6, 6])
    if (base(suffix), options) not in [(base(kind), form) for kind, form in WITHOUT_TAIL]:
        with pytest.raises(SeriesFileError, match="cannot hold case 0: its last value is missing"):
            write_series(cases, tmp_path / f"x{suffix}", **options)
        return
    found = there_and_back(cases, tmp_path / f"x{suffix}", options)
    assert found.lengths.tolist() == [6, 6]
    assert np.array_equal(found.X, X, equal_nan=True)


@every_form
@pytest.mark.parametrize("y", [[1, 2, 1], ["one", "zwei", "3"], [True, False, True]])
def test_labels_come_back_in_their_kind_or_as_text(
    tmp_path: Path, suffix: str, options: dict[str, Any], y: list[Any]
) -> None:
    found = there_and_back(a_set(y=y), tmp_path / f"x{suffix}", options)
    kept = base(suffix) in (*TYPED, ".csv")
    assert found.y.tolist() == (y if kept else [str(label) for label in y])


@every_form
def test_series_without_labels_come_back_without(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    if base(suffix) in NEEDS_LABELS:
        with pytest.raises(SeriesFileError, match="without labels"):
            write_series(a_set(y=None), tmp_path / f"x{suffix}")
        return
    found = there_and_back(a_set(n_channels=2, y=None), tmp_path / f"x{suffix}", options)
    assert found.y is None
    assert_same_series(found, a_set(n_channels=2))


@every_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_finite_number_comes_back_to_the_bit(
    tmp_path: Path, suffix: str, options: dict[str, Any], dtype: type, data: st.DataObject
) -> None:
    width = np.dtype(dtype).itemsize * 8
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width)
    X = data.draw(arrays(dtype, (2, 1, 3), elements=numbers))
    found = there_and_back(check_series(X, ["a", "b"]), tmp_path / f"x{suffix}", options)
    assert_same_series(found, check_series(X))
    if base(suffix) in TYPED:
        assert found.X.dtype == dtype


@pytest.mark.parametrize("value", [-0.0, 5e-324, 1.7976931348623157e308, 0.1, -1 / 3])
@every_form
def test_the_hard_numbers_come_back_to_the_bit(
    tmp_path: Path, suffix: str, options: dict[str, Any], value: float
) -> None:
    cases = check_series(np.full((1, 1, 2), value), ["a"])
    assert_same_series(there_and_back(cases, tmp_path / f"x{suffix}", options), cases)


@every_form
@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float16])
def test_other_kinds_of_numbers_come_back_as_equal_numbers(
    tmp_path: Path, suffix: str, options: dict[str, Any], dtype: type
) -> None:
    X = np.array([[[0, 1, 1]], [[1, 0, 1]]]).astype(dtype)
    found = there_and_back(check_series(X, ["a", "b"]), tmp_path / f"x{suffix}", options)
    assert found.X.astype(float).tolist() == X.astype(float).tolist()


@pytest.mark.parametrize(("suffix", "options"), [(".csv", {}), (".parquet", {"form": "long"}), (".npz", {})])
def test_channel_names_come_back_where_the_format_has_a_place_for_them(
    tmp_path: Path, suffix: str, options: dict[str, Any]
) -> None:
    cases = check_series(np.ones((2, 2, 3)), [0, 1], channel_names=["left__hand", "right"])
    assert there_and_back(cases, tmp_path / f"x{suffix}", options).channel_names == ("left__hand", "right")


KEEPS_TIMES = (".ts", ".csv", ".parquet", ".npz")
STAMPS = {
    "numbers": [np.array([0.1, 0.25, 3.0, 4.0, 1e9]), np.array([-2.0, 0.0, 1e-9])],
    "seconds": [np.datetime64("2024-02-28T23:59:58") + np.arange(n) for n in (5, 3)],
    "nanoseconds": [np.datetime64("2024-02-28T23:59:59.999999998") + np.arange(n) for n in (5, 3)],
}


@pytest.mark.parametrize("kind", list(STAMPS))
@every_form
def test_time_stamps_come_back_where_the_format_has_a_place_for_them(
    tmp_path: Path, suffix: str, options: dict[str, Any], kind: str
) -> None:
    cases = check_series(a_set(1, (5, 3), ("up", "down")), times=STAMPS[kind])
    found = there_and_back(cases, tmp_path / f"x{suffix}", options)
    assert_same_series(found, cases)
    if base(suffix) in KEEPS_TIMES:
        assert found.times is not None
        assert cases.times is not None
        assert np.array_equal(found.times, cases.times, equal_nan=True)
    else:
        assert found.times is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_wide_table_is_written_where_it_is_asked_for_without_time_stamps(tmp_path: Path, suffix: str) -> None:
    cases = check_series(a_set(), times=[0.5, 1.0, 2.0, 4.0, 8.0])
    found = there_and_back(cases, tmp_path / f"x{suffix}", {"form": "wide"})
    assert_same_series(found, cases)
    assert found.times is None


@pytest.mark.parametrize("suffix", [".ts", ".npz"])
def test_time_stamps_that_cannot_be_are_refused_by_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    for times, sentence in (
        ([3.0, 2.0], "do not increase: 3 at time point 0, then 2"),
        ([0.0, np.nan], "hold nan at time point 1|time stamp 2 is missing"),
    ):
        if suffix == ".npz":
            np.savez(path, X=np.ones((1, 1, 2)), times=np.array([times]))
        else:
            pairs = ",".join(f"({time},1)" for time in times)
            path.write_text(f"@univariate true\n@timeStamps true\n@classLabel false\n@data\n{pairs}\n")
        with pytest.raises(SeriesFileError, match=rf"x\{suffix}.*({sentence})"):
            read_series(path)


@every_form
def test_the_same_series_make_the_same_bytes(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    contents = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_series(a_set(), tmp_path / folder / f"x{suffix}", **options)
        contents.add((tmp_path / folder / f"x{suffix}").read_bytes())
    assert len(contents) == 1


@every_form
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, suffix: str, options: dict[str, Any]) -> None:
    with pytest.raises(SeriesFileError, match=r"x.* cannot be read: No such file"):
        read_series(tmp_path / f"x{suffix}")


@every_form
@pytest.mark.parametrize("content", [b"", b"\x00\x01\xfe\xff" * 50, bytes(range(256)), b"\n\n\n"])
def test_empty_files_and_junk_are_refused_by_name(
    tmp_path: Path, suffix: str, options: dict[str, Any], content: bytes
) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    with pytest.raises(SeriesFileError, match=f"x{suffix}"):
        read_series(path)


@pytest.mark.parametrize("suffix", [f"{text}.gz" for text in TEXTS])
def test_a_cut_or_false_gz_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    write_series(a_set(lengths=(50, 50, 50)), path)
    whole = path.read_bytes()
    for content in (whole[:-20], whole[: len(whole) // 2], b"@data\n", whole[:40] + b"junk" + whole[44:]):
        path.write_bytes(content)
        with pytest.raises(SeriesFileError, match="cannot be read"):
            read_series(path)


@pytest.mark.parametrize("name", ["x.xlsx", "x", "x.npz.gz", "x.parquet.gz", "x.gz", "x.TS.zip"])
def test_an_unknown_file_type_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    for call in (read_series, lambda path: write_series(a_set(), path)):
        with pytest.raises(SeriesFileError) as caught:
            call(tmp_path / name)
        assert all(suffix in str(caught.value) for suffix in SUFFIXES)


def test_the_suffix_may_be_written_large(tmp_path: Path) -> None:
    assert_same_series(there_and_back(a_set(), tmp_path / "X.TS.GZ"), a_set())


def test_a_path_may_be_text(tmp_path: Path) -> None:
    write_series(a_set(), str(tmp_path / "x.ts"))
    assert_same_series(read_series(str(tmp_path / "x.ts")), a_set())


def test_options_that_would_go_unused_are_refused(tmp_path: Path) -> None:
    write_series(a_set(), tmp_path / "x.ts")
    for options, sentence in [
        ({"part": "train"}, "has no parts"),
        ({"form": "wide"}, "is no table"),
        ({"part": "valid"}, "part may be"),
        ({"form": "tall"}, "form 'wide' or 'long'"),
    ]:
        with pytest.raises(SeriesFileError, match=sentence):
            read_series(tmp_path / "x.ts", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"old")
    unwritable = check_series(np.ones((2, 3)), [1, "1"])
    with pytest.raises(SeriesFileError):
        write_series(unwritable, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_where_one_cannot_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="could not be written"):
        write_series(a_set(), tmp_path / "absent" / "x.ts")


@pytest.mark.parametrize("suffix", [".ts", ".tsv", ".txt", ".arff"])
@pytest.mark.parametrize("y", [["", "a"], ["a\nb", "c"], [" a", "b"], [b"a", b"b"], [1, "1"]])
def test_labels_a_text_format_cannot_hold_are_refused(tmp_path: Path, suffix: str, y: list[Any]) -> None:
    with pytest.raises(SeriesFileError, match="cannot"):
        write_series(check_series(np.ones((2, 3)), y), tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_labels_of_mixed_kinds_are_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(SeriesFileError, match="mixed kinds"):
        write_series(check_series(np.ones((2, 3)), [1, "1"]), tmp_path / f"x{suffix}")


@pytest.mark.parametrize("suffix", [".ts", ".tsv", ".arff", ".csv"])
def test_infinite_values_and_empty_cases_are_refused_by_file(tmp_path: Path, suffix: str) -> None:
    for value, sentence in [("inf", "infinite"), ("1e999", "infinite"), ("nan", "only missing")]:
        content = {
            ".ts": f"@classLabel true a\n@data\n{value},{value}:a\n",
            ".tsv": f"a\t{value}\t{value}\n",
            ".arff": f"@attribute t0 real\n@attribute c {{a}}\n@data\n{value},a\n",
            ".csv": f"0,1,label\n{value},{value},a\n",
        }[suffix]
        (tmp_path / f"x{suffix}").write_text(content)
        with pytest.raises(SeriesFileError, match=rf"x{suffix}.*{sentence}"):
            read_series(tmp_path / f"x{suffix}")


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    for suffix in TEXTS:
        path = tmp_path / f"x{suffix}"
        write_series(a_set(), path)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        found = read_series(path)
        assert_same_series(found, a_set())
        assert found.y.tolist() == ["up", "down", "up"]


def test_reading_is_offered_by_the_package() -> None:
    assert pdftime.read_series is read_series
    assert pdftime.write_series is write_series


def test_importing_the_readers_stays_light() -> None:
    heavy = "{'torch', 'pandas', 'pyarrow', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"import sys, pdftime.data.files; assert not {heavy}"], check=True)
