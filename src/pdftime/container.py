"""The form of every file we write: tensors and JSON in one safetensors file, sealed by a digest.

The safetensors header holds, beside the tensors' places, five texts: `kind` ("model" or "checkpoint"),
`format_version`, `library_version`, `pdftime` (a JSON object) and `sha256`, the digest of the whole file with
64 zeros in the digest's own place. Same content, same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from pdftime.errors import ModelFileError, PDFTimeError
from pdftime.version import __version__

FORMAT_VERSION = 5
MAX_FILE_BYTES = 4 << 30  # a file is read whole
MAX_HEADER_BYTES = 16 << 20  # parsed JSON takes many times its text
DTYPES = {"<f4": "F32", "<f8": "F64", "<i8": "I64", "<i4": "I32", "|u1": "U8", "|b1": "BOOL"}

ZEROS = b"0" * 64
# Quotes inside JSON strings are written \", so no name and no header content can look like this.
SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def write_atomically(path: str | os.PathLike[str], data: bytes, error: type[PDFTimeError] = ModelFileError) -> None:
    """Put `data` at `path` entirely or not at all; a failure raises `error` and the old file stays as it was.

    The bytes go to `.pdftime-<random>.tmp` in the same folder, which is renamed when it is safely on disk.
    Only a killed process or a power cut leaves such a file behind; nothing reads it, it may be deleted.
    """
    try:
        target = Path(os.path.realpath(path))  # a link stays a link
        mode = stat.S_IMODE(_ordinary(target).st_mode) if target.exists() else None
        temporary = target.parent / f".pdftime-{secrets.token_hex(8)}.tmp"
        try:
            with temporary.open("xb") as handle:
                if mode is not None:
                    temporary.chmod(mode)
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    except (OSError, ValueError) as cause:
        raise error(
            f"{os.fspath(path)} could not be written: {_reason(cause)}. "
            "What was there before is untouched; make room or choose another place."
        ) from cause
    _sync_folder(target.parent)


def _ordinary(path: Path) -> os.stat_result:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it is a folder or a device, not an ordinary file")
    return found


def _reason(cause: BaseException) -> str:
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _sync_folder(folder: Path) -> None:
    # The rename has happened; some file systems cannot sync a folder, and that is no failure of the write.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_container(
    path: str | os.PathLike[str], tensors: dict[str, NDArray[Any]], header: dict[str, Any], kind: str
) -> None:
    """Write tensors and a JSON object as one sealed file of this `kind`."""
    # Laid out here and not by safetensors, which writes its metadata in random order (its issue 584).
    entries: dict[str, Any] = {}
    chunks: list[bytes] = []
    end = 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):  # widest first: aligned
        array = tensors[name]
        if array.dtype.str not in DTYPES or name == "__metadata__":
            raise ModelFileError(
                f"{os.fspath(path)} was not written: it cannot hold tensor {name!r} of type {array.dtype}. "
                "Use float32, float64, int64, int32, uint8 or bool, and any name but '__metadata__'."
            )
        start, end = end, end + array.nbytes
        entries[name] = {"dtype": DTYPES[array.dtype.str], "shape": array.shape, "data_offsets": [start, end]}
        chunks.append(array.tobytes())
    metadata = {
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "library_version": __version__,
        "sha256": ZEROS.decode(),
    }
    try:
        metadata["pdftime"] = json.dumps(header, sort_keys=True, allow_nan=False, separators=(",", ":"))
        whole = {"__metadata__": metadata, **entries}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise ModelFileError(
            f"{os.fspath(path)} was not written: its header is not plain JSON ({cause}). "
            "Use text, finite numbers, booleans, None, lists and dicts."
        ) from cause
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES or 8 + len(text) + end > MAX_FILE_BYTES:
        raise ModelFileError(
            f"{os.fspath(path)} was not written: {len(text)} header bytes and {end} tensor bytes are "
            f"more than {MAX_HEADER_BYTES} and, together, {MAX_FILE_BYTES}. Keep fewer or smaller tensors."
        )
    digest = hashlib.sha256(len(text).to_bytes(8, "little") + text)
    for chunk in chunks:
        digest.update(chunk)
    sealed = text.replace(b'"sha256":"' + ZEROS, b'"sha256":"' + digest.hexdigest().encode())
    write_atomically(path, b"".join([len(text).to_bytes(8, "little"), sealed, *chunks]))


def read_container(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Tensors and JSON object of a sealed file; a broken, foreign, newer or other kind of file is refused."""
    try:
        data, header_end = _read_sealed(Path(path))
        whole = _parse(data[8:header_end].decode())
        metadata = whole.pop("__metadata__")
        version, found = metadata["format_version"], metadata["kind"]
        if re.fullmatch("[1-9][0-9]{0,8}", version) is None:
            raise ValueError(f"format version {version!r} is not a number")
        if int(version) > FORMAT_VERSION:
            raise ModelFileError(
                f"{os.fspath(path)} was written by a newer pdftime (format {version}; "
                f"{__version__} reads up to {FORMAT_VERSION}). Upgrade pdftime."
            )
        if found != kind:
            raise ModelFileError(f"{os.fspath(path)} is a {found}, not a {kind}. Give a {kind} file.")
        if any(entry["dtype"] not in DTYPES.values() for entry in whole.values()):
            raise ValueError("a tensor's type is not one that pdftime writes")
        return load(data), _parse(metadata["pdftime"])
    except ModelFileError:
        raise
    except (OSError, MemoryError) as cause:
        raise ModelFileError(f"{os.fspath(path)} could not be read: {_reason(cause)}. Check the path.") from cause
    except (ValueError, TypeError, KeyError, RecursionError, SafetensorError) as cause:
        raise ModelFileError(
            f"{os.fspath(path)} is not a pdftime file, or only a part of one. Give a file that pdftime saved."
        ) from cause


def _read_sealed(path: Path) -> tuple[bytes, int]:
    """All bytes of a file whose digest is right, and where its header ends."""
    size = _ordinary(path).st_size
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if size > MAX_FILE_BYTES or length > min(size - 8, MAX_HEADER_BYTES):
            raise ValueError(f"a header of {length} bytes cannot be in a file of {size}")
        seals = list(SEAL.finditer(handle.read(length)))
        if len(seals) != 1:
            raise ValueError("there is no digest, or more than one")
        handle.seek(0)
        data = handle.read(size)
    start, end = (8 + place for place in seals[0].span(1))
    digest = hashlib.sha256(data[:start] + ZEROS)
    digest.update(memoryview(data)[end:])
    if digest.hexdigest().encode() != data[start:end]:
        raise ModelFileError(f"{path} is damaged (its digest is wrong). Restore it from a copy or save it again.")
    return data, 8 + length


def _parse(text: str) -> dict[str, Any]:
    """A JSON object without repeated names and without numbers that are not finite."""
    value = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
    if not isinstance(value, dict):
        raise TypeError("not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name is given twice")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value
