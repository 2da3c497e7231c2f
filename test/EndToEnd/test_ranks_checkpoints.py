"""Checkpoints, metrics and predictions under mpirun: the bytes of one process on any number of ranks."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, draft, read_tensors
from genrec import nn
from launching import launcher, needs_mpi

pytestmark = needs_mpi

ROWS, BATCH = 300, 48
SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "name": gr.string,
        "items": [{"item": gr.int64}],
        "label": gr.float32,
        "weight": gr.float32,
    }
)


class Shop(gr.Model):
    """Tables of all kinds: rows that come and leave by rule, and rows that do not learn."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), clip_norm=0.05, name="Shop")
        self.user = gr.Table("user", dim=4)
        self.item = gr.Table("item", dim=8, ttl=3, admit_after=2, optimizer=gr.optim.Adagrad(0.1))
        self.hidden = nn.Linear(12, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, batch: gr.Batch) -> None:
        seen = self.item(batch.items.item)
        x = gr.concat(self.user(batch.user), seen.mean())
        score = self.head(nn.relu(self.hidden(x))).squeeze()
        gr.loss.bce_with_logits(score, batch.label)
        gr.metric.auc(score, batch.label)
        gr.metric.auc(score, batch.label, name="weighted", weight=batch.weight)
        gr.metric.gauc(score, batch.label, key=gr.mod(batch.user, 7), weight=batch.weight)
        gr.metric.ne(score, batch.label, weight=batch.weight)
        gr.metric.rmse(score, batch.label)
        gr.output(score=score, hidden=self.hidden(x), name=batch.name)


def write_rows(path: Path, seed: int) -> None:
    """Ids drift, so that rows of early ones leave."""
    rng = np.random.default_rng(seed)
    lists = [[{"item": int(i)} for i in rng.integers(row // 5, row // 5 + 20, row % 6)] for row in range(ROWS)]
    columns = {
        "user": pa.array(rng.integers(0, 40, ROWS)),
        "name": pa.array(["n" * (row % 7) for row in range(ROWS)]),
        "tag": pa.array([None if row % 11 == 0 else f"tag {row}" for row in range(ROWS)]),
        "items": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
        "label": pa.array(rng.integers(0, 2, ROWS), pa.float32()),
        "weight": pa.array(rng.random(ROWS), pa.float32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=50)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, as `model`, and data."""
    folder = tmp_path_factory.mktemp("shop")
    write_rows(folder / "train.parquet", 4)
    write_rows(folder / "test.parquet", 5)
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def run(folder: Path, ranks: int, command: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """A command on so many ranks; 0: without a launcher."""
    words = [*launcher(ranks), str(folder / "model"), command, "--threads", "1", "--progress", "lines", *flags]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def succeed(folder: Path, ranks: int, command: str, *flags: str) -> str:
    done = run(folder, ranks, command, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train(folder: Path, ranks: int, checkpoint: str, *flags: str, portions: int = 12) -> str:
    given = ["--data", "train.parquet", "--seed", "3", "--batch", str(BATCH), "--epochs", "3"]
    return succeed(
        folder, ranks, "train", *given, "--portions", str(portions), "--checkpoint", checkpoint, *flags
    )  # fmt: skip


def newest(checkpoint: Path) -> Path:
    """The folder of the newest generation."""
    return checkpoint / json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]["name"]


def tensors(checkpoint: Path) -> bytes:
    return (newest(checkpoint) / "model.safetensors").read_bytes()


def report(path: Path) -> dict[str, Any]:
    """The evaluation in a --metrics-json file, but for its time."""
    evaluation = json.loads(path.read_text())["evaluation"]
    del evaluation["seconds"]
    return evaluation


@pytest.fixture(scope="module")
def alone(shop: Path) -> Path:
    """The checkpoint that one process makes."""
    train(shop, 0, "alone")
    return shop / "alone"


OVERLAP = {0: "none", 1: "rows", 2: "rows", 3: "keys", 4: "rows"}  # by ranks, where nothing else is said


@pytest.mark.parametrize(
    ("ranks", "overlap"), [(1, "rows"), (2, "rows"), (2, "keys"), (2, "none"), (3, "rows"), (4, "rows")]
)
def test_checkpoints_have_the_same_bytes(shop: Path, alone: Path, ranks: int, overlap: str) -> None:
    """A step's state has no row that the next one, on its way already, inserts."""
    name = f"on{ranks}{overlap}"
    train(shop, ranks, name, "--checkpoint-every", "4", "--overlap", overlap)
    assert tensors(shop / name) == tensors(alone)
    assert sorted(p.name for p in (shop / name).iterdir()) == ["checkpoint.lock", "manifest.json", "step-20", "step-21"]
    assert json.loads((newest(shop / name) / "manifest.json").read_text())["portions"] == 12
    rows = read_tensors(tensors(alone))
    assert rows["item.ids"].size and rows["item.waiting.ids"].size and rows["user.ids"].size == 40


def test_rows_leave_by_rule(shop: Path, alone: Path) -> None:
    """Or the test above would show less."""
    rows = read_tensors(tensors(alone))
    seen = {item["item"] for items in pq.read_table(shop / "train.parquet")["items"].to_pylist() for item in items}
    assert rows["item.last_step"].min() >= 18 and rows["item.ids"].size + rows["item.waiting.ids"].size < len(seen)


def test_resuming_on_other_ranks_changes_no_bit(shop: Path, alone: Path) -> None:
    for ranks, steps in ((1, 5), (4, 9), (2, 16), (3, 21)):
        told = train(shop, ranks, "chain", "--resume", "--max-steps", str(steps), "--overlap", OVERLAP[ranks])
        assert "differ" not in told
    assert tensors(shop / "chain") == tensors(alone)


def test_training_goes_on_with_other_data_on_any_ranks(shop: Path, alone: Path) -> None:
    write_rows(shop / "next.parquet", 6)
    for ranks in (0, 3):
        flags = ["--data", "test.parquet", "next.parquet", "--eval-before-train", "--batch", str(BATCH)]
        where = ["--continue", str(alone), "--checkpoint", f"next{ranks}", "--metrics-json", f"n{ranks}.json"]
        succeed(shop, ranks, "train", *flags, *where)  # as many portions as the checkpoint
    assert tensors(shop / "next0") == tensors(shop / "next3")
    before = [json.loads((shop / f"n{ranks}.json").read_text())["before"] for ranks in (0, 3)]
    assert len(before[0]) == 2 and all(left["metrics"] == right["metrics"] for left, right in zip(*before, strict=True))


def test_portions_are_those_of_the_checkpoint_unless_told(shop: Path, alone: Path) -> None:
    train(shop, 3, "kept", "--max-steps", "5")
    given = ["--data", "train.parquet", "--seed", "3", "--batch", str(BATCH), "--epochs", "3"]
    succeed(shop, 2, "train", *given, "--checkpoint", "kept", "--resume")
    assert tensors(shop / "kept") == tensors(alone)
    train(shop, 3, "other", "--max-steps", "5")
    told = train(shop, 2, "other", "--resume", portions=4)
    assert "the checkpoint was trained with --portions 12, now it is 4" in told
    assert tensors(shop / "other") != tensors(alone)


def test_metrics_and_losses_are_the_same(shop: Path, alone: Path) -> None:
    flags = ["--data", "test.parquet", "--batch", str(BATCH), "--portions", "12", "--checkpoint", str(alone)]
    for ranks in (0, 1, 2, 3, 4):
        succeed(shop, ranks, "evaluate", *flags, "--metrics-json", f"m{ranks}.json", "--overlap", OVERLAP[ranks])
    expected = report(shop / "m0.json")
    assert expected["rows"] == ROWS and 0 < expected["metrics"]["auc"] < 1
    assert set(expected["metrics"]) == {"auc", "weighted", "gauc", "gauc.skipped", "ne", "rmse"}
    assert all(report(shop / f"m{ranks}.json") == expected for ranks in (1, 2, 3, 4))
    succeed(shop, 2, "evaluate", *flags[:-4], *flags[-2:], "--metrics-json", "m.json")  # as many portions as ranks
    assert report(shop / "m.json")["metrics"]["auc"] == pytest.approx(expected["metrics"]["auc"], rel=1e-6)


def test_evaluation_while_training_is_the_same(shop: Path) -> None:
    flags = ["--validation", "test.parquet", "--eval-every", "1", "--patience", "1", "--monitor", "rmse"]
    made = []
    for ranks in (0, 3):
        train(shop, ranks, f"best{ranks}", *flags, "--metrics-json", f"t{ranks}.json", "--overlap", "rows")
        history = json.loads((shop / f"t{ranks}.json").read_text())["history"]
        for record in history:
            del record["seconds"], record["rows_per_second"], record["evaluation"]["seconds"]
        made.append((history, tensors(shop / f"best{ranks}"), tensors(shop / f"best{ranks}" / "best")))
    assert made[0] == made[1]


@pytest.mark.parametrize("keys", [[], ["--keys", "user,tag"]])
def test_predictions_have_the_same_bytes(shop: Path, alone: Path, keys: list[str]) -> None:
    flags = ["--data", "test.parquet", "--batch", str(BATCH), "--portions", "12", "--checkpoint", str(alone), *keys]
    for ranks in (0, 1, 2, 3, 4):
        told = succeed(shop, ranks, "predict", *flags, "--out", f"p{ranks}.parquet", "--overlap", OVERLAP[ranks])
        assert told.count(f"wrote {ROWS} rows") == 1
    expected = (shop / "p0.parquet").read_bytes()
    assert all((shop / f"p{ranks}.parquet").read_bytes() == expected for ranks in (1, 2, 3, 4))
    table, data = pq.read_table(shop / "p3.parquet"), pq.read_table(shop / "test.parquet")
    assert table["name"].to_pylist() == data["name"].to_pylist()
    assert not keys or table["tag"].to_pylist() == data["tag"].to_pylist()


def test_keys_of_several_types_have_the_same_bytes(shop: Path, alone: Path) -> None:
    """The other ranks hear of the type from rank 0."""
    table = pq.read_table(shop / "test.parquet").slice(0, 96)
    for name, kind in (("a", pa.null()), ("b", pa.int32()), ("c", pa.int64())):
        key = pa.array([None if kind == pa.null() else row for row in range(96)], kind)
        pq.write_table(table.append_column("key", key), shop / f"keys_{name}.parquet", row_group_size=16)
    flags = ["--data", "keys_*.parquet", "--checkpoint", str(alone), "--keys", "key", "--portions", "6"]
    for ranks in (0, 3):
        succeed(shop, ranks, "predict", *flags, "--out", f"k{ranks}.parquet")
    written = pq.read_table(shop / "k3.parquet")["key"]
    assert written.type == pa.int64() and written.to_pylist() == [None] * 96 + [*range(96)] * 2
    assert (shop / "k3.parquet").read_bytes() == (shop / "k0.parquet").read_bytes()


def test_export_is_rank_zeros(shop: Path, alone: Path) -> None:
    for ranks in (0, 3):
        told = succeed(shop, ranks, "export", "--checkpoint", str(alone), "--out", f"e{ranks}")
        assert told.count("wrote e") == 2
    for file in ("parameters.safetensors", "tables.safetensors"):
        assert (shop / "e3" / file).read_bytes() == (shop / "e0" / file).read_bytes()


def test_weights_given_by_init_are_the_same(shop: Path, alone: Path) -> None:
    for ranks in (0, 3):
        train(shop, ranks, f"init{ranks}", "--init", str(alone), "--max-steps", "4")
    assert tensors(shop / "init0") == tensors(shop / "init3")


def test_a_rank_that_cannot_write_fails_the_save_of_all(shop: Path, alone: Path, tmp_path: Path) -> None:
    """The second rank's part does not come to the disk."""
    shim = BUILD / "lib" / "libgenrec-fault-shim.so"
    train(shop, 2, str(tmp_path / "c"), "--max-steps", "5")
    saved = tensors(tmp_path / "c")
    broken = f"LD_PRELOAD={shim} GENREC_FAULT=fsync:1"
    given = f"train --data train.parquet --seed 3 --batch {BATCH} --epochs 3 --portions 12 --threads 1 --progress none"
    command = f"exec env $BROKEN {shop / 'model'} {given} --resume --max-steps 9 --checkpoint {tmp_path / 'c'}"
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then BROKEN="{broken}"; fi; {command}'
    words = [*launcher(2), "sh", "-c", script]
    done = subprocess.run(words, cwd=shop, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "was not saved: rank 1: cannot " in done.stderr and "; the one of step 5 is whole" in done.stderr, (
        done.stderr
    )
    assert tensors(tmp_path / "c") == saved
    assert [path.name for path in sorted((tmp_path / "c").glob("step-*"))] == ["step-5"]
    train(shop, 2, str(tmp_path / "c"), "--resume")
    assert tensors(tmp_path / "c") == tensors(alone)


def damage(file: Path, how: str) -> None:
    content = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
    elif how == "truncated":
        file.write_bytes(content[:-100])
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(content)


@pytest.mark.parametrize("how", ["missing", "truncated", "changed"])
@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
def test_damage_is_named_and_the_state_before_goes_on(
    shop: Path, alone: Path, tmp_path: Path, name: str, how: str
) -> None:
    shutil.copytree(alone, tmp_path / "c")
    damage(newest(tmp_path / "c") / name, how)
    given = ["--data", "train.parquet", "--seed", "3", "--batch", str(BATCH), "--epochs", "3", "--portions", "12"]
    words = ["train", *given, "--checkpoint", str(tmp_path / "c"), "--resume"]
    done = run(shop, 3, *words)
    assert done.returncode != 0
    assert done.stderr.count("error:") == 1 and f"step-21/{name}: " in done.stderr, done.stderr
    assert "generation step-14 is whole: --generation step-14 uses it" in done.stderr, done.stderr
    succeed(shop, 2, *words, "--generation", "step-14")
    assert tensors(tmp_path / "c") == tensors(alone)


def test_mistakes_are_told_once(shop: Path, alone: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(alone, damaged)
    for generation in damaged.glob("step-*"):
        content = bytearray((generation / "model.safetensors").read_bytes())
        content[len(content) // 2] ^= 1
        (generation / "model.safetensors").write_bytes(content)
    given = ["--data", "test.parquet", "--checkpoint"]
    for done, text in (
        (run(shop, 3, "evaluate", *given, str(damaged)), "have another checksum than the manifest says"),
        (run(shop, 3, "train", *given, str(alone)), "holds a checkpoint of this model at step 21"),
        (run(shop, 2, "predict", *given, str(alone), "--out", "p.csv"), "predict writes Parquet"),
        (run(shop, 2, "export", "--checkpoint", "nowhere", "--out", "e"), "there is no checkpoint in 'nowhere'"),
    ):
        assert done.returncode != 0
        assert done.stderr.count(text) == 1, done.stderr
        assert done.stderr.count("error:") == 1, done.stderr
