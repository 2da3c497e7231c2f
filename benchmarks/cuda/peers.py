"""What PyTorch reaches on a device on the tasks of the programs beside this script.

Usage: python3 peers.py [--dry-run] [--only GROUP] [--generative-recommenders CHECKOUT] [FILE.json]

Groups, in this order: matmul, step (nn.EmbeddingBag + SparseAdam), batched_step (FBGEMM's table-batched embeddings),
unique (torch.unique), gather (index_select, index_copy_), transforms (torch.bucketize in a loop), attention (Triton and
CUDA, of the public generative-recommenders checkout). Needs Python and torch with CUDA; what is not there is skipped,
loudly, and written down as skipped. The file is written anew with every figure, so that what is measured outlasts a
time limit. The exit status is 1 only where the arguments are wrong or the file cannot be written. Times are medians
between events.
"""

import argparse
import itertools
import json
import math
import random
import statistics
import sys
from pathlib import Path

REPEATS = 20
MI = 1 << 20
GROUPS = ("matmul", "step", "batched_step", "unique", "gather", "transforms", "attention")


class Report:
    """Figures as they come, and as JSON in the form of report.h."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.device: dict[str, object] = {}
        self.figures: list[dict[str, object]] = []
        self.skipped: list[dict[str, str]] = []

    def add(self, what: str, value: float, unit: str) -> None:
        """Prints a figure and keeps it."""
        print(f"{what:<62} {value:12.3f} {unit}", flush=True)
        self.figures.append({"what": what, "value": value, "unit": unit})
        self.write()

    def skip(self, what: str, why: str) -> None:
        """Says what was not measured."""
        print(f"SKIPPED: {what}: {why}", flush=True)
        self.skipped.append({"what": what, "why": why})
        self.write()

    def write(self) -> None:
        """Writes the file, where there is one. Raises OSError where it cannot be written."""
        if self.path is None:
            return
        content = {"program": "peers", "device": self.device, "figures": self.figures, "skipped": self.skipped}
        self.path.write_text(json.dumps(content, indent=1) + "\n")


def milliseconds(torch, body, cold: bool = False) -> float:
    """The median time of `body` after three runs to warm up; `cold`: nothing is in the second-level cache."""
    other = torch.empty(256 * MI if cold else 0, dtype=torch.uint8, device="cuda")
    times = []
    for number in range(REPEATS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        other.zero_()
        begin.record()
        body()
        end.record()
        end.synchronize()
        if number >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def distinct_ids(count: int, limit: int) -> float:
    """How many of `count` ids by `power_law_ids` are distinct, on average (timing.h has the same)."""
    scale, distinct, k = math.log(limit + 1), 0.0, 0
    while k < limit:
        after = min(limit, k + 1 + k // 64)
        share = math.log((after + 1) / (k + 1)) / scale / (after - k)
        distinct += (after - k) * -math.expm1(count * math.log1p(-share))
        k = after
    return distinct


def limit_of_three(count: int) -> int:
    """The limit for which each id occurs three times on average."""
    low, high = 1, 64 * count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if distinct_ids(count, middle) * 3 < count else (low, middle)
    return high


def power_law_ids(torch, count: int, limit: int):
    """Ids below `limit` by a power law with exponent 1."""
    uniform = torch.rand(count, dtype=torch.float64, device="cuda")
    return (torch.exp(uniform * math.log(limit + 1)).long() - 1).clamp_(max=limit - 1)


def measure_matmul(torch, report: Report, arguments: argparse.Namespace) -> None:
    """The ceiling of bench-cuda-ceilings, for machines whose only cuBLAS is PyTorch's."""
    size = 8192
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    rate = 2e-9 * size**3 / milliseconds(torch, lambda: a @ b)
    report.add(f"torch.matmul, bfloat16, {size} x {size} x {size}", rate, "TFLOP/s")


def measure_step(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Ten tables of rows of 128 behind one another, a mebi of ids, three of each on average, one id per bag."""
    each, dim = limit_of_three(MI // 10), 128
    rows = 10 * each
    bag = torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True, device="cuda")
    optimizer = torch.optim.SparseAdam(bag.parameters(), lr=1e-3)
    ids = power_law_ids(torch, MI, each) + torch.arange(MI, device="cuda") % 10 * each
    offsets = torch.arange(MI, device="cuda")
    gradient = torch.zeros(MI, dim, device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        bag(ids, offsets).backward(gradient)
        optimizer.step()

    report.add(
        "EmbeddingBag forward, 10 tables, 1 Mi ids, D 128",
        milliseconds(torch, lambda: bag(ids, offsets), cold=True),
        "ms",
    )
    report.add("EmbeddingBag and SparseAdam, 10 tables, 1 Mi ids, D 128", milliseconds(torch, step, cold=True), "ms")


def measure_batched_step(torch, report: Report, arguments: argparse.Namespace) -> None:
    """The same step by FBGEMM's table-batched embeddings, a table each, its optimizer within its backward pass."""
    what = "FBGEMM's batched tables and Adam, 10 tables, 1 Mi ids, D 128"
    try:
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )
    except (ImportError, OSError) as error:
        report.skip(what, f"fbgemm_gpu cannot be loaded: {error}".splitlines()[0])
        return
    tables, dim, each = 10, 128, MI // 10
    rows = limit_of_three(each)
    bag = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)] * tables, optimizer=EmbOptimType.ADAM
    )
    ids = power_law_ids(torch, tables * each, rows)
    offsets = torch.arange(tables * each + 1, device="cuda")
    gradient = torch.zeros(each, tables * dim, device="cuda")
    report.add(what, milliseconds(torch, lambda: bag(ids, offsets).backward(gradient), cold=True), "ms")


def measure_unique(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Segments are told apart by the upper bits of the keys, as torch.unique knows none."""

    def measure(count: int, segments: int) -> None:
        ids = power_law_ids(torch, count, limit_of_three(count // segments))
        keys = ids | (torch.arange(count, device="cuda") * segments // count) << 40
        time = milliseconds(torch, lambda: torch.unique(keys, return_inverse=True, return_counts=True), cold=True)
        report.add(f"torch.unique, {count // MI} Mi ids in {segments}", 1e3 * time, "us")

    measure(MI, 10)
    measure(64 * MI, 40)


def measure_gather(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Rates count the bytes of the rows once read and once written."""

    def measure(size: int) -> None:
        count, dim = (1 << 28) // size, size // 4
        table = torch.zeros((1 << 32) // size, dim, device="cuda")
        index = torch.randperm(len(table), device="cuda")[:count]
        out = torch.empty(count, dim, device="cuda")
        for name, body in (
            ("index_select", lambda: torch.index_select(table, 0, index, out=out)),
            ("index_copy_", lambda: table.index_copy_(0, index, out)),
        ):
            rate = 2e-6 * count * size / milliseconds(torch, body)
            report.add(f"{name}, rows of {size} B", rate, "GB/s")

    measure(64)
    measure(512)


def measure_transforms(torch, report: Report, arguments: argparse.Namespace) -> None:
    """100 columns of 10 k values, one call each."""
    edges = torch.arange(100, device="cuda") * 1e7
    columns = [torch.randint(1_000_000_000, (10_000,), device="cuda") for _ in range(100)]

    def loop() -> list:
        return [torch.bucketize(column, edges) for column in columns]

    report.add("torch.bucketize, 100 x 10 k, in a loop", 1e3 * milliseconds(torch, loop), "us")
    try:
        compiled = torch.compile(loop)
        compiled()
    except Exception as error:  # what torch.compile lacks differs: a compiler, Triton, Python's headers
        report.skip("torch.compile of the loop", f"{type(error).__name__}: {error}".splitlines()[0])
        return
    report.add("torch.compile of the loop", 1e3 * milliseconds(torch, compiled), "us")


def triton_attention(checkout: Path | None):
    """The public Triton kernel: a function of (longest, q, k, v, offsets). Raises ImportError with what is missing."""
    if checkout is None:
        raise ImportError("--generative-recommenders names no checkout")
    from generative_recommenders.ops.triton.triton_hstu_attention import triton_hstu_mha

    return lambda longest, q, k, v, offsets: triton_hstu_mha(
        N=longest, alpha=1 / 16, q=q, k=k, v=v, seq_offsets=offsets
    )


def cuda_attention(checkout: Path | None):
    """The same of the public CUDA kernel, whose extension `hstu` the checkout's ops/cpp builds."""
    if checkout is None:
        raise ImportError("--generative-recommenders names no checkout")
    import hstu._C  # noqa: F401  # the wrapper below hides that it is missing
    from generative_recommenders.ops.cpp.cuda_hstu_attention import cuda_hstu_mha

    return lambda longest, q, k, v, offsets: cuda_hstu_mha(
        max_seq_len=longest, alpha=1 / 16, q=q, k=k, v=v, seq_offsets=offsets.int(), causal=True
    )


def equal_lengths(rows: int, length: int) -> list[int]:
    """Lists of `length` rows, `rows` in all."""
    return [length] * (rows // length)


def jagged_lengths(rows: int, longest: int) -> list[int]:
    """Lengths drawn as bench-cuda-attention draws them: a sixteenth of the longest up to it, short ones more often."""
    draws, lengths = random.Random(longest), []
    while True:
        length = int(longest * (0.0625 + 0.9375 * draws.random() ** 2))
        if sum(lengths) + length > rows:
            return lengths
        lengths.append(length)


def measure_attention(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Causal SiLU attention, up to 32,768 rows and 4 heads as in bench-cuda-attention."""
    if arguments.generative_recommenders is not None:
        sys.path.insert(0, str(arguments.generative_recommenders))
    rows, heads = 32768, 4

    def measure(name: str, attend, dim: int, lists: str, lengths: list[int]) -> None:
        q, k, v = (
            torch.randn(sum(lengths), heads, dim, dtype=torch.bfloat16, device="cuda", requires_grad=True)
            for _ in range(3)
        )
        offsets = torch.tensor([0, *itertools.accumulate(lengths)], device="cuda")
        gradient = torch.randn_like(v)
        operations = 2 * dim * heads * sum(length * (length + 1) / 2 for length in lengths)

        def forward():
            return attend(max(lengths), q, k, v, offsets)

        out = forward()
        time = milliseconds(torch, forward)
        report.add(f"{name} forward, D {dim}, {lists}, bias none", 2e-9 * operations / time, "TFLOP/s")
        time = milliseconds(torch, lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
        report.add(f"{name} backward, D {dim}, {lists}, bias none", 5e-9 * operations / time, "TFLOP/s")

    for name, find in (("Triton attention", triton_attention), ("HSTU CUDA attention", cuda_attention)):
        try:
            attend = find(arguments.generative_recommenders)
            for length in (4096, 16384, 512):
                for dim in (128, 64, 256):
                    measure(name, attend, dim, f"T {length}", equal_lengths(rows, length))
            measure(name, attend, 128, "jagged to 8192", jagged_lengths(rows, 8192))
        except Exception as error:  # a kernel that does not build or run here must not hide the other
            report.skip(name, f"{type(error).__name__}: {error}".splitlines()[0])


MEASURES = {
    "matmul": measure_matmul,
    "step": measure_step,
    "batched_step": measure_batched_step,
    "unique": measure_unique,
    "gather": measure_gather,
    "transforms": measure_transforms,
    "attention": measure_attention,
}


def find_torch(device: str = "cuda") -> tuple[object | None, str]:
    """The module torch where it can use the device, else why it cannot."""
    try:
        import torch
    except ImportError as error:
        return None, f"torch is not installed for this Python, or cannot be loaded: {error}".splitlines()[0]
    if device == "cuda" and not torch.cuda.is_available():
        return None, "torch finds no CUDA device"
    return torch, ""


def parse(words: list[str]) -> argparse.Namespace:
    """The command line; ends the program with a message where it is wrong."""
    parser = argparse.ArgumentParser(description="benchmarks of PyTorch on a CUDA device")
    parser.add_argument("--dry-run", action="store_true", help="say what would be measured; needs no device")
    parser.add_argument("--only", choices=GROUPS, help="measure one group")
    parser.add_argument("--generative-recommenders", type=Path, metavar="CHECKOUT", help="of the Triton attention")
    parser.add_argument("file", nargs="?", type=Path, help="where to write results")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Entry point."""
    arguments = parse(words)
    groups = [group for group in GROUPS if arguments.only in (None, group)]
    torch, lack = find_torch()
    if arguments.dry_run:
        print("\n".join(f"would measure: {group}" for group in groups))
        print(lack or "torch and a CUDA device are here")
        return 0
    report = Report(arguments.file)
    try:
        report.write()
    except OSError as error:
        print(f"error: cannot write '{arguments.file}': {error.strerror}", file=sys.stderr)
        return 1
    if torch:
        report.device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    for group in groups:
        if not torch:
            report.skip(group, lack)
            continue
        try:
            MEASURES[group](torch, report, arguments)
        except Exception as error:  # one peer that does not run here must not hide the others
            report.skip(group, f"{type(error).__name__}: {error}".splitlines()[0])
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
