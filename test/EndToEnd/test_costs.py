"""What --explain and profiles say a row kernel must touch is what its emitted code touches.

The emitted C++ is built by clang with a call at every load and store (Inputs/memory_counter.cpp), and trains one step.
The bytes that each kernel read and wrote are compared with its costs; nothing of the plan is used to count them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import pytest
from compiled import BUILD, ROOT, read_toolchain

# Descriptors of domains, pointers to columns and buffers: read once per chunk.
DESCRIPTOR_BYTES = 1024
PIECE_BYTES = 64  # the same, of a kernel that is called for pieces of a chunk
# Masked and long vectors would not be seen, calls of memcpy neither: loops stay as they are written.
COUNTED = [
    *("-O1", "-fno-vectorize", "-fno-slp-vectorize", "-fno-builtin"),
    *("-mllvm", "-force-vector-width=1", "-mllvm", "-force-vector-interleave=1"),
    "-fsanitize-coverage=func,trace-loads,trace-stores",
]


def call(*command: str | Path, **options: Any) -> str:
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=600, check=False, **options
    )
    assert result.returncode == 0, result.stderr + result.stdout
    return result.stdout


def request_ranking() -> gr.Model:
    """The example with three levels of lists: requests, impressions, tags."""
    place = ROOT / "examples" / "request_ranking" / "model.py"
    spec = importlib.util.spec_from_file_location("request_ranking_model", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Ranker()


def build_counted(cpp: Path, folder: Path) -> Path:
    """The emitted unit with its loads and stores counted, linked as genrec-compile links it."""
    toolchain = read_toolchain()
    compiler = toolchain["compiler"]
    includes = [f"-I{path}" for path in toolchain["include"]]
    base = ["-std=c++20", "-march=x86-64-v3", "-ffp-contract=off", "-DNDEBUG", "-w"]
    call(compiler, *base, *COUNTED, *includes, "-c", cpp, "-o", folder / "model.o")
    counter = ROOT / "test" / "EndToEnd" / "Inputs" / "memory_counter.cpp"
    call(compiler, "-std=c++20", "-O2", "-c", counter, "-o", folder / "counter.o")
    paths = [f"-Wl,-rpath,{path}" for path in toolchain["rpath"]]
    call(
        compiler, folder / "model.o", folder / "counter.o", *toolchain["link"], "-Wl,--wrap=genrec_rt_enter",
        *toolchain["libraries"], *paths, "-o", folder / "counted",
    )  # fmt: skip
    return folder / "counted"


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> dict[str, Any]:
    """The plan, the profile of one step, and the bytes counted by op."""
    folder = tmp_path_factory.mktemp("costs")
    os.environ["GENREC_BIN"] = str(BUILD / "bin")
    call(BUILD / "bin" / "genrec-datagen", "--kind", "requests", "--out", folder, "--users", "150", "--seed", "1")
    schema = gr.Schema.from_parquet(folder / "train.parquet")
    model = gr.compile(request_ranking(), schema, output=folder / "model", keep_cpp=folder / "model.cpp")
    plan = json.loads(call(BUILD / "bin" / "genrec-compile", model.model_file, "--explain=json"))
    program = build_counted(folder / "model.cpp", folder)
    environment = os.environ | {"GENREC_MEMORY_COUNTS": str(folder / "counts.json")}
    # One batch of all rows: the copy stage of a second would run ahead. With --check-finite every op runs once for all
    # rows, and is entered so.
    call(
        program, "train", "--data", folder / "train.parquet", "--batch", "100000", "--epochs", "1", "--threads", "1",
        "--check-finite", "--profile", folder / "profile", "--progress", "none", env=environment,
    )  # fmt: skip
    profile = json.loads((folder / "profile" / "profile.json").read_text())
    counts = json.loads((folder / "counts.json").read_text())
    train = next(one for one in plan["programs"] if one["name"] == "train")
    # Ops are numbered in their order, those of the train program first.
    nothing = {"read": 0, "written": 0}
    return {
        "plan": train,
        "profile": profile["ops"],
        "counts": [counts.get(str(i), nothing) for i in range(len(profile["ops"]))],
    }


def test_launches_are_those_that_were_predicted(counted):
    predicted, ran = counted["plan"]["ops"], counted["profile"]
    assert counted["plan"]["launches"] == len(predicted) == len(ran)
    assert [op["from"] for op in predicted] == [op["what"] for op in ran]
    assert all(op["calls_per_step"] == 1 for op in ran)


def test_row_kernels_touch_what_was_predicted(counted):
    """Picked rows may repeat, so they add at most what is predicted; all else is exact."""
    checked = 0
    for planned, ran, count in zip(counted["plan"]["ops"], counted["profile"], counted["counts"], strict=True):
        if planned["op"] != "row_kernel":
            continue
        touched = count["read"] + count["written"]
        picked = ran["rows"] * planned["gathered_bytes"] / max(planned["rows"], 1)
        least = ran["bytes"] - picked
        # What a select or a dropout drops need not be read.
        drops = any(word in ran["name"] + ran["what"] for word in ("select", "dropout", "where"))
        # A kernel that adds up sums is called for 32 rows at a time: each call reads its arguments.
        pieces = ran["rows"] / 32 if "reduce_rows" in ran["what"] else 0
        assert touched <= 1.02 * ran["bytes"] + DESCRIPTOR_BYTES + PIECE_BYTES * pieces, (ran, count)
        assert touched >= (0.5 if drops else 0.95) * least - DESCRIPTOR_BYTES, (ran, count)
        checked += ran["bytes"] > 10 * DESCRIPTOR_BYTES
    assert checked >= 5, "no kernel was large enough to tell"
