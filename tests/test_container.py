"""A file is entirely what was saved, or it is refused with a sentence."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import re
import signal
import stat
import subprocess
import sys
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pdftime import __version__, container
from pdftime.container import FORMAT_VERSION, ZEROS, read_container, write_atomically, write_container
from pdftime.errors import ModelFileError, SeriesFileError

WEIGHTS = {"weight": np.array([[1.5, np.nan]], np.float32), "steps": np.array(7)}
HEADER = {"classes": ["a", "b"], "rate": 0.1}

DTYPES = st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_])
TENSORS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name.isprintable()),
    DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))),
    max_size=4,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.dictionaries(st.text(), JSON, max_size=3)
shares_tmp_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "small.pdftime"
    write_container(path, WEIGHTS, HEADER, "model")
    return path


def laid_out(head: str, body: bytes = b"") -> bytes:
    """A safetensors file with this header text."""
    text = head.encode()
    return len(text).to_bytes(8, "little") + text + body


def sealed(data: bytes) -> bytes:
    """The file as a careful forger would write it: with the right digest."""
    assert data.count(ZEROS) == 1
    return data.replace(ZEROS, hashlib.sha256(data).hexdigest().encode())


def forged(entries: dict[str, Any] | None = None, body: bytes = b"", **changes: str) -> bytes:
    metadata = {"format_version": "1", "kind": "model", "library_version": "9", "pdftime": "{}"}
    metadata = {**metadata, **changes, "sha256": ZEROS.decode()}
    whole = {"__metadata__": metadata, **(entries or {})}
    return sealed(laid_out(json.dumps(whole, separators=(",", ":")), body))


def refusal(path: Path, kind: str = "model") -> str:
    """The sentence with which a file is refused; it must name the file."""
    with pytest.raises(ModelFileError) as caught:
        read_container(path, kind)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith(".")
    return message


def refusal_of(data: bytes, folder: Path) -> str:
    path = folder / "given.pdftime"
    path.write_bytes(data)
    return refusal(path)


# What is written comes back.


@shares_tmp_path
@given(tensors=TENSORS, header=HEADERS, kind=st.sampled_from(["model", "checkpoint"]))
def test_what_is_written_is_what_is_read(
    tmp_path: Path, tensors: dict[str, np.ndarray], header: dict[str, Any], kind: str
) -> None:
    path = tmp_path / "round.pdftime"
    write_container(path, tensors, header, kind)
    read, read_header = read_container(path, kind)
    assert read_header == header
    assert read.keys() == tensors.keys()
    for name, array in tensors.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes()
    assert safetensors.numpy.load(path.read_bytes()).keys() == tensors.keys()


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write_container(one, WEIGHTS, HEADER, "model")
    write_container(two, dict(reversed(WEIGHTS.items())), dict(reversed(HEADER.items())), "model")
    assert one.read_bytes() == two.read_bytes()


def test_half_a_surrogate_pair_in_the_header_survives(tmp_path: Path) -> None:
    write_container(tmp_path / "half", {}, {"\ud800": "\udfff"}, "model")
    assert read_container(tmp_path / "half", "model")[1] == {"\ud800": "\udfff"}


def test_a_view_that_is_not_contiguous_is_stored_as_it_looks(tmp_path: Path) -> None:
    view = np.arange(12).reshape(3, 4).T[::2]
    write_container(tmp_path / "view", {"view": view}, {}, "model")
    assert np.array_equal(read_container(tmp_path / "view", "model")[0]["view"], view)


def test_tensors_read_can_be_written_to(saved: Path) -> None:
    tensors, _ = read_container(saved, "model")
    assert all(array.flags.writeable and array.flags.aligned for array in tensors.values())


def test_any_safetensors_reader_finds_version_and_kind(saved: Path) -> None:
    with safetensors.safe_open(saved, "np") as file:
        metadata = file.metadata()
    assert metadata["format_version"] == str(FORMAT_VERSION)
    assert metadata["library_version"] == __version__
    assert metadata["kind"] == "model"
    assert json.loads(metadata["pdftime"]) == HEADER


SEAL_LOOKALIKE = '"sha256":"' + "0" * 64 + '"'


@pytest.mark.parametrize("text", [SEAL_LOOKALIKE, SEAL_LOOKALIKE[1:], "\\" + SEAL_LOOKALIKE, "0" * 64])
def test_content_that_looks_like_the_seal_is_not_mistaken_for_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lookalike.pdftime"
    tensors: dict[str, Any] = {"sha256": np.frombuffer(text.encode(), np.uint8), text: np.zeros(1)}
    header = {"sha256": "0" * 64, "text": text, text: [text]}
    write_container(path, tensors, header, text)
    read, read_header = read_container(path, text)
    assert read_header == header
    assert read["sha256"].tobytes() == text.encode()


# What is not whole is refused.


def test_every_prefix_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for length in range(len(whole)):
        refusal_of(whole[:length], tmp_path)


def test_every_flipped_bit_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for place in range(len(whole)):
        for bit in (1 << shift for shift in range(8)):
            changed = bytearray(whole)
            changed[place] ^= bit
            refusal_of(bytes(changed), tmp_path)


def test_every_inverted_byte_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        refusal_of(bytes(changed), tmp_path)


def test_appended_bytes_are_refused(saved: Path, tmp_path: Path) -> None:
    assert "damaged" in refusal_of(saved.read_bytes() + b"\0", tmp_path)


def test_a_changed_weight_is_called_damage(saved: Path, tmp_path: Path) -> None:
    whole = bytearray(saved.read_bytes())
    whole[-1] ^= 1
    assert "damaged" in refusal_of(bytes(whole), tmp_path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "not a pdftime file" in refusal_of(b"", tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nowhere.pdftime")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "a folder or a device" in refusal(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a folder or a device" in refusal(tmp_path / "pipe")


def test_a_path_that_cannot_exist_is_refused() -> None:
    refusal(Path("a\0b"))


class Executed:
    """Whoever unpickles this creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    data = pickle.dumps(Executed(trace))
    pickle.loads(data)
    trace.unlink()  # the pickle is a live one
    assert "not a pdftime file" in refusal_of(data, tmp_path)
    assert not trace.exists()


def zip_bytes() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data.pkl", b"weights")
    return stream.getvalue()


def tar_bytes() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("weights"))
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [zip_bytes(), tar_bytes(), b"not a model\n" * 50, b'{"kind": "model"}', b"\0" * 8, b"\0" * 4096],
    ids=["zip", "tar", "text", "json", "eight zeros", "zeros"],
)
def test_a_renamed_file_of_another_format_is_refused(tmp_path: Path, data: bytes) -> None:
    assert "not a pdftime file" in refusal_of(data, tmp_path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"pdftime": "{}"}])
def test_a_foreign_safetensors_file_is_refused(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    data = safetensors.numpy.save({"weight": np.zeros(3)}, metadata)
    assert "not a pdftime file" in refusal_of(data, tmp_path)


def test_a_checkpoint_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "run.pdftime"
    write_container(path, WEIGHTS, HEADER, "checkpoint")
    assert "is a checkpoint, not a model" in refusal(path, "model")


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    message = refusal_of(forged(format_version=str(FORMAT_VERSION + 1)), tmp_path)
    assert "newer pdftime" in message
    assert "Upgrade" in message


def test_a_newer_kind_of_file_still_asks_for_an_upgrade_first(tmp_path: Path) -> None:
    assert "newer pdftime" in refusal_of(forged(format_version="999", kind="ensemble"), tmp_path)


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "one", " 1", "1\n", "٣", "1_0", "9" * 5000])
def test_an_unreadable_version_is_refused(tmp_path: Path, version: str) -> None:
    refusal_of(forged(format_version=version), tmp_path)


# A forger can compute a digest; the content is still checked.


def test_a_forged_file_that_is_correct_loads(tmp_path: Path) -> None:
    """The refusals below are about their content, not about how these tests write files."""
    entries = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    (tmp_path / "forged").write_bytes(forged(entries, b"\0" * 4, pdftime='{"a":1}'))
    tensors, header = read_container(tmp_path / "forged", "model")
    assert tensors["w"].tolist() == [0.0]
    assert header == {"a": 1}


@pytest.mark.parametrize("length", [1 << 20, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_header_longer_than_the_file_is_refused(saved: Path, tmp_path: Path, length: int) -> None:
    data = length.to_bytes(8, "little") + saved.read_bytes()[8:]
    assert "not a pdftime file" in refusal_of(data, tmp_path)


def memory_to_refuse(path: Path) -> int:
    """The most bytes that were allocated at one time while the file was refused."""
    tracemalloc.start()
    try:
        assert "not a pdftime file" in refusal(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.pdftime"
    with path.open("wb") as handle:
        handle.write(forged())
        handle.truncate(1 << 40)
    assert memory_to_refuse(path) < 1 << 20


@pytest.mark.parametrize("length", [1 << 28, 1 << 46])
def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path, length: int) -> None:
    path = tmp_path / "sparse.pdftime"
    with path.open("wb") as handle:
        handle.write(length.to_bytes(8, "little"))
        handle.truncate(1 << 29)
    assert memory_to_refuse(path) < 1 << 20


def test_a_huge_tensor_in_a_small_file_is_refused_before_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "claim.pdftime"
    path.write_bytes(forged({"w": {"dtype": "F64", "shape": [1 << 44], "data_offsets": [0, 1 << 47]}}))
    assert memory_to_refuse(path) < 1 << 20


@pytest.mark.parametrize(
    "content",
    [
        '{"a":1,"a":2}',
        '{"b":{"a":1,"a":1}}',
        '{"a":NaN}',
        '{"a":[Infinity]}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        "[]",
        "null",
        '"text"',
        "",
        "{",
        "{} {}",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
    ],
    ids=lambda content: content[:16],
)
def test_a_header_that_is_not_one_plain_json_object_is_refused(tmp_path: Path, content: str) -> None:
    assert "not a pdftime file" in refusal_of(forged(pdftime=content), tmp_path)


SEAL_FIELD = f'"sha256":"{"0" * 64}"'
FIELDS = '"format_version":"1","kind":"model","library_version":"1","pdftime":"{}"'


@pytest.mark.parametrize(
    "head",
    [
        f'{{"__metadata__":{{{FIELDS},{SEAL_FIELD}}},"__metadata__":{{}}}}',
        f'{{"__metadata__":{{{FIELDS},"kind":"model",{SEAL_FIELD}}}}}',
        f'{{"__metadata__":{{"kind":"model",{SEAL_FIELD}}}}}',
        f'{{"__metadata__":{{"format_version":1,"kind":"model",{SEAL_FIELD}}}}}',
        f'{{"__metadata__":[{{{SEAL_FIELD}}}]}}',
        f'{{"a":{{{SEAL_FIELD}}}}}',
        f"{{{SEAL_FIELD}",
        f"[{SEAL_FIELD}]",
        "[" * 100_000 + SEAL_FIELD,
        f'{{"__metadata__":{{{FIELDS},{SEAL_FIELD}}},"w":[]}}',
        f'{{"__metadata__":{{{FIELDS},{SEAL_FIELD}}},"w":{{}}}}',
    ],
    ids=lambda head: head[:40],
)
def test_a_strange_safetensors_header_is_refused(tmp_path: Path, head: str) -> None:
    assert "not a pdftime file" in refusal_of(sealed(laid_out(head)), tmp_path)


def test_two_digests_are_refused(tmp_path: Path) -> None:
    second = f'"sha256":"{"1" * 64}"'
    entry = f'{{"dtype":"F32","shape":[0],"data_offsets":[0,0],{second}}}'
    head = f'{{"__metadata__":{{{FIELDS},{SEAL_FIELD}}},"x":{entry}}}'
    assert "not a pdftime file" in refusal_of(sealed(laid_out(head)), tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]},
        {"dtype": "F32", "shape": [1 << 62, 8], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": "1", "data_offsets": [0, 4]},
        {"dtype": None, "shape": [1], "data_offsets": [0, 4]},
    ],
    ids=str,
)
def test_a_tensor_that_is_not_what_it_claims_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert "not a pdftime file" in refusal_of(forged({"w": entry}, b"\0" * 4), tmp_path)


@pytest.mark.parametrize("shape", [[1 << 62, 1 << 62, 0], [(1 << 64) - 1, 0], [0, 1 << 63]], ids=str)
def test_an_impossible_empty_tensor_is_refused(tmp_path: Path, shape: list[int]) -> None:
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    assert "not a pdftime file" in refusal_of(forged({"w": entry}), tmp_path)


@shares_tmp_path
@given(data=st.data(), head=st.binary(max_size=300), body=st.binary(max_size=40))
def test_random_bytes_behind_a_plausible_header_length_are_refused(
    tmp_path: Path, data: st.DataObject, head: bytes, body: bytes
) -> None:
    length = data.draw(st.integers(0, len(head) + len(body) + 2))
    refusal_of(length.to_bytes(8, "little") + head + body, tmp_path)


@shares_tmp_path
@given(data=st.data())
def test_random_changes_of_several_bytes_are_refused(saved: Path, data: st.DataObject) -> None:
    whole = saved.read_bytes()
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 10))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    if changed != whole:
        refusal_of(bytes(changed), saved.parent)


@shares_tmp_path
@given(content=st.text(max_size=60) | JSON.map(json.dumps))
def test_a_sealed_file_loads_a_json_object_or_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "forged.pdftime"
    path.write_bytes(forged(pdftime=content))
    try:
        _, header = read_container(path, "model")
    except ModelFileError:
        return
    assert header == json.loads(content)


# What cannot be read again is not written.


@pytest.mark.parametrize("dtype", ["float16", "complex64", ">f4", "int16", "U3", "O", "datetime64[s]"])
def test_a_tensor_of_another_type_is_not_written(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(ModelFileError, match=r"'w'.*Use float32"):
        write_container(tmp_path / "new", {"w": np.zeros(2, dtype)}, {}, "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["__metadata__", "\ud800"])
def test_a_tensor_name_that_safetensors_cannot_hold_is_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError):
        write_container(tmp_path / "new", {name: np.zeros(2)}, {}, "model")
    assert list(tmp_path.iterdir()) == []


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, np.float32(1), b"bytes", {"a": 1, 2: 3}, nested(100_000)],
    ids=["nan", "inf", "set", "numpy", "bytes", "mixed keys", "deep"],
)
def test_a_header_that_is_not_json_is_not_written(saved: Path, value: Any) -> None:
    before = saved.read_bytes()
    with pytest.raises(ModelFileError, match="not plain JSON"):
        write_container(saved, {}, {"value": value}, "model")
    assert saved.read_bytes() == before


def test_a_header_or_file_too_large_to_be_read_is_not_written(saved: Path, monkeypatch: Any) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr(container, "MAX_HEADER_BYTES", 1000)
    with pytest.raises(ModelFileError, match="more than 1000"):
        write_container(saved, {}, {"text": "a" * 1000}, "model")
    monkeypatch.setattr(container, "MAX_FILE_BYTES", 2000)
    with pytest.raises(ModelFileError, match="2000"):
        write_container(saved, {"w": np.zeros(250)}, {}, "model")
    assert saved.read_bytes() == before


# A write happens entirely or not at all.


def unchanged_after_failure(path: Path, cause: str, data: bytes = b"new" * 100_000) -> None:
    """The write fails for this cause, names the file, leaves the old bytes and nothing beside them."""
    before = path.read_bytes()
    with pytest.raises(ModelFileError) as caught:
        write_atomically(path, data)
    assert str(path) in str(caught.value)
    assert cause in str(caught.value)
    assert "untouched" in str(caught.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_writing_leaves_only_the_file(tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        write_atomically(tmp_path / "file", data)
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [data]


def test_writing_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file or directory"):
        write_atomically(tmp_path / "missing" / "file", b"data")
    assert list(tmp_path.iterdir()) == []


def test_writing_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(ModelFileError, match="Not a directory"):
        write_atomically(tmp_path / "file" / "inner", b"data")
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["", ".", "/", "folder", "folder/"])
def test_writing_over_a_folder_is_refused(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError, match="a folder or a device"):
        write_atomically(name, b"data")
    assert list(tmp_path.rglob("*")) == [tmp_path / "folder"]


def test_writing_over_a_device_is_refused() -> None:
    with pytest.raises(ModelFileError, match="a folder or a device"):
        write_atomically(os.devnull, b"data")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
def test_writing_to_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match="could not be written"):
        write_atomically(f"{tmp_path}/{name}", b"data")
    assert list(tmp_path.iterdir()) == []


def test_the_longest_possible_name_is_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("a" * 255), b"data")
    assert (tmp_path / ("a" * 255)).read_bytes() == b"data"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_permissions_of_the_old_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "new", b"new")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_writer_of_data_gets_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(SeriesFileError, match="could not be written"):
        write_atomically(tmp_path / "missing" / "series.csv", b"data", error=SeriesFileError)


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["I/O", "^C"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: Any, step: str, failure: BaseException
) -> None:
    def fail(*_: Any) -> None:
        raise failure

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(step, fail)
    with pytest.raises((ModelFileError, KeyboardInterrupt)):
        write_atomically(path, b"new")
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"old"]


def test_a_folder_that_cannot_be_synced_does_not_undo_the_write(tmp_path: Path, monkeypatch: Any) -> None:
    def only_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.fsync", only_files)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


REWRITE = """
import sys
import numpy as np
from pdftime.container import write_container

version = 0
print("writing", flush=True)
while True:
    version = 1 - version
    write_container(sys.argv[1], {"w": np.full(50_000, version)}, {"version": version}, "model")
"""


def test_a_killed_save_leaves_one_whole_version(tmp_path: Path) -> None:
    """A killed writer may leave its `.pdftime-*.tmp` behind; it has another name and nobody reads it."""
    path = tmp_path / "model.pdftime"
    moments = random.Random(0)
    write_container(path, {"w": np.full(50_000, 0)}, {"version": 0}, "model")
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", REWRITE, path], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
            time.sleep(moments.uniform(0, 0.05))
            writer.kill()
        assert writer.returncode == -signal.SIGKILL
        tensors, header = read_container(path, "model")
        assert set(tensors["w"].tolist()) == {header["version"]}
    others = [found.name for found in tmp_path.iterdir() if found != path]
    assert all(re.fullmatch(r"\.pdftime-[0-9a-f]{16}\.tmp", name) for name in others)


def test_two_writers_at_once_leave_one_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "model.pdftime"
    write_container(path, {"w": np.full(50_000, 0)}, {"version": 0}, "model")
    command = [sys.executable, "-c", REWRITE, str(path)]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        tensors, header = read_container(path, "model")
        assert set(tensors["w"].tolist()) == {header["version"]}
    for writer in writers:
        writer.kill()
        assert writer.wait() == -signal.SIGKILL


LIMITED = """
import resource, sys
from pdftime.container import write_atomically
from pdftime.errors import ModelFileError

resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    write_atomically(sys.argv[1], b"new" * 100_000)
except ModelFileError as error:
    sys.exit(str(error))
"""


def test_a_file_size_limit_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, saved], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 1
    assert f"{saved} could not be written: File too large. What was there before is untouched" in run.stderr
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 100 kB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "model.pdftime"
    write_container(path, WEIGHTS, HEADER, "model")
    unchanged_after_failure(path, "No space left on device")
    assert read_container(path, "model")[1] == HEADER
    write_container(path, WEIGHTS, {"after": 1}, "model")
    assert read_container(path, "model")[1] == {"after": 1}


def test_a_read_only_folder_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "model.pdftime"
    write_container(path, WEIGHTS, HEADER, "model")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    unchanged_after_failure(path, "Read-only file system")
