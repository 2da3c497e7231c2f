"""Ids that the compute stage makes, and sums over portions that it needs, on portions and ranks of both targets.

Rows of such ids are looked up once the portions of a rank have met; results have the bits of one rank.
"""

from __future__ import annotations

import json
from pathlib import Path

import genrec as gr
import numpy as np
import pytest
from compiled import draft, require_emulator
from genrec import nn
from launching import needs_mpi
from test_cuda_models import BATCH, CATEGORIES, SCHEMA, TARGETS, WIDTH, expect_close, tensors, write_rows
from test_cuda_ranks import PORTIONS, expect_equal, saved, start, train_on
from test_cuda_steps import losses


class Gated(gr.Model):
    """A gate chooses one of two ids, a score a bucket; the first table's rows are looked up before, too.

    The weight of a row in the second loss depends on parameters, and so does the sum of the weights.
    """

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), clip_norm=1.0)
        self.tables = [gr.Table(f"c{k}", dim=WIDTH, id_bits=20, init=gr.init.normal(0.3)) for k in range(CATEGORIES)]
        self.bucket = gr.Table("bucket", dim=2, init=gr.init.normal(0.3))
        self.gate = nn.Linear(2 * WIDTH, 1)
        self.top = nn.MLP([3 * WIDTH + 2, 8, 1])

    def forward(self, batch: gr.Batch) -> None:
        ids = [gr.fill_missing(batch[f"c{k}"], 1) for k in range(CATEGORIES)]
        early = [self.tables[k](ids[k]) for k in range(2)]
        gate = self.gate(gr.concat(early)).squeeze()
        chosen = self.tables[0](gr.where(gate > 0.0, ids[0], ids[2]))
        bucket = self.bucket(gr.bucketize(gate, [-0.2, 0.0, 0.2]))
        logit = self.top(gr.concat(*early, chosen, bucket)).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, name="click")
        gr.loss.mse(gate, batch.label, weight=nn.sigmoid(logit), name="gate")
        gr.output(probability=nn.sigmoid(logit))


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("gated")
    return {
        target: gr.compile(Gated(), SCHEMA, target=target, output=folder / target, flags=draft()).binary
        for target in TARGETS
    }


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


@pytest.fixture(scope="module", autouse=True)
def _needs_emulator() -> None:
    require_emulator()


@needs_mpi
@pytest.mark.parametrize("target", TARGETS)
def test_any_number_of_ranks_has_the_same_bits(
    target: str, binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    overlap = {0: "none", 2: "rows", 3: "keys", 4: "none"}
    runs = {
        ranks: train_on(binaries[target], ranks, rows, tmp_path / str(ranks), "--overlap", how, steps=6)
        for ranks, how in overlap.items()
    }
    for ranks in (2, 3, 4):
        assert losses(runs[ranks]) == losses(runs[0])
        assert saved(tmp_path / str(ranks)) == saved(tmp_path / "0")


@needs_mpi
def test_ranks_with_devices_train_as_those_of_the_cpu(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    runs = [train_on(binaries[target], 2, rows, tmp_path / target) for target in TARGETS]
    np.testing.assert_allclose(losses(runs[1]), losses(runs[0]), rtol=1e-5)
    expect_close(tensors(tmp_path / TARGETS[1]), tensors(tmp_path / TARGETS[0]))


@needs_mpi
def test_captured_stages_have_the_bits_of_others(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    kept = {}
    for capture in ("on", "off"):
        report = train_on(
            binaries["cuda-emulated"], 2, rows, tmp_path / capture, "--capture", capture, portions=(), steps=10
        )
        kept[capture] = losses(report), tensors(tmp_path / capture)
        assert (report["device"]["captured_steps_launched"] > 0) == (capture == "on")
    assert kept["on"][0] == kept["off"][0]
    expect_equal(kept["on"][1], kept["off"][1])


@needs_mpi
def test_evaluation_and_predictions_do_not_depend_on_ranks(
    binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """Ids without a row have one for the step, wherever they are looked up."""
    train_on(binaries["cpu"], 0, rows, tmp_path / "kept", steps=2)
    for target in TARGETS:
        seen, scores = [], []
        for ranks in (0, 2):
            given = ["--data", rows, "--checkpoint", tmp_path / "kept", "--batch", BATCH, "--threads", "1", *PORTIONS]
            report, out = tmp_path / f"{ranks}.json", tmp_path / f"{ranks}.parquet"
            for command in (["evaluate", *given, "--metrics-json", report], ["predict", *given, "--out", out]):
                ran = start(binaries[target], ranks, *command)
                assert ran.returncode == 0, ran.stdout + ran.stderr
            seen.append(json.loads(report.read_text())["evaluation"]["loss"])
            scores.append(out.read_bytes())
        assert seen[0] == seen[1]
        assert scores[0] == scores[1]


@needs_mpi
@pytest.mark.parametrize("target", TARGETS)
def test_an_id_beyond_its_table_ends_all_ranks(target: str, binaries: dict[str, Path], tmp_path: Path) -> None:
    """Only in some portions, and on one of the ranks: the others wait for it."""
    bad = write_rows(tmp_path / "bad.parquet", c2={row: 1 << 30 for row in range(44, 60)})
    ran = start(
        binaries[target], 2, "train", "--data", bad, "--batch", "60", "--epochs", "3", "--no-shuffle", "--threads", "1",
        "--progress", "none", *PORTIONS,
    )  # fmt: skip
    assert ran.returncode != 0
    assert "table 'c0'" in ran.stderr, ran.stderr


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "flags"),
    [
        (2, ("--host-tables", "c0=3,bucket=2", "--replicate", "auto", "--overlap", "keys", "--shard-optimizer")),
        (3, ("--host-tables", "c0=3", "--replicate", "c0,bucket", "--overlap", "keys", "--deduplicate", "requester")),
    ],
)
def test_one_rank_goes_on_as_several_with_all_flags(
    ranks: int, flags: tuple[str, ...], binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """Rows in the host's memory, replicas, sums that travel early, shared updates and later lookups at once."""
    binary, portions = binaries["cuda-emulated"], ("--portions", "5")
    whole = train_on(binary, 0, rows, tmp_path / "whole", steps=6, portions=portions)
    train_on(binary, 0, rows, tmp_path / "kept", steps=2, portions=portions)
    rest = train_on(
        binary, ranks, rows, tmp_path / "kept", "--resume", "--early-gradients", "on", *flags,
        steps=6, portions=portions,
    )  # fmt: skip
    assert losses(rest) == losses(whole)[2:]
    assert saved(tmp_path / "kept") == saved(tmp_path / "whole")
