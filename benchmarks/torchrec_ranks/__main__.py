"""Training on two processes: 26 tables of 100,000 x 64 with Adagrad and an MLP, beside TorchRec on gloo.

    build/venv/bin/python benchmarks/torchrec_ranks [--ranks N] [--torch <Python with PyTorch>]

The same skewed ids and labels, a batch of 1,024 rows per rank, one thread each. TorchRec is installed beside
build/venv-torch (scripts/setup-torch), into build/torchrec; its tables are dealt to processes whole, ours row by row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "common"), str(HERE.parent / "hstu_train"), str(HERE.parents[1] / "python")]

import genrec as gr  # noqa: E402
import native  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from genrec import nn  # noqa: E402
from sides import BUILD, Ours, Side, run  # noqa: E402

PACKAGES = (
    "torchrec==1.9.2 torchmetrics lightning-utilities tensordict pyre-extensions typing-inspect mypy_extensions iopath "
    "portalocker tqdm orjson cloudpickle pyvers"
)
FEATURES, ROWS, DIM, BATCHES = 26, 100_000, 64, 8
ASKED = 8


class Ranker(gr.Model):
    """Looked-up rows of all features, side by side, through an MLP."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.01), name="Ranker")
        self.tables = [gr.Table(f"t{i}", dim=DIM, init=gr.init.uniform(ROWS**-0.5)) for i in range(FEATURES)]
        self.mlp = nn.MLP([FEATURES * DIM, 256, 64, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        """The loss."""
        rows = [table(getattr(batch, f"f{i}")) for i, table in enumerate(self.tables)]
        gr.loss.bce_with_logits(self.mlp(gr.concat(*rows)).squeeze(), batch.label)


def draw(ranks: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids [batches, ranks, features, batch], half of which are one of each feature, and labels."""
    random = np.random.default_rng(1)
    uniform = 1 - random.random((BATCHES, ranks, FEATURES, batch))
    ids = np.minimum(1 / uniform, 1e9).astype(np.int64) * 2654435761 % ROWS
    return ids, random.random((BATCHES, ranks, batch), dtype=np.float32)


def write(ids: np.ndarray, labels: np.ndarray, out: Path) -> tuple[Path, Path]:
    """For us a file of rows, in which a rank's rows of a batch lie together; for the peer the arrays."""
    columns = {f"f{i}": pa.array(ids[:, :, i].reshape(-1)) for i in range(FEATURES)}
    table = pa.table(columns | {"label": pa.array(labels.reshape(-1))})
    pq.write_table(table, out / "train.parquet")
    np.savez(out / "ids.npz", ids=ids, labels=labels, rows=ROWS, dim=DIM)
    return out / "train.parquet", out / "ids.npz"


class Ranks(Ours):
    """Our binary under mpirun."""

    def __init__(self, name: str, binary: Path, data: Path, ranks: int, batch: int, warm_up: int, *flags: str) -> None:
        super().__init__(name, binary, data, Path(), batch, 1, warm_up)
        at = self.command.index("--init")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        launcher = ["mpirun", *root, "--bind-to", "core", "-n", str(ranks)] if ranks > 1 else []
        self.command = [*launcher, *self.command[:at], *self.command[at + 2 :], *flags]


class TorchRec(Side):
    """TorchRec's processes, started anew every turn."""

    def __init__(self, name: str, python: Path, packages: Path, ids: Path, ranks: int, warm_up: int) -> None:
        super().__init__(name, warm_up)
        launcher = [python, "-m", "torch.distributed.run", "--nproc_per_node", ranks, HERE / "peer.py", ids]
        self.command = [str(word) for word in launcher]
        self.environment = os.environ | {"PYTHONPATH": str(packages), "OMP_NUM_THREADS": "1"}

    def take_turn(self, steps: int) -> None:  # noqa: D102
        command = [*self.command, str(steps), str(self.warm_up)]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"seconds"')]
        if done.returncode or not lines:
            sys.exit(f"[bench]   error: {self.name} failed\n{done.stderr}")
        answer = json.loads(lines[-1])
        self.seconds += answer["seconds"]
        self.first_losses = self.first_losses or answer["losses"]


def install(python: Path) -> Path:
    """The folder with TorchRec and what it needs beside PyTorch."""
    folder = BUILD / "torchrec"
    if not (folder / "torchrec").exists():
        print(f"[bench]   installing TorchRec into {folder} …", flush=True)
        run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *PACKAGES.split())
    return folder


def main() -> None:
    """Compares, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", type=Path, default=BUILD / "venv-torch" / "bin" / "python")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1024, help="rows per rank and step")
    parser.add_argument("--warm-up", type=int, default=16, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=40, help="timed steps per round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; in each, every side has its turn")
    parser.add_argument("--out", type=Path, default=BUILD / "bench" / "torchrec_ranks")
    parser.add_argument("--results", type=Path, default=native.RESULTS, help="folder of the results")
    args, _ = parser.parse_known_args()
    if not shutil.which("mpirun"):
        return native.skipped("torchrec_ranks", "there is no mpirun")
    if not args.torch.exists():
        return native.skipped("torchrec_ranks", f"no Python with PyTorch at {args.torch}; scripts/setup-torch makes it")
    args.out.mkdir(parents=True, exist_ok=True)
    data, ids = write(*draw(args.ranks, args.batch), args.out)
    packages = install(args.torch)
    schema = gr.Schema({f"f{i}": gr.int64 for i in range(FEATURES)} | {"label": gr.float32})
    gr.compile(Ranker(), schema, output=args.out / "ranker")
    ours = (args.out / "ranker", data, args.ranks, args.ranks * args.batch, args.warm_up)
    sides: list[Side] = [
        Ranks("genrec", *ours),
        Ranks("without deduplication", *ours, "--deduplicate", "none"),
        TorchRec("TorchRec, gloo", args.torch, packages, ids, args.ranks, args.warm_up),
    ]  # fmt: skip
    for turn in range(args.rounds):
        for side in sides:
            side.take_turn(args.steps)
        shown = ", ".join(f"{side.name} {side.median * 1e3:.2f} ms" for side in sides)
        print(f"[bench]   round {turn + 1} of {args.rounds}: {shown}", flush=True)
    merged, plain, theirs = sides
    what = f"{FEATURES} tables of {ROWS:,} x {DIM}, a step on {args.ranks} ranks"
    rows = [
        native.summary(what, "ms", merged.median * 1e3, theirs.name, theirs.median * 1e3, asked=ASKED),
        native.summary(what, "ms", merged.median * 1e3, plain.name, plain.median * 1e3, asked=1.5),
    ]
    details = {
        "step_seconds": {side.name: side.median for side in sides},
        "all_step_seconds": {side.name: side.seconds for side in sides},
        "first_losses": {side.name: side.first_losses[:3] for side in sides},
        "last_losses": {side.name: side.first_losses[-1] for side in sides},
    }
    for name in ("torch", "out"):  # where files lie on this machine
        delattr(args, name)
    native.finish("torchrec_ranks", args, rows, details)


if __name__ == "__main__":
    main()
