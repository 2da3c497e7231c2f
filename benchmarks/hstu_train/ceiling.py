"""How fast this machine could train this model, from what it was measured to do.

Four kinds of work, each at the best rate that anything at hand reached on this machine in this run, one after another:

* matrix products of the linear layers, forward and backward, at the rate measured for their shapes;
* attention: its products over causal pairs, at the rate of batched products (of whole matrices, one per sequence), or
  of our own kernels that do all of it at once, where that is better;
* sampled softmax: rows of the item table read, and rows of its gradient added to, at the rate of a table in the cache;
* everything else: the bytes that must go through memory between those, at the rate of copying arrays of 32 MiB, which a
  large cache may hold as it may hold the step's; with arrays of 256 MiB instead the ceiling is lower.

Activations, exponentials, random numbers and bookkeeping count as free. Nothing reaches the ceiling; it says how much
of what can be had was had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
BLOCKS, WIDTH, INNER, POSITIONS, NEGATIVES = 2, 50, 200, 211, 128
FLOAT = 4  # bytes
STRICT_COPY, MEMORY_COPY = "32 MiB", "256 MiB"

# Floats per token that go through memory outside of products, attention and sampled rows, when everything between
# those is fused into one kernel: (what, times per step, floats read, floats written).
PER_TOKEN: tuple[tuple[str, int, int, int], ...] = (
    ("item and position vectors to x and its norm", 1, WIDTH, 2 * WIDTH),
    ("x to its norm, of later blocks", BLOCKS - 1, WIDTH, WIDTH),
    ("uvqk before its activation, kept for backward", BLOCKS, 0, INNER),
    ("gate: u and attention to o", BLOCKS, 2 * WIDTH, WIDTH),
    ("residual added by the output product", BLOCKS, WIDTH, 0),
    ("loss: x to its gradient", 1, WIDTH, WIDTH),
    ("gradient of the gate: do, u and attention to du and da", BLOCKS, 3 * WIDTH, 2 * WIDTH),
    ("gradient of the activation: duvqk and what was kept", BLOCKS, 2 * INNER, INNER),
    ("gradient of the norm: dn, norm and residual to dx", BLOCKS, 3 * WIDTH, WIDTH),
    ("dx to item and position gradients", 1, WIDTH, 0),
)
# The same per item of the catalogue, all of which a step of this size draws.
PER_ITEM: tuple[tuple[str, int, int, int], ...] = (
    ("item vectors normalised", 1, WIDTH, WIDTH),
    ("gradient of that", 1, 3 * WIDTH, WIDTH),
    ("AdamW: value, two moments and gradient", 1, 4 * WIDTH, 3 * WIDTH),
)
PARAMETERS = POSITIONS * WIDTH + BLOCKS * (WIDTH * INNER + WIDTH * WIDTH + WIDTH + 2 * POSITIONS - 1)


@dataclass(frozen=True)
class Rate:
    """The best measured: `per_second` FLOPs, rows or bytes, and by what."""

    per_second: float
    by: str


Rates = dict[tuple[str, str], Rate]


def best(lines: Iterable[str]) -> Rates:
    """The best rate of each kind and shape, from lines as ceiling.cpp prints them."""
    result: Rates = {}
    for line in lines:
        one = json.loads(line)
        key = one["kind"], one["shape"]
        rate = one["work"] / one["seconds"]
        if key not in result or rate > result[key].per_second:
            result[key] = Rate(rate, one["by"])
    return result


def build(build_folder: Path, out: Path) -> Path:
    """Compiles ceiling.cpp with the compiler and flags of compiled models; returns the program."""
    toolchain = json.loads((build_folder / "share" / "genrec" / "toolchain.json").read_text())
    program = out / "ceiling"
    command = [
        toolchain["compiler"], *toolchain["compile"], *(f"-I{folder}" for folder in toolchain["include"]),
        str(FOLDER / "ceiling.cpp"), "-o", str(program), *toolchain["link"], *toolchain["libraries"], "-ldnnl", "-ldl",
        *(f"-Wl,-rpath,{folder}" for folder in toolchain["rpath"]),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"hstu_train: error: ceiling.cpp could not be compiled\n{result.stderr}")
    return program


def measure(
    build_folder: Path, out: Path, threads: int, items: int, lengths: Sequence[int], torch_python: str | None
) -> Rates:
    """All rates, for the shapes of a batch of sequences of `lengths`. PyTorch's products take part where there is a
    Python that has it.
    """
    texts = [str(length) for length in lengths]
    sizes = [str(threads), str(WIDTH), str(INNER)]
    commands = [
        [str(build(build_folder, out)), *sizes, str(items), str(NEGATIVES), *texts],
        [sys.executable, str(FOLDER / "products.py"), "numpy", *sizes, *texts],
    ]
    if torch_python:
        commands.append([torch_python, str(FOLDER / "products.py"), "torch", *sizes, *texts])
    lines: list[str] = []
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"hstu_train: error: {Path(command[0]).name} failed\n{result.stderr}")
        lines += result.stdout.splitlines()
    return best(lines)


def causal_pairs(lengths: np.ndarray) -> int:
    """Pairs of a query and a key that it sees."""
    long = lengths.astype(np.int64)
    return int((long * (long + 1) // 2).sum())


def count_products(tokens: float, pairs: float) -> dict[str, float]:
    """FLOPs of a step: of the linear layers, and of attention over `pairs`, forward (2 products) and backward (4)."""
    return {
        "linear": 3 * BLOCKS * 2 * tokens * (WIDTH * INNER + WIDTH * WIDTH),
        "attention": 6 * BLOCKS * 2 * WIDTH * pairs,
    }


def _moved(entries: tuple[tuple[str, int, int, int], ...]) -> float:
    return FLOAT * sum(times * (read + written) for _, times, read, written in entries)


def seconds(rates: Rates, tokens: float, pairs: float, items: int, copy: str = STRICT_COPY) -> dict[str, float]:
    """The least time of a step of `tokens` events and `pairs` causal pairs, by kind of work; `copy` is the size of the
    arrays whose copying counts.
    """
    copied = rates["copy", copy].per_second
    linear = sum(
        BLOCKS * 2 * tokens * WIDTH * n / rates["product", f"{name}{part}"].per_second
        for name, n in (("uvqk", INNER), ("out", WIDTH))
        for part in ("", " dx", " dw")
    )
    product = 2 * WIDTH * pairs
    attention = sum(
        2 * BLOCKS * product / rates["pairs", shape].per_second for shape in ("scores", "values", "transposed")
    )
    # Backward needs the scores again: computed again, or written by forward and read; whichever takes less time.
    attention += BLOCKS * min(product / rates["pairs", "scores"].per_second, 2 * FLOAT * pairs / copied)
    # Kernels that do all of attention at once may beat single products.
    fused = 2 * product / rates["pairs", "forward"].per_second + 4 * product / rates["pairs", "backward"].per_second
    attention = min(attention, BLOCKS * fused)
    drawn = tokens * (NEGATIVES + 1)
    sampled = drawn / rates["rows", "read"].per_second + drawn / rates["rows", "add"].per_second
    moved = tokens * _moved(PER_TOKEN) + items * _moved(PER_ITEM) + PARAMETERS * FLOAT * 7
    return {"linear": linear, "attention": attention, "sampled rows": sampled, "other memory": moved / copied}
