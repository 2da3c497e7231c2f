"""The news ranker and the search ranker on the emulated device run as on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import genrec as gr
import numpy as np
import pytest
from compiled import ROOT, require_emulator
from test_cuda_models import (
    TARGETS,
    compile_both,
    expect_close,
    expect_same_evaluation,
    expect_same_training,
    tensors,
    train,
)
from test_news import load as load_news
from test_news import log_line

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "examples" / "search_ranking")]

from columns import read_schema  # noqa: E402
from example import generate, load_example  # noqa: E402

REQUESTS, COLUMNS, USERS, BATCH = 12, 60, 12, ("--batch", "8")


def make_news(folder: Path) -> tuple[dict[str, Path], Path]:
    """Binaries of the news ranker and its data: 12 requests, one without a history."""
    log = folder / "behaviors.tsv"
    log.write_text("".join(log_line(request) + "\n" for request in range(REQUESTS)))
    load_news("prepare").prepare(log, folder)
    data = folder / "train.parquet"
    return compile_both(load_news("model").NewsRanker, gr.Schema.from_parquet(data), folder), data


def make_search(folder: Path) -> tuple[dict[str, Path], Path]:
    """The same of the search ranker of 60 columns, as the tests of the CPU have it."""
    generate(folder / "data", kind="search", columns=COLUMNS, users=USERS, seed=3)
    data = folder / "data" / "train.parquet"
    model = load_example("search_ranking", "model")
    schema = read_schema(data)
    return compile_both(lambda: model.SearchRanker(schema), schema, folder), data


@pytest.mark.parametrize("make", [make_news, make_search], ids=["news", "search"])
def test_an_example_runs_as_on_the_cpu(make, tmp_path: Path) -> None:
    """Losses and checkpoints; a run that goes from one target to the other; evaluation and predictions."""
    require_emulator()
    binaries, data = make(tmp_path)
    expect_same_training(binaries, data, tmp_path, steps=3, atol=2e-4, outliers=1e-3)
    cpu, cuda = (binaries[target] for target in TARGETS)
    train(cpu, data, tmp_path / "mixed", *BATCH, steps=1)
    train(cuda, data, tmp_path / "mixed", *BATCH, "--resume", steps=2)
    train(cpu, data, tmp_path / "mixed", *BATCH, "--resume", steps=3)
    train(cpu, data, tmp_path / "whole", *BATCH, steps=3)
    expect_close(tensors(tmp_path / "mixed"), tensors(tmp_path / "whole"), 2e-4, outliers=1e-3)
    tables = expect_same_evaluation(binaries, data, tmp_path / "mixed", tmp_path, predicts=True)
    for name in tables[0].column_names:
        expected, actual = (np.array(table[name].to_pylist(), dtype=float) for table in tables)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5, err_msg=name)
