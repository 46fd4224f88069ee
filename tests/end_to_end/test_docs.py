"""Every example in the README and the documentation runs as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    if page.name != "data-formats.md"  # its examples build on each other; tests/data/test_files_docs.py runs them
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.slow
@pytest.mark.parametrize("code", PYTHON)
def test_python_example_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_command_line_of_the_readme_runs(tmp_path: Path) -> None:
    block = next(
        text
        for text in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "pdftime" in text
    )
    lines = [shlex.split(line) for line in block.splitlines()]
    assert len(lines) >= 6
    for line in lines:
        assert line[0] == "pdftime"
        done = subprocess.run(
            [sys.executable, "-m", "pdftime", *line[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
    assert {"model.pdftime", "predictions.csv", "train.parquet"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_readme_example_is_about_ten_lines() -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 11
