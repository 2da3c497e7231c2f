"""Portions and ranks on the emulated device: the losses of the CPU, and the same bits on any number of ranks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pytest
from compiled import BUILD, draft, require_emulator
from launching import launcher, needs_mpi
from test_cuda_models import (
    BATCH,
    SCHEMA,
    TARGETS,
    Clicks,
    Crosses,
    Made,
    expect_close,
    generate,
    load_example,
    make_retrieval,
    tensors,
    train,
    write_rows,
)
from test_cuda_steps import losses, run

PORTIONS = ["--portions", "4"]
MPI = BUILD / "lib" / "libgenrec-comm-mpi.so"


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return compile_both(Clicks(), tmp_path_factory.mktemp("clicks"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


def skip_without_emulator() -> None:
    require_emulator()


def compile_both(model: gr.Model, folder: Path) -> dict[str, Path]:
    """A binary per target."""
    skip_without_emulator()
    return {
        target: gr.compile(model, SCHEMA, target=target, output=folder / target, flags=draft()).binary
        for target in TARGETS
    }


def expect_equal(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert (actual[name] == values).all(), name


def start(binary: Path, ranks: int, *words: object) -> subprocess.CompletedProcess[str]:
    """A command on so many ranks; 0: without a launcher."""
    environment = os.environ | {"GENREC_COMM_LIBRARY": str(MPI)}
    command = [*launcher(ranks), *(str(word) for word in (binary, *words))]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


def train_on(
    binary: Path, ranks: int, data: Path, folder: Path, *more: str, steps: int = 8, portions: Sequence[str] = PORTIONS
) -> dict[str, Any]:
    """Trains into the checkpoint `folder` and returns the report."""
    report = folder.parent / f"{folder.name}.json"
    ran = start(
        binary, ranks, "train", "--data", data, "--batch", BATCH, *([] if "--epochs" in more else ["--epochs", "4"]),
        "--max-steps", steps, "--seed", "5", "--threads", "1", "--progress", "none", "--checkpoint", folder,
        "--metrics-json", report, "--log-every", "1",
        *portions, *more,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(report.read_text())


def saved(folder: Path) -> bytes:
    """The bytes of the newest generation's tensors."""
    newest = max(folder.glob("step-*"), key=lambda path: int(path.name.partition("-")[2]))
    return (newest / "model.safetensors").read_bytes()


def expect_training_of_the_cpu(binaries: dict[str, Path], data: Path, folder: Path, *more: str, steps: int) -> None:
    kept = {target: folder / f"{target}.kept" for target in TARGETS}
    cpu, cuda = (losses(train(binaries[target], data, kept[target], *more, steps=steps)) for target in TARGETS)
    assert len(cuda) == steps
    np.testing.assert_allclose(cuda, cpu, rtol=1e-5)
    expect_close(tensors(kept["cuda-emulated"]), tensors(kept["cpu"]))


@pytest.mark.parametrize("portions", [2, 3, 4])
def test_portions_train_as_on_the_cpu(binaries: dict[str, Path], rows: Path, portions: int, tmp_path: Path) -> None:
    expect_training_of_the_cpu(binaries, rows, tmp_path, "--portions", str(portions), steps=8)


def test_clipped_norms_and_rules_about_rows(rows: Path, tmp_path: Path) -> None:
    expect_training_of_the_cpu(compile_both(Crosses(), tmp_path), rows, tmp_path, *PORTIONS, steps=6)


def test_the_order_of_queued_work_changes_no_bits(
    binaries: dict[str, Path], rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("GENREC_SIMT_SEED", seed)
        report = train(binaries["cuda-emulated"], rows, tmp_path / seed, *PORTIONS)
        kept.append((losses(report), tensors(tmp_path / seed)))
    for given, values in kept[1:]:
        assert given == kept[0][0]
        expect_equal(values, kept[0][1])


def test_a_step_of_portions_takes_no_memory_and_waits_twice(
    binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """Once all ids are known; for how many rows travel, and at its end. Stages are launched as graphs."""
    before, after = (
        run(binaries["cuda-emulated"], rows, tmp_path / "report.json", *PORTIONS, steps=steps)["device"]
        for steps in (10, 14)
    )
    assert before["allocations"] == after["allocations"]
    assert after["waits"] - before["waits"] == 2 * 4
    assert after["steps_captured"] == before["steps_captured"] > 0
    assert after["captured_steps_launched"] - before["captured_steps_launched"] == 4 * 4
    assert after["updates_captured"] == before["updates_captured"] > 0
    assert after["captured_updates_launched"] - before["captured_updates_launched"] == 4
    assert after["not_captured"] == []
    assert after["host"]["steps"] > 0 and after["host"]["wait_ms"] > 0


@needs_mpi
def test_any_number_of_ranks_has_the_same_bits(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """Keys of the next step and gradients travel beside a step or not; ranks share updates of parameters or not."""
    binary, tmp = binaries["cuda-emulated"], tmp_path
    early = ("--early-gradients", "on")
    flags = {0: ("none",), 2: ("keys", *early), 3: ("rows", "--shard-optimizer", *early), 4: ("none",)}
    runs = {
        ranks: train_on(binary, ranks, rows, tmp / str(ranks), "--overlap", *given) for ranks, given in flags.items()
    }
    held = {ranks: [of["optimizer_bytes"] for of in runs[ranks]["work"]["by_rank"]] for ranks in (2, 3)}
    assert max(held[3]) < min(held[2])
    for ranks in (2, 3, 4):
        assert losses(runs[ranks]) == losses(runs[0])
        assert saved(tmp_path / str(ranks)) == saved(tmp_path / "0")
    ahead = {ranks: run["device"]["steps_dispatched_ahead"] for ranks, run in runs.items()}
    assert ahead[4] == 0 < ahead[2] == ahead[3]
    exchanged = runs[2]["exchanges"]
    assert min(exchanged[count] for count in ("id_bytes", "row_bytes", "gradient_bytes", "dense_bytes")) > 0


@needs_mpi
def test_ranks_without_rows(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """A batch of one row: ranks that read nothing call NCCL for fewer exchanges than those that own its rows."""
    one = ("--batch", "1", "--no-shuffle")
    runs = [
        train_on(
            binaries["cuda-emulated"], ranks, rows, tmp_path / str(ranks), *one, steps=3, portions=("--portions", "3")
        )
        for ranks in (0, 3)
    ]
    assert losses(runs[0]) == losses(runs[1])
    assert saved(tmp_path / "0") == saved(tmp_path / "3")


@needs_mpi
def test_ranks_take_the_devices_of_their_machine(
    binaries: dict[str, Path], rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another; without GENREC_SIMT_DEVICES, an emulated process has one that no other sees."""
    binary = binaries["cuda-emulated"]
    apart = train_on(binary, 2, rows, tmp_path / "apart", steps=1)["work"]["by_rank"]
    monkeypatch.setenv("GENREC_SIMT_DEVICES", "2")
    shared = train_on(binary, 2, rows, tmp_path / "shared", steps=1)["work"]["by_rank"]
    assert [rank["device"]["index"] for rank in apart] == [0, 0]
    assert [rank["device"]["index"] for rank in shared] == [0, 1]
    for ranks in (apart, shared):
        assert ranks[0]["device"]["uuid"] != ranks[1]["device"]["uuid"]
        assert {rank["device"]["name"] for rank in ranks} == {"emulated device"}
    assert saved(tmp_path / "apart") == saved(tmp_path / "shared")
    ran = start(binary, 3, "train", "--data", rows, "--batch", BATCH, *PORTIONS)
    assert ran.returncode == 1
    assert ran.stderr.count("rank 2 has no GPU of its own: ranks 0, 1, 2 see 2 GPUs together") == 1


def test_a_gpu_that_the_model_was_not_compiled_for(
    binaries: dict[str, Path], rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENREC_SIMT_CAPABILITY", "80")
    ran = start(binaries["cuda-emulated"], 0, "train", "--data", rows, "--batch", BATCH)
    assert ran.returncode == 1
    assert "the GPU 'emulated device' has compute capability 8.0, and the model was compiled for 9.0" in ran.stderr
    assert "-DGENREC_CUDA_ARCHITECTURES=80" in ran.stderr


@needs_mpi
def test_clipped_norms_and_rules_about_rows_have_the_same_bits(rows: Path, tmp_path: Path) -> None:
    """A norm that ranks add up exactly, rows that come and leave, and a bound over the rows of all ranks.

    Rows of replicas count once in the norm.
    """
    binary = compile_both(Crosses(), tmp_path)["cuda-emulated"]
    flags = {0: (), 2: ("--overlap", "keys", "--shard-optimizer", "--replicate", "c0")}
    runs = [train_on(binary, ranks, rows, tmp_path / str(ranks), *given, steps=6) for ranks, given in flags.items()]
    assert losses(runs[0]) == losses(runs[1])
    assert saved(tmp_path / "0") == saved(tmp_path / "2")


def make_hstu(folder: Path) -> Made:
    """Attention with biases of positions and times, dropout, a sampled softmax over a catalogue."""
    return make_retrieval("hstu_retrieval", "Retrieval", folder, time_bias=True)


def make_requests(folder: Path) -> Made:
    """Lists of lists, pools, values of requests at impressions, dropout."""
    generate(folder / "data", kind="requests", users=12, seed=3)
    data = folder / "data" / "train.parquet"
    schema, ranker = gr.Schema.from_parquet(data), load_example("request_ranking", "model").Ranker
    return Made(
        {of: gr.compile(ranker(), schema, target=of, output=folder / of, flags=draft()).binary for of in TARGETS}, data
    )


@needs_mpi
@pytest.mark.parametrize("make", [make_hstu, make_requests], ids=["hstu", "requests"])
def test_an_example_has_the_same_bits_on_any_number_of_ranks(make: Callable[[Path], Made], tmp_path: Path) -> None:
    """Those of one rank; the losses of the CPU's ranks; checkpoints that go between both kinds of ranks.

    Adam divides gradients by their size, so a weight whose gradient is little more than rounding differs by a part of
    its rate, 1e-3.
    """
    skip_without_emulator()
    made, steps = make(tmp_path), 2
    cpu, cuda = (made.binaries[target] for target in TARGETS)
    runs = {
        ranks: train_on(cuda, ranks, made.data, tmp_path / str(ranks), "--overlap", overlap, steps=steps)
        for ranks, overlap in ((0, "none"), (2, "keys"), (3, "none"))
    }
    for ranks in (2, 3):
        assert losses(runs[ranks]) == losses(runs[0])
        assert saved(tmp_path / str(ranks)) == saved(tmp_path / "0")
    on_cpu = train_on(cpu, 3, made.data, tmp_path / "of_cpu", steps=steps)
    np.testing.assert_allclose(losses(runs[3]), losses(on_cpu), rtol=1e-5)
    expect_close(tensors(tmp_path / "3"), tensors(tmp_path / "of_cpu"), 2e-4)
    train_on(cpu, 3, made.data, tmp_path / "mixed", steps=1)
    train_on(cuda, 2, made.data, tmp_path / "mixed", "--resume", steps=2)
    for folder in ("mixed", "of_cpu"):
        train_on(cpu, 2, made.data, tmp_path / folder, "--resume", steps=steps + 1)
    expect_close(tensors(tmp_path / "mixed"), tensors(tmp_path / "of_cpu"), 2e-4)


@needs_mpi
def test_rows_that_travel_rounded_are_those_of_the_cpu(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """Half of the bytes; one portion per rank, as results depend on the number of ranks."""
    flags, runs = ("--row-wire", "bf16", "--gradient-wire", "bf16"), {}
    for target in TARGETS:
        runs[target] = train_on(binaries[target], 2, rows, tmp_path / f"{target}.kept", *flags, portions=())
    whole = train_on(binaries["cuda-emulated"], 2, rows, tmp_path / "whole", portions=())
    np.testing.assert_allclose(losses(runs["cuda-emulated"]), losses(runs["cpu"]), rtol=1e-5)
    expect_close(tensors(tmp_path / "cuda-emulated.kept"), tensors(tmp_path / "cpu.kept"))
    assert losses(runs["cuda-emulated"]) != losses(whole)
    assert 2 * runs["cuda-emulated"]["exchanges"]["row_bytes"] == whole["exchanges"]["row_bytes"]


def counts(report: dict[str, Any]) -> dict[str, int]:
    """What ranks have exchanged of rows, but for sums, of which devices send all that was asked for."""
    return {
        name: report["exchanges"][name] for name in ("looked_up", "asked", "served", "found", "id_bytes", "row_bytes")
    }


@needs_mpi
@pytest.mark.parametrize("who", ["both", "requester", "owner", "none"])
def test_who_deduplicates(who: str, binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """As the CPU's ranks, with their counts; where requesters do, with the bits of one portion per rank on one rank."""
    runs = {
        target: train_on(binaries[target], 2, rows, tmp_path / target, "--deduplicate", who, steps=4, portions=())
        for target in TARGETS
    }
    np.testing.assert_allclose(losses(runs["cuda-emulated"]), losses(runs["cpu"]), rtol=1e-5)
    expect_close(tensors(tmp_path / "cuda-emulated"), tensors(tmp_path / "cpu"))
    assert counts(runs["cuda-emulated"]) == counts(runs["cpu"])
    if who in ("both", "requester"):
        train_on(binaries["cuda-emulated"], 0, rows, tmp_path / "alone", steps=4, portions=("--portions", "2"))
        assert saved(tmp_path / "cuda-emulated") == saved(tmp_path / "alone")


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "tables", "flags"),
    [
        (1, "c0,c1,c2", ()),
        (2, "c1", ("--overlap", "keys", "--row-wire", "f32")),
        (2, "c0,c1,c2", ("--overlap", "none", "--host-tables", "c0=3")),
        (3, "c0,c2", ("--overlap", "rows", "--shard-optimizer", "--deduplicate", "requester")),
    ],
)
def test_replicas_change_no_bit(
    ranks: int, tables: str, flags: Sequence[str], binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """Tables of one store may differ. As many keys and values travel as between the CPU's ranks."""
    binary, given = binaries["cuda-emulated"], ("--replicate", tables, *flags)
    alone = train_on(binary, 0, rows, tmp_path / "alone")
    report = train_on(binary, ranks, rows, tmp_path / "replicas", *given)
    assert losses(report) == losses(alone)
    assert saved(tmp_path / "replicas") == saved(tmp_path / "alone")
    if ranks == 1:
        return
    on_host = ("--host-tables" not in flags and flags) or ("--overlap", "none")
    assert counts(report) == counts(
        train_on(binaries["cpu"], ranks, rows, tmp_path / "cpu", "--replicate", tables, *on_host)
    )
    assert (report["exchanges"]["row_bytes"] == 0) == (tables == "c0,c1,c2")
    placed = {table["table"]: table["placement"] for table in report["placement"]["tables"]}
    assert placed == {f"c{k}": "replicated" if f"c{k}" in tables else "sharded" for k in range(3)}


@needs_mpi
def test_replicas_come_and_go_with_the_command(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """Resumed with others, on other ranks; evaluated with and without, where no id travels."""
    binary, kept = binaries["cuda-emulated"], tmp_path / "kept"
    whole = train_on(binary, 0, rows, tmp_path / "whole", steps=6)
    train_on(binary, 2, rows, kept, "--replicate", "c0", steps=3)
    rest = train_on(binary, 3, rows, kept, "--replicate", "c1,c2", "--resume", steps=6)
    assert losses(rest) == losses(whole)[3:]
    assert saved(kept) == saved(tmp_path / "whole")
    evaluated = []
    for replicate in ("none", "c0,c1,c2"):
        report = tmp_path / "evaluation.json"
        ran = start(binary, 2, "evaluate", "--data", rows, "--checkpoint", kept, "--batch", BATCH, *PORTIONS,
                    "--replicate", replicate, "--metrics-json", report)  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        evaluated.append(json.loads(report.read_text())["evaluation"]["loss"])
    assert evaluated[0] == evaluated[1]


@needs_mpi
@pytest.mark.parametrize("ranks", [0, 2])
def test_tables_in_host_memory_have_the_same_bits(
    ranks: int, binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """Owners keep the rows there; evaluation reads those that are not in their caches where they are."""
    binary, evaluated = binaries["cuda-emulated"], []
    runs = {"device": (0, ()), "host": (ranks, ("--host-tables", "c1=3", "--overlap", "keys"))}
    trained = {
        name: train_on(binary, on, rows, tmp_path / name, *flags, steps=12) for name, (on, flags) in runs.items()
    }
    assert losses(trained["host"]) == losses(trained["device"])
    assert saved(tmp_path / "host") == saved(tmp_path / "device")
    for on, flags in ((0, ()), (ranks, ("--host-tables", "c1=3"))):
        report = tmp_path / "evaluation.json"
        ran = start(binary, on, "evaluate", "--data", rows, "--checkpoint", tmp_path / "host", "--batch", BATCH,
                    *PORTIONS, *flags, "--metrics-json", report)  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        evaluated.append(json.loads(report.read_text())["evaluation"]["loss"])
    assert evaluated[0] == evaluated[1]


@needs_mpi
def test_checkpoints_go_between_ranks_and_targets(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    """2 ranks with devices, then 4 CPUs, then one device: as the CPU alone."""
    cpu, cuda = (binaries[target] for target in TARGETS)
    train_on(cpu, 0, rows, tmp_path / "whole", steps=9)
    train_on(cuda, 2, rows, tmp_path / "mixed", steps=3)
    train_on(cpu, 4, rows, tmp_path / "mixed", "--resume", steps=6)
    train_on(cuda, 0, rows, tmp_path / "mixed", "--resume", steps=9)
    expect_close(tensors(tmp_path / "mixed"), tensors(tmp_path / "whole"))


@needs_mpi
def test_the_other_commands_agree_on_ranks(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    binary, checkpoint = binaries["cuda-emulated"], tmp_path / "checkpoint"
    train_on(binary, 2, rows, checkpoint)
    metrics, scores = [], []
    for ranks in (0, 2):
        given = ["--data", rows, "--checkpoint", checkpoint, "--batch", BATCH, "--threads", "1", *PORTIONS]
        report, out = tmp_path / f"{ranks}.json", tmp_path / f"{ranks}.parquet"
        for command in (["evaluate", *given, "--metrics-json", report], ["predict", *given, "--out", out]):
            ran = start(binary, ranks, *command)
            assert ran.returncode == 0, ran.stdout + ran.stderr
        metrics.append(json.loads(report.read_text())["evaluation"])
        scores.append(out.read_bytes())
    assert metrics[0]["loss"] == metrics[1]["loss"]
    assert metrics[0]["metrics"] == metrics[1]["metrics"]
    assert scores[0] == scores[1]
