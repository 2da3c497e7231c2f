"""Tables whose rows are in the host's memory, some in a cache of the device: the results of tables on the device."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import genrec as gr
import pytest
from compiled import call, draft
from test_cuda_models import BATCH, SCHEMA, Clicks, Crosses, tensors, train, write_rows
from test_cuda_steps import build, losses

MERGED = "c0=2"  # of the store that c0, c1 and c2 share: a lookup has up to 24 of its rows


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(Clicks(), tmp_path_factory.mktemp("clicks"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


def expect_equal(folder: Path, other: Path) -> None:
    kept, expected = tensors(folder), tensors(other)
    assert kept.keys() == expected.keys()
    for name, values in expected.items():
        assert (kept[name] == values).all(), name


@pytest.mark.parametrize("seed", (1, 2, 3))
@pytest.mark.parametrize("cached", (1, 5, 1000))
def test_results_have_the_bits_of_tables_on_the_device(
    clicks: Path, rows: Path, cached: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer rows than a step looks up, than the table has, and more."""
    monkeypatch.setenv("GENREC_SIMT_SEED", str(seed))
    on_device = train(clicks, rows, tmp_path / "device", steps=14)
    on_host = train(clicks, rows, tmp_path / "host", "--host-tables", f"c1={cached}", steps=14)
    assert losses(on_host) == losses(on_device)
    assert on_host["config"]["host_tables"] == {"c1": cached}
    expect_equal(tmp_path / "host", tmp_path / "device")


def test_tables_of_their_own_stores(rows: Path, tmp_path: Path) -> None:
    binary = build(Clicks(), tmp_path, "--merge-tables=false")
    on_device = train(binary, rows, tmp_path / "device", steps=14)
    on_host = train(binary, rows, tmp_path / "host", "--host-tables", "c0=3,c2=1", steps=14)
    assert losses(on_host) == losses(on_device)
    expect_equal(tmp_path / "host", tmp_path / "device")


def test_a_run_goes_on_with_rows_elsewhere(clicks: Path, rows: Path, tmp_path: Path) -> None:
    """Checkpoints do not know where rows were; evaluations and predictions read them in the host's memory, too."""
    train(clicks, rows, tmp_path / "whole", steps=14)
    train(clicks, rows, tmp_path / "parts", "--host-tables", MERGED, steps=5)
    train(clicks, rows, tmp_path / "parts", "--resume", steps=9)
    train(clicks, rows, tmp_path / "parts", "--resume", "--host-tables", MERGED, "--checkpoint-every", "5", steps=14)
    expect_equal(tmp_path / "parts", tmp_path / "whole")
    metrics, outputs = [], []
    for flags in ([], ["--host-tables", MERGED]):
        common = [
            "--data",
            rows,
            "--checkpoint",
            tmp_path / "parts",
            "--batch",
            str(BATCH),
            "--progress",
            "none",
            *flags,
        ]
        call(clicks, "evaluate", *common, "--metrics-json", tmp_path / "metrics.json")
        metrics.append(json.loads((tmp_path / "metrics.json").read_text())["evaluation"]["metrics"])
        call(clicks, "predict", *common, "--out", tmp_path / "out.parquet")
        outputs.append((tmp_path / "out.parquet").read_bytes())
    assert metrics[0] == metrics[1]
    assert outputs[0] == outputs[1]


def fail(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 or "--help" in done.stderr, done.stderr
    return done.stderr


def test_what_cannot_be_is_refused(clicks: Path, rows: Path, tmp_path: Path) -> None:
    words = [clicks, "train", "--data", rows, "--batch", str(BATCH), "--progress", "none"]
    for wrong in ("c1", "c1=", "c1=0", "c1=-4", "=7", "c1=7x"):
        assert f"'{wrong}' is not of the form table=rows, as user=1000000" in fail(*words, "--host-tables", wrong)
    assert "'c1' is there twice" in fail(*words, "--host-tables", "c1=3,c1=4")
    assert "the model has no such table" in fail(*words, "--host-tables", "c9=4")
    ruled = build(Crosses(), tmp_path)
    refusal = fail(ruled, *words[1:], "--host-tables", "c2=4")
    assert "table 'c2' has rules about rows and its values in host memory" in refusal
    on_cpu = gr.compile(Clicks(), SCHEMA, output=tmp_path / "cpu", flags=draft()).binary
    assert "--host-tables" in fail(on_cpu, *words[1:], "--host-tables", "c1=4")
