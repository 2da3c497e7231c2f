"""Every folder of the runtime and of the compiler includes only what is below it: the order is data here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]

# From the bottom up. A folder that is not listed here belongs to the listed folder it lies in. A folder includes its
# own files and those of folders before it in the list.
RUNTIME = [
    "genrec_rt",
    "genrec_rt/kernels/shared",
    "genrec_rt/kernels/cpu",
    "core",
    "comm",
    "comm_mpi",
    "kernels/cpu",
    "embedding",
    "genrec_rt/cuda",
    "core/cuda",
    "comm_nccl",
    "genrec_rt/kernels/cuda",
    "genrec_rt/kernels/cuda/tensor",
    "genrec_rt/kernels/cuda/attention",
    "kernels/cuda",
    "ranks/cuda",
    "embedding/cuda",
    "data",
    "ranks",
    "session",
    "checkpoint",
    "trainer",
    "main",
]

# Public headers directly in genrec_rt/ or genrec_rt/cuda/ that describe what a folder above holds; the others belong to
# the folder they are in.
HEADERS = {
    "core": ["batch.h"],
    "comm": ["comm.h", "forwarding_comm.h", "portions.h", "row_travel.h"],
    "embedding": ["device.h", "device_exchange.h", "step_clock.h", "store.h", "table_store.h", "table_view.h"],
    "embedding/cuda": [
        *("cuda/bucket_search.h", "cuda/cache_keys.h", "cuda/cache_shape.h", "cuda/cache_table.h"),
        *("cuda/cached_store.h", "cuda/key_table.h", "cuda/lowest_rows.h", "cuda/row_addresses.h", "cuda/store.h"),
    ],
    "data": ["data_file.h", "dataset.h"],
    "session": ["metrics.h", "session.h"],
    "checkpoint": ["checkpoint.h", "safetensors.h", "warm_start.h"],
    "trainer": ["trainer.h"],
}

# A folder of lib/ and its twin of include/genrec/ are one. Of the runtime, lib includes headers of genrec_rt itself
# alone.
LIB = [
    "Dialect/GenRec/IR",
    "Analysis",
    "Dialect/GenRec/Transforms",
    "Target/EmitC",
    "Dialect/GenRec/Step",
    "Conversion",  # Passes.h
    "Conversion/ArithToEmitC",
    "Conversion/RowKernelToEmitC",
    "Conversion/StepToRuntime",
    "Target/Cpp",
    "Report",
    "Interpreter",
    "Pipelines",
    "Model",
    "Fuzz",
    "Plugins",
    "",  # include/genrec/*.h: what registers everything
]

GENERATED = ["genrec/Version.h"]

INCLUDE = re.compile(r'^\s*#?\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(folder: str, order: list[str]) -> str:
    """The listed folder that `folder` is or lies in."""
    room = folder
    while room not in order:
        if "/" not in room:
            raise AssertionError(f"'{folder}' is not in the order of folders: add it to {Path(__file__).name}")
        room = room.rpartition("/")[0]
    return room


def runtime_room(path: str) -> str:
    """The room of a file, by its path in runtime/ or, of a public header, from genrec_rt/ on."""
    described = (room for room, headers in HEADERS.items() if path in [f"genrec_rt/{name}" for name in headers])
    return next(described, None) or room_of(path.rpartition("/")[0], RUNTIME)


def lib_room(path: str) -> str:
    return room_of(path.rpartition("/")[0], LIB)


def files(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Files below a folder, and what each includes."""
    for path in sorted(root.rglob("*")):
        if path.suffix in (".h", ".cpp", ".cu", ".td", ".inc"):
            yield path.relative_to(root).as_posix(), INCLUDE.findall(path.read_text())


def beside(path: str, include: str) -> str:
    """The path that a relative include means."""
    parts: list[str] = path.split("/")[:-1]
    for part in include.split("/"):
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def runtime_edges() -> Iterator[tuple[str, str, str, str]]:
    for root in (SOURCE / "runtime" / "include", SOURCE / "runtime"):
        for path, includes in files(root):
            if path.startswith("include/"):
                continue
            for include in includes:
                to = include if include.startswith("genrec_rt/") else beside(path, include)
                yield path, include, runtime_room(path), runtime_room(to)


def lib_edges() -> Iterator[tuple[str, str, str, str]]:
    for root in (SOURCE / "lib", SOURCE / "include" / "genrec"):
        for path, includes in files(root):
            for include in includes:
                if include.startswith(("mlir/", "llvm/", "genrec_rt/")) or include in GENERATED:
                    continue
                to = include.removeprefix("genrec/") if include.startswith("genrec/") else beside(path, include)
                yield path, include, lib_room(path), lib_room(to)


@pytest.mark.parametrize(("edges", "order"), [(runtime_edges, RUNTIME), (lib_edges, LIB)], ids=["runtime", "lib"])
def test_folders_include_what_is_below_them(edges, order: list[str]) -> None:
    found = list(edges())
    assert len(found) > 300
    upwards = [
        f"{path} ('{of}') includes {include} of '{to}', which is above it"
        for path, include, of, to in found
        if order.index(to) > order.index(of)
    ]
    assert not upwards, "\n".join(upwards)


def test_targets_do_not_include_each_other() -> None:
    """What code for both includes is in kernels/shared."""

    def target(room: str) -> str:
        return next((part for part in room.split("/") if part in ("cpu", "cuda")), "any")

    edges = [(path, include, {target(of), target(to)}) for path, include, of, to in runtime_edges()]
    for name in ("cpu", "cuda"):
        assert [path for path, _, targets in edges if targets == {name, "any"}]
    assert [(path, include) for path, include, targets in edges if targets == {"cpu", "cuda"}] == []


def test_stores_are_seen_through_their_interface() -> None:
    """Session, checkpoint, trainer and data know TableStore (table_store.h) and no implementation of it."""
    implementations = ["genrec_rt/store.h", "genrec_rt/cuda/store.h", "genrec_rt/cuda/cached_store.h"]
    above = RUNTIME[RUNTIME.index("data") :]
    found = [(path, include) for path, include, of, _ in runtime_edges() if include in implementations and of in above]
    assert found == []
    assert [include for _, include, of, _ in runtime_edges() if include == "genrec_rt/table_store.h"]


def test_lib_includes_the_foot_of_the_runtime() -> None:
    found = [
        (path, include)
        for root in (SOURCE / "lib", SOURCE / "include" / "genrec")
        for path, includes in files(root)
        for include in includes
        if include.startswith("genrec_rt/")
    ]
    assert found
    assert [entry for entry in found if runtime_room(entry[1]) != "genrec_rt"] == []


def test_every_listed_name_is_there() -> None:
    """A list that names what has moved away checks less than it says."""
    runtime, lib = SOURCE / "runtime", SOURCE / "lib"
    for room in RUNTIME:
        assert (runtime / "include" / room).is_dir() or (runtime / room).is_dir(), room
    for name in (name for names in HEADERS.values() for name in names):
        assert (runtime / "include" / "genrec_rt" / name).is_file(), name
    for room in LIB:
        assert (lib / room).is_dir() or (SOURCE / "include" / "genrec" / room).is_dir(), room
