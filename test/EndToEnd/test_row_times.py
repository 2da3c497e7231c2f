"""Tables whose rows leave some seconds after they were seen: by a column of the data, by steps, by the machine."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, assert_same, call, draft, read_tensors, run_both, tool
from launching import launcher, needs_mpi
from training import compile_merged_and_apart, train, write_drifting_rows

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "timed.mlir"
BATCH, START = 16, 1_700_000_000  # rows of a batch of `train`; seconds since 1970
TTL = {"fresh": 3, "young": 3, "lasting": 48, "waited": 4, "few": 6}


def times_of(rows: int) -> np.ndarray:
    """Seconds, one step of `train` after another: with a pause in the middle, and out of order within a batch."""
    steps = np.arange(rows) // BATCH
    return START + steps + np.where(steps > 12, 30, 0) - (np.arange(rows) % 3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose ids drift, with times of all kinds; `gaps` are null in every second batch."""
    path = write_drifting_rows(tmp_path_factory.mktemp("timed") / "rows.parquet", seed=4)
    table = pq.read_table(path)
    seconds = times_of(table.num_rows)
    gaps = pa.array([None if i // BATCH % 2 else int(s) for i, s in enumerate(seconds)], pa.int64())
    stamps = pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC"))
    for name, column in (
        ("time", stamps), ("s", pa.array(seconds)), ("ms", pa.array(seconds * 1000 + 999)), ("gaps", gaps),
        ("local", pa.array(seconds, pa.timestamp("s"))), ("text", pa.array(["x"] * table.num_rows)),
        ("none", pa.array([None] * table.num_rows, pa.int64())),
    ):  # fmt: skip
        table = table.append_column(name, column)
    visits = pa.array(
        [[{"at": int(s)}] * (i % 2) for i, s in enumerate(seconds)], pa.list_(pa.struct([("at", pa.int64())]))
    )
    pq.write_table(table.append_column("visits", visits), path, row_group_size=50)
    return path


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("binary") / "timed"
    call(tool("genrec-compile"), MODEL, "-o", path)
    return path


def timed(
    binary: Path, data: Path, checkpoint: Path, steps: int, *more: str, clock: str = "time", **keywords: int
) -> bytes:
    return train(binary, data, checkpoint, steps, "--no-shuffle", "--clock", clock, *more, **keywords)


def test_many_steps_agree_with_the_interpreter(tmp_path: Path) -> None:
    """A step takes a second in both."""
    assert_same(run_both(MODEL, tmp_path, steps=14, rows=4))


def last_step_of(seconds: int, steps: int, times: list[int]) -> int:
    """The latest step that is at least so long ago at the end of `steps`."""
    return max([step for step in range(1, steps + 1) if times[steps] - times[step] >= seconds], default=0)


def test_rows_leave_when_their_time_is_over(binary: Path, data: Path, tmp_path: Path) -> None:
    """In periods of one second, the rows that stay are those that were seen in less than ttl seconds."""
    seconds = times_of(pq.read_metadata(data).num_rows)
    times = [0, *(int(seconds[at : at + BATCH].max()) for at in range(0, len(seconds), BATCH))]
    for steps in (9, 13, 14, 20):
        tensors = read_tensors(timed(binary, data, tmp_path / str(steps), steps))
        for name in ("fresh", "young", "waited"):
            stays = tensors[f"{name}.last_step"]
            assert stays.size and stays.min() > last_step_of(TTL[name], steps, times), (name, steps)
        if steps == 14:  # the pause is over: what was seen before it is gone
            assert set(tensors["fresh.last_step"]) == {14}
            assert tensors["lasting.last_step"].min() < 10  # 30 and some seconds are no 48
    assert read_tensors(timed(binary, data, tmp_path / "1", 9))["few.ids"].size <= 5


@pytest.mark.parametrize("clock", ["s:s", "ms:ms"])
def test_units_are_those_that_are_said(binary: Path, data: Path, tmp_path: Path, clock: str) -> None:
    assert timed(binary, data, tmp_path / "a", 20) == timed(binary, data, tmp_path / "b", 20, clock=clock)


def test_nulls_are_no_times(binary: Path, data: Path, tmp_path: Path) -> None:
    """A batch without any keeps the time of the one before."""
    oldest = {
        clock: read_tensors(timed(binary, data, tmp_path / clock[:1], 10, clock=clock))["fresh.last_step"].min()
        for clock in ("s:s", "gaps:s")
    }
    # Step 10 is at 9 s, so step 7, at 6 s, is over; without a time of its own, it is at 8 s as step 9.
    assert oldest == {"s:s": 8, "gaps:s": 7}
    words = [binary, "train", "--data", data, "--clock", "none:s", "--batch", "16", "--progress", "lines"]
    said = call(*words)
    assert "warning: column 'none', the clock, had no time in any row" in said


def test_lists_have_times_too(binary: Path, data: Path, tmp_path: Path) -> None:
    """Of a list that the model reads; others are refused."""
    error = refused(binary, data, "visits.at:s")
    assert "column 'visits.at', the clock, is of a list that the model does not read" in error
    table = pq.read_table(data)
    lists = table["list"].to_pylist()
    seconds = times_of(table.num_rows)
    timed_lists = [
        [{"k": entry["k"], "at": int(s)} for entry in list_] for list_, s in zip(lists, seconds, strict=True)
    ]
    kind = pa.list_(pa.struct([("k", pa.int64()), ("at", pa.int64())]))
    at = table.schema.get_field_index("list")
    path = tmp_path / "lists.parquet"
    # One entry of the latest time of the batch, so that batches have the same times as before.
    for first in range(0, table.num_rows, BATCH):
        rows = range(first, first + BATCH)
        latest = max(rows, key=lambda row: seconds[row])
        full = next(row for row in rows if timed_lists[row])
        timed_lists[full][0]["at"] = int(seconds[latest])
    pq.write_table(table.set_column(at, "list", pa.array(timed_lists, kind)), path)
    assert timed(binary, path, tmp_path / "a", 20, clock="list.at:s") == timed(binary, data, tmp_path / "b", 20)


def refused(binary: Path, data: Path, clock: str, *more: str) -> str:
    words = [str(binary), "train", "--data", str(data), "--clock", clock, "--batch", "16", *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        ("s", "column 's', the clock, is int64: its unit is not known\n  help: say it: --clock s:s, or :ms"),
        ("time:ms", "column 'time', the clock, is timestamp[us, tz=UTC], which has a unit of its own"),
        (
            "local",
            "column 'local', the clock, is timestamp[ms], which is no time\n  help: a timestamp without a time zone",
        ),
        (
            "ms:s",
            ", which is no date of the years 1 to 9999\n  help: is its unit another one? --clock ms:ms",
        ),
        ("text", "column 'text', the clock, is string, which is no time"),
        ("tme", "has no column 'tme', which was asked for; it has "),
        ("time:days", "has no column 'time:days', which was asked for"),
        ("steps:0", "has no column 'steps:0', which was asked for"),
        ("", "--clock: has an empty value"),
    ],
)
def test_wrong_clocks_are_told(binary: Path, data: Path, clock: str, text: str) -> None:
    assert text in refused(binary, data, clock)


def test_files_have_one_type_of_time(binary: Path, data: Path, tmp_path: Path) -> None:
    table = pq.read_table(data)
    at = table.schema.get_field_index("s")
    for number, kind in enumerate((pa.int64(), pa.int32())):
        pq.write_table(table.set_column(at, "s", table["s"].cast(kind)), tmp_path / f"{number}.parquet")
    error = refused(binary, tmp_path, "s:s")
    assert "1.parquet: column 's' is int32, in " in error and "0.parquet it is int64" in error


@pytest.mark.parametrize("clock", ["time", "steps:2"])
def test_threads_and_resuming_change_no_bit(binary: Path, data: Path, tmp_path: Path, clock: str) -> None:
    whole = timed(binary, data, tmp_path / "whole", 33, clock=clock, threads=1)
    timed(binary, data, tmp_path / "halves", 9, clock=clock)
    timed(binary, data, tmp_path / "halves", 15, "--resume", clock=clock)
    last = train(binary, data, tmp_path / "halves", 33, "--no-shuffle", "--resume")  # with the clock of the checkpoint
    assert last == whole
    listed = call(tool("genrec-checkpoint"), "list", tmp_path / "halves")
    # 3 epochs of 20 steps; the clock stays at its latest time from the second on.
    seconds = int(times_of(320).max()) if clock == "time" else 66
    assert f", clock at {datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC" in listed
    assert "the checkpoint was trained with --clock " + clock in refused(
        binary, data, "machine", "--no-shuffle", "--resume", "--checkpoint", str(tmp_path / "halves"), "--seed", "5"
    )


def test_incremental_checkpoints_have_the_clock(binary: Path, data: Path, tmp_path: Path) -> None:
    saves = ("--checkpoint-every", "4", "--checkpoint-full-every", "4")
    whole = read_tensors(timed(binary, data, tmp_path / "whole", 30))
    timed(binary, data, tmp_path / "parts", 14, *saves)
    timed(binary, data, tmp_path / "parts", 23, "--resume", *saves)
    last = read_tensors(timed(binary, data, tmp_path / "parts", 30, "--resume"))
    assert all((last[name] == whole[name]).all() for name in whole)


def test_continuing_keeps_the_clock(binary: Path, data: Path, tmp_path: Path) -> None:
    """The next day's file goes on from the time of the day before."""
    table = pq.read_table(data)
    for day, rows in enumerate((table.slice(0, 160), table.slice(160))):
        pq.write_table(rows, tmp_path / f"{day}.parquet")
    flags = ["--batch", "16", "--seed", "5", "--threads", "1", "--no-shuffle", "--progress", "none"]
    once = timed(binary, data, tmp_path / "once", 20, threads=1)
    for day in (0, 1):
        before = ["--continue", tmp_path / "days"] if day else ["--clock", "time"]
        call(binary, "train", "--data", tmp_path / f"{day}.parquet", "--checkpoint", tmp_path / "days", *flags, *before)
    assert next((tmp_path / "days" / "step-20").glob("*.safetensors")).read_bytes() == once


def test_merging_changes_no_row(data: Path, tmp_path: Path) -> None:
    made = compile_merged_and_apart(MODEL, tmp_path)
    clock: tuple[str | Path, ...] = ("--no-shuffle", "--clock", "time")

    def run(first: str, second: str, folder: Path) -> bytes:
        train(made[first], data, folder, 9, *clock)
        return train(made[second], data, folder, 20, *clock, "--resume")

    assert run("merged", "apart", tmp_path / "a") == run("apart", "merged", tmp_path / "b")


@needs_mpi
@pytest.mark.parametrize("clock", ["time", "steps:2"])
def test_ranks_change_no_bit(binary: Path, data: Path, tmp_path: Path, clock: str) -> None:
    portions = ("--portions", "6")
    whole = timed(binary, data, tmp_path / "whole", 24, *portions, clock=clock)
    assert read_tensors(whole)["fresh.last_step"].min() > 17
    for ranks, overlap in ((1, "none"), (2, "rows"), (3, "keys"), (4, "none")):
        more = (*portions, "--overlap", overlap)
        assert timed(binary, data, tmp_path / str(ranks), 24, *more, clock=clock, ranks=ranks, threads=1) == whole, (
            ranks
        )
    for steps, ranks in ((9, 1), (15, 3), (24, 2)):
        last = timed(
            binary, data, tmp_path / "parts", steps, *portions, "--resume", clock=clock, ranks=ranks, threads=1
        )
    assert last == whole


@needs_mpi
def test_ranks_of_devices_change_no_bit(data: Path, tmp_path: Path) -> None:
    """Their sums travel on their own: the time of a step travels with its report."""
    binary, more = tmp_path / "emulated", ("--portions", "2")
    call(tool("genrec-compile"), MODEL, "--target=cuda-emulated", "-o", binary)
    whole = timed(binary, data, tmp_path / "whole", 20, *more)
    assert read_tensors(whole)["fresh.last_step"].min() > 17
    for overlap in ("none", "keys"):
        assert timed(binary, data, tmp_path / overlap, 20, *more, "--overlap", overlap, ranks=2, threads=1) == whole


@needs_mpi
def test_a_step_a_second_is_a_ttl_of_steps(binary: Path, data: Path, tmp_path: Path) -> None:
    """The same rows leave, and ranks make as many rounds: the time of a step travels with its losses."""
    text = MODEL.read_text()
    assert text.count("ttl_in_seconds, ") == len(TTL)
    (tmp_path / "stepped.mlir").write_text(text.replace("ttl_in_seconds, ", ""))
    call(tool("genrec-compile"), tmp_path / "stepped.mlir", "-o", tmp_path / "stepped")
    found = []
    for name, model, clock in (("s", tmp_path / "stepped", ()), ("t", binary, ("--clock", "steps:1"))):
        more = ("--no-shuffle", *clock, "--overlap", "none", "--metrics-json", str(tmp_path / "m.json"))
        tensors = train(model, data, tmp_path / name, 24, *more, ranks=2, threads=1)
        found.append((json.loads((tmp_path / "m.json").read_text())["exchanges"]["rounds"], tensors))
    assert found[0] == found[1]


def test_the_machines_clock(binary: Path, data: Path, tmp_path: Path) -> None:
    """What leaves is its own business, but that it was asked shows: the default, told and saved."""
    words = [binary, "train", "--data", data, "--batch", "16", "--progress", "lines", "--checkpoint", tmp_path / "c"]
    before = int(datetime.datetime.now().timestamp())
    said = call(*words, "--metrics-json", tmp_path / "m.json")
    assert "time, for tables with a ttl in seconds: the machine's clock" in said
    report = json.loads((tmp_path / "m.json").read_text())
    assert report["config"]["clock"] == "machine"
    assert before <= report["final"]["clock_seconds"] <= datetime.datetime.now().timestamp() + 1


def test_info_has_the_seconds(binary: Path) -> None:
    tables = {table["name"]: table for table in json.loads(call(binary, "info", "--json"))["tables"]}
    assert tables["lasting"]["ttl_seconds"] == 48 and "ttl" not in tables["lasting"]


@pytest.mark.parametrize(
    ("ttl", "words"), [(1, "1 second"), (86400, "1 day"), (2592000, "30 days"), (5400, "90 minutes")]
)
def test_explain_says_times_in_words(tmp_path: Path, ttl: int, words: str) -> None:
    (tmp_path / "model.mlir").write_text(MODEL.read_text().replace("ttl = 48 : i64", f"ttl = {ttl} : i64"))
    text = call(tool("genrec-compile"), tmp_path / "model.mlir", "--explain")
    assert f"  lasting: dim 4, adam, 48 bytes per row, gone after {words} unseen" in text
    assert "  waited: dim 4, sgd, 16 bytes per row, gone after 4 seconds unseen, admitted after 2 steps" in text
    assert "table 'lasting', leaving " in text  # memory for the search


@needs_mpi
def test_tables_with_times_are_not_replicated(binary: Path, data: Path) -> None:
    words = [*launcher(2), str(binary), "train", "--data", str(data), "--replicate", "lasting"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "table 'lasting' cannot be replicated: its rules (bounded, ttl, admit_after, hot_after)" in done.stderr


class Recent(gr.Model):
    """Users who have not been seen for 30 days leave."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), name="Recent")
        self.user = gr.Table("user", dim=4, ttl=datetime.timedelta(days=30))
        self.top = gr.nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        gr.loss.bce_with_logits(self.top(self.user(batch.user)).squeeze(), batch.label)


def write_days(path: Path, days: range) -> Path:
    """Ten new users a day, and user 1 in every row beside."""
    day = np.repeat(list(days), 20)
    user = np.where(np.arange(day.size) % 2 == 0, 1, 1000 + day * 10 + np.arange(day.size) % 20 // 2)
    stamps = pa.array((START // 86400 + day) * 86400, pa.timestamp("s", tz="UTC"))
    label = pa.array(np.arange(day.size) % 2, pa.float32())
    pq.write_table(pa.table({"user": user, "time": stamps, "label": label}), path)
    return path


def test_python_trains_day_after_day(tmp_path: Path) -> None:
    schema = gr.Schema({"user": gr.int64, "label": gr.float32})
    model = gr.compile(Recent(), schema, output=tmp_path / "model", flags=draft())
    folder = tmp_path / "c"
    for first in range(0, 100, 10):
        file = write_days(tmp_path / f"{first:02}.parquet", range(first, first + 10))
        model.train(
            file, batch=20, checkpoint=folder, shuffle=False, clock="time", progress=False,
            continue_from=folder if first else None,
        )  # fmt: skip
    newest = json.loads((folder / "manifest.json").read_text())["generations"][-1]["name"]
    users = set(read_tensors((folder / newest / "model.safetensors").read_bytes())["user.ids"].tolist())
    # Day 99 is the last one. Periods are of 45 hours: rows stay for 30 days at least, for 33.75 at most.
    for day in range(100):
        here = 1000 + day * 10 in users
        assert here or day < 99 - 30
        assert not here or day > 99 - 34
    assert 1 in users
