"""Every flag of `train` acts: with it, a run says or makes something else, or is refused with the reason.

The flags are those that `train --help` lists, so that a new flag needs an entry here.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, draft  # noqa: F401  (names the build that genrec uses)

ROWS, BATCH = 40000, 1000


class Clipped(gr.Model):
    """A table, a linear layer, a loss and a metric; gradients are clipped where they are large."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.5), clip_norm=100.0, clip_value=100.0)
        self.item = gr.Table("item", dim=4, init=gr.init.normal(0.5))
        self.top = gr.nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        logit = self.top(self.item(batch.item))[:, 0]
        gr.loss.bce_with_logits(logit, batch.label)
        gr.metric.auc(logit, batch.label)


@dataclass
class Runner:
    """Runs `train`, each time in a folder of its own."""

    binary: Path
    data: Path
    folder: Path
    runs: int = 0

    def train(self, *arguments: str) -> dict[str, Any]:
        """What a run said and made: its report without times, both outputs, and the files of its folder."""
        self.runs += 1
        folder = self.folder / str(self.runs)
        folder.mkdir()
        given = {
            "--data": str(self.data / "train.parquet"), "--batch": str(BATCH), "--epochs": "2", "--threads": "1",
            "--progress": "json", "--log-every": "1", "--metrics-json": "m.json",
        }  # fmt: skip
        flags = [word for flag, value in given.items() if flag not in arguments for word in (flag, value)]
        if "--no-report" in arguments:
            flags = [word for word in flags if word not in ("--metrics-json", "m.json")]
        words = [word.replace("DATA", str(self.data)) for word in arguments if word != "--no-report"]
        done = subprocess.run(
            [str(self.binary), "train", *flags, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        report = json.loads((folder / "m.json").read_text()) if (folder / "m.json").exists() else {}
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return {
            "status": done.returncode,
            "error": done.stderr,
            "plain": [line for line in done.stdout.splitlines() if not line.startswith("{")],
            "messages": [event["text"] for event in events if event["event"] == "message"],
            "steps": [
                {key: event[key] for key in ("phase", "epoch", "step", "rows", "loss", "learning_rate")}
                for event in events
                if event["event"] == "step"
            ],
            "checkpoints": sum(event["event"] == "checkpoint" for event in events),
            "evaluations": [event["metrics"] for event in events if event["event"] == "evaluation"],
            "config": report.get("config"),
            "generations": len(list(folder.glob("ck/step-*"))),
            "files": sorted({path.relative_to(folder).parts[0] for path in folder.rglob("*")}),
        }


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("flags")
    random = np.random.default_rng(3)
    for name, rows in (("train", ROWS), ("other", ROWS), ("valid", 3000)):
        item = random.integers(0, 200, rows)
        label = (random.random(rows) < 0.2 + 0.6 * (item % 2)).astype(np.float32)
        pq.write_table(pa.table({"item": item, "label": label}), folder / f"{name}.parquet", row_group_size=4000)
    schema = gr.Schema({"item": gr.int64, "label": gr.float32})
    model = gr.compile(Clipped(), schema, output=folder / "model", flags=draft())
    runs = folder / "runs"
    runs.mkdir()
    return Runner(Path(model.binary), folder, runs)


VALIDATED = ("--validation", "DATA/valid.parquet")
DIVERGING = ("--lr", "1e30", "--clip-norm", "0", "--clip-value", "0")
STILL = (*VALIDATED, "--lr", "0", "--epochs", "5")


@dataclass(frozen=True)
class Case:
    """Runs with and without `flags`, both with `beside`, differ in what `sees` picks of them."""

    flags: tuple[str, ...]
    sees: Callable[[dict[str, Any]], Any]
    beside: tuple[str, ...] = ()
    refused: str = ""  # the run with the flags ends with this


def seen(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda run: run[key]


CASES: dict[str, Case] = {
    "--data": Case(("--data", "DATA/other.parquet"), seen("steps")),
    "--catalogue": Case(("--catalogue", "films=x.parquet"), seen("status"), refused="the model has no catalogue 'films'"),
    "--batch": Case(("--batch", "500"), seen("steps")),
    "--data-memory": Case(("--data-memory", "1"), seen("messages")),
    "--shuffle-window": Case(("--shuffle-window", "5000"), seen("steps")),
    "--batch-tokens": Case(("--batch-tokens", "history=50"), seen("status"), beside=("--batch", "1000"),
                           refused="cannot act beside --batch-tokens"),
    "--clock": Case(("--clock", "time"), seen("status"), refused="no table of model 'Clipped' has a ttl in seconds"),
    "--validation": Case(VALIDATED, seen("evaluations")),
    "--epochs": Case(("--epochs", "3"), seen("steps")),
    "--max-steps": Case(("--max-steps", "5"), seen("steps")),
    "--seed": Case(("--seed", "9"), seen("steps")),
    "--shuffle": Case(("--shuffle",), seen("steps"), beside=("--no-shuffle",)),
    "--no-shuffle": Case(("--no-shuffle",), seen("steps")),
    "--lr": Case(("--lr", "0.1"), seen("steps")),
    "--schedule": Case(("--schedule", "linear"), seen("steps")),
    "--warmup": Case(("--warmup", "7"), seen("steps")),
    "--schedule-steps": Case(("--schedule-steps", "9"), seen("steps"), beside=("--schedule", "cosine")),
    "--schedule-final": Case(("--schedule-final", "0.5"), seen("steps"), beside=("--schedule", "cosine")),
    "--clip-norm": Case(("--clip-norm", "0.001"), seen("steps")),
    "--clip-value": Case(("--clip-value", "0.0001"), seen("steps")),
    "--init": Case(("--init", "none.safetensors"), seen("status"), refused="none.safetensors"),
    "--checkpoint": Case(("--checkpoint", "ck"), seen("files")),
    "--checkpoint-every": Case(("--checkpoint-every", "5"), seen("checkpoints"), beside=("--checkpoint", "ck")),
    "--checkpoint-full-every": Case(
        ("--checkpoint-full-every", "3"), seen("generations"), beside=("--checkpoint", "ck", "--checkpoint-every", "5")
    ),
    "--keep": Case(("--keep", "1"), seen("generations"), beside=("--checkpoint", "ck", "--checkpoint-every", "5")),
    "--overwrite": Case(("--overwrite",), seen("status"), refused="--overwrite: needs --checkpoint"),
    "--generation": Case(("--generation", "step-5"), seen("status"), refused="--generation"),
    "--allow-nonfinite": Case(("--allow-nonfinite",), seen("status"), beside=DIVERGING),
    "--resume": Case(("--resume",), seen("status"), refused="--resume: needs --checkpoint"),
    "--continue": Case(("--continue", "none"), seen("status"), refused="there is no checkpoint in 'none'"),
    "--eval-before-train": Case(("--eval-before-train",), seen("evaluations")),
    "--eval-every": Case(("--eval-every", "2"), seen("evaluations"), beside=VALIDATED),
    "--eval-epochs": Case(("--eval-epochs", "1"), seen("evaluations"), beside=VALIDATED),
    "--eval-batch": Case(("--eval-batch", "300"), seen("steps"), beside=VALIDATED),
    "--patience": Case(("--patience", "1"), seen("messages"), beside=STILL),
    "--monitor": Case(("--monitor", "hr@10"), seen("status"), beside=(*STILL, "--patience", "1"), refused="do not measure"),
    "--tensorboard": Case(("--tensorboard", "tb"), seen("files")),
    "--profile": Case(("--profile", "prof"), seen("files")),
    "--metrics-json": Case(("--metrics-json", "n.json"), seen("files"), beside=("--no-report",)),
    "--portions": Case(("--portions", "4"), seen("config")),
    "--replicate": Case(("--replicate", "nothing"), seen("status"), refused="the model has no such table"),
    "--replica-memory": Case(("--replica-memory", "5"), seen("config")),
    "--shard-optimizer": Case(("--shard-optimizer",), seen("config")),
    "--early-gradients": Case(("--early-gradients", "some"), seen("status"), refused="--early-gradients"),
    "--row-wire": Case(("--row-wire", "f16"), seen("status"), refused="--row-wire"),
    "--gradient-wire": Case(("--gradient-wire", "f16"), seen("status"), refused="--gradient-wire"),
    "--deduplicate": Case(("--deduplicate", "some"), seen("status"), refused="--deduplicate"),
    "--overlap": Case(("--overlap", "some"), seen("status"), refused="--overlap"),
    "--comm": Case(("--comm", "tcp"), seen("status"), refused="--comm"),
    "--comm-patience": Case(("--comm-patience", "0"), seen("status"), refused="--comm-patience"),
    "--threads": Case(("--threads", "2"), seen("config")),
    "--progress": Case(("--progress", "lines"), seen("plain")),
    "--log-every": Case(("--log-every", "5"), seen("steps")),
    "--check-finite": Case(("--check-finite",), seen("error"), beside=DIVERGING,
                           refused="whose batch begins at"),
}  # fmt: skip


def flags_of_train(binary: Path) -> list[str]:
    text = subprocess.run([str(binary), "train", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^ +(?:-\w,\s*)?(--[a-z-]+(?:, *--[a-z-]+)*)", text, re.MULTILINE)
    return [flag for names in listed for flag in re.findall(r"--[a-z-]+", names)]


def test_every_flag_has_a_case(runner: Runner) -> None:
    listed = flags_of_train(runner.binary)
    assert len(listed) > 25
    assert set(listed) - {"--help"} <= set(CASES)
    assert set(CASES) - {"--no-shuffle"} <= set(listed)


@pytest.mark.parametrize("flag", sorted(CASES))
def test_flag_acts(runner: Runner, flag: str) -> None:
    case = CASES[flag]
    without, given = runner.train(*case.beside), runner.train(*case.beside, *case.flags)
    if case.refused:
        assert given["status"] != 0
        assert case.refused in given["error"]
        assert case.refused not in without["error"]
    else:
        assert given["status"] == 0, given["error"]
    assert without["status"] == 0 or case.beside, without["error"]
    assert case.sees(without) != case.sees(given)


def test_runs_are_the_same_without_a_flag(runner: Runner) -> None:
    """Otherwise the cases above show nothing."""
    first, second = runner.train(*VALIDATED), runner.train(*VALIDATED)
    assert first == second
    assert len(first["steps"]) == 2 * (ROWS // BATCH) + 2 * 3
