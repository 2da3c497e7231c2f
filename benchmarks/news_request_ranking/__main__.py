"""The news ranker's training step per request and per impression: ours, compiled both ways, and PyTorch, both ways.

    build/venv/bin/python benchmarks/news_request_ranking [--data <behaviors.tsv>] [--torch <Python with PyTorch>]

All impressions of a request, then at most 5. The same batches from the same weights on all sides, in turns; the first
losses must agree. README.md of benchmarks/ says what is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "common"), str(HERE.parent / "hstu_train"), str(HERE.parents[1] / "examples")]

import report  # noqa: E402
from example import load_example  # noqa: E402
from sides import BUILD, ROOT, Ours, Peer, Side, run  # noqa: E402

LOG = ROOT.parent / "shared" / "data" / "mind-small-sample" / "behaviors.tsv.zst"
PARITY = {"genrec as written": 1e-5, "PyTorch, deferred by hand": 1e-4, "PyTorch, per impression": 1e-4}
SHARE, TIMES = 0.7, 3.0  # what is asked: of the FLOP ratio, and of the model deferred by hand


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=LOG, help="behaviors.tsv of MIND, plain or compressed")
    parser.add_argument("--peer", help="what make bench gives to all benchmarks; not used")
    parser.add_argument("--torch", type=Path, default=ROOT / "build" / "venv-torch" / "bin" / "python")
    parser.add_argument("--impressions", default="0,5", help="impressions kept per request, in turn; 0: all")
    parser.add_argument("--batch", type=int, default=64, help="requests per step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=3, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=8, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=4, help="rounds; in each, every side has its turn")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "news_request_ranking")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    return parser.parse_args()


def say(text: str) -> None:
    """One line of progress."""
    print(f"[bench]   {text}", flush=True)


def count_rows(file: Path, length: int, batch: int, warm_up: int, steps: int) -> dict[str, float]:
    """Rows of each domain in a step, in the mean over the timed steps."""
    import polars as pl

    frame = pl.read_parquet(file)
    history, shown = frame["history"].list.len().to_numpy(), frame["impression"].list.len().to_numpy()
    read = np.minimum(history, length)
    lists = {"history": history, "read": read, "impression": shown, "event": read * shown}
    timed = np.arange(warm_up * batch, (warm_up + steps) * batch) % len(shown)
    return {name: float(counts[timed].sum() / steps) for name, counts in lists.items()}


def count_flops(model: Path, sinks: str, batch: int, rows: dict[str, float]) -> float:
    """Floating point operations of a training step, from the plan."""
    known = [f"--rows={name}={round(count)}" for name, count in rows.items()]
    text = run(BUILD / "bin" / "genrec-compile", model, f"--sink-fanout={sinks}", f"--batch={batch}", *known,
               "--explain=json", "-o", "-")  # fmt: skip
    train = next(program for program in json.loads(text)["programs"] if program["name"] == "train")
    return sum(op["flops"] + op["product_flops"] for op in train["ops"])


def initial_weights(python: Path, data: Path, out: Path) -> Path:
    """Weights that all sides start from, with the ids of the table rows."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import news; from pathlib import Path\n"
        "from safetensors.numpy import save_file\n"
        "log = news.read(Path(sys.argv[2])); weights = news.initial_weights(log.ids, 1)\n"
        "save_file(weights | {f'{name}.ids': ids for name, ids in log.ids.items()}, sys.argv[3])\n"
        "save_file(weights, sys.argv[4])"
    )
    run(python, "-c", program, ROOT / "test" / "Torch", data, out / "init.safetensors", out / "peer.safetensors")
    return out / "init.safetensors"


def compile_both(out: Path, schema: object) -> tuple[Path, dict[str, Path]]:
    """The model file, and the binary with and without sink-fanout."""
    import genrec as gr

    file = out / "model.genrec"
    gr.write_model(gr.record(load_example("news_request_ranking", "model").NewsRanker(), schema), file)
    binaries = {}
    for sinks in ("true", "false"):
        binaries[sinks] = out / f"sink-{sinks}"
        run(
            BUILD / "bin" / "genrec-compile",
            file,
            f"--sink-fanout={sinks}",
            "-O2",
            "--emit=binary",
            "-o",
            binaries[sinks],
        )
    return file, binaries


def check_losses(sides: list[Side]) -> dict[str, float]:
    """By how much of itself the first losses of the others part from ours; ends the benchmark where by too much."""
    apart = {}
    for side in sides[1:]:
        pairs = list(zip(sides[0].first_losses, side.first_losses, strict=False))
        # As written and sunk are one model: its first step tells; PyTorch's losses must stay together.
        pairs = pairs[:1] if side.name == "genrec as written" else pairs[:3]
        apart[side.name] = max(abs(a - b) / abs(b) for a, b in pairs)
        if apart[side.name] > PARITY[side.name]:
            apart_by = f"part by {apart[side.name]:.1e} of their size: {pairs}"
            sys.exit(f"news_request_ranking: error: losses of {side.name} {apart_by}")
    return apart


def compare(args: argparse.Namespace, impressions: int) -> dict[str, object]:
    """All sides on at most `impressions` impressions per request (0: all)."""
    import genrec as gr

    out = args.out / (f"{impressions}" if impressions else "all")
    prepared = load_example("news_request_ranking", "prepare").prepare(args.data, out, impressions)
    data, module = out / "train.parquet", load_example("news_request_ranking", "model")
    file, binaries = compile_both(out, gr.Schema.from_parquet(data))
    rows = count_rows(data, module.LENGTH, args.batch, args.warm_up, args.steps)
    flops = {sinks: count_flops(file, sinks, args.batch, rows) for sinks in binaries}
    ratio = flops["false"] / flops["true"]
    init = initial_weights(args.torch, data, out)
    ours = (data, init, args.batch, args.threads, args.warm_up)

    def peer(name: str, form: str) -> Peer:
        command = [args.torch, HERE / "peer.py", data, out / "peer.safetensors", form, args.batch, module.RATE]
        return Peer(name, [*command, args.threads], args.threads, args.warm_up)

    sides: list[Side] = [
        Ours("genrec", binaries["true"], *ours),
        Ours("genrec as written", binaries["false"], *ours),
        peer("PyTorch, deferred by hand", "deferred"),
        peer("PyTorch, per impression", "impression"),
    ]
    what = f"{prepared['impressions']:.1f} impressions per request"
    for turn in range(args.rounds):
        for side in sides:
            side.take_turn(args.steps)
        shown = ", ".join(f"{side.name} {side.median * 1e3:.1f} ms" for side in sides)
        say(f"{what}: round {turn + 1} of {args.rounds}: {shown}")
    for side in sides:
        side.close()
    apart = check_losses(sides)
    times = {side.name: side.median / sides[0].median for side in sides}
    fastest = {side.name: side.fastest / sides[0].fastest for side in sides}
    print(f"\n{what}, {prepared['history']:.1f} news read; {args.batch} requests per step, {args.threads} threads")
    heads = ("median ms", "times", "fastest ms", "times", "asked", "first losses apart")
    print(f"{'':<28}{heads[0]:>10}{heads[1]:>8}{heads[2]:>12}{heads[3]:>8}{heads[4]:>8}{heads[5]:>20}")
    asked = dict(zip(times, ("", f"{SHARE * ratio:.2f}", f"{TIMES:.2f}", f"{SHARE * ratio:.2f}"), strict=True))
    for side in sides:
        name, parted = side.name, f"{apart[side.name]:.1e}" if side.name in apart else ""
        measured = f"{side.median * 1e3:>10.2f}{times[name]:>8.2f}{side.fastest * 1e3:>12.2f}{fastest[name]:>8.2f}"
        print(f"{name:<28}{measured}{asked[name]:>8}{parted:>20}")
    print(
        f"a step is {flops['true'] / 1e9:.2f} GFLOP, as written {flops['false'] / 1e9:.2f}: a ratio of {ratio:.2f}; "
        f"{flops['true'] / sides[0].fastest / 1e9:.0f} GFLOP/s at the fastest\n"
    )
    return {
        "impressions_per_request": prepared["impressions"],
        "rows_per_step": rows,
        "flops": {"sunk": flops["true"], "as_written": flops["false"], "ratio": ratio},
        "step_seconds": {side.name: side.median for side in sides},
        "all_step_seconds": {side.name: side.seconds for side in sides},
        "fastest_step_seconds": {side.name: side.fastest for side in sides},
        "times_ours": times,
        "times_ours_by_fastest": fastest,
        "share_of_flop_ratio": {name: times[name] / ratio for name in (sides[1].name, sides[3].name)},
        "first_losses_apart": apart,
    }


def main() -> None:
    """Compares, prints, writes."""
    args = parse_arguments()
    if not args.data.exists():
        print(f"news_request_ranking is SKIPPED: no log at {args.data}; pass --data <behaviors.tsv of MIND>")
        return
    if not args.torch.exists():
        sys.exit(
            f"news_request_ranking: error: there is no Python with PyTorch at {args.torch}; run scripts/setup-torch"
        )
    version = subprocess.run(
        [args.torch, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
    )
    results: dict[str, object] = {
        "arguments": {
            name: getattr(args, name) for name in ("impressions", "batch", "threads", "warm_up", "steps", "rounds")
        },
        "peer": {"torch": version.stdout.strip()},
    }
    for impressions in map(int, args.impressions.split(",")):
        results[f"impressions_{impressions or 'all'}"] = compare(args, impressions)
    print(f"wrote {report.write('news_request_ranking', results, args.results)}")


if __name__ == "__main__":
    main()
