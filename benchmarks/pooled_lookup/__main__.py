"""Pooled lookup, and its backward with Adagrad, beside FBGEMM's batched tables on the CPU.

    build/venv-torch/bin/python benchmarks/pooled_lookup [--threads N] [--rows N] [--batch N] [--ids N] [--rounds N]

8 tables of 1 M rows of 64 floats, lists of 20 random ids, sums over the lists. Ours is a compiled model (model.py),
whose ops are timed by its profile; FBGEMM gets the same sizes with ids that are row numbers, which ours finds first:
that is told apart. Both run in turns, a step each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
TABLES, WIDTH, RATE = 8, 64, 0.05
WARM_UP = 8  # steps that do not count: both get faster while the machine finds huge pages


def build() -> Path:
    """The program of ours.cpp with the compiled model in it."""
    import genrec as gr
    import model

    folder = native.BUILD / "bench" / "pooled_lookup"
    folder.mkdir(parents=True, exist_ok=True)
    gr.write_model(gr.record(model.Pooled(), model.schema()), folder / "model.genrec")
    compiler = native.BUILD / "bin" / "genrec-compile"
    subprocess.run([compiler, folder / "model.genrec", "--emit=object", "-o", folder / "model.o"], check=True)
    return native.compile_program(HERE / "ours.cpp", [str(folder / "model.o"), *native.runtime_libraries()])


class Fbgemm:
    """FBGEMM's tables of the same sizes."""

    def __init__(self, args) -> None:
        import torch
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        torch.set_num_threads(args.threads)
        self.torch, self.args = torch, args
        self.clock = time.perf_counter  # as our profile's
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(args.rows, WIDTH, EmbeddingLocation.HOST, ComputeDevice.CPU)] * TABLES,
            optimizer=EmbOptimType.EXACT_ADAGRAD,
            learning_rate=RATE,
        )
        self.tables.init_embedding_weights_uniform(-0.01, 0.01)
        self.offsets = torch.arange(TABLES * args.batch + 1) * args.ids
        self.gradient = torch.ones(args.batch, TABLES * WIDTH)

    def step(self) -> dict[str, float]:
        """Seconds of one forward, and of one backward with its update."""
        ids = self.torch.randint(0, self.args.rows, (TABLES * self.args.batch * self.args.ids,))
        begin = self.clock()
        sums = self.tables(ids, self.offsets)
        middle = self.clock()
        sums.backward(self.gradient)
        return {"pool": middle - begin, "backward": self.clock() - middle}


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, rows=1_000_000, batch=2048, ids=20, rounds=15)
    args, _ = parser.parse_known_args()
    program = build()
    try:
        peer = Fbgemm(args)
    except ImportError as error:
        native.skipped(
            "pooled_lookup", f"no FBGEMM ({error}); scripts/setup-torch installs it, then use build/venv-torch"
        )
        return 0
    words = [str(program), *(str(word) for word in (args.threads, args.rows, args.batch, args.ids))]
    steps: dict[str, list[dict[str, float]]] = {"genrec": [], "FBGEMM": []}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        limits = json.loads(process.stdout.readline())
        for _ in range(WARM_UP + args.rounds):
            process.stdin.write("\n")
            process.stdin.flush()
            steps["genrec"].append(json.loads(process.stdout.readline()))
            steps["FBGEMM"].append(peer.step())
        process.stdin.close()
    times = {
        name: native.medians({part: [step[part] for step in all_steps[WARM_UP:]] for part in all_steps[0]})
        for name, all_steps in steps.items()
    }
    picked = TABLES * args.batch * args.ids
    distinct = TABLES * args.rows * (1 - (1 - 1 / args.rows) ** (args.batch * args.ids))
    ours, theirs = times["genrec"], times["FBGEMM"]
    rows = [
        native.summary(
            "pooled lookup", "ms", ours["pool"] * 1e3, "FBGEMM", theirs["pool"] * 1e3, asked=1.1,
            limit="random rows read", limit_share=limits["seconds_per_row_read"] * picked / ours["pool"],
        ),
        native.summary(
            "pooled lookup, ids found first", "ms", (ours["find"] + ours["pool"]) * 1e3, "FBGEMM (row numbers)",
            theirs["pool"] * 1e3,
        ),
        native.summary(
            "pooled lookup, backward + Adagrad", "ms", ours["backward"] * 1e3, "FBGEMM", theirs["backward"] * 1e3,
            asked=5, limit="random rows read and written",
            limit_share=limits["seconds_per_row_written"] * distinct / ours["backward"],
        ),
    ]  # fmt: skip
    native.finish("pooled_lookup", args, rows, {"limits": limits, "steps": steps})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
