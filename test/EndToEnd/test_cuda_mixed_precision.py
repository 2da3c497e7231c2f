"""Models whose products round their factors to bfloat16, and products through cuBLASLt, on the emulated device.

A bound for mixed precision: sums on the two targets differ in their order, and a factor that is rounded from another
float may be another bfloat16, 2^-8 of it away (docs/testing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pytest
from compiled import call, compile_with_nvcc, draft, require_emulator, tool
from genrec import nn
from test_cuda_models import CATEGORIES, COUNTS, SCHEMA, TARGETS, make_retrieval, tensors, train, write_rows
from test_cuda_steps import run

WIDTH, HIDDEN = 32, 64
NEAR = 4e-3


class WideClicks(gr.Model):
    """A DLRM with layers that are wide enough for cuBLASLt, of which one has an odd size."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.005))
        self.tables = [gr.Table(f"c{k}", dim=WIDTH, id_bits=20, init=gr.init.normal(0.3)) for k in range(CATEGORIES)]
        self.bottom = nn.MLP([COUNTS, HIDDEN, WIDTH], final="relu")
        self.top = nn.MLP([WIDTH * (CATEGORIES + 1) + CATEGORIES * (CATEGORIES + 1) // 2, HIDDEN + 1, HIDDEN, 1])

    def forward(self, batch: gr.Batch) -> None:
        counts = [gr.log1p(gr.clip(gr.fill_missing(batch[f"i{k}"], 0.0), low=0.0)) for k in range(COUNTS)]
        dense = self.bottom(gr.concat(counts))
        vectors = [table(batch[f"c{k}"]) for k, table in enumerate(self.tables)]
        logit = self.top(gr.concat(dense, *vectors, nn.dot_interaction(dense, *vectors))).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, name="click")
        gr.output(probability=nn.sigmoid(logit))


@pytest.fixture(scope="module", autouse=True)
def emulator() -> None:
    require_emulator()


def compile_for(make: Callable[[], gr.Model], folder: Path, target: str, **options: Any) -> Path:
    name = "-".join([target, *options])
    return gr.compile(make(), SCHEMA, target=target, output=folder / name, flags=draft(), **options).binary


def losses_of(report: dict[str, Any]) -> list[float]:
    return [step["loss"] for step in report["step_losses"]]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Binaries by target, and by whether products are mixed; data."""
    folder = tmp_path_factory.mktemp("wide")
    binaries = {f"{target}-mixed": compile_for(WideClicks, folder, target, mixed_precision=True) for target in TARGETS}
    binaries["cuda-emulated"] = compile_for(WideClicks, folder, "cuda-emulated")
    return binaries | {"data": write_rows(folder / "rows.parquet")}


def test_a_dlrm_trains_as_on_the_cpu(wide: dict[str, Path], tmp_path: Path) -> None:
    """Losses, parameters and rows agree; a checkpoint goes from one target to the other, and from float32."""
    losses, kept = [], []
    for target in TARGETS:
        report = train(wide[f"{target}-mixed"], wide["data"], tmp_path / target)
        losses.append(losses_of(report))
        kept.append(tensors(tmp_path / target))
    np.testing.assert_allclose(losses[1], losses[0], rtol=NEAR)
    assert kept[0].keys() == kept[1].keys()
    for name, values in kept[0].items():
        np.testing.assert_allclose(kept[1][name], values, rtol=NEAR, atol=NEAR, err_msg=name)
    # The flag reaches the device: float32 has other losses, by more than its own rounding.
    exact = losses_of(train(wide["cuda-emulated"], wide["data"], tmp_path / "exact"))
    np.testing.assert_allclose(losses[1], exact, rtol=0.02)
    assert np.abs(np.array(losses[1]) / exact - 1).max() > 2e-5
    train(wide["cpu-mixed"], wide["data"], tmp_path / "exact", "--resume", steps=9)


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(wide: dict[str, Path], tmp_path: Path) -> None:
    for name in ("cuda-emulated-mixed", "cuda-emulated"):
        train(wide[name], wide["data"], tmp_path / f"{name}.whole")
        train(wide[name], wide["data"], tmp_path / f"{name}.halves", steps=3)
        train(wide[name], wide["data"], tmp_path / f"{name}.halves", "--resume")
        whole, halves = tensors(tmp_path / f"{name}.whole"), tensors(tmp_path / f"{name}.halves")
        assert whole.keys() == halves.keys()
        assert all((whole[key] == halves[key]).all() for key in whole), name


def test_cublaslt_and_tiles_agree(wide: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They add in another order."""
    for name, near in (("cuda-emulated", 1e-5), ("cuda-emulated-mixed", NEAR)):
        library, tiles = tmp_path / f"{name}.library", tmp_path / f"{name}.tiles"
        losses = losses_of(train(wide[name], wide["data"], library))
        with monkeypatch.context() as without:
            without.setenv("GENREC_CUBLASLT_LIBRARY", "none")
            np.testing.assert_allclose(losses, losses_of(train(wide[name], wide["data"], tiles)), rtol=near)
        left, right = tensors(library), tensors(tiles)
        for key, values in right.items():
            np.testing.assert_allclose(left[key], values, rtol=near, atol=near / 10, err_msg=key)
        assert any((left[key] != right[key]).any() for key in right), "the same bits: were both computed by tiles?"


def test_steps_with_products_are_captured_and_allocate_nothing(wide: dict[str, Path], tmp_path: Path) -> None:
    """All ids are known after an epoch of 4 steps, and the steps of all slots are captured by the tenth."""
    binary, data = wide["cuda-emulated-mixed"], wide["data"]
    few = run(binary, data, tmp_path / "few.json", steps=10)["device"]
    more = run(binary, data, tmp_path / "more.json", steps=18)["device"]
    assert more["not_captured"] == []
    assert more["steps_captured"] == few["steps_captured"] > 0
    assert more["captured_steps_launched"] - few["captured_steps_launched"] == 8
    assert more["allocations"] == few["allocations"]


def expect_near_gradients(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], near: float) -> None:
    """Of Adam's first moments after one step. A ReLU near zero may go the other way, and a column with it, so the
    median counts. Biases of keys have gradients of 0, up to rounding."""
    names = [name for name in expected if name.endswith(".state0") and ".key.bias" not in name]
    assert names
    for name in names:
        apart = np.median(np.abs(actual[name] - expected[name]))
        assert apart <= near * np.sqrt(np.mean(np.square(expected[name]))), name


@pytest.mark.parametrize(
    ("name", "model", "options", "near", "width"),
    [
        ("hstu_retrieval", "Retrieval", {"time_bias": True}, 2e-3, 50),
        ("hstu_retrieval", "Retrieval", {"time_bias": True}, 2e-3, 32),
        ("sasrec", "SASRec", {}, 0.05, 50),
    ],  # the latter has ReLUs
)
def test_attention_trains_as_on_the_cpu(
    name: str, model: str, options: dict[str, Any], near: float, width: int, tmp_path: Path
) -> None:
    """HSTU and SASRec: attention of bfloat16, on tensor cores' instructions; of 32 columns, rounded before."""
    mixed = {"mixed_precision": True}
    made = make_retrieval(name, model, tmp_path, compile_options=mixed, constants={"WIDTH": width}, **options)
    losses, kept = [], []
    for target in TARGETS:
        losses.append(losses_of(train(made.binaries[target], made.data, tmp_path / f"{target}.checkpoint", steps=4)))
        train(made.binaries[target], made.data, tmp_path / f"{target}.first", steps=1)
        kept.append(tensors(tmp_path / f"{target}.first"))
    np.testing.assert_allclose(losses[1], losses[0], rtol=NEAR)
    expect_near_gradients(kept[1], kept[0], near)


def test_nvcc_compiles_the_units(wide: dict[str, Path], tmp_path: Path) -> None:
    made = make_retrieval("hstu_retrieval", "Retrieval", tmp_path, targets=("cpu",), time_bias=True)
    for name, binary in (("clicks", wide["cpu-mixed"]), ("hstu", made.binaries["cpu"])):
        source = tmp_path / f"{name}.cu"
        call(
            tool("genrec-compile"), f"{binary}.genrec", "--target=cuda", "--mixed-precision", "--emit=cpp", "-o", source
        )
        compile_with_nvcc(source)
