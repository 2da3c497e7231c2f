"""What goes wrong while several ranks train: who tells it, what is told, what is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, ROOT, draft
from genrec import nn
from launching import launcher, needs_mpi

sys.path.insert(0, str(ROOT / "test" / "Faults"))
from fail_ranks import Fault  # noqa: E402
from fail_ranks import Harness as FailHarness  # noqa: E402
from kill_ranks import Harness  # noqa: E402
from rank_runs import EVERY, STEPS  # noqa: E402

pytestmark = needs_mpi

ROWS, BATCH = 480, 48
SCHEMA = gr.Schema({"user": gr.int64, "items": [{"item": gr.int64}], "price": gr.float32, "label": gr.float32})


class Shop(gr.Model):
    """Users and the items that they saw; a price that a product takes in."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), name="Shop")
        self.user = gr.Table("user", dim=4)
        self.item = gr.Table("item", dim=8, bounded=40)
        self.head = nn.MLP([12, 8, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        x = gr.concat(self.user(batch.user), self.item(batch.items.item).mean())
        score = self.head(x).squeeze() * batch.price
        gr.loss.bce_with_logits(score, batch.label)


def write_rows(path: Path, bad: int | None = None) -> Path:
    """`bad`: the row whose price is infinite."""
    rng = np.random.default_rng(4)
    lists = [[{"item": int(i)} for i in rng.integers(0, 60, rng.integers(0, 6))] for _ in range(ROWS)]
    price = rng.random(ROWS).astype(np.float32)
    if bad is not None:
        price[bad] = np.inf
    columns = {
        "user": pa.array(rng.integers(0, 40, ROWS)),
        "items": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
        "price": pa.array(price),
        "label": pa.array(rng.integers(0, 2, ROWS), pa.float32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=50)
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, as `model`, and data."""
    folder = tmp_path_factory.mktemp("shop")
    write_rows(folder / "train.parquet")
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def train(shop: Path, ranks: int, *flags: str | Path) -> subprocess.CompletedProcess[str]:
    words = [*launcher(ranks), shop / "model", "train", "--seed", "3", "--threads", "1", "--progress", "none", *flags]
    return subprocess.run([str(w) for w in words], cwd=shop, capture_output=True, text=True, timeout=120, check=False)


def message_of(run: subprocess.CompletedProcess[str]) -> str:
    """The one error that a run told."""
    assert run.returncode != 0
    messages = [line for line in run.stderr.splitlines() if "error:" in line]
    assert len(messages) == 1, run.stderr
    # All ranks find the same; where another one tells first, it is named.
    return re.sub(r"error: rank \d+: ", "error: ", messages[0])


@pytest.mark.parametrize("portion", [0, 3])
def test_a_loss_that_is_not_finite_is_traced_on_ranks(shop: Path, tmp_path: Path, portion: int) -> None:
    """The op, the user's line and the row of the data, in the words of one process, whichever rank has the row."""
    bad = write_rows(tmp_path / "bad.parquet", bad=BATCH + portion * BATCH // 4 + 5)
    flags = ("--data", bad, "--batch", str(BATCH), "--portions", "4", "--no-shuffle")
    alone = message_of(train(shop, 0, *flags))
    lines = Path(__file__).read_text().splitlines()
    line = 1 + next(i for i, line in enumerate(lines) if "* batch.price" in line)
    assert re.search(
        rf"error: loss .* is .* in step 2, epoch 1: op [^;]*{Path(__file__).name}:{line}[,)].* made an? (NaN|infinity) in row [0-9]+ "
        rf"of portion {portion}, element 0; column 'price' is inf in row 5 of '\w+' \(.*bad.parquet, row group",
        alone,
    ), alone
    for ranks in (2, 3, 4):
        assert message_of(train(shop, ranks, *flags)) == alone, ranks


def test_what_held_a_nan_before_is_named(shop: Path) -> None:
    """A rate that makes parameters infinite: every rank finds them so."""
    flags = ("--data", shop / "train.parquet", "--batch", str(BATCH), "--portions", "4", "--lr", "1e38")
    alone = message_of(train(shop, 0, *flags))
    assert ": op " in alone or ": parameter " in alone
    assert message_of(train(shop, 3, *flags)) == alone


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    return Harness(BUILD, tmp_path_factory.mktemp("kills"), ranks=3, full_every=3)


def test_killed_ranks_are_named_and_runs_go_on(harness: Harness) -> None:
    """A sample of what test/Faults/kill_ranks.py does."""
    outcome = harness.kill(5, seed=2)
    assert outcome.wrong == []
    assert outcome.kills == 5 and outcome.ends >= 1


def test_lost_bits_would_be_noticed(harness: Harness) -> None:
    """The judge itself: a run of other bits, and one that stopped early, are told."""
    for name, flags in (("other", ["--lr", "0.01"]), ("early", ["--max-steps", "70"])):
        assert harness.start(name, 2, *flags).end(120)[0] == 0
    assert "changed, values by at most" in harness.difference("other")
    assert harness.difference("early") == f"it ends at step 70 instead of {STEPS}"


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[FailHarness, int]:
    """Runs whose rank 2 fails, and how often it writes."""
    harness = FailHarness(BUILD, tmp_path_factory.mktemp("failing"), ranks=3)
    return harness, harness.count(2)["write"]


@pytest.mark.parametrize("how", ["", "+", "!"])
def test_a_rank_that_fails_in_a_save_is_named_and_loses_nothing(failing: tuple[FailHarness, int], how: str) -> None:
    """A sample of what test/Faults/fail_ranks.py does: rank 2 has a full disk, or is killed as it writes its part."""
    harness, writes = failing
    assert writes > 2 * STEPS // EVERY
    outcome, wrong = harness.inject(Fault(rank=2, kind="write", number=writes // 2, how=how))
    assert wrong == ""
    assert outcome == ("killed" if how == "!" else "error")


@pytest.mark.parametrize("rank", [0, 2])
def test_a_stopped_rank_is_named_with_stage_and_step(harness: Harness, rank: int) -> None:
    status, said, seconds = harness.stall(rank, patience=3)
    assert status != 0
    # A rank that waits for the next step's keys may name the third one, too: that waits for this one's sums.
    assert re.search(
        rf"error: rank \d: waited 3000 ms for rank (?:\d, )?{rank}(?:, \d)?, which has not (?:come to|taken) "
        r"the [a-z ]+ of step \d+\n",
        said,
    ), said
    assert seconds < 3 + 10


class Wide(gr.Model):
    """Tensors enough for the list of them to be a large allocation."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.tables = [gr.Table(f"user{k}", dim=4) for k in range(12)]

    def forward(self, batch: gr.Batch) -> None:
        rows = [table(batch.user) for table in self.tables]
        gr.loss.bce_with_logits(sum(rows[1:], rows[0]).row_sum(), batch.label)


def test_a_rank_without_memory_for_a_save_says_so(tmp_path: Path) -> None:
    """Of the last large allocations, those of the save, every third fails."""
    binary, counts = gr.compile(Wide(), SCHEMA, output=tmp_path / "wide", flags=draft()).binary, tmp_path / "counts"
    words = [binary, "train", "--data", write_rows(tmp_path / "rows.parquet"), "--batch", ROWS, "--portions", 2]
    words += ["--threads", 1, "--progress", "none", "--checkpoint", tmp_path / "kept", "--overwrite"]

    def run(**faults: object) -> subprocess.CompletedProcess[str]:
        library, shim = BUILD / "lib/libgenrec-comm-mpi.so", BUILD / "lib/libgenrec-fault-shim.so"
        variables = {"GENREC_COMM_LIBRARY": library, "LD_PRELOAD": shim, "GENREC_FAULT_RANK": 1} | faults
        environment = os.environ | {name: str(value) for name, value in variables.items()}
        command = [*launcher(2), *map(str, words)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert run(GENREC_FAULT_COUNTS=counts).returncode == 0
    large = int(dict(line.split() for line in counts.read_text().splitlines())["large_allocation"])
    for number in range(large - 36, large, 3):
        done = run(GENREC_FAULT=f"large_allocation:{number}")
        told = re.findall("error: (.*)", done.stderr)
        assert done.returncode == 1 and len(told) == 1 and "rank 1: out of memory" in told[0], (number, done.stderr)


def test_a_rank_that_cannot_dispatch_ahead_ends_all(failing: tuple[FailHarness, int]) -> None:
    """As soon as one that cannot read: the others, which wait for its keys beside their step, hear of it."""
    took: dict[str, float] = {}  # the least of two runs

    def run(number: int) -> None:
        begin = time.monotonic()
        _, said = failing[0].start_without_thread(rank=1, number=number).end(60)
        told = re.findall(r"error: rank 1: cannot start a thread to (\w+ \w+): ", said)
        if told:
            took[told[0]] = min(took.get(told[0], 60.0), time.monotonic() - begin)

    numbers = (number for number in range(1, 24) for _ in range(2))  # the first ones are those of libraries
    while not {"read batches", "dispatch steps"} <= took.keys():
        run(next(numbers))
    run(next(numbers))
    assert took["dispatch steps"] < took["read batches"] + 4
