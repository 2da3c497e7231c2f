"""The search model of 660 columns: what each pass is worth, compile time, and training beside PyTorch.

    build/venv/bin/python benchmarks/search_ranking [--peer-python build/venv-torch/bin/python]

Ours and the peer's steps take turns on the same batches; medians count. README.md of this folder's parent says what is
measured; results go to benchmarks/results. Flags of other benchmarks (--peer) are passed over.

--measure names the parts to measure (compile, passes, peers; all unless said, none to only prepare), so that each can
run while a machine is quiet for a few minutes: what was measured before, with the same arguments, stays in the results.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import ours
from prepare import ROOT, Log, generate, prepare

sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import report  # noqa: E402

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
PEERS = {"a table each": ["--tables", "modules"], "FBGEMM": ["--tables", "fbgemm"]}
PEERS |= {f"{name}, transformed before": [*flags, "--prepared"] for name, flags in PEERS.items()}
PARTS = ("compile", "passes", "peers")


def say(text: str) -> None:
    """One line of progress."""
    print(f"[bench]   {text}", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", type=Path, default=BUILD / "venv-torch" / "bin" / "python",
                        help="a Python with torch and fbgemm_gpu")  # fmt: skip
    parser.add_argument("--impressions", type=int, default=2048, help="impressions per step, in the mean")
    parser.add_argument("--columns", type=int, default=660)
    parser.add_argument("--compile-columns", default="100,660,2000", help="sizes whose compile time is measured")
    parser.add_argument("--users", type=int, default=1200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measure", default="compile,passes,peers", help="parts: compile, passes, peers, or none")
    parser.add_argument("--warm-up", type=int, default=0, help="steps before the timed ones; 0: an epoch and one")
    parser.add_argument("--steps", type=int, default=6, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "search_ranking", help="working folder")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    args = parser.parse_known_args()[0]
    if min(args.steps, args.rounds, args.threads) < 1 or args.warm_up < 0:
        parser.error("--steps, --rounds and --threads must be at least 1, --warm-up at least 0")
    args.measure = args.measure.split(",") if args.measure != "none" else []
    if unknown := set(args.measure) - set(PARTS):
        parser.error(f"--measure takes {', '.join(PARTS)} or none, but not {', '.join(sorted(unknown))}")
    return args


class Peer:
    """A process of peer.py that takes steps on request; `failure` says why it takes none."""

    def __init__(self, python: Path, log: Log, batch: int, threads: int, flags: list[str]) -> None:
        command = [
            python,
            Path(__file__).with_name("peer.py"),
            "--data",
            log.arrays,
            "--batch",
            batch,
            "--threads",
            threads,
        ]
        self.process = subprocess.Popen(
            [*map(str, command), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.failure = ""
        self.answer()

    def answer(self) -> dict[str, list[float]]:
        """The next line of JSON."""
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.failure = self.process.stderr.read().strip()[-1000:] or "ended"
        return {}

    def steps(self, begin: int, count: int) -> dict[str, list[float]]:
        """Seconds and losses of `count` steps; empty where the peer failed."""
        if self.failure:
            return {}
        assert self.process.stdin is not None
        print("steps", begin, count, file=self.process.stdin, flush=True)
        return self.answer()

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure_compile(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Compile times by number of columns."""
    results = {}
    for count in map(int, args.compile_columns.split(",")):
        folder = args.out / f"columns{count}"
        file = ours.record(generate(BUILD, folder, count, 30), folder)
        results[str(count)] = times = ours.compile_times(BUILD, file, folder)
        say(
            f"{count} columns: {times['to_cpp_seconds']:.1f} s to C++, {times['to_binary_seconds']:.1f} s to a binary "
            f"({times['to_binary_processor_seconds']:.1f} s of processor); slowest pass {times['slowest_pass']}, "
            f"{times['slowest_pass_seconds']:.2f} s"
        )
    return results


def start_peers(args: argparse.Namespace, log: Log, batch: int, batches: int) -> dict[str, Peer]:
    """The peers that work, each warmed up by one epoch."""
    if not args.peer_python.exists():
        say(f"NO PEER: there is no {args.peer_python}; scripts/setup-torch makes it, or pass --peer-python")
        return {}
    peers = {name: Peer(args.peer_python, log, batch, args.threads, flags) for name, flags in PEERS.items()}
    for name, peer in peers.items():
        peer.steps(0, batches)
        if peer.failure:
            say(f"THE PEER '{name}' FAILED and is left out: {peer.failure}")
    return {name: peer for name, peer in peers.items() if not peer.failure}


def measure_steps(
    args: argparse.Namespace, log: Log, batch: int, binaries: dict[str, Path], with_peers: bool
) -> dict[str, list[float]]:
    """Seconds of steps by side, all in turns, on the same batches."""
    seconds: dict[str, list[float]] = {name: [] for name in binaries}
    batches, rest = divmod(log.requests, batch)
    # Ours ends an epoch with a short batch; the first timed one is batch 1 of the second epoch.
    warm_up = args.warm_up or batches + (rest > 0) + 1
    first = warm_up % (batches + (rest > 0))
    if first + args.steps > batches:
        sys.exit(f"search_ranking: error: the log has {batches} batches, but batches {first} to "
                 f"{first + args.steps - 1} would be timed; pass more --users")  # fmt: skip
    peers = start_peers(args, log, batch, batches) if with_peers else {}
    for turn in range(args.rounds):
        for name, binary in binaries.items():
            seconds[name] += ours.steps(binary, log.train, batch, warm_up, args.steps, args.threads)[0]
        for name, peer in peers.items():
            seconds.setdefault(name, []).extend(peer.steps(first, args.steps)["seconds"])
        say(f"round {turn + 1}: " + ", ".join(f"{n} {statistics.median(s) * 1e3:.0f} ms" for n, s in seconds.items()))
    for peer in peers.values():
        peer.close()
    return seconds


def summarise(medians: dict[str, float], compile_times: dict[str, dict[str, float]], columns: int) -> list[dict]:
    """Rows of the table of all figures: a step beside the faster peer of the same work, and the time to compile."""
    rows: list[dict] = []
    peers = [name for name in ("a table each", "FBGEMM") if name in medians]
    if peers:
        fastest = min(peers, key=medians.__getitem__)
        ours, theirs = medians["all passes"], medians[fastest]
        rows.append(
            {"what": f"search_ranking, {columns} columns, a step", "unit": "ms", "ours": ours * 1e3,
             "peer": f"PyTorch, {fastest}", "theirs": theirs * 1e3, "ratio": theirs / ours, "asked": 5}
        )  # fmt: skip
    for count, times in compile_times.items():
        what = f"search_ranking, compiling {count} columns to a binary"
        rows.append({"what": what, "unit": "s", "ours": times["to_binary_seconds"]})
    return rows


def print_steps(title: str, medians: dict[str, float], plans: dict[str, dict[str, int]], impressions: int) -> None:
    """A line per side."""
    print(f"\n{title}\n{'':<34}{'ms/step':>9}{'impressions/s':>15}{'searches':>10}{'ops':>7}{'buffers':>9}")
    for name, median in medians.items():
        plan = plans.get(name)
        sizes = f"{plan['table_searches']:>10}{plan['ops']:>7}{plan['buffers']:>9}" if plan else ""
        print(f"{name:<34}{median * 1e3:>9.1f}{impressions / median:>15,.0f}{sizes}")


def measure(args: argparse.Namespace, parts: dict[str, dict]) -> None:
    """Prepares, and puts what --measure names into `parts`."""
    log = prepare(generate(BUILD, args.out, args.columns, args.users), args.out)
    batch = round(args.impressions * log.requests / log.impressions)
    file = ours.record(log.train, args.out)
    binaries = {"all passes": ours.compile_variant(BUILD, file, args.out, None)}
    binaries |= {f"without {name}": ours.compile_variant(BUILD, file, args.out, name) for name in ours.PASSES}
    plans = {name: ours.describe_plan(binary) for name, binary in binaries.items()}
    if "compile" in args.measure:
        parts["compile"] = measure_compile(args)
    for part, sides in (("passes", binaries), ("peers", {"all passes": binaries["all passes"]})):
        if part not in args.measure:
            continue
        seconds = measure_steps(args, log, batch, sides, with_peers=part == "peers")
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        parts[part] = {"requests_per_step": batch, "step_seconds": medians, "all_step_seconds": seconds}
        if part == "passes":
            parts[part]["plans"] = plans
        title = f"{part}: {args.columns} columns, {batch} requests ({args.impressions} impressions) per step"
        print_steps(f"{title}, {args.threads} threads", medians, plans, args.impressions)


def main() -> None:
    """Generates, compiles, times, prints, writes."""
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    left_out = ("measure", "peer_python", "out", "results")
    arguments = {name: str(value) for name, value in vars(args).items() if name not in left_out}
    known = args.out / "measured.json"
    parts = json.loads(known.read_text()) if known.exists() else {}
    parts = {name: part for name, part in parts.items() if part.get("arguments") == arguments}
    measure(args, parts)
    for name in args.measure:
        parts[name]["arguments"] = arguments
    known.write_text(json.dumps(parts))
    if not args.measure:
        return
    results = {"arguments": arguments}
    results |= {name: {k: v for k, v in part.items() if k != "arguments"} for name, part in parts.items()}
    medians = parts.get("peers", {}).get("step_seconds", {})
    if len(medians) > 1:
        results["ratios"] = {name: medians[name] / medians["all passes"] for name in PEERS if name in medians}
        print("times faster than: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in results["ratios"].items()))
    results["summary"] = summarise(medians, results.get("compile", {}), args.columns)
    path = report.write("search_ranking", results, args.results)
    print(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")


if __name__ == "__main__":
    main()
