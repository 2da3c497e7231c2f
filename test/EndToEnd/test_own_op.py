"""An op from outside, examples/own_op: its plugin in compiled models and in Python."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import genrec as gr
import numpy as np
import polars as pl
import pytest
from compiled import BUILD, ROOT, assert_same, call, compile_with_nvcc, draft, require_emulator, run_both, tool
from genrec import plugins

PLUGIN = BUILD / "lib" / "own_op.so"
FLAG = f"--plugin={PLUGIN}"


@pytest.fixture
def own(monkeypatch) -> ModuleType:
    """The example's module, with its plugin loaded for one test."""
    monkeypatch.setenv("GENREC_BIN", str(BUILD / "bin"))
    monkeypatch.setattr(plugins, "loaded", [])
    spec = importlib.util.spec_from_file_location("own", ROOT / "examples" / "own_op" / "own.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_ranker(own: ModuleType) -> gr.Model:
    class Ranker(gr.Model):
        def __init__(self) -> None:
            self.item = gr.Table("item", dim=6)
            self.cross = own.GatedCrossNetwork(7, layers=2)
            self.score = gr.nn.Linear(7, 1)

        def forward(self, batch: gr.Batch) -> None:
            x = gr.concat(self.item(batch.item), batch.price)
            score = self.score(self.cross(x)).squeeze()
            gr.loss.bce_with_logits(score, batch.clicked)
            gr.output(score=score)

    return Ranker()


def write_rows(path: Path) -> Path:
    random = np.random.default_rng(3)
    item, price = random.integers(0, 20, 400), random.normal(size=400)
    clicked = (item % 2 == 0) ^ (price > 0)
    pl.DataFrame({"item": item, "price": price.astype(np.float32), "clicked": clicked}).write_parquet(path)
    return path


@pytest.mark.parametrize("level", [0, 2])
def test_compiled_as_interpreted(level: int, tmp_path: Path) -> None:
    """Losses, parameters and outputs agree after every step; 100 rows are two chunks of the kernel."""
    assert_same(run_both(ROOT / "test/Plugins/own-op.mlir", tmp_path, level=level, rows=100, flags=[FLAG]))


def test_a_model_in_python_trains(own: ModuleType, tmp_path: Path) -> None:
    """The binary of a model with the op trains as the interpreter does, learns, and profiles the op by its name."""
    gr.load_plugin(PLUGIN)
    data = write_rows(tmp_path / "rows.parquet")
    model = gr.compile(make_ranker(own), gr.Schema.from_parquet(data), output=tmp_path / "ranker")
    assert_same(run_both(model.model_file, tmp_path, flags=[FLAG]))
    run = model.train(data, epochs=40, batch=100, seed=1, lr=0.02, progress=False)
    losses = [epoch["loss"] for epoch in run.history]
    assert losses[-1] < 0.5 * losses[0], losses
    profile = tmp_path / "profile"
    call(model.binary, "train", "--data", data, "--batch", "100", "--epochs", "1", "--profile", profile)
    assert "gated_cross" in (profile / "profile.json").read_text()


@pytest.mark.parametrize("seed", [1, 2])
def test_on_a_device(own: ModuleType, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulated device accuses nothing in the op's kernel, and losses are the CPU's."""
    require_emulator()
    monkeypatch.setenv("GENREC_SIMT_SEED", str(seed))
    gr.load_plugin(PLUGIN)
    data = write_rows(tmp_path / "rows.parquet")
    losses = {}
    for target in ("cpu", "cuda-emulated"):
        schema = gr.Schema.from_parquet(data)
        model = gr.compile(make_ranker(own), schema, target=target, output=tmp_path / target, flags=draft())
        run = model.train(data, epochs=3, batch=100, seed=1, lr=0.02, progress=False)
        losses[target] = [epoch["loss"] for epoch in run.history]
    assert losses["cuda-emulated"] == pytest.approx(losses["cpu"], rel=1e-5)


def test_nvcc_compiles_the_kernel_for_a_device(tmp_path: Path) -> None:
    unit = tmp_path / "unit.cu"
    call(tool("genrec-compile"), ROOT / "test/Plugins/own-op.mlir", FLAG, "--target=cuda", "--emit=cpp", "-o", unit)
    compile_with_nvcc(unit, f"-I{ROOT}/examples/own_op/include")


def test_without_the_plugin(own: ModuleType, tmp_path: Path) -> None:
    """The error is at the line that recorded the op, and says what to give."""
    data = write_rows(tmp_path / "rows.parquet")
    with pytest.raises(gr.CompileError, match=r"own\.py:\d+.*\n?.*own\.gated_cross.*--plugin"):
        gr.compile(make_ranker(own), gr.Schema.from_parquet(data), output=tmp_path / "ranker")
    with pytest.raises(gr.CompileError, match="there is no plugin 'nowhere.so'"):
        gr.load_plugin("nowhere.so")


def test_binaries_of_a_random_model() -> None:
    """Binaries of a random model with the op agree with the interpreter at -O0 and -O2, and on the emulated device."""
    assert "1 seeds agree, 0 disagree" in call(tool("genrec-fuzz"), FLAG, "--compiled", "--seeds", "1..1")
    driver = BUILD / "bin" / "model-driver-emulated"
    if driver.exists():
        emulated = ["--target=cuda-emulated", f"--toolchain={BUILD}/share/genrec/toolchain.json", f"--driver={driver}"]
        assert "1 seeds agree, 0 disagree" in call(tool("genrec-fuzz"), FLAG, *emulated, "--seeds", "1..1")


def test_a_project_of_its_own(tmp_path: Path) -> None:
    """The folder also builds by itself, against genrec's headers and generated files."""
    cached = re.findall(r"^(CMAKE_C_COMPILER|CMAKE_CXX_COMPILER|MLIR_DIR):.*?=(.*)$", read_cache(), re.MULTILINE)
    settings = [f"-D{name}={value}" for name, value in [*cached, ("GENREC_BINARY_DIR", BUILD)]]
    call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "own_op", "-B", tmp_path, *settings)
    # Compiling it a second time takes long; that it finds what it is made of does not.
    call("ninja", "-C", tmp_path, "OwnDialect.h.inc", "OwnOps.h.inc")
    assert "GatedCrossOp" in (tmp_path / "OwnOps.h.inc").read_text()


def read_cache() -> str:
    return (BUILD / "CMakeCache.txt").read_text()
