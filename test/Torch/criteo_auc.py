"""Test AUC of the PyTorch models beside that of examples/criteo_dlrm/train.py, seed by seed, with a paired bootstrap.

    build/venv/bin/python examples/criteo_dlrm/train.py --model dlrm
    build/venv-torch/bin/python test/Torch/criteo_auc.py --model dlrm

Same split, batch, epochs, optimizer and distributions of initial values; each side has its own shuffles and draws.
The bootstrap resamples the test rows and compares the mean AUC over the seeds on each sample.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import criteo
import numpy as np
import polars as pl
import torch

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = 1000


def area_under_curve(score: np.ndarray, label: np.ndarray) -> float:
    """The probability that a positive scores above a negative, ties counting half."""
    distinct, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    positives = label.sum()
    wins = ranks[place][label > 0.5].sum() - positives * (positives + 1) / 2
    return float(wins / positives / (len(label) - positives))


def train(name: str, rows: criteo.Rows, test: criteo.Rows, ids, seed: int, args: argparse.Namespace) -> np.ndarray:
    """The logits of the test rows after training."""
    model = criteo.Ranker(name, criteo.initial_weights(name, ids, seed))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.rate)
    shuffle = torch.Generator().manual_seed(seed)
    for _ in range(args.epochs):
        for chosen in torch.randperm(len(rows), generator=shuffle).split(args.batch):
            loss = model.loss(rows[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return model(test).numpy()


def main() -> None:
    """Trains the peer and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("dlrm", "dcnv2"), default="dlrm")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "criteo", help="folder of train.py's results")
    args = parser.parse_args()
    folder = args.out / args.model
    frames = {name: criteo.load(folder / "data" / f"{name}.parquet") for name in ("train", "test")}
    ids = criteo.vocabulary(list(frames.values()))
    rows, test = criteo.read(frames["train"], ids), criteo.read(frames["test"], ids)
    label = test.label.numpy()
    ours, theirs = [], []
    print(f"{'':<8}{'genrec':>9}{'PyTorch':>9}")
    for seed in map(int, args.seeds.split(",")):
        predicted = pl.read_parquet(folder / f"test{seed}.parquet")
        assert (predicted["label"].to_numpy() == label).all(), "predictions are in the order of the file"
        ours.append(predicted["probability"].to_numpy())
        theirs.append(train(args.model, rows, test, ids, seed, args))
        print(f"seed {seed:<3}{area_under_curve(ours[-1], label):>9.4f}{area_under_curve(theirs[-1], label):>9.4f}")

    def difference(sample: np.ndarray) -> float:
        mean = [np.mean([area_under_curve(one[sample], label[sample]) for one in side]) for side in (ours, theirs)]
        return float(mean[0] - mean[1])

    everything = np.arange(len(label))
    random = np.random.default_rng(1)
    sampled = [difference(random.integers(0, len(label), len(label))) for _ in range(SAMPLES)]
    print(
        f"difference of the means {difference(everything):+.4f}, "
        f"standard error {np.std(sampled):.4f} (paired bootstrap)"
    )


if __name__ == "__main__":
    main()
