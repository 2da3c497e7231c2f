"""Tables whose values are bf16 beside float32: bytes of a row, and a step of pooled lookups with their update.

    build/venv/bin/python benchmarks/bf16_rows [--threads N] [--rows N] [--batch N] [--ids N] [--rounds N]

The model and the program of pooled_lookup, with row-wise Adagrad: 8 tables of rows of 64, lists of random ids, sums
over the lists. Compiled four times (float32, bf16 rounded to nearest, bf16 rounded stochastically, bf16 whose rows are
all hot); the programs run in turns, a step each.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "common"), str(ROOT / "pooled_lookup")]

import native  # noqa: E402

KINDS: dict[str, dict[str, Any]] = {
    "float32": {},
    "nearest": {"dtype": "bf16"},
    "stochastic": {"dtype": "bf16", "rounding": "stochastic"},
    "hot": {"dtype": "bf16", "hot_after": 1},
}
WARM_UP = 4
FOLDER = native.BUILD / "bench" / "bf16_rows"


def build(kind: str) -> Path:
    """The program of pooled_lookup with tables of a kind."""
    import genrec as gr
    import model

    FOLDER.mkdir(parents=True, exist_ok=True)
    pooled = model.Pooled(gr.optim.RowWiseAdagrad(model.RATE), **KINDS[kind])
    gr.write_model(gr.record(pooled, model.schema()), FOLDER / "model.genrec")
    compiler = native.BUILD / "bin" / "genrec-compile"
    subprocess.run([compiler, FOLDER / "model.genrec", "--emit=object", "-o", FOLDER / "model.o"], check=True)
    flags = [str(FOLDER / "model.o"), *native.runtime_libraries()]
    made = native.compile_program(ROOT / "pooled_lookup" / "ours.cpp", flags)
    return Path(shutil.move(made, FOLDER / kind))


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, rows=200_000, batch=2048, ids=20, rounds=15)
    parser.add_argument("--built", action="store_true", help="run the programs of the run before")
    args, _ = parser.parse_known_args()
    programs = {kind: FOLDER / kind if args.built else build(kind) for kind in KINDS}
    words = [str(word) for word in (args.threads, args.rows, args.batch, args.ids)]
    steps: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        running = {
            kind: stack.enter_context(
                subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for kind, program in programs.items()
        }
        firsts = {kind: json.loads(process.stdout.readline()) for kind, process in running.items()}
        for _ in range(WARM_UP + args.rounds):
            for kind, process in running.items():
                process.stdin.write("\n")
                process.stdin.flush()
                steps[kind].append(json.loads(process.stdout.readline()))
        for process in running.values():
            process.stdin.close()
    times = {
        kind: native.medians({part: [step[part] for step in all_steps[WARM_UP:]] for part in all_steps[0]})
        for kind, all_steps in steps.items()
    }
    rows = []
    for kind in ("nearest", "stochastic", "hot"):
        for what, parts in (("find and pool", ("find", "pool")), ("backward and update", ("backward",))):
            ours, theirs = (1e3 * sum(times[each][part] for part in parts) for each in (kind, "float32"))
            rows.append(native.summary(f"bf16, {kind}: {what}", "ms", ours, "float32", theirs))
    sizes = {kind: first["row_bytes"] for kind, first in firsts.items()}
    rows.append(native.summary("bytes of a row", "B", sizes["nearest"], "float32", sizes["float32"]))
    native.finish("bf16_rows", args, rows, {"row_bytes": sizes, "steps": steps})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
