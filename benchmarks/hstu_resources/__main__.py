"""What compiling and training HSTU takes besides time per step: compile time, time to the first step, memory.

    build/venv/bin/python benchmarks/hstu_resources [--data <MovieLens-1M folder>]

* genrec-compile from the model file to a binary;
* from the start of the binary to the end of its first step, on MovieLens-1M, files in the page cache;
* resident memory that training adds, on the users whose histories fill all 200 events, beside what
  ``genrec-compile --explain`` predicts for that batch and that length.

Medians of several runs.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import ours  # noqa: E402
import report  # noqa: E402
from prepare import LENGTH, prepare  # noqa: E402

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
STEPS = 20  # enough for two batches in flight and every table row


def parse_arguments() -> argparse.Namespace:
    """Command line; flags of other benchmarks are passed over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT.parent / "shared" / "data" / "ml-1m"
    parser.add_argument(
        "--data", type=Path, default=default, help="folder of MovieLens-1M (default: ../shared/data/ml-1m)"
    )
    parser.add_argument("--batch", type=int, default=128, help="sequences per step")
    parser.add_argument("--threads", type=int, default=report.available_cores())
    parser.add_argument("--runs", type=int, default=5, help="runs that medians are of")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "bench" / "hstu_resources", help="folder to work in"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    return parser.parse_known_args()[0]


def predicted_bytes(out: Path, batch: int) -> float:
    """What --explain says that training takes, for `batch` users with lists of 200."""
    command = [
        str(BUILD / "bin" / "genrec-compile"), str(out / "model.genrec"), "--explain", f"--batch={batch}",
        f"--longest={LENGTH}",
    ]  # fmt: skip
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    train = text[text.index("program train") :]
    found = re.search(r"([\d.,]+) MB alive together", train)
    if found is None:
        sys.exit("hstu_resources: error: genrec-compile --explain says nothing of memory in program train")
    return float(found[1].replace(",", "")) * 1e6


def main() -> None:
    """Measures, prints, writes."""
    args = parse_arguments()
    if not args.data.is_dir():
        print(f"\n!!! hstu_resources is SKIPPED: no data at {args.data}; pass --data <folder of MovieLens-1M>\n")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    sets = prepare(args.data, args.out)
    binaries = [ours.compile_model(BUILD, sets["all"], args.out) for _ in range(args.runs)]
    compile_seconds = statistics.median(binary.compile_seconds for binary in binaries)

    def run(name: str, steps: int) -> ours.Run:
        return ours.run(binaries[-1], sets[name], steps, args.batch, args.threads, args.out)

    first_step = statistics.median(run("all", 2).first_step_seconds for _ in range(args.runs))
    memory: dict[str, int] = run("full", STEPS).report["memory_bytes"]  # type: ignore[assignment]
    added = memory["resident_after"] - memory["resident_before_training"]
    predicted = predicted_bytes(args.out, args.batch)
    print(f"\n{'model file to binary':<44}{compile_seconds:>10.2f} s")
    print(f"{'start to the end of the first step':<44}{first_step:>10.2f} s")
    print(f"{'resident memory that training adds':<44}{added / 1e6:>10.1f} MB")
    print(f"{'predicted by --explain':<44}{predicted / 1e6:>10.1f} MB   ({added / predicted - 1:+.0%})")
    results = {
        "arguments": {name: str(value) for name, value in vars(args).items()},
        "compile_seconds": compile_seconds,
        "start_to_first_step_seconds": first_step,
        "memory_added_bytes": added,
        "memory_predicted_bytes": predicted,
        "memory_bytes": memory,
    }
    print(f"wrote {report.write('hstu_resources', results, args.results)}")


if __name__ == "__main__":
    main()
