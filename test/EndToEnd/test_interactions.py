"""Dot products of all pairs, written as loops (`form-interactions`), beside `nn.dot_interaction`."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, call, draft
from genrec import nn

VECTORS, DIM, ROWS = 9, 12, 192


class Pairs(gr.Model):
    """A click from dot products of all pairs of ids' vectors; `way` is how they are written."""

    def __init__(self, way: str) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05))
        self.ids = [gr.Table(f"c{k}", dim=DIM, init=gr.init.normal(0.3)) for k in range(VECTORS)]
        self.top = nn.MLP([VECTORS * (VECTORS - 1) // 2 + DIM, 8, 1])
        self.way = way

    def forward(self, batch: gr.Batch) -> None:
        vectors = [table(batch[f"c{k}"]) for k, table in enumerate(self.ids)]
        if self.way == "op":
            products = [nn.dot_interaction(vectors)]
        elif self.way == "loop":
            products = [(vectors[i] * vectors[j]).row_sum() for i in range(VECTORS) for j in range(i)]
        else:
            products = [(one * other).row_sum() for one, other in itertools.combinations(vectors, 2)]
        logit = self.top(gr.concat(vectors[0], *products)).squeeze()
        gr.loss.bce_with_logits(logit, batch.click, name="click")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with clicks that depend on which ids meet."""
    folder = tmp_path_factory.mktemp("interactions")
    draw = np.random.default_rng(5)
    ids = draw.integers(0, 20, size=(VECTORS, ROWS))
    click = ((ids[0] + ids[1]) % 2 == ids[2] % 2).astype(np.float32)
    pq.write_table(pa.table({**{f"c{k}": ids[k] for k in range(VECTORS)}, "click": click}), folder / "d.parquet")
    return folder


def losses(folder: Path, way: str, *flags: str) -> list[float]:
    """The losses of a run of 18 steps; that the pass formed an interaction where it should."""
    schema = gr.Schema.from_parquet(folder / "d.parquet")
    binary = folder / "-".join((way, *flags)).replace("=", "-")
    made = gr.compile(Pairs(way), schema, output=binary, flags=[*draft(), *flags])
    explained = call(BUILD / "bin" / "genrec-compile", made.model_file, "--explain", *flags)
    is_formed = "36 dot products of 9 vectors (test_interactions.py:" in explained
    assert is_formed == (way != "op" and "--form-interactions=false" not in flags)
    command = [
        str(binary), "train", "--data", "d.parquet", "--seed", "2", "--batch", "64", "--epochs", "6", "--progress",
        "none", "--log-every", "1", "--metrics-json", "m.json",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [step["loss"] for step in json.loads((folder / "m.json").read_text())["step_losses"]]
    assert len(steps) == 18 and steps[-1] < 0.9 * steps[0]
    return steps


def test_a_loop_has_the_bits_of_the_op(folder: Path) -> None:
    """In the op's order there is nothing else."""
    assert losses(folder, "loop") == losses(folder, "op")


@pytest.mark.parametrize("way", ["loop", "combinations"])
def test_other_sums_without_the_pass(folder: Path, way: str) -> None:
    formed = losses(folder, way)
    assert losses(folder, way, "--form-interactions=false") == pytest.approx(formed, rel=1e-4)
    assert losses(folder, way, "--target=cuda-emulated") == pytest.approx(formed, rel=1e-4)
