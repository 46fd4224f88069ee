"""Every example in docs/data-formats.md is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pdftime.data.files import SUFFIXES, read_series

PAGE = (Path(__file__).parents[2] / "docs" / "data-formats.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("kind", "content"), [block for block in BLOCKS if block[0] != "python"])
def test_every_file_on_the_page_is_read_as_two_cases(tmp_path: Path, kind: str, content: str) -> None:
    (tmp_path / f"x.{kind}").write_text(content)
    cases = read_series(tmp_path / f"x.{kind}")
    assert len(cases) == 2
    assert cases.y.tolist()[0] == "walk"


def test_the_code_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for _, code in (block for block in BLOCKS if block[0] == "python"):
        exec(code, names)


def test_every_file_type_is_on_the_page() -> None:
    assert all(f"`{suffix}`" in PAGE for suffix in SUFFIXES)
