"""Training under mpirun: the bits of one process on any number of ranks, and what ends a run."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from genrec import nn
from launching import launcher, needs_mpi

pytestmark = needs_mpi

ROWS = 230
SCHEMA = gr.Schema({"user": gr.int64, "items": [{"item": gr.int64}], "label": gr.float32})


class Shop(gr.Model):
    """Users and the items that they saw, of two sizes, and an MLP; gradients are clipped."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), clip_norm=0.05, name="Shop")
        self.user = gr.Table("user", dim=4)
        self.item = gr.Table("item", dim=8)
        self.head = nn.MLP([12, 8, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        x = gr.concat(self.user(batch.user), self.item(batch.items.item).mean())
        gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)


def write_rows(path: Path, rows: int = ROWS) -> None:
    rng = np.random.default_rng(4)
    lists = [[{"item": int(i)} for i in rng.integers(0, 50, rng.integers(0, 6))] for _ in range(rows)]
    columns = {
        "user": pa.array(rng.integers(0, 40, rows)),
        "items": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
        "label": pa.array(rng.integers(0, 2, rows), pa.float32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=50)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, as `model`, and data."""
    folder = tmp_path_factory.mktemp("shop")
    write_rows(folder / "train.parquet")
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def command(folder: Path, ranks: int, *flags: str) -> list[str]:
    """`train` on so many ranks; 0: without a launcher."""
    given = ["--data", "train.parquet", "--seed", "3", "--threads", "1", "--progress", "lines"]
    return [*launcher(ranks), str(folder / "model"), "train", *given, *flags]


def run(folder: Path, ranks: int, *flags: str, binary: str = "") -> subprocess.CompletedProcess[str]:
    words = command(folder, ranks, *flags)
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def train(folder: Path, ranks: int, *flags: str) -> dict[str, Any]:
    """What a run reports, but for times and sizes of one process."""
    done = run(folder, ranks, "--metrics-json", "m.json", "--log-every", "1", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"epoch 1/3  loss", done.stdout)) == 1, done.stdout  # one rank tells
    report = json.loads((folder / "m.json").read_text())
    assert report["config"]["ranks"] == max(ranks, 1)
    for record in report["history"]:
        del record["seconds"], record["rows_per_second"]
    return {"history": report["history"], "steps": report["step_losses"], "rows": report["timings"]["rows"]}


@pytest.mark.parametrize(
    ("portions", "batch"), [(12, 48), (4, 50), (12, 8)], ids=["even", "uneven", "fewer rows than portions"]
)
def test_any_number_of_ranks_gives_the_same_losses(shop: Path, portions: int, batch: int) -> None:
    flags = ["--portions", str(portions), "--batch", str(batch), "--epochs", "3"]
    alone = train(shop, 0, *flags)
    assert alone["rows"] == 3 * ROWS
    assert len(alone["steps"]) == 3 * -(-ROWS // batch)
    assert alone["history"][2]["loss"] < alone["history"][0]["loss"]
    for ranks in (1, 2, 3, 4):
        assert train(shop, ranks, *flags) == alone, ranks
    other = train(shop, 0, *flags, "--portions", "1")
    assert other != alone  # or the bits above would show nothing
    assert other["history"][2]["loss"] == pytest.approx(alone["history"][2]["loss"], rel=1e-3)


def test_portions_are_as_many_as_ranks_unless_told(shop: Path) -> None:
    flags = ["--batch", "48", "--epochs", "3"]
    assert train(shop, 3, *flags) == train(shop, 0, *flags, "--portions", "3")


def test_overlap_changes_no_loss(shop: Path) -> None:
    flags = ["--portions", "4", "--batch", "48", "--epochs", "3"]
    alone = train(shop, 0, *flags)
    for ranks in (2, 3):
        for overlap in ("none", "keys", "rows"):
            assert train(shop, ranks, *flags, "--overlap", overlap) == alone, (ranks, overlap)
            exchanges = json.loads((shop / "m.json").read_text())["exchanges"]
            assert exchanges["row_bytes"] > 0
            assert (exchanges["early_row_bytes"] > 0) == (overlap == "rows")


@pytest.mark.parametrize(("overlap", "rounds"), [("none", 4), ("keys", 4), ("rows", 5)])
def test_rounds_of_a_step(shop: Path, overlap: str, rounds: int) -> None:
    """Keys, values, gradients, the norm that clips; rows that come early have one of their own."""
    counts = []
    for steps in (3, 7):
        flags = ["--batch", "24", "--epochs", "3", "--max-steps", str(steps), "--overlap", overlap]
        assert run(shop, 3, "--metrics-json", "m.json", *flags).returncode == 0
        counts.append(json.loads((shop / "m.json").read_text())["exchanges"]["rounds"])
    assert counts[1] - counts[0] == 4 * rounds


def test_ways_in_which_rows_travel(shop: Path) -> None:
    """Owners may find equal ids twice; whatever changes roundings is near, and does nothing on one rank."""
    flags = ["--batch", "48", "--epochs", "3", "--overlap", "none"]

    def row_bytes() -> int:
        return json.loads((shop / "m.json").read_text())["exchanges"]["row_bytes"]

    alone = train(shop, 0, *flags)
    plain = train(shop, 2, *flags)
    received = row_bytes()
    assert train(shop, 2, *flags, "--deduplicate", "requester") == plain
    assert row_bytes() == received
    ways = (("deduplicate", "owner"), ("deduplicate", "none"), ("gradient-wire", "bf16"), ("row-wire", "bf16"))
    for flag, value in ways:
        way = [f"--{flag}", value]
        assert train(shop, 0, *flags, *way) == alone, way
        other = train(shop, 2, *flags, *way)
        assert other["history"][2]["loss"] == pytest.approx(plain["history"][2]["loss"], rel=1e-2), way
        if flag == "deduplicate":
            assert row_bytes() > received
        else:  # roundings show
            assert other != plain, way
    assert row_bytes() * 2 == received
    train(shop, 2, *flags, "--row-wire", "bf16", "--overlap", "rows")
    assert row_bytes() * 2 == received


def told_once(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert done.returncode != 0
    assert done.stderr.count(text) == 1, done.stderr
    assert done.stderr.count("error:") == 1, done.stderr


def test_mistakes_are_told_once(shop: Path) -> None:
    told_once(run(shop, 3, "--portions", "2"), "2 portions are too few for 3 ranks")
    told_once(run(shop, 3, "--batch", "none"), "--batch")
    for way in (["--row-wire", "bf16"], ["--gradient-wire", "bf16"], ["--deduplicate", "none"]):
        told_once(run(shop, 2, "--portions", "2", *way), "beside --portions, which promises the same bits")
    told_once(run(shop, 3, "--data", "nowhere.parquet"), "nowhere.parquet")
    told_once(run(shop, 2, "--metrics-json", "train.parquet"), "would overwrite --data train.parquet")


@pytest.mark.parametrize("watched", [False, True])
def test_a_bar_is_drawn_where_somebody_watches(shop: Path, watched: bool) -> None:
    """mpirun gives ranks a terminal of their own, also where its output goes to a file."""
    words = [
        word for word in command(shop, 2, "--max-steps", "3", "--log-every", "1") if word not in ("--progress", "lines")
    ]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        words, cwd=shop, stdout=theirs if watched else subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        out, errors = ran.communicate(timeout=120)
        said = os.read(ours, 1 << 20) if watched else out
    os.close(ours)
    os.close(theirs)
    assert ran.returncode == 0, errors
    assert (b"\x1b[K" in said) == watched, said


@pytest.mark.parametrize("overlap", ["none", "rows"])
def test_a_data_error_on_one_rank_ends_all(shop: Path, tmp_path: Path, overlap: str) -> None:
    """Rank 1's machine has a damaged copy; its footer and the places that are compared are as they should be."""
    shutil.copy(shop / "model", tmp_path / "model")
    write_rows(tmp_path / "train.parquet", 20000)
    damaged = tmp_path / "other"
    damaged.mkdir()
    content = bytearray((tmp_path / "train.parquet").read_bytes())
    offset = pq.ParquetFile(tmp_path / "train.parquet").metadata.row_group(150).column(0).data_page_offset
    content[offset : offset + 20] = bytes(20)
    (damaged / "train.parquet").write_bytes(content)
    first = command(tmp_path, 1, "--batch", "40", "--portions", "2", "--no-shuffle", "--overlap", overlap)
    second = ["-n", "1", "--wdir", str(damaged), *first[first.index(str(tmp_path / "model")) :]]
    begin = time.monotonic()
    done = subprocess.run([*first, ":", *second], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    told_once(done, "train.parquet, row group 150")
    assert "rank 1: " in done.stderr
    assert time.monotonic() - begin < 30


def test_ranks_that_differ_are_named(shop: Path, tmp_path: Path) -> None:
    words = command(shop, 1, "--batch", "40")
    rank = words[words.index(str(shop / "model")) :]
    other = tmp_path / "other"
    other.mkdir()
    write_rows(other / "train.parquet", 100)
    copy = tmp_path / "copy"
    shutil.copy(shop / "model", copy)
    with copy.open("ab") as file:
        file.write(b"\0")
    for second, text in (
        ([*rank, "--seed", "4"], "rank 1 has other flags than rank 0: "),
        ([str(copy), *rank[1:]], "rank 1 has other code than rank 0: "),
        (["--wdir", str(other), *rank], "rank 1: has other data than rank 0: train.parquet of "),
    ):
        done = subprocess.run(
            [*words, ":", "-n", "1", *second], cwd=shop, capture_output=True, text=True, timeout=60, check=False
        )
        told_once(done, text)


def test_ranks_without_a_communicator_are_alone(shop: Path) -> None:
    done = run(shop, 2, "--comm", "none")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 1/1  loss") == 2


def test_a_missing_library_is_told(shop: Path) -> None:
    done = subprocess.run(
        command(shop, 0, "--comm", "mpi"), cwd=shop, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"GENREC_COMM_LIBRARY": "/nowhere/comm.so"},
    )  # fmt: skip
    told_once(done, "/nowhere/comm.so")
    assert "--comm none" in done.stderr


@pytest.mark.parametrize("header", ["", 'const char *genrec_comm_header(void) { return "another"; }'])
def test_a_library_of_another_build_is_refused(shop: Path, tmp_path: Path, header: str) -> None:
    source, library = tmp_path / "comm.c", tmp_path / "libgenrec-comm-mpi.so"
    source.write_text(f"void *genrec_make_mpi_comm(void *problem) {{ return 0; }}\n{header}\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    done = subprocess.run(
        command(shop, 0, "--comm", "mpi"), cwd=shop, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"GENREC_COMM_LIBRARY": str(library)},
    )  # fmt: skip
    told_once(done, f"'{library}' is of another build of genrec than this program")
    assert "compile the model again" in done.stderr


@pytest.mark.parametrize(("target", "overlap"), [("mpirun", "rows"), ("rank", "rows"), ("rank", "none")])
def test_a_signal_ends_all_ranks(shop: Path, tmp_path: Path, target: str, overlap: str) -> None:
    report, data = tmp_path / "m.json", tmp_path / "many.parquet"
    write_rows(data, 100000)
    # Few lines, of epochs, too: mpirun stops reading after its own signal, and a rank that prints more than 4 KiB, what
    # a terminal holds, waits until it is killed. Two fast ranks make 20,000 steps of 64 rows per second.
    words = command(
        shop, 2, "--data", str(data), "--epochs", "1000", "--batch", "64", "--log-every", "3000", "--portions", "4",
        "--metrics-json", str(report), "--overlap", overlap,
    )  # fmt: skip
    words[1:1] = ["--mca", "odls_base_sigkill_timeout", "3"]  # to SIGTERM, and from there to SIGKILL
    process = subprocess.Popen(words, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    for line in process.stdout:
        if "step 3,000 " in line:
            break
    if target == "mpirun":
        process.send_signal(signal.SIGINT)
    else:
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout
        os.kill(int(children.split()[-1]), signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert json.loads(report.read_text())["final"]["step"] >= 3000  # rank 0 has ended in order
    assert "error:" not in err
    if target == "rank":  # mpirun may drop what is printed after its own signal
        assert process.returncode == 128 + signal.SIGTERM
        assert out.count("stopped by a signal: nothing was saved") == 1, out
