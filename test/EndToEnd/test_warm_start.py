"""Training that starts from given values."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from towers import DIM, ROWS, SCHEMA, Towers, weights, write_rows

NAMES = ["head.bias", "head.weight", "item", "place.weight", "scale", "user"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("warm") / "train.parquet").parent


@pytest.fixture(scope="module")
def model(folder: Path) -> gr.CompiledModel:
    return gr.compile(Towers(), SCHEMA, output=folder / "towers", flags=draft())


@pytest.fixture(scope="module")
def trained(model: gr.CompiledModel, folder: Path) -> Path:
    """The folder of an export of a model that was trained; its checkpoint lies in `folder` / ck."""
    model.train(folder / "train.parquet", epochs=2, batch=16, checkpoint=folder / "ck", progress=False)
    model.export(folder / "export")
    return folder / "export"


def untrained(model: gr.CompiledModel, tmp_path: Path, data: Path, **options: object) -> tuple[gr.Run, dict]:
    """A run that changes nothing (its learning rate is 0), and the weights that it started from."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    run = model.train(data, checkpoint=folder / "c", lr=0.0, batch=ROWS, progress=False, seed=7, **options)
    return run, weights(model, folder / "e", folder / "c")


def by_id(all: dict[str, np.ndarray], table: str) -> dict[int, np.ndarray]:
    return dict(zip(all[f"{table}.ids"].tolist(), all[f"{table}.values"], strict=True))


@pytest.mark.parametrize("source", ["export", "ck", "export/parameters.safetensors"])
def test_everything_by_name(model: gr.CompiledModel, trained: Path, folder: Path, tmp_path: Path, source: str) -> None:
    run, started = untrained(model, tmp_path, folder / "train.parquet", init=folder / source)
    expected = weights(model, tmp_path / "x", folder / "ck")
    assert run.init is not None
    filled = sorted(one["name"] for one in run.init["filled"])
    tables = {"item", "user"} if "parameters" in source else set()
    assert filled == sorted(set(NAMES) - tables) and sorted(run.init["not_filled"]) == sorted(tables)
    assert run.init["unused"] == []
    for name in set(expected):
        if name.split(".")[0] not in tables:
            assert np.array_equal(started[name], expected[name]), name


def test_it_is_told_in_words_and_in_the_metrics(
    model: gr.CompiledModel, trained: Path, folder: Path, tmp_path: Path
) -> None:
    command = [
        str(model.binary), "train", "--data", folder / "train.parquet", "--init", f"item={trained}:user",
        "--metrics-json", tmp_path / "m.json", "--progress", "lines",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "starting from given values: item (12 rows)\n" in result.stdout
    assert "not given, so as they start: scale, place.weight, head.weight, head.bias, user\n" in result.stdout
    init = json.loads((tmp_path / "m.json").read_text())["config"]["init"]
    assert init["filled"] == [
        {"name": "item", "kind": "table", "rows": 12, "from": f"{trained}/tables.safetensors: 'user'"}
    ]


def test_one_by_one_from_every_format(model: gr.CompiledModel, trained: Path, folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    vectors, weight = rng.normal(size=(9, DIM)).astype(np.float32), rng.normal(size=(DIM, 1)).astype(np.float16)
    ids = np.arange(9)[::-1] * 1000 + 3
    np.save(tmp_path / "weight.npy", weight)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    pq.write_table(pa.table({"id": ids, "v": lists, "w": lists, "n": ids}), tmp_path / "v.parquet", row_group_size=4)
    places = {"row": pa.array([6, 1], pa.int32()), "v": pa.array(vectors[:2].tolist(), pa.list_(pa.float64()))}
    pq.write_table(pa.table(places), tmp_path / "places.parquet")
    run, started = untrained(
        model, tmp_path, folder / "train.parquet",
        init=[
            trained,
            {
                "item": (tmp_path / "v.parquet", ["id", "v"]), "user": vectors, "head.weight": tmp_path / "weight.npy",
                "place.weight": str(tmp_path / "places.parquet"), "head.bias": np.array([0.25]),
            },
        ],
    )  # fmt: skip
    plain = untrained(model, tmp_path, folder / "train.parquet")[1]
    rows = by_id(started, "item")
    for identifier, vector in zip(ids.tolist(), vectors, strict=True):
        assert np.array_equal(rows[identifier], vector)
    users = by_id(started, "user")
    assert all(np.array_equal(users[i], vectors[i]) for i in range(9))
    assert np.array_equal(started["head.weight"], weight.astype(np.float32)) and started["head.bias"].tolist() == [0.25]
    assert np.array_equal(started["place.weight"][[6, 1]], vectors[:2])
    others = [0, 2, 3, 4, 5, 7]
    assert np.array_equal(started["place.weight"][others], plain["place.weight"][others])
    assert run.init is not None and run.init["not_filled"] == []
    assert {one["name"]: one.get("rows") for one in run.init["filled"]} == {
        "item": 9, "user": 9, "head.weight": None, "place.weight": 2, "head.bias": None, "scale": None,
    }  # fmt: skip


def test_ids_beside_an_array(model: gr.CompiledModel, folder: Path, tmp_path: Path) -> None:
    ids, vectors = np.array([900, 5], np.uint16), np.arange(2.0 * DIM).reshape(2, DIM)
    _, started = untrained(model, tmp_path, folder / "train.parquet", init={"item": (ids, vectors)})
    rows = by_id(started, "item")
    assert rows[900].tolist() == vectors[0].tolist() and rows[5].tolist() == vectors[1].tolist()


def test_optimizer_states_start_anew(model: gr.CompiledModel, trained: Path, folder: Path, tmp_path: Path) -> None:
    """From a checkpoint and from its export, which has no states, a run goes the same way."""
    ends = []
    for source in ("ck", "export"):
        model.train(
            folder / "train.parquet", init=folder / source, checkpoint=tmp_path / source, progress=False, seed=3
        )
        ends.append(weights(model, tmp_path / f"e-{source}", tmp_path / source))
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_parquet_table_without_rows(model: gr.CompiledModel, folder: Path, tmp_path: Path) -> None:
    """As genrec-checkpoint exports a table that has none: its lists have no width."""
    vectors = {"id": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float32()))}
    pq.write_table(pa.table(vectors), tmp_path / "none.parquet")
    run, _ = untrained(model, tmp_path, folder / "train.parquet", init={"item": tmp_path / "none.parquet"})
    assert run.init is not None and [one["name"] for one in run.init["filled"]] == ["item"]


MISTAKES = {
    "missing": ({"item": "none.npy"}, "there is no file or folder 'none.npy'"),
    "unknown": ({"itm": "{v}"}, "the model has no table or parameter 'itm'; it has .* | did you mean 'item'?"),
    "shape": ({"head.weight": "{v}"}, r"v.npy is F32 \[3, 2\], parameter 'head.weight' is F32 \[4, 1\]"),
    "dim": ({"item": "{v}"}, r"v.npy is F32 \[3, 2\], table 'item' is F32 \[n, 4\]"),
    "type": ({"scale": np.arange(4)}, r"is I64 \[4\], parameter 'scale' is F32 \[4\]"),
    "range": ({"item": ([1 << 20], np.ones((1, 4)))}, "row 0: id 1048576 is outside of table 'item', whose ids are 0 "),
    "negative": ({"item": ([-1], np.ones((1, 4)))}, "id -1 is outside of table 'item'"),
    "place": (
        {"place.weight": ([8], np.ones((1, 4)))},
        "id 8 is outside of parameter 'place.weight', whose ids are 0 t",
    ),
    "twice": ({"item": ([3, 3], np.ones((2, 4)))}, "an id is there twice"),
    "count": ({"item": ([3], np.ones((2, 4)))}, r"is F64 \[2, 4\] by ids I64 \[1\], table 'item'"),
    "nan": ({"scale": np.array([1, 2, np.nan, 4])}, "value 2 is NaN"),
    "fortran": ({"item": "{f}"}, "is stored column by column .*\n.*numpy.ascontiguousarray"),
    "complex": ({"scale": "{c}"}, "has elements of type '<c8', which are not read"),
    "truncated": ({"scale": "{t}"}, r"is truncated: its \[4\] F32 take 16 bytes, it has 12"),
    "no_numpy": ({"scale": "{n}"}, "is no .npy array"),
    "columns": ({"item": "{p}"}, "has several columns of vectors .lists of floats.: a, b; it has 'id' int64"),
    "null": ({"item": ("{p}", "id,a")}, "row 1: column 'a' is null"),
    "ragged": ({"item": ("{p}", "id,b")}, "row 1: column 'b' has 1 numbers, rows before it have 2"),
    "not_a_name": ("{v}", "does not say which table or parameter it is for"),
    "neither": ("{d}", "is the folder of no export and of no checkpoint"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(model: gr.CompiledModel, folder: Path, tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "v.npy", np.zeros((3, 2), np.float32))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.zeros((3, 4), np.float32)))
    np.save(tmp_path / "c.npy", np.zeros(4, np.complex64))
    np.save(tmp_path / "t.npy", np.zeros(4, np.float32))
    whole = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(whole[:-4])
    (tmp_path / "n.npy").write_bytes(b"no array")
    vectors = {"id": [1, 2], "a": [[1.0, 2.0], None], "b": [[1.0, 2.0], [3.0]]}
    pq.write_table(pa.table(vectors), tmp_path / "p.parquet")
    paths = {letter: str(tmp_path / f"{letter}.npy") for letter in "vfctn"}
    paths |= {"p": str(tmp_path / "p.parquet"), "d": str(tmp_path)}

    def filled(part: object) -> object:
        if isinstance(part, str):
            return part.format(**paths)
        if isinstance(part, dict):
            return {key: filled(value) for key, value in part.items()}
        return (filled(part[0]), part[1]) if isinstance(part, tuple) and isinstance(part[0], str) else part

    init, message = MISTAKES[name]
    with pytest.raises(gr.RunError, match=message.split(" | ")[0]) as raised:
        model.train(folder / "train.parquet", init=filled(init), checkpoint=tmp_path / "c", progress=False)
    assert all(part in str(raised.value) for part in message.split(" | ")[1:])
