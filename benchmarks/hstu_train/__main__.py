"""Training throughput of HSTU (MovieLens-1M configuration): ours, the public PyTorch code, and the machine's ceiling.

    make bench PEER=<checkout of meta-recsys/generative-recommenders>
    build/venv/bin/python benchmarks/hstu_train [--peer <checkout>] [--data <MovieLens folder>]

Both sides train on the same batches in the same order, with position bias only, on this machine, in turns, both warm;
medians over all timed steps count. README.md beside says what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import ceiling
import numpy as np
import ours
import report
import theirs
from prepare import ROOT, Sequences, prepare

PADDED = 211  # places per sequence in the peer: 200 events, 11 reserved behind them


@dataclass
class Timing:
    """Seconds of the timed steps of one side, over all rounds."""

    name: str
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds per step."""
        return statistics.median(self.seconds)


def loud(*lines: str) -> None:
    """A message that nobody overlooks."""
    print("\n" + "!" * 100)
    for line in lines:
        print(f"!!! {line}")
    print("!" * 100 + "\n", flush=True)


def say(text: str) -> None:
    """One line of progress."""
    print(f"[bench]   {text}", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = report.movielens_arguments(__doc__, "hstu_train")
    parser.add_argument("--peer", type=Path, help="checkout of the public PyTorch code; without it only we are timed")
    parser.add_argument("--peer-python", default=sys.executable, help="the Python that has PyTorch (default: this one)")
    parser.add_argument("--warm-up", type=int, default=8, help="steps that do not count, per run of ours")
    parser.add_argument("--steps", type=int, default=24, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; in each, every side has its turn")
    args = parser.parse_args()
    if min(args.batch, args.threads, args.warm_up, args.steps, args.rounds) < 1:
        parser.error("--batch, --threads, --warm-up, --steps and --rounds must be at least 1")
    if args.peer and not (args.peer / "generative_recommenders" / "research").is_dir():
        parser.error(f"{args.peer} is no checkout of generative-recommenders (no research folder)")
    return args


def time_sides(
    args: argparse.Namespace, binary: ours.Binary, sequences: Sequences, modes: list[str]
) -> tuple[Timing, list[Timing], list[ours.Run]]:
    """Our steps and the peer's in `modes`, in turns."""
    mine, runs = Timing("genrec"), []
    say(f"{sequences.name}: warming up {' and '.join(modes) or 'nobody else'}")
    peers = [theirs.Peer(args.peer_python, args.peer, sequences, mode, args.batch, args.threads) for mode in modes]
    for peer in peers:
        peer.steps(0, args.warm_up)
    timings = {peer.mode: Timing(f"public PyTorch, {peer.mode}") for peer in peers}
    for turn in range(args.rounds):
        run = ours.run(binary, sequences, args.warm_up + args.steps, args.batch, args.threads, args.out)
        runs.append(run)
        mine.seconds += run.seconds[args.warm_up - 1 :]
        for peer in peers:
            timings[peer.mode].seconds += peer.steps(args.warm_up, args.steps)
        sides = [mine, *(timing for timing in timings.values() if timing.seconds)]
        shown = ", ".join(f"{side.name} {side.median * 1e3:.1f} ms" for side in sides)
        say(f"{sequences.name}: round {turn + 1} of {args.rounds}: {shown}")
    for peer in peers:
        peer.close()
        if peer.failure:
            loud(f"THE PEER FAILED in mode '{peer.mode}' and is left out:", *peer.failure.splitlines()[-6:])
    return mine, [timing for timing in timings.values() if timing.seconds], runs


def timed_batches(args: argparse.Namespace, sequences: Sequences) -> list[np.ndarray]:
    """The lengths in each timed batch."""
    return [sequences.batch_lengths(step, args.batch) for step in range(args.warm_up, args.warm_up + args.steps)]


def describe(args: argparse.Namespace, sequences: Sequences) -> dict[str, float]:
    """Means over the timed batches: sequences, events, causal pairs, and what the padded form has of them."""
    batches = timed_batches(args, sequences)
    rows = float(np.mean([len(batch) for batch in batches]))
    return {
        "sequences": rows,
        "tokens": float(np.mean([batch.sum() for batch in batches])),
        "pairs": float(np.mean([ceiling.causal_pairs(batch) for batch in batches])),
        "padded_tokens": rows * PADDED,
        "padded_pairs": rows * PADDED**2,
    }


def measure_ceiling(args: argparse.Namespace, sequences: Sequences, work: dict[str, float]) -> dict[str, object]:
    """The machine's rates and the least time of a step by kind of work, in seconds."""
    say("ceiling: measuring products, rows and copies")
    items = len(np.load(sequences.arrays)["catalogue"])
    batch = timed_batches(args, sequences)[0]
    python = args.peer_python if args.peer else None
    rates = ceiling.measure(ROOT_BUILD, args.out, args.threads, items, batch.tolist(), python)
    parts = ceiling.seconds(rates, work["tokens"], work["pairs"], items)
    slower = ceiling.seconds(rates, work["tokens"], work["pairs"], items, ceiling.MEMORY_COPY)
    return {
        "seconds": sum(parts.values()),
        "seconds_with_copies_beyond_caches": sum(slower.values()),
        "parts": parts,
        "rates": {f"{kind}: {shape}": {"per_second": r.per_second, "by": r.by} for (kind, shape), r in rates.items()},
    }


def table(sides: list[Timing], work: dict[str, float], fastest: Timing | None) -> list[str]:
    """One line per side."""
    lines = [f"{'':<28}{'ms/step':>10}{'sequences/s':>14}{'tokens/s':>12}{'times peer':>12}"]
    for side in sides:
        speed = [f"{work[what] / side.median:,.0f}" for what in ("sequences", "tokens")]
        times = f"{fastest.median / side.median:.2f}" if fastest else ""
        lines.append(f"{side.name:<28}{side.median * 1e3:>10.1f}{speed[0]:>14}{speed[1]:>12}{times:>12}")
    return lines


def padding_lines(work: dict[str, float]) -> list[str]:
    """What the peer computes that nobody needs: it pads attention, and the values around the encoder."""
    real = sum(ceiling.count_products(work["tokens"], work["pairs"]).values())
    padded = sum(ceiling.count_products(work["tokens"], work["padded_pairs"]).values())
    all_padded = sum(ceiling.count_products(work["padded_tokens"], work["padded_pairs"]).values())
    return [
        f"padding: {work['padded_tokens']:,.0f} places per step for {work['tokens']:,.0f} events; attention over "
        f"{work['padded_pairs']:,.0f} pairs where {work['pairs']:,.0f} are causal",
        f"products per step: {real / 1e9:.2f} GFLOP on events and causal pairs, {padded / 1e9:.2f} as the peer "
        f"computes them (it pads attention): a factor of {padded / real:.2f}; padded everywhere {all_padded / 1e9:.2f}",
    ]


ROOT_BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))


def resources(binary: ours.Binary, runs: list[ours.Run]) -> dict[str, object]:
    """What the runs of the binary took besides time per step."""
    return {
        "compile_seconds": binary.compile_seconds,
        "start_to_first_step_seconds": statistics.median(run.first_step_seconds for run in runs),
        "memory_bytes": runs[-1].report["memory_bytes"],
    }


def main() -> None:
    """Prepares, times, measures, prints, writes."""
    args = parse_arguments()
    if not args.data.is_dir():
        loud(f"hstu_train is SKIPPED: no data at {args.data}; pass --data <folder of MovieLens-1M>")
        return
    if args.peer is None:
        loud(
            "NO PEER: the comparison with the public PyTorch code is SKIPPED, there will be no ratio",
            "make bench PEER=<checkout of meta-recsys/generative-recommenders>",
        )
    args.out.mkdir(parents=True, exist_ok=True)
    sets = prepare(args.data, args.out)
    binary = ours.compile_model(ROOT_BUILD, sets["all"], args.out)
    say(f"compiled in {binary.compile_seconds:.1f} s")

    work = describe(args, sets["all"])
    mine, peers, runs = time_sides(args, binary, sets["all"], ["eager", "compile"] if args.peer else [])
    fastest = min(peers, key=lambda side: side.median, default=None)
    limit = measure_ceiling(args, sets["all"], work)
    share, lower_share = (
        float(limit[key]) / mine.median  # type: ignore[arg-type]
        for key in ("seconds", "seconds_with_copies_beyond_caches")
    )

    counts = f"{args.threads} threads, medians of {args.rounds} x {args.steps} steps"
    print(f"\nHSTU, {args.batch} sequences per step, {counts}")
    print("\n".join(table([*peers, mine, Timing("ceiling", [limit["seconds"]])], work, fastest)))  # type: ignore[list-item]
    parts = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in limit["parts"].items())  # type: ignore[attr-defined]
    print(f"ceiling in ms: {parts}; genrec reaches {share:.0%} of it")
    print(f"with the copy rate of arrays beyond all caches genrec reaches {lower_share:.0%}")
    print("\n".join(padding_lines(work)))
    results: dict[str, object] = {
        "arguments": {name: str(value) for name, value in vars(args).items()},
        "work_per_step": work,
        "step_seconds": {side.name: side.median for side in [*peers, mine]},
        "all_step_seconds": {side.name: side.seconds for side in [*peers, mine]},
        "ceiling": limit,
        "share_of_ceiling": share,
        "resources": resources(binary, runs),
    }
    if fastest is not None:
        results["ratio"] = fastest.median / mine.median
        results["peer"] = {"torch": theirs.version(args.peer_python), "commit": report.commit(args.peer)}
        results["full_length"] = full_length(args, binary, sets, fastest)
    print(f"wrote {report.write('hstu_train', results, args.results)}")


def full_length(
    args: argparse.Namespace, binary: ours.Binary, sets: dict[str, Sequences], fastest: Timing
) -> dict[str, object]:
    """The same comparison on users whose histories fill all 200 events, where there is next to nothing to pad."""
    mode = fastest.name.rsplit(" ", 1)[-1]
    mine, peers, _ = time_sides(args, binary, sets["full"], [mode])
    if not peers:
        return {}
    ratio = peers[0].median / mine.median
    work = describe(args, sets["full"])
    print(f"\nsequences of {work['tokens'] / work['sequences']:.0f} events only: next to no padding")
    print("\n".join(table([peers[0], mine], work, peers[0])))
    return {"ratio": ratio, "work_per_step": work, "step_seconds": {s.name: s.median for s in (peers[0], mine)}}


if __name__ == "__main__":
    main()
