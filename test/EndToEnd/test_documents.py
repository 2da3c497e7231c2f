"""The Python in README.md and docs/ does what the text around it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[tuple[str, int]]:
    """The Python blocks of a document, and the line that each begins at."""
    text = (ROOT / document).read_text()
    return [(found[1], text[: found.start()].count("\n") + 2) for found in BLOCK.finditer(text)]


def is_ours(path: Path) -> bool:
    """Whether a document belongs to the project, and not to a build or an environment below it."""
    return not path.relative_to(ROOT).parts[0].startswith(("build", "."))


def outside_code(path: Path) -> str:
    """The text of a document without its blocks and pieces of code."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path: Path) -> set[str]:
    """The names of a document's headings, as links write them; those of equal ones are numbered."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    found: set[str] = set()
    for heading in headings:
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        numbered = [name, *(f"{name}-{count}" for count in range(1, len(headings)))]
        found.add(next(one for one in numbered if one not in found))
    return found


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty current folder, with the tools of the build."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENREC_BIN", str(BUILD / "bin"))
    return tmp_path


def run(document: str) -> dict[str, object]:
    """Runs the blocks one after another, as a reader would; lines of errors are those of the document."""
    names: dict[str, object] = {"__name__": "document"}
    found = blocks(document)
    assert found, f"{document} has no Python"
    for code, line in found:
        # Under its own name, so that errors of the front end can show the source line.
        exec(compile("\n" * (line - 1) + code, str(ROOT / document), "exec"), names)
    return names


def write_requests(path: Path, seed: int) -> None:
    """A file with the columns that README.md reads: 200 requests, half of the items liked."""
    random = np.random.default_rng(seed)
    rows = []
    for user in range(200):
        shown = [{"item": int(item), "clicked": bool(item % 2)} for item in random.integers(0, 30, 6)]
        history = [{"item": int(item)} for item in random.integers(0, 30, random.integers(0, 5))]
        rows.append({"user": user % 20, "history": history, "impression": shown})
    pl.DataFrame(rows).write_parquet(path)


def test_readme(workplace):
    write_requests(workplace / "train.parquet", 1)
    write_requests(workplace / "valid.parquet", 2)
    names = run("README.md")
    trained = names["run"]
    assert isinstance(trained, gr.Run)
    assert len(trained.history) == 1
    assert 0 <= trained.metrics["auc"] <= 1


def test_readme_shows_the_error_that_is_given(workplace):
    """The mistake in README.md, made in its model."""
    write_requests(workplace / "train.parquet", 1)
    write_requests(workplace / "valid.parquet", 2)
    schema = gr.Schema.from_parquet("train.parquet")
    names = run("README.md")
    ranker = names["Ranker"]

    class Mistaken(ranker):  # type: ignore[misc, valid-type]
        def forward(self, batch: gr.Batch) -> None:
            shown = batch.impression
            user = self.user(batch.user)
            gr.loss.mean((user + self.item(shown.item)).row_sum())

    with pytest.raises(gr.ModelError) as error:
        gr.record(Mistaken(), schema)
    shown = (ROOT / "README.md").read_text()
    for line in ("error: 'add' mixes rows of 'request' and 'impression'", "one row per request (made at"):
        assert line in str(error.value)
        assert line in shown
    assert str(error.value).splitlines()[-1].strip() in shown


def test_guide(workplace):
    datagen = [BUILD / "bin" / "genrec-datagen", "--out", "data", "--users", "300", "--seed", "1"]
    subprocess.run(datagen, check=True, capture_output=True)
    names = run("docs/guide.md")
    schema = str(names["schema"])
    assert schema in (ROOT / "docs" / "guide.md").read_text()
    assert str(names["by_hand"]) == schema
    assert (workplace / "next_item.cpp").read_text().count('extern "C"') > 0
    assert (workplace / "curve.png").stat().st_size > 0
    found = pl.read_parquet("top.parquet")
    assert found.height == 300
    assert set(found.columns) >= {"user", "found", "score"}
    assert any((workplace / "exported").iterdir())


def test_data(workplace):
    (workplace / "ratings.dat").write_text("1::10::5::978300760\n1::11::3::978302109\n")
    names = run("docs/data.md")
    assert names["ratings"].columns == ["user", "item", "rating", "time"]


DOCUMENTS = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("*/**/*.md") if is_ours(path))]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    """Files that are linked to are there, and have the heading that is linked to."""
    path = ROOT / document
    for link in re.findall(r"\]\(([^)\s]+)\)", outside_code(path)):
        if "://" in link:
            continue
        target, _, heading = link.partition("#")
        found = path.parent / target if target else path
        assert found.exists(), f"{document} links to {target}, which is not there"
        if heading and found.suffix == ".md":
            assert heading in anchors(found), f"{document} links to {link}, but {found.name} has no such heading"
