"""Rates of the matrix products of one model by NumPy (OpenBLAS) or PyTorch (MKL), in the form that ceiling.cpp prints.

python products.py numpy|torch <threads> <width> <inner> <length> [<length> …]
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

SECONDS_PER_MEASUREMENT = 0.4
FEWEST_RUNS = 5


def measure(kind: str, shape: str, by: str, work: float, body: Callable[[], object]) -> None:
    """Runs `body` for a while and prints its shortest run."""
    body()
    times: list[float] = []
    while len(times) < FEWEST_RUNS or sum(times) < SECONDS_PER_MEASUREMENT:
        begin = time.perf_counter()
        body()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"kind": kind, "shape": shape, "by": by, "seconds": min(times), "work": work}), flush=True)


def numpy_products(width: int, inner: int, lengths: list[int]) -> None:
    """The three products of each linear layer over all tokens."""
    import numpy as np

    tokens = sum(lengths)
    random = np.random.default_rng(1)
    for name, k, n in (("uvqk", width, inner), ("out", width, width)):
        x, w, y = (random.random(shape, np.float32) for shape in ((tokens, k), (k, n), (tokens, n)))
        dx, dw = np.empty_like(x), np.empty_like(w)
        work = 2.0 * tokens * k * n
        measure("product", name, "NumPy", work, lambda x=x, w=w, y=y: np.matmul(x, w, out=y))
        measure("product", f"{name} dx", "NumPy", work, lambda y=y, w=w, dx=dx: np.matmul(y, w.T, out=dx))
        measure("product", f"{name} dw", "NumPy", work, lambda x=x, y=y, dw=dw: np.matmul(x.T, y, out=dw))


def torch_products(width: int, inner: int, lengths: list[int], threads: int) -> None:
    """The same, and attention's products as one batch padded to the longest sequence."""
    import torch

    torch.set_num_threads(threads)
    tokens, longest = sum(lengths), max(lengths)
    for name, k, n in (("uvqk", width, inner), ("out", width, width)):
        x, w, y = torch.rand(tokens, k), torch.rand(k, n), torch.rand(tokens, n)
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        work = 2.0 * tokens * k * n
        measure("product", name, "PyTorch", work, lambda x=x, w=w, y=y: torch.mm(x, w, out=y))
        measure("product", f"{name} dx", "PyTorch", work, lambda y=y, w=w, dx=dx: torch.mm(y, w.T, out=dx))
        measure("product", f"{name} dw", "PyTorch", work, lambda x=x, y=y, dw=dw: torch.mm(x.T, y, out=dw))
    q, v = torch.rand(len(lengths), longest, width), torch.rand(len(lengths), longest, width)
    a, out = torch.rand(len(lengths), longest, longest), torch.empty(len(lengths), longest, width)
    work = 2.0 * len(lengths) * longest**2 * width
    measure("pairs", "scores", "PyTorch", work, lambda: torch.bmm(q, v.transpose(1, 2), out=a))
    measure("pairs", "values", "PyTorch", work, lambda: torch.bmm(a, v, out=out))
    measure("pairs", "transposed", "PyTorch", work, lambda: torch.bmm(a.transpose(1, 2), v, out=out))


def main() -> None:
    """Command line."""
    library, threads, width, inner, *lengths = sys.argv[1:]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads
    sizes = int(width), int(inner), [int(length) for length in lengths]
    if library == "torch":
        torch_products(*sizes, int(threads))
    else:
        numpy_products(*sizes)


if __name__ == "__main__":
    main()
