"""Draws docs/report.png: the report of the demo's problem in a browser; needs playwright, chromium and pillow.

python docs/make_report_picture.py
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from pdftime import PDFTimeClassifier
from pdftime.data.synthetic import make_problem
from pdftime.explain.report import Names

PICTURE = Path(__file__).with_name("report.png")
WIDTH = 1280
MAX_BYTES = 200_000


def main() -> None:
    problem = make_problem("channels", noise_level=0.3)
    model = PDFTimeClassifier(n_threads=1).fit(problem.train, problem.train.y)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        model.report(problem.fresh, path=path, max_cases=12, names=Names("model.pdftime", "fresh.ts"))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(path.as_uri())
        end = page.locator("#why .legend").bounding_box()
        assert end is not None
        part = {"x": 0, "y": 0, "width": WIDTH, "height": end["y"] + end["height"] + 8}
        seen = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=part)))
        browser.close()
    seen.convert("RGB").quantize(192).save(PICTURE, optimize=True)
    if PICTURE.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{PICTURE} takes {PICTURE.stat().st_size} bytes; expected at most {MAX_BYTES}.")


if __name__ == "__main__":
    main()
