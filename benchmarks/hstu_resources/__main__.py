"""What compiling and training takes besides time per step: compile time, time to the first step, memory.

    build/venv/bin/python benchmarks/hstu_resources [--data <MovieLens-1M folder>]

* genrec-compile of HSTU, from the model file to a binary;
* from the start of that binary to the end of its first step, on MovieLens-1M, files in the page cache;
* resident memory that training adds, beside what ``genrec-compile --explain`` predicts from what ``info --data`` of the
  binary tells of the data: of HSTU on the users whose histories fill all 200 events and on all users, and of
  ``examples/request_ranking`` on generated data.

Medians of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import ours  # noqa: E402
import report  # noqa: E402
from prepare import LENGTH, prepare  # noqa: E402

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
BIN = BUILD / "bin"
REQUEST_BATCH = 256  # that of the example
REQUEST_USERS = 20000


@dataclass(frozen=True)
class Model:
    """A model file, its binary, and how a run of it is told of its data."""

    name: str
    file: Path
    binary: Path
    train: Path
    batch: int
    catalogues: tuple[str, ...] = ()


def parse_arguments() -> argparse.Namespace:
    """Command line; flags of other benchmarks are passed over."""
    parser = report.movielens_arguments(__doc__, "hstu_resources")
    parser.add_argument("--runs", type=int, default=5, help="runs that medians are of")
    return parser.parse_known_args()[0]


def call(*command: str | Path) -> str:
    """What a program prints. Raises SystemExit with its messages where it fails."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"hstu_resources: error: {command[0]} failed\n{result.stderr}")
    return result.stdout


def request_ranking(out: Path) -> Model:
    """examples/request_ranking, compiled, with data of genrec-datagen."""
    import genrec as gr

    sys.path.insert(0, str(ROOT / "examples" / "request_ranking"))
    import model as example

    folder = out / "request_ranking"
    data = folder / "data"
    call(BIN / "genrec-datagen", "--kind", "requests", "--out", data, "--users", str(REQUEST_USERS), "--seed", "1")
    file, binary = folder / "model.genrec", folder / "model"
    gr.write_model(gr.record(example.Ranker(), gr.Schema.from_parquet(data / "train.parquet")), file)
    call(BIN / "genrec-compile", file, "--emit=binary", "-o", binary)
    return Model("request_ranking", file, binary, data / "train.parquet", REQUEST_BATCH)


def predict(model: Model, threads: int, out: Path) -> dict[str, float]:
    """Bytes by part, as --explain tells for the data of `model`; "together" is their sum."""
    told = json.loads(
        call(
            model.binary, "info", "--json", "--data", model.train, "--batch", str(model.batch),
            *(word for catalogue in model.catalogues for word in ("--catalogue", catalogue)),
        )
    )["data"]["explain"].split()  # fmt: skip
    text = call(BIN / "genrec-compile", model.file, "--explain", f"--worker-threads={threads}", *told)
    (out / f"explain-{model.name}.txt").write_text(text)
    program = text[text.index("program train") :]
    table = program[program.index("memory of a run") : program.index("together") + 80]
    parts = re.findall(r"^    (\S.*?) +([\d.]+) MB", table, re.MULTILINE)
    return {name: float(megabytes) * 1e6 for name, megabytes in parts}


def measure(model: Model, threads: int, out: Path) -> dict[str, int]:
    """``memory_bytes`` of one epoch in the order of the file, and a little more, so that the largest batch is met."""
    metrics = out / f"metrics-{model.name}.json"
    command: list[str | Path] = [
        model.binary, "train", "--data", model.train, "--epochs", "2", "--batch", str(model.batch), "--threads",
        str(threads), "--seed", "1", "--no-shuffle", "--progress", "none", "--metrics-json", metrics,
    ]  # fmt: skip
    call(*command, *(word for catalogue in model.catalogues for word in ("--catalogue", catalogue)))
    return json.loads(metrics.read_text())["memory_bytes"]


def compare_memory(model: Model, runs: int, threads: int, out: Path) -> dict[str, object]:
    """Prints what training adds beside what was predicted, and by part what the binary itself knows it holds."""
    predicted = predict(model, threads, out)
    reports = [measure(model, threads, out) for _ in range(runs)]
    added = [memory["resident_after"] - memory["resident_at_start"] for memory in reports]
    median = statistics.median(added)
    together = predicted["together"]
    spread = (max(added) - min(added)) / median
    print(f"\n{model.name}, batch {model.batch}")
    print(f"{'  resident memory that training adds':<44}{median / 1e6:>10.1f} MB   (runs within {spread:.1%})")
    print(f"{'  predicted by --explain':<44}{together / 1e6:>10.1f} MB   (measured {median / together - 1:+.1%})")
    for name, value in predicted.items():
        if name != "together":
            print(f"    {name:<40}{value / 1e6:>10.1f} MB")
    return {"added_bytes": added, "predicted_bytes": predicted, "memory_bytes": reports[-1]}


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
    first_step = statistics.median(
        ours.run(binaries[-1], sets["all"], 2, args.batch, args.threads, args.out).first_step_seconds
        for _ in range(args.runs)
    )
    print(f"\n{'HSTU: model file to binary':<44}{compile_seconds:>10.2f} s")
    print(f"{'HSTU: start to the end of the first step':<44}{first_step:>10.2f} s")

    names = {"full": f"HSTU, users with all {LENGTH} events", "all": "HSTU, all users"}
    models = [
        Model(
            name, args.out / "model.genrec", binaries[-1].path, sets[key].train, args.batch,
            (f"items={sets[key].items}",),
        )
        for key, name in names.items()
    ]  # fmt: skip
    models.append(request_ranking(args.out))
    memory = {model.name: compare_memory(model, args.runs, args.threads, args.out) for model in models}
    results = {
        "arguments": {name: str(value) for name, value in vars(args).items()},
        "compile_seconds": compile_seconds,
        "start_to_first_step_seconds": first_step,
        "memory": memory,
    }
    print(f"wrote {report.write('hstu_resources', results, args.results)}")


if __name__ == "__main__":
    main()
