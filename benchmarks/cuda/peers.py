"""What PyTorch reaches on a device on the tasks of the programs beside this script.

Usage: python3 peers.py [--dry-run] [--only GROUP] [--generative-recommenders CHECKOUT] [FILE.json]

Groups, in this order: step (nn.EmbeddingBag + SparseAdam), unique (torch.unique), gather (index_select,
index_copy_), transforms (torch.bucketize in a loop), attention (Triton, of the public generative-recommenders
checkout). Needs Python and torch with CUDA; what is not there is skipped, loudly, and written down as skipped. The
exit status is 1 only where the arguments are wrong or the file cannot be written. Times are medians between events.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

REPEATS = 20
MI = 1 << 20
GROUPS = ("step", "unique", "gather", "transforms", "attention")


class Report:
    """Figures as they come, and as JSON in the form of report.h."""

    def __init__(self) -> None:
        self.device: dict[str, object] = {}
        self.figures: list[dict[str, object]] = []
        self.skipped: list[dict[str, str]] = []

    def add(self, what: str, value: float, unit: str) -> None:
        """Prints a figure and keeps it."""
        print(f"{what:<62} {value:12.3f} {unit}", flush=True)
        self.figures.append({"what": what, "value": value, "unit": unit})

    def skip(self, what: str, why: str) -> None:
        """Says what was not measured."""
        print(f"SKIPPED: {what}: {why}", flush=True)
        self.skipped.append({"what": what, "why": why})

    def write(self, path: Path) -> None:
        """Raises OSError where the file cannot be written."""
        content = {"program": "peers", "device": self.device, "figures": self.figures, "skipped": self.skipped}
        path.write_text(json.dumps(content, indent=1) + "\n")


def milliseconds(torch, body) -> float:
    """The median time of `body` on the device after three runs to warm up."""
    times = []
    for number in range(REPEATS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        body()
        end.record()
        end.synchronize()
        if number >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def measure_step(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Ten tables of a million rows of 128 behind one another, a mebi of ids, one id per bag.

    Ours draws from two million rows a table; the peer allocates all of its rows with two moments each, so it has half.
    """
    rows, dim = 10 * 1_000_000, 128
    bag = torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True, device="cuda")
    optimizer = torch.optim.SparseAdam(bag.parameters(), lr=1e-3)
    ids = torch.randint(rows, (MI,), device="cuda")
    offsets = torch.arange(MI, device="cuda")
    gradient = torch.zeros(MI, dim, device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        bag(ids, offsets).backward(gradient)
        optimizer.step()

    report.add("EmbeddingBag forward, 10 tables, 1 Mi ids, D 128", milliseconds(torch, lambda: bag(ids, offsets)), "ms")
    report.add("EmbeddingBag and SparseAdam, 10 tables, 1 Mi ids, D 128", milliseconds(torch, step), "ms")


def measure_unique(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Segments are told apart by the upper bits of the keys, as torch.unique knows none."""

    def measure(count: int, segments: int) -> None:
        ids = torch.randint(count // segments // 3, (count,), device="cuda")
        keys = ids | (torch.arange(count, device="cuda") * segments // count) << 40
        time = milliseconds(torch, lambda: torch.unique(keys, return_inverse=True, return_counts=True))
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


def measure_attention(torch, report: Report, arguments: argparse.Namespace) -> None:
    """Causal SiLU attention of equal lists, 32,768 rows and 4 heads as in bench-cuda-attention."""
    checkout = arguments.generative_recommenders
    if checkout is None:
        report.skip("Triton attention", "--generative-recommenders names no checkout")
        return
    sys.path.insert(0, str(checkout))
    try:
        from generative_recommenders.ops.triton.triton_hstu_attention import triton_hstu_mha
    except ImportError as error:
        report.skip("Triton attention", str(error))
        return
    rows, heads = 32768, 4

    def measure(dim: int, length: int) -> None:
        q, k, v = (
            torch.randn(rows, heads, dim, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3)
        )
        offsets = torch.arange(0, rows + 1, length, device="cuda")
        gradient = torch.randn(rows, heads, dim, dtype=torch.bfloat16, device="cuda")
        operations = 2 * dim * heads * (rows // length) * length * (length + 1) / 2

        def forward():
            return triton_hstu_mha(N=length, alpha=1 / 16, q=q, k=k, v=v, seq_offsets=offsets)

        out = forward()
        time = milliseconds(torch, forward)
        report.add(f"Triton attention forward, D {dim}, T {length}, bias none", 2e-9 * operations / time, "TFLOP/s")
        time = milliseconds(torch, lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
        report.add(f"Triton attention backward, D {dim}, T {length}, bias none", 5e-9 * operations / time, "TFLOP/s")

    for dim in (128, 64, 256):
        for length in (4096, 16384, 512):
            measure(dim, length)


MEASURES = {
    "step": measure_step,
    "unique": measure_unique,
    "gather": measure_gather,
    "transforms": measure_transforms,
    "attention": measure_attention,
}


def find_torch() -> tuple[object | None, str]:
    """The module torch where it can use a device, else why it cannot."""
    try:
        import torch
    except ImportError:
        return None, "torch is not installed for this Python"
    if not torch.cuda.is_available():
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
    report = Report()
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
    if arguments.file:
        try:
            report.write(arguments.file)
        except OSError as error:
            print(f"error: cannot write '{arguments.file}': {error.strerror}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
