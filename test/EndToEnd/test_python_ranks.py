"""`train`, `evaluate` and `predict` of Python on several ranks: the results of one process, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import genrec as gr
import numpy as np
import polars as pl
import pytest
from compiled import draft
from launching import needs_mpi

pytestmark = needs_mpi

SCHEMA = gr.Schema({"user": gr.int64, "label": gr.float32})


class Users(gr.Model):
    """A row per user and a bias; an AUC."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), name="Users")
        self.user = gr.Table("user", dim=4)
        self.head = gr.nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        score = self.head(self.user(batch.user)).squeeze()
        gr.loss.bce_with_logits(score, batch.label)
        gr.metric.auc(score, batch.label)
        gr.output(user=batch.user, score=score)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> gr.CompiledModel:
    """The model, beside its data."""
    folder = tmp_path_factory.mktemp("users")
    rng = np.random.default_rng(5)
    users = rng.integers(0, 90, 700)
    labels = (rng.random(700) < (users % 3) / 3).astype(np.float32)
    pl.DataFrame({"user": users, "label": labels}).write_parquet(folder / "train.parquet", row_group_size=100)
    pl.DataFrame({"user": users, "label": np.full(700, 2.0, np.float32)}).write_parquet(folder / "wrong.parquet")
    return gr.compile(Users(), SCHEMA, output=folder / "users", flags=draft())


def data_of(model: gr.CompiledModel) -> Path:
    return model.binary.parent / "train.parquet"


def test_ranks_give_the_results_of_one_process(model, tmp_path):
    data = data_of(model)
    found = []
    for ranks in (None, 1, 2, 3):
        checkpoint = tmp_path / f"checkpoint-{ranks}"
        run = model.train(
            data, validation=data, epochs=2, batch=60, seed=2, threads=1, ranks=ranks, portions=6,
            checkpoint=checkpoint, metrics_json=tmp_path / "m.json", progress=False,
        )  # fmt: skip
        assert json.loads((tmp_path / "m.json").read_text())["config"]["ranks"] == (ranks or 1)
        # Another number of ranks than trained it.
        readers = {None: 2, 1: 3, 2: None, 3: 1}[ranks]
        metrics = model.evaluate(data, batch=60, threads=1, ranks=readers, portions=6, progress=False)
        out = model.predict(data, tmp_path / "o.parquet", ranks=readers, threads=1, batch=60, progress=False)
        found.append((run.loss, run.metrics, metrics, pl.read_parquet(out).to_dicts()))
    assert found[0][1]["auc"] > 0.6
    assert found == [found[0]] * 4


def test_progress_is_told_once(model, capsys):
    model.train(data_of(model), epochs=2, batch=60, threads=1, ranks=2, checkpoint=False)
    out = capsys.readouterr()
    assert [line.split("  ")[0] for line in out.out.splitlines()] == ["epoch 1", "epoch 2"]
    assert out.err == ""


def test_errors_of_ranks_are_exceptions(model):
    with pytest.raises(gr.RunError) as caught:
        model.train(data_of(model).parent / "wrong.parquet", ranks=2, threads=1, checkpoint=False, progress=False)
    text = str(caught.value)
    assert caught.value.status == 1
    assert "wrong.parquet" in text and text.count("error:") == 1, text
    assert Path(__file__).name in text  # the user's line
    assert "---" not in text and "mpirun" not in text, text  # nothing of the launcher
    with pytest.raises(gr.RunError, match="2 portions are too few for 3 ranks"):
        model.train(data_of(model), ranks=3, portions=2, checkpoint=False, progress=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_ranks_with_one_checkpoint(model, tmp_path, number):
    """Ctrl-C of a terminal reaches every process of the group; SIGTERM reaches Python alone."""
    checkpoint = tmp_path / "checkpoint"
    script = f"""
import genrec as gr, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background
model = gr.CompiledModel({str(model.binary)!r})
try:
    model.train({str(data_of(model))!r}, epochs=100000, batch=20, threads=1, ranks=2, portions=4, log_every=1,
                checkpoint={str(checkpoint)!r}, checkpoint_every=40, keep=1)
except KeyboardInterrupt:
    print("interrupted", model.checkpoint == model.checkpoint.absolute(), model.checkpoint.name)
"""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=os.environ | {"PYTHONPATH": str(Path(gr.__file__).parents[1])},
    )  # fmt: skip
    begin = time.monotonic()
    while not (checkpoint / "manifest.json").exists():
        assert process.poll() is None and time.monotonic() - begin < 60, process.communicate()
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    told = [line for line in out.splitlines() if "stopped by a signal: saved step" in line]
    assert len(told) == 1, out + err
    step = int(told[0].split("saved step ")[1].split()[0])
    # A step that is saved again has a name of its own.
    assert list(checkpoint.glob(f"step-{step}*"))
    assert "Traceback" not in err and "error" not in err, err
    if number == signal.SIGINT:
        assert process.returncode == 0 and out.splitlines()[-1] == "interrupted True checkpoint"
    else:
        assert process.returncode == -signal.SIGTERM
    # What was saved goes on, on another number of ranks.
    run = model.train(
        data_of(model), epochs=100000, max_steps=step + 3, batch=20, threads=1, portions=4, checkpoint=checkpoint,
        resume=True, progress=False,
    )  # fmt: skip
    assert run.final["step"] == step + 3
