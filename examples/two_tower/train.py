"""Trains the two-tower model on MovieLens, and ranks each user's last item among all.

    python examples/two_tower/train.py [--data <folder>] [--loss in_batch|uncorrected|sampled] [--epochs 10]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import genrec as gr
from genrec import data

sys.path.insert(0, str(Path(__file__).parent))

from model import TwoTower  # noqa: E402
from prepare import prepare  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LOSSES = {"in_batch": {}, "uncorrected": {"corrected": False}, "sampled": {"negatives": 128}}


def main() -> None:
    """Prepares, compiles, trains, evaluates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data" / "ml-1m", help="MovieLens' folder"
    )
    parser.add_argument("--loss", choices=LOSSES, default="in_batch")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument(
        "--batch", type=int, default=1024, help="positives per step: a row has so many negatives less 1"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "two_tower", help="folder of the results")
    given = parser.parse_args()
    try:
        found = prepare(given.data, given.out / "data")
    except data.DataError as error:
        sys.exit(f"train.py: error: {error}; name a folder with --data")
    print(", ".join(f"{count:,} {what}" for what, count in found.items()))
    files = {name: given.out / "data" / f"{name}.parquet" for name in ("train", "valid", "items")}
    model = gr.compile(
        TwoTower(gr.catalogue(files["items"], id="item"), **LOSSES[given.loss]),
        gr.Schema.from_parquet(files["train"]), output=given.out / given.loss,
    )  # fmt: skip
    run = model.train(
        files["train"], validation=files["valid"], epochs=given.epochs, batch=given.batch, seed=given.seed,
        threads=given.threads, checkpoint=given.out / f"{given.loss}.checkpoint", overwrite=True,
    )  # fmt: skip
    print(", ".join(f"{name} {value:.4f}" for name, value in run.metrics.items()))


if __name__ == "__main__":
    main()
