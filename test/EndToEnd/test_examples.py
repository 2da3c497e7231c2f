"""The examples run as their READMEs say, on small data, and learn."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
EXAMPLES = ROOT / "examples"
USERS = 60
ITEMS = 40


def run(script: Path, *arguments: str | Path) -> str:
    """What a script prints; its messages where it fails."""
    command = [sys.executable, str(script), *map(str, arguments)]
    environment = os.environ | {"GENREC_BIN": str(BUILD / "bin")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert result.returncode == 0, result.stderr + result.stdout
    return result.stdout


def metrics_of(output: str, row: str) -> dict[str, float]:
    """A row of a printed table, by column; columns left blank are left out."""
    lines = output.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(row))
    head = max(i for i in range(at) if "HR@10" in lines[i])
    columns = lines[head].split()
    width = 10
    cells = lines[at][len(lines[head]) - width * len(columns) :].ljust(width * len(columns))
    values = [cells[i * width : (i + 1) * width].strip() for i in range(len(columns))]
    return {name: float(value) for name, value in zip(columns, values, strict=True) if value}


@pytest.fixture
def movielens(tmp_path) -> Path:
    """A folder in the official layout of MovieLens-1M: users go through the items in turn, from anywhere."""
    folder = tmp_path / "ml-1m"
    folder.mkdir()
    draw = random.Random(1)
    ratings = []
    for user in range(1, USERS + 1):
        start, length = draw.randrange(ITEMS), draw.randrange(6, 30)
        for event in range(length):
            ratings.append((user, 1 + (start + event) % ITEMS, 1 + event % 5, 978300000 + 3600 * event))
    draw.shuffle(ratings)
    (folder / "ratings.dat").write_text("".join("::".join(map(str, row)) + "\n" for row in ratings))
    movies = "".join(f"{item}::Amélie {item} (2001)::Comedy|Romance\n" for item in range(1, ITEMS + 1))
    (folder / "movies.dat").write_bytes(movies.encode("latin-1"))
    return folder


def test_demo_on_generated_data(tmp_path):
    out = tmp_path / "demo"
    output = run(EXAMPLES / "hstu_retrieval" / "demo.py", "--users", "800", "--epochs", "4", "--out", out)
    for name in ("metrics.json", "model", "model.cpp", "curve.png", "checkpoint/manifest.json"):
        assert (out / name).exists(), f"{name} is missing"
    ours, popular, informed = (metrics_of(output, row) for row in ("this model", "popularity", "informed ranking"))
    assert set(ours) == {"HR@10", "HR@50", "HR@200", "NDCG@10", "NDCG@50", "NDCG@200", "MRR"}
    assert popular["HR@10"] < ours["HR@10"] < informed["HR@10"]
    recorded = json.loads((out / "metrics.json").read_text())["final"]["evaluation"]["metrics"]
    assert f"{recorded['hr@10']:.4f}" == f"{ours['HR@10']:.4f}"


def test_demo_on_movielens(tmp_path, movielens):
    output = run(
        EXAMPLES / "hstu_retrieval" / "demo.py", "--data", movielens, "--epochs", "1", "--out", tmp_path / "demo"
    )
    assert metrics_of(output, "public PyTorch code") == {
        "HR@10": 0.2924,
        "HR@50": 0.5651,
        "NDCG@10": 0.1690,
        "MRR": 0.1473,
    }
    # Everybody has seen every item about as often, so that popularity says little; but all 40 items are within 50.
    assert metrics_of(output, "popularity")["HR@50"] == 1
    assert metrics_of(output, "this model")["HR@50"] == 1


def test_demo_says_what_is_wrong_with_a_folder(tmp_path):
    script = EXAMPLES / "hstu_retrieval" / "demo.py"
    result = subprocess.run(
        [sys.executable, script, "--data", tmp_path, "--out", tmp_path / "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "none of ratings.dat, ratings_chrono.csv and u.data is there" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("options", [["--model", "sasrec"], ["--time-bias"]], ids=["sasrec", "time-bias"])
def test_quality_learns_a_simple_order(tmp_path, movielens, options):
    """The item after an event is the next in turn, which a few epochs must find better than chance (10 of 40)."""
    output = run(
        EXAMPLES / "hstu_retrieval" / "quality.py", *options, "--data", movielens, "--seeds", "1,2", "--epochs", "12",
        "--eval-epochs", "11,12", "--batch", "16", "--out", tmp_path,
    )  # fmt: skip
    assert metrics_of(output, "mean")["HR@10"] > 0.5
    losses = [json.loads(path.read_text())["final"]["loss"] for path in sorted(tmp_path.glob("*/seed*.json"))]
    assert len(losses) == 2
    assert losses[0] != losses[1]


def test_two_tower_learns_a_simple_order(tmp_path, movielens):
    """From what was seen last, the item that follows it in turn: better than chance (10 of 40)."""
    output = run(
        EXAMPLES / "two_tower" / "train.py", "--data", movielens, "--epochs", "20", "--batch", "32", "--out", tmp_path
    )
    assert f"{USERS} users, " in output
    last = output.splitlines()[-1]
    assert float(last.split("hr@10 ")[1].split(",")[0]) > 0.5


def test_request_ranking(tmp_path):
    output = run(EXAMPLES / "request_ranking" / "train.py", "--users", "1500", "--epochs", "4", "--out", tmp_path)
    rows = output[output.index("AUC") :].splitlines()[1:4]
    auc = {name.strip(): float(value) for name, value in (row.rsplit(None, 1) for row in rows)}
    assert set(auc) == {"popularity", "this model", "informed ranking"}
    assert 0.55 < auc["this model"] < auc["informed ranking"]


@pytest.fixture
def click_log(tmp_path) -> Path:
    """A log in Criteo's layout: a category and a count decide how often a row is clicked; values are missing."""
    draw = random.Random(2)
    lines = []
    for _ in range(6000):
        counts = [draw.choice(["", str(draw.randrange(-1, 50))]) for _ in range(13)]
        categories = [draw.choice(["", str(1000 + draw.randrange(8))]) for _ in range(26)]
        taste = {"1001": 0.7, "1002": 0.5}.get(categories[4], 0.1)
        clicked = draw.random() < taste * (1.2 if counts[2] and int(counts[2]) > 25 else 0.6)
        lines.append("\t".join([str(int(clicked)), *counts, *categories]))
    path = tmp_path / "clicks.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("model", ["dlrm", "dcnv2"])
def test_click_models_learn(model, click_log, tmp_path):
    script = EXAMPLES / "criteo_dlrm" / "train.py"
    options = ("--seeds", "1,2", "--epochs", "3", "--batch", "64", "--out", tmp_path)
    output = run(script, "--data", click_log, "--model", model, *options)
    results = json.loads((tmp_path / model / "results.json").read_text())
    assert set(results) == {"1", "2"}
    for result in results.values():
        assert result["auc"] > 0.65 and result["ne"] < 0.95
    assert f"{model}, 4,500 rows trained, 1,500 tested" in output


@pytest.fixture
def news_log(tmp_path) -> Path:
    """A log in MIND's layout: users click news of the section that they read; some have read nothing."""
    draw = random.Random(3)
    lines = []
    for request in range(1, 401):
        section = draw.randrange(4)
        read = [f"N{1 + section + 4 * draw.randrange(10)}" for _ in range(draw.randrange(0, 12))]
        shown = draw.sample(range(1, 41), 8)
        clicks = [item for item in shown if (item - 1) % 4 == section][:2]
        words = " ".join(f"N{item}-{int(item in clicks)}" for item in shown)
        time = f"11/{9 + request // 100}/2019 {1 + request % 12}:{request % 60:02}:07 {draw.choice(['AM', 'PM'])}"
        lines.append("\t".join([str(request), f"U{1 + draw.randrange(60)}", time, " ".join(read), words]))
    path = tmp_path / "behaviors.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_news_request_ranking_learns(news_log, tmp_path):
    script = EXAMPLES / "news_request_ranking" / "train.py"
    options = ("--epochs", "6", "--batch", "16", "--impressions", "5", "--out", tmp_path)
    output = run(script, "--data", news_log, *options)
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"popularity", "this model"}
    assert results["this model"]["auc"] > max(0.65, results["popularity"]["auc"])
    assert "5.0 impressions" in output


def test_click_models_learn_with_smaller_tables(click_log, tmp_path):
    """Row-wise Adagrad and tables with rules; of 8 categories 7 fit, and a step sees all of them."""
    script = EXAMPLES / "criteo_dlrm" / "train.py"
    tables = ("--row-wise", "--bounded", "7", "--admit-after", "2")
    run(script, "--data", click_log, *tables, "--seeds", "1", "--epochs", "3", "--batch", "64", "--out", tmp_path)
    assert json.loads((tmp_path / "dlrm" / "results.json").read_text())["1"]["auc"] > 0.6
