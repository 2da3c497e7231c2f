"""Tables and parameters that training leaves as they were given."""

from __future__ import annotations

import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow.parquet as pq
import pytest
from compiled import assert_same, draft, read_tensors, run_both, tool
from towers import DIM, ROWS, SCHEMA, Towers, weights, write_rows

FROZEN = ("user", "item", "scale")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("frozen") / "train.parquet").parent


@pytest.fixture(scope="module")
def model(folder: Path) -> gr.CompiledModel:
    return gr.compile(Towers(), SCHEMA, output=folder / "towers", flags=draft())


@pytest.fixture(scope="module")
def frozen(folder: Path) -> gr.CompiledModel:
    return gr.compile(Towers(FROZEN), SCHEMA, output=folder / "frozen", flags=draft())


def test_what_is_frozen_stays(frozen: gr.CompiledModel, folder: Path, tmp_path: Path) -> None:
    rows = {"user": (np.array([3, 5]), np.full((2, DIM), 0.5, np.float32))}
    given = {"scale": np.array([2.0, 1, 1, 1]), **rows}
    frozen.train(folder / "train.parquet", epochs=2, init=given, checkpoint=tmp_path / "c", progress=False, batch=16)
    after = weights(frozen, tmp_path / "e", tmp_path / "c")
    assert after["scale"].tolist() == [2, 1, 1, 1]
    assert sorted(after["user.ids"].tolist()) == [3, 5] and (after["user.values"] == 0.5).all()
    assert after["item.ids"].size == 0  # no row came
    frozen.train(folder / "train.parquet", lr=0.0, init=given, checkpoint=tmp_path / "s", progress=False, batch=16)
    started = weights(frozen, tmp_path / "x", tmp_path / "s")
    assert not np.array_equal(after["head.weight"], started["head.weight"])
    tensors = next((tmp_path / "c").rglob("*.safetensors")).read_bytes()
    states = [name for name in read_tensors(tensors) if ".state" in name]
    assert states and not any(name.startswith(FROZEN) for name in states)


def test_unseen_ids_of_a_frozen_table_read_their_initial_value(
    model: gr.CompiledModel, frozen: gr.CompiledModel, folder: Path, tmp_path: Path
) -> None:
    """Its training is that of the same model whose tables, inserted, are never updated: at a rate of 0."""
    scores = []
    for one in (model, frozen):
        one.train(folder / "train.parquet", lr=0.0, checkpoint=tmp_path / "c", batch=ROWS, progress=False, seed=2)
        one.predict(folder / "train.parquet", tmp_path / "p.parquet", checkpoint=tmp_path / "c", progress=False)
        scores.append(pq.read_table(tmp_path / "p.parquet")["score"].to_numpy())
        for path in sorted((tmp_path / "c").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.parametrize("frozen_names", [("user",), ("item", "scale"), FROZEN])
@pytest.mark.parametrize("level", [0, 2])
def test_compiled_as_interpreted(frozen_names: tuple[str, ...], level: int, tmp_path: Path) -> None:
    gr.write_model(gr.record(Towers(frozen_names), SCHEMA), tmp_path / "model.genrec")
    runs = run_both(tmp_path / "model.genrec", tmp_path, level=level, rows=20)
    assert_same(runs)
    for name in frozen_names:
        kind = "parameters" if name == "scale" else "tables"
        first, last = (runs.interpreted[step][kind].get(name) for step in (0, -1))
        assert first == last


def test_a_frozen_table_is_merged_with_frozen_ones_only(folder: Path) -> None:
    class Three(gr.Model):
        def __init__(self) -> None:
            super().__init__(optimizer=gr.optim.Adam(0.1))
            self.tables = [gr.Table(name, dim=DIM, frozen=name != "b") for name in "abc"]

        def forward(self, batch: gr.Batch) -> None:
            x = gr.concat([table(batch.user) for table in self.tables])
            gr.loss.mse(x.row_sum(), batch.label)

    model = gr.compile(Three(), SCHEMA, output=folder / "three", flags=draft())
    plan = subprocess.run(
        [tool("genrec-compile"), model.model_file, "--explain"], capture_output=True, text=True, check=True
    ).stdout
    assert "3 logical tables in 2 stores" in plan
    assert [line.split(":")[0].strip() for line in plan.splitlines() if ", frozen" in line] == ["a", "c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounded": 3}, "table 't' is frozen: it takes no optimizer, and no rule"),
        ({"optimizer": gr.optim.SGD()}, "table 't' is frozen: it takes no optimizer"),
        ({"ttl": 3}, "frozen"),
        ({"admit_after": 3}, "frozen"),
    ],
)
def test_a_frozen_table_has_no_rules(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gr.Table("t", dim=2, frozen=True, **options)  # type: ignore[arg-type]


def test_a_loss_of_frozen_values_alone_is_refused(tmp_path: Path) -> None:
    class Nothing(gr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.user = gr.Table("user", dim=DIM, frozen=True)

        def forward(self, batch: gr.Batch) -> None:
            gr.loss.mean(self.user(batch.user).row_sum())

    with pytest.raises(gr.CompileError, match="depends on no parameter and no table that is trained"):
        gr.compile(Nothing(), SCHEMA, output=tmp_path / "nothing", flags=draft())
