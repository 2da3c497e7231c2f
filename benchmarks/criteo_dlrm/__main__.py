"""A training step of DLRM on a click log, batch 2,048: ours, PyTorch's EmbeddingBag and FBGEMM's batched tables.

    build/venv/bin/python benchmarks/criteo_dlrm [--data <log in Criteo's layout>] [--torch <Python with PyTorch>]

With Adam (PyTorch: SparseAdam; FBGEMM has none on the CPU) and with Adagrad, everything from the same weights on the
same batches, in turns; the first losses must agree. README.md of benchmarks/ says what is measured.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "common"), str(HERE.parent / "hstu_train"), str(HERE.parents[1] / "examples")]

import native  # noqa: E402
from example import load_example  # noqa: E402
from sides import BUILD, ROOT, Ours, Peer, Side, run  # noqa: E402

LOG = ROOT.parent / "shared" / "data" / "criteo-80k" / "criteo_80k.tsv.zst"
RATES = {"adam": 0.001, "adagrad": 0.01}
PEERS = {"adam": {"PyTorch, EmbeddingBag": "bags"}, "adagrad": {"PyTorch, EmbeddingBag": "bags", "FBGEMM": "fbgemm"}}
ASKED = 3
COMPARED = 20  # losses of the first steps; roundings grow from step to step
# The first losses must agree so far. SparseAdam adds epsilon to the root of the second moment before it corrects its
# bias: small gradients move rows less than in Adam.
PARITY = {"adam": 1e-2, "adagrad": 1e-4}


def parse_arguments() -> argparse.Namespace:
    """Command line; flags of other benchmarks are passed over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=LOG, help="the log: a .tsv, or .tsv.zst, in Criteo's layout")
    parser.add_argument("--torch", type=Path, default=ROOT / "build" / "venv-torch" / "bin" / "python")
    parser.add_argument("--batch", type=int, default=2048, help="rows per step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=30, help="steps that do not count: more than an epoch")
    parser.add_argument("--steps", type=int, default=24, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=7, help="rounds; in each, every side has its turn")
    parser.add_argument("--out", type=Path, default=BUILD / "bench" / "criteo_dlrm")
    parser.add_argument("--results", type=Path, default=native.RESULTS, help="folder of the results")
    return parser.parse_known_args()[0]


def initial_weights(python: Path, data: Path, out: Path) -> Path:
    """Weights that all sides start from, with the ids of the table rows."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import criteo; from pathlib import Path\n"
        "from safetensors.numpy import save_file\n"
        "ids = criteo.vocabulary([criteo.load(Path(sys.argv[2]))])\n"
        "weights = criteo.initial_weights('dlrm', ids, 1)\n"
        "save_file(weights | {f'{name}.ids': ids[name] for name in criteo.CATEGORIES}, sys.argv[3])"
    )
    init = out / "init.safetensors"
    run(python, "-c", program, ROOT / "test" / "Torch", data, init)
    return init


def compiled(optimizer: str, schema: object, out: Path) -> Path:
    """The binary of the example with an optimizer, as anybody compiles it."""
    import genrec as gr

    rate = RATES[optimizer]
    rule = gr.optim.Adam(rate) if optimizer == "adam" else gr.optim.Adagrad(rate)
    file, binary = out / f"{optimizer}.genrec", out / optimizer
    gr.write_model(gr.record(load_example("criteo_dlrm", "model").DLRM(optimizer=rule), schema), file)
    run(BUILD / "bin" / "genrec-compile", file, "--emit=binary", "-o", binary)
    return binary


def check_losses(optimizer: str, sides: list[Side]) -> dict[str, float]:
    """By how much of itself the peers' first losses part from ours; ends the benchmark where by too much."""
    apart = {}
    for side in sides[1:]:
        pairs = list(zip(sides[0].first_losses, side.first_losses, strict=False))[:COMPARED]
        apart[side.name] = max(abs(a - b) / abs(b) for a, b in pairs)
        if apart[side.name] > PARITY[optimizer]:
            sys.exit(f"[bench]   error: losses of {side.name} part by {apart[side.name]:.1e} of their size: {pairs}")
    return apart


def compare(args: argparse.Namespace, optimizer: str, data: Path, init: Path, schema: object) -> dict[str, object]:
    """All sides with one optimizer."""
    ours = compiled(optimizer, schema, args.out)
    sides: list[Side] = [Ours("genrec", ours, data, init, args.batch, args.threads, args.warm_up)]
    for name, kind in PEERS[optimizer].items():
        command = [args.torch, HERE / "peer.py", data, init, kind, optimizer, args.batch, RATES[optimizer]]
        sides.append(Peer(name, [*command, args.threads], args.threads, args.warm_up))
    for turn in range(args.rounds):
        for side in sides:
            side.take_turn(args.steps)
        shown = ", ".join(f"{side.name} {side.median * 1e3:.2f} ms" for side in sides)
        print(f"[bench]   {optimizer}: round {turn + 1} of {args.rounds}: {shown}", flush=True)
    for side in sides:
        side.close()
    return {
        "step_seconds": {side.name: side.median for side in sides},
        "fastest_step_seconds": {side.name: side.fastest for side in sides},
        "all_step_seconds": {side.name: side.seconds for side in sides},
        "first_losses_apart": check_losses(optimizer, sides),
    }


def main() -> None:
    """Compares, prints, writes."""
    args = parse_arguments()
    if not args.data.exists():
        return native.skipped("criteo_dlrm", f"no log at {args.data}; pass --data <log in Criteo's layout>")
    if not args.torch.exists():
        return native.skipped("criteo_dlrm", f"no Python with PyTorch at {args.torch}; scripts/setup-torch makes it")
    prepare = load_example("criteo_dlrm", "prepare")
    args.out.mkdir(parents=True, exist_ok=True)
    prepare.prepare(args.data, args.out)
    data = args.out / "train.parquet"
    init = initial_weights(args.torch, data, args.out)
    versions = "import torch, fbgemm_gpu; print(torch.__version__, fbgemm_gpu.__version__)"
    version = subprocess.run([args.torch, "-c", versions], capture_output=True, text=True).stdout.split()
    results = {optimizer: compare(args, optimizer, data, init, prepare.SCHEMA) for optimizer in PEERS}
    rows = []
    for optimizer, measured in results.items():
        times: dict[str, float] = dict(measured["step_seconds"])
        ours = times.pop("genrec")
        best = min(times, key=times.__getitem__)
        for name, theirs in times.items():
            more = {"asked": ASKED} if name == best else {}
            what = f"criteo_dlrm, a step, {optimizer.capitalize()}"
            rows.append(native.summary(what, "ms", ours * 1e3, name, theirs * 1e3, **more))
    for name in ("data", "torch", "out"):  # where files lie on this machine
        delattr(args, name)
    native.finish("criteo_dlrm", args, rows, {"peer": dict(zip(("torch", "fbgemm"), version, strict=False)), **results})


if __name__ == "__main__":
    main()
