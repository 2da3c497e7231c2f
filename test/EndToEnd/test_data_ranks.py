"""What ranks read: every row once per epoch, whatever interrupts it, and no more than their portions need."""

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
from launching import launcher, needs_mpi

pytestmark = needs_mpi

ROWS = 600
SCHEMA = gr.Schema({"row": gr.int64, "items": [{"item": gr.int64}], "label": gr.float32})


class Counted(gr.Model):
    """Rows of `row` know in how many steps they were seen: a row of the data has an id of its own."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1), name="Counted")
        self.row = gr.Table("row", dim=4, ttl=10**6)
        self.item = gr.Table("item", dim=4)
        self.top = gr.nn.Linear(8, 1)

    def forward(self, batch: gr.Batch) -> None:
        recent = self.item(batch.items.truncate(20).item).sum()
        x = gr.concat(self.row(batch.row), recent)
        gr.loss.bce_with_logits(self.top(x).squeeze(), batch.label)


def rows_of(rows: int, giant: int = 5000) -> pa.Table:
    """Lists of unequal lengths: null ones, empty ones and a giant one, longer than all others together."""
    rng = np.random.default_rng(7)
    lengths = np.minimum(rng.lognormal(1.5, 1, rows).astype(int), 60)
    lengths[rows // 2] = giant
    lists: list[Any] = [[{"item": int(i)} for i in rng.integers(0, 50, length)] for length in lengths]
    for at in range(0, rows, 17):
        lists[at] = None
    return pa.table(
        {
            "row": pa.array(np.arange(rows)),
            "items": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
            "label": pa.array(rng.integers(0, 2, rows), pa.float32()),
        }
    )


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model and the same rows in many row groups, in one, and in many small files."""
    folder = tmp_path_factory.mktemp("counted")
    table = rows_of(ROWS)
    pq.write_table(table, folder / "groups.parquet", row_group_size=25)
    pq.write_table(table, folder / "one.parquet")
    (folder / "files").mkdir()
    for at in range(0, ROWS, 9):
        pq.write_table(table.slice(at, 9), folder / "files" / f"{at:03}.parquet")
    gr.compile(Counted(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def run(folder: Path, ranks: int, *flags: str) -> subprocess.CompletedProcess[str]:
    """`train` on so many ranks; 0: without a launcher."""
    given = ["--seed", "3", "--threads", "1", "--progress", "lines"]
    words = [*launcher(ranks), str(folder / "model"), "train", *given, *flags]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def train(folder: Path, ranks: int, *flags: str) -> dict[str, Any]:
    done = run(folder, ranks, "--metrics-json", "m.json", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "m.json").read_text())


def tensors(checkpoint: Path) -> bytes:
    newest = json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]["name"]
    return (checkpoint / newest / "model.safetensors").read_bytes()


ORDERS = {
    "rows": ["--batch", "50"],
    "windows": ["--batch", "32", "--shuffle-window", "150"],
    "files": ["--batch", "50", "--no-shuffle"],
    "tokens": ["--batch-tokens", "items=400"],
    "token windows": ["--batch-tokens", "items=300", "--shuffle-window", "200"],
    "token files": ["--batch-tokens", "items=400", "--no-shuffle"],
}


@pytest.mark.parametrize(
    ("data", "order"),
    [("groups.parquet", order) for order in ORDERS]
    + [(data, order) for data in ("one.parquet", "files") for order in ("windows", "token windows")],
)
def test_every_row_is_trained_once_per_epoch(counted: Path, tmp_path: Path, data: str, order: str) -> None:
    """Interrupted within epochs, and gone on with on other ranks; memory for the data is short at times."""
    flags = ["--data", data, "--portions", "12", "--epochs", "2", *ORDERS[order]]
    steps = train(counted, 0, *flags, "--checkpoint", str(tmp_path / "alone"))["final"]["step"]
    for ranks, at in ((1, steps // 5), (4, steps // 3), (2, 2 * steps // 3), (3, steps)):
        pieces = ["--checkpoint", str(tmp_path / "cut"), "--resume", "--max-steps", str(at)]
        train(counted, ranks, *flags, *pieces, "--data-memory", "1" if ranks % 2 else "4096")
    assert tensors(tmp_path / "cut") == tensors(tmp_path / "alone")
    saved = read_tensors(tensors(tmp_path / "cut"))
    assert sorted(saved["row.ids"]) == list(range(ROWS))
    assert set(saved["row.steps"].tolist()) == {2}


def test_batches_by_rows_do_not_depend_on_portions(counted: Path, tmp_path: Path) -> None:
    """So an epoch may go on with other portions, or as many as ranks."""
    flags = ["--data", "groups.parquet", "--epochs", "1", "--batch", "50", "--checkpoint", str(tmp_path / "c")]
    for at, more in ((3, ["--portions", "12"]), (7, ["--portions", "5"]), (12, ["--portions", "3"])):
        train(counted, 2, *flags, *more, "--resume", "--max-steps", str(at))
    assert set(read_tensors(tensors(tmp_path / "c"))["row.steps"].tolist()) == {1}


def test_batches_by_tokens_keep_their_portions_within_an_epoch(counted: Path, tmp_path: Path) -> None:
    flags = ["--data", "groups.parquet", "--batch-tokens", "items=400", "--checkpoint", str(tmp_path / "c")]
    train(counted, 2, *flags, "--portions", "4", "--max-steps", "3")
    done = run(counted, 2, *flags, "--portions", "3", "--resume")
    assert done.returncode != 0
    assert "within epoch 1 with --portions 4, now it is 3: the batches of --batch-tokens depend on it" in done.stderr
    train(counted, 3, *flags, "--resume")  # those of the checkpoint
    assert set(read_tensors(tensors(tmp_path / "c"))["row.steps"].tolist()) == {1}


def test_ranks_decode_what_their_portions_need(counted: Path) -> None:
    flags = ["--data", "groups.parquet", "--portions", "4", "--batch", "40", "--epochs", "1"]
    alone = train(counted, 1, *flags)["work"]["by_rank"]
    assert [rank["row_groups_decoded"] for rank in alone] == [ROWS // 25]
    for ranks in (2, 4):
        work = train(counted, ranks, *flags)["work"]
        assert [rank["rows"] for rank in work["by_rank"]] == [ROWS // ranks] * ranks
        for rank in work["by_rank"]:  # those at both ends are shared
            assert rank["row_groups_decoded"] <= ROWS // 25 // ranks + 2
            assert 0 < rank["bytes_decoded"] < alone[0]["bytes_decoded"]
        assert work["imbalance"]["rows"] == 0
    # In memory, nothing is decoded twice.
    kept = train(counted, 2, *flags, "--epochs", "8")["work"]["by_rank"]
    assert all(rank["row_groups_decoded"] <= ROWS // 25 for rank in kept)


@pytest.mark.parametrize("data", ["groups.parquet", "one.parquet"])
def test_portions_by_tokens_are_balanced(counted: Path, tmp_path: Path, data: str) -> None:
    pq.write_table(rows_of(ROWS, giant=60), tmp_path / data, row_group_size=25 if data == "groups.parquet" else ROWS)
    flags = ["--data", str(tmp_path / data), "--portions", "4", "--epochs", "2"]
    rows = train(counted, 4, *flags, "--batch", "60")["work"]
    tokens = train(counted, 4, *flags, "--batch-tokens", "items=600")["work"]
    assert rows["imbalance"]["rows"] == 0
    assert tokens["imbalance"]["tokens"]["items"] < 0.25 * rows["imbalance"]["tokens"]["items"]
    assert sum(rank["tokens"]["items"] for rank in tokens["by_rank"]) == sum(
        rank["tokens"]["items"] for rank in rows["by_rank"]
    )


def test_more_ranks_than_rows_and_a_file_that_changes(counted: Path, tmp_path: Path) -> None:
    few = rows_of(3)
    pq.write_table(few, tmp_path / "few.parquet")
    for flags in (["--batch", "2"], ["--batch-tokens", "items=3"]):
        work = train(counted, 4, "--data", str(tmp_path / "few.parquet"), "--epochs", "2", *flags)["work"]
        assert sum(rank["rows"] for rank in work["by_rank"]) == 6
        assert min(rank["rows"] for rank in work["by_rank"]) == 0
    shutil.copy(counted / "groups.parquet", tmp_path / "short.parquet")
    whole = (tmp_path / "short.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(whole[:-100])
    done = run(counted, 2, "--data", str(tmp_path / "short.parquet"))
    assert done.returncode != 0
    assert done.stderr.count("short.parquet: cannot be read") == 1


def opens(folder: Path, ranks: int, data: Path, *words: str) -> list[int]:
    """How often each rank opens a file of `data` in a command on so many ranks."""
    counts = f"{folder}/opens-$OMPI_COMM_WORLD_RANK"
    shim = BUILD / "lib" / "libgenrec-fault-shim.so"
    inner = f'GENREC_FAULT_COUNTS={counts} GENREC_FAULT_UNDER={data}/ LD_PRELOAD={shim} exec "$@"'
    done = subprocess.run(
        [*launcher(ranks), "bash", "-c", inner, "-", str(folder / "model"), *words, "--data", data, "--threads", "1"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    texts = [(folder / f"opens-{rank}").read_text() for rank in range(ranks)]
    return [int(dict(line.split() for line in text.splitlines())["open"]) for text in texts]


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("order", ["rows", "files", "tokens"])
def test_rank_0_alone_reads_all_footers(counted: Path, ranks: int, order: str) -> None:
    """A file has one row group here. What others open, they open to decode it, and once before to look at it."""
    files = len(list((counted / "files").iterdir()))
    flags = ["--seed", "3", "--epochs", "1", "--portions", "12", *ORDERS[order], "--metrics-json", "m.json"]
    counts = opens(counted, ranks, counted / "files", "train", *flags)
    work = json.loads((counted / "m.json").read_text())["work"]["by_rank"]
    decoded = [rank["row_groups_decoded"] for rank in work]
    # Lengths of lists are read by rank r from row groups r, r + N, …
    counting = [-(-(files - rank) // ranks) if order == "tokens" else 0 for rank in range(ranks)]
    assert counts[0] == files + counting[0] + decoded[0]
    for rank in range(1, ranks):
        assert counts[rank] - counting[rank] - decoded[rank] <= min(files, counting[rank] + decoded[rank])
        if order == "rows":
            assert decoded[rank] < 2 * files // ranks
            assert counts[rank] == 2 * decoded[rank]


def test_evaluate_reads_footers_once(counted: Path, tmp_path: Path) -> None:
    files = len(list((counted / "files").iterdir()))
    saved = ["--checkpoint", str(tmp_path / "c")]
    train(counted, 2, "--data", "files", "--epochs", "1", *saved)
    alone = opens(counted, 1, counted / "files", "evaluate", *saved, "--batch", "50")
    assert alone == [2 * files]
    counts = opens(counted, 3, counted / "files", "evaluate", *saved, "--batch", "150")
    assert files < counts[0] < 2 * files
    assert max(counts[1:]) < files * 1.5


def test_resuming_looks_at_files_once_more(counted: Path, tmp_path: Path) -> None:
    """On rank 0, to find out whether they are those of the checkpoint."""
    files = len(list((counted / "files").iterdir()))
    flags = ["train", "--epochs", "1", "--batch", "50", "--checkpoint", str(tmp_path / "c"), "--resume", "--seed", "3"]
    for _ in range(2):
        counts = opens(counted, 2, counted / "files", *flags)
    assert counts == [2 * files, 0]  # the run was at its end


MISTAKES = {
    "missing": "nowhere.parquet",
    "truncated": "cannot be read: ",
    "column": "has no column 'items.item', which ",
    "type": "column 'row' is string, the model reads int64",
}


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_files_are_told_once(counted: Path, tmp_path: Path, ranks: int, mistake: str) -> None:
    """The last of several files is wrong, which others than rank 0 would read."""
    data, few = tmp_path / "data", rows_of(8)
    data.mkdir()
    for at in range(4):
        pq.write_table(few.slice(2 * at, 2), data / f"{at}.parquet")
    words = ["train", "--data", str(data)]
    if mistake == "missing":
        words[2] += f",{data}/nowhere.parquet"
    elif mistake == "truncated":
        (data / "3.parquet").write_bytes((data / "2.parquet").read_bytes()[:-50])
    elif mistake == "column":
        pq.write_table(few.drop_columns(["items"]), data / "3.parquet")
    elif mistake == "type":
        pq.write_table(few.set_column(0, "row", pa.array(["x"] * 8)), data / "3.parquet")
    command = [*launcher(ranks), str(counted / "model"), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert done.stderr.count("Counted: error: ") == 1, done.stderr
    assert done.stderr.count(MISTAKES[mistake]) == 1, done.stderr
    assert "rank 0" not in done.stderr
