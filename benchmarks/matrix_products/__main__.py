"""Matrix products of the example models beside OpenBLAS, oneDNN, libxsmm and MKL (inside of PyTorch).

    build/venv/bin/python benchmarks/matrix_products [--threads N] [--rounds N] [--torch <libtorch_cpu.so>]

Forward (alone, and with bias and ReLU in the product, where the peers make a pass of it) and both gradients, in turns
in one process: every peer on one thread per call, rows split over as many threads as ours has. Medians. Ours with
factors rounded to bfloat16 (mixed precision) beside ours in float32.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
ASKED = 0.95


def torch_library() -> str:
    """PyTorch's library in build/venv-torch, "" where there is none."""
    found = sorted((native.ROOT / "build" / "venv-torch").glob("lib/python*/site-packages/torch/lib/libtorch_cpu.so"))
    return str(found[0]) if found else ""


def best_peer(medians: dict[str, float], has_epilogue: bool) -> tuple[str, float]:
    """The fastest peer, with or without its pass for the epilogue."""
    peers = {
        name: seconds
        for name, seconds in medians.items()
        if not name.startswith("genrec") and name.endswith(" + epilogue") == has_epilogue
    }
    name = min(peers, key=peers.__getitem__)
    return name, peers[name]


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, rounds=25)
    parser.add_argument("--torch", default=torch_library(), help="libtorch_cpu.so (default: that of build/venv-torch)")
    args, _ = parser.parse_known_args()
    flags = ["-ldnnl", "-lgomp", "-ldl"]
    for package, define in (("openblas", "-DBENCH_OPENBLAS"), ("libxsmm", "-DBENCH_LIBXSMM")):
        libraries = native.package_flags(package)
        flags += [define, *libraries] if libraries else []
        if not libraries:
            native.skipped(package, "it is not installed; scripts/setup-peers installs it")
    if not args.torch:
        native.skipped("MKL of PyTorch", "there is no build/venv-torch; scripts/setup-torch makes it")
    measured = native.run(
        native.compile_program(HERE / "matrix_products.cpp", flags), args.threads, args.rounds, args.torch
    )
    args.torch = "libtorch_cpu.so" if args.torch else ""  # results name no folders of a machine
    rows = []
    for product in measured:
        medians = native.medians(product["seconds"])
        for ours in ("genrec", "genrec, epilogue"):
            if ours not in medians:
                continue
            peer, theirs = best_peer(medians, "epilogue" in ours)
            what = product["what"] + (" + bias, ReLU" if "epilogue" in ours else "")
            rate = product["flops"] / medians[ours] / 1e9
            what = f"product {product['shape']}, {what} ({rate:.0f} GFLOP/s)"
            rows.append(native.summary(what, "µs", medians[ours] * 1e6, peer, theirs * 1e6, asked=ASKED))
        narrow = medians["genrec, bf16"]
        what = f"product {product['shape']}, {product['what']}, bf16 ({product['flops'] / narrow / 1e9:.0f} GFLOP/s)"
        rows.append(native.summary(what, "µs", narrow * 1e6, "float32", medians["genrec"] * 1e6))
    native.finish("matrix_products", args, rows, {"products": measured})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
