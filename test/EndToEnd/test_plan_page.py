"""The page of --explain=html in a browser: nothing lies outside the window, and rows are no higher than what they show.

Needs chromium, which scripts/setup installs; without one these tests are skipped.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import genrec as gr
import numpy as np
import pytest
from compiled import ROOT, call, tool
from PIL import Image

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = (1400, 800)
HIGHEST_ROW = 130
"""Pixels: three lines of a long name and two lines of what an op came from."""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="NO BROWSER: scripts/setup could not install chromium, so the plan page was not looked at"
)

MEASURE = """<script>
addEventListener('load', () => {
  const inWindow = (one) => one.getBoundingClientRect().right <= innerWidth + 0.5;
  const part = (selector, of) => [...document.querySelectorAll(selector)].map(of);
  const pre = document.body.appendChild(document.createElement('pre'));
  pre.id = 'measured';
  pre.textContent = JSON.stringify({
    content: document.scrollingElement.scrollWidth, window: innerWidth,
    rows: part('tbody tr', (row) => row.getBoundingClientRect().height),
    origins: part('.from, .lines', (one) => [one.getBoundingClientRect().height, inWindow(one)]),
    folded: part('details', (one) => [one.querySelectorAll('tbody tr').length, one.open]),
  });
});
</script></body>"""


def write_search(folder: Path) -> Path:
    """The model file of examples/search_ranking for 660 columns."""
    call(tool("genrec-datagen"), "--kind", "search", "--columns", "660", "--users", "5", "--out", folder)
    sys.path.insert(0, str(ROOT / "examples" / "search_ranking"))
    try:
        model, columns = importlib.import_module("model"), importlib.import_module("columns")
    finally:
        sys.path.pop(0)
        for name in ("model", "columns"):
            sys.modules.pop(name, None)
    schema = columns.read_schema(folder / "train.parquet")
    gr.write_model(gr.record(model.SearchRanker(schema), schema), folder / "search.genrec")
    return folder / "search.genrec"


def write_hstu(folder: Path) -> Path:
    """The model file of two HSTU blocks."""

    class Small(gr.Model):
        def __init__(self) -> None:
            self.item = gr.Table("item", dim=32)
            self.blocks = [gr.nn.HSTUBlock(32, heads=2, dropout=0.1) for _ in range(2)]

        def forward(self, batch: gr.Batch) -> None:
            x = self.item(batch.history.item)
            for block in self.blocks:
                x = block(x)
            gr.loss.bce_with_logits(x.row_sum(), batch.history.liked)

    schema = gr.Schema({"history": [{"item": gr.int64, "liked": gr.bool_}]})
    gr.write_model(gr.record(Small(), schema), folder / "small.genrec")
    return folder / "small.genrec"


@pytest.fixture(scope="module", params=[write_search, write_hstu], ids=["search_ranking", "hstu"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    call(tool("genrec-compile"), request.param(folder), "--explain=html", "--batch=512", "-o", folder / "plan.html")
    return folder / "plan.html"


def browse(page: Path, width: int, *flags: str) -> str:
    """Opens a page in a window of that width; what the browser prints."""
    profile = page.parent / "profile"
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
        f"--window-size={width},3000", *flags, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits_the_window(page: Path, width: int) -> None:
    copy = page.with_name("measured.html")
    copy.write_text(page.read_text().replace("</body>", MEASURE))
    found = re.search(r'id="measured">(.*?)</pre>', browse(copy, width, "--dump-dom"))
    assert found is not None, "the page was not laid out"
    measured = json.loads(found[1])
    assert measured["content"] <= measured["window"] == width
    assert len(measured["rows"]) > 100
    assert max(measured["rows"]) <= HIGHEST_ROW
    assert len(measured["origins"]) > 20
    assert all(0 < height <= 60 and is_inside for height, is_inside in measured["origins"])
    assert all(is_open == (rows <= 60) for rows, is_open in measured["folded"])


@pytest.mark.parametrize("width", WIDTHS)
def test_screenshot(page: Path, width: int) -> None:
    picture = page.with_name(f"{width}.png")
    browse(page, width, f"--screenshot={picture}")
    with Image.open(picture) as image:
        dark = np.asarray(image.convert("L")) < 200
    assert dark.shape == (3000, width)
    assert dark.mean() > 0.005, "there is nothing on the page"
    assert not dark[:, -12:].any(), "something runs out of the window"
