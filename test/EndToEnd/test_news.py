"""The news ranker with and without sink-fanout, and written per request by hand: one model."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import genrec as gr
import pyarrow as pa
import pytest
from compiled import ROOT, call, draft, tool

EXAMPLE = ROOT / "examples" / "news_request_ranking"
REQUESTS, HISTORY, IMPRESSIONS = 12, 7, 5


def load(name: str):
    """A module of the example, which is no package."""
    spec = importlib.util.spec_from_file_location(f"news_{name}", EXAMPLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def log_line(request: int) -> str:
    """A request; the first has read nothing."""
    read = " ".join(f"N{(request * 7 + event) % 30}" for event in range(HISTORY if request else 0))
    shown = " ".join(f"N{(request * 5 + 3 * item) % 40}-{int(item % 3 == 0)}" for item in range(2 * IMPRESSIONS))
    return f"{request}\tU{request % 5}\t11/{9 + request % 5}/2019 2:14:{request:02} PM\t{read}\t{shown}"


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("news") / "behaviors.tsv"
    path.write_text("\n".join(log_line(request) for request in range(REQUESTS)) + "\n")
    return path


@pytest.fixture(scope="module")
def model_files(log) -> dict[str, Path]:
    """The data, the model as written and the model per request by hand."""
    folder = log.parent
    load("prepare").prepare(log, folder)
    schema = gr.Schema.from_parquet(folder / "train.parquet")
    for name, per_request in (("naive", False), ("by_hand", True)):
        gr.write_model(gr.record(load("model").NewsRanker(per_request), schema), folder / f"{name}.genrec")
    return {name: folder / f"{name}.genrec" for name in ("naive", "by_hand")} | {"data": folder / "train.parquet"}


def test_a_compressed_log_is_the_same_log(log, tmp_path):
    """As benchmarks/news_request_ranking takes it with --data."""
    compressed = tmp_path / "behaviors.tsv.zst"
    compressed.write_bytes(pa.compress(log.read_bytes(), codec="zstd", asbytes=True))
    prepare = load("prepare")
    assert prepare.read(compressed).equals(prepare.read(log))
    assert prepare.prepare(compressed, tmp_path / "out")["train"] > 0


def test_sampling_keeps_clicks(log, tmp_path):
    prepare = load("prepare")
    requests = prepare.read(log)
    kept = prepare.keep_impressions(requests, IMPRESSIONS)
    assert kept.drop("shown").equals(requests.drop("shown"))
    for whole, part in zip(requests["shown"].to_list(), kept["shown"].to_list(), strict=True):
        clicked = [one for one in whole if one["label"] > 0]
        assert len(part) == IMPRESSIONS
        assert [one for one in part if one["label"] > 0] == clicked[:IMPRESSIONS]
        assert [one for one in whole if one in part] == part, "the order in which they were shown"
    assert prepare.keep_impressions(requests, IMPRESSIONS).equals(kept)


def plan(model: Path, *options: str) -> dict:
    """The plan of a batch of 64 requests with 38 impressions and 32 events each."""
    rows = [f"--rows={name}={64 * count}" for name, count in
            (("history", 32), ("read", 32), ("impression", 38), ("event", 32 * 38), ("below", 32 * 38))]  # fmt: skip
    known = json.loads(call(tool("genrec-compile"), model, "--explain=json", "-o", "-"))["domains"]
    names = {domain["name"] for domain in known}
    rows = [row for row in rows if row.split("=")[1] in names]
    return json.loads(call(tool("genrec-compile"), model, *options, "--batch=64", *rows, "--explain=json", "-o", "-"))


def flops(planned: dict) -> float:
    """Floating point operations of a training step."""
    train = next(program for program in planned["programs"] if program["name"] == "train")
    return sum(op["flops"] + op["product_flops"] for op in train["ops"])


def test_sinking_does_what_a_hand_would(model_files):
    naive, sunk = plan(model_files["naive"], "--sink-fanout=false"), plan(model_files["naive"])
    by_hand = plan(model_files["by_hand"])
    assert flops(naive) > 10 * flops(sunk)
    assert flops(sunk) == flops(by_hand)
    # Not even a hand splits the layer over joined columns of users, news and both.
    assert flops(sunk) < flops(plan(model_files["by_hand"], "--sink-fanout=false"))
    # Target attention reads the one list of a request: nothing is left to be copied into pairs.
    assert not [line for line in sunk["decisions"] if line.startswith("sink-fanout: copy of")]
    train = next(program for program in sunk["programs"] if program["name"] == "train")
    names = {op["name"] for op in train["ops"]}
    assert "cross_attention_grad" in names and not names & {"pair_rows", "pair_sum", "pair_domains"}


def losses(binary: Path, data: Path, folder: Path) -> list[float]:
    """Losses of four steps from the same initial values."""
    report = folder / "metrics.json"
    call(binary, "train", "--data", data, "--batch", "4", "--max-steps", "4", "--epochs", "4", "--no-shuffle",
         "--log-every", "1", "--progress", "none", "--seed", "3", "--metrics-json", report)  # fmt: skip
    return [step["loss"] for step in json.loads(report.read_text())["step_losses"]]


def test_losses_are_those_of_the_model_as_written(model_files, tmp_path):
    found = {}
    for name, options in (("sunk", ()), ("naive", ("--sink-fanout=false",))):
        binary = tmp_path / name
        call(tool("genrec-compile"), model_files["naive"], *draft(), *options, "-O2", "--emit=binary", "-o", binary)
        found[name] = losses(binary, model_files["data"], tmp_path)
    assert found["sunk"][0] == pytest.approx(found["naive"][0], rel=1e-5)
    assert found["sunk"] == pytest.approx(found["naive"], rel=1e-3)
    assert len(set(found["sunk"])) == 4
