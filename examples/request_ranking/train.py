"""Compiles and trains this example on data of genrec-datagen, whose truth is known.

python examples/request_ranking/train.py [--users 20000] [--epochs 3]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import genrec as gr

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1])]

from example import generate  # noqa: E402
from model import Ranker  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Data, compilation, training, results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20000, help="users to generate")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256, help="requests per step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "request_ranking", help="folder of the results")
    args = parser.parse_args()
    data = args.out / "data"
    print(generate(data, kind="requests", users=args.users, seed=args.seed))
    references = json.loads((data / "references.json").read_text())

    schema = gr.Schema.from_parquet(data / "train.parquet")
    model = gr.compile(Ranker(), schema, output=args.out / "model", keep_cpp=args.out / "model.cpp")
    print(model.summary())
    run = model.train(
        data / "train.parquet",
        validation=data / "valid.parquet",
        epochs=args.epochs,
        batch=args.batch,
        seed=args.seed,
        threads=args.threads,
        checkpoint=args.out / "checkpoint",
        overwrite=True,
        metrics_json=args.out / "metrics.json",
    )
    print(f"\n{'':<22}{'AUC':>10}")
    for name, auc in (
        ("popularity", references["popularity"]["auc"]),
        ("this model", run.metrics["click"]),
        ("informed ranking", references["informed ranking"]["auc"]),
    ):
        print(f"{name:<22}{auc:>10.4f}")
    print(f"{'':<22}('informed ranking' knows each user's true taste)")


if __name__ == "__main__":
    main()
