"""Compiles and trains this example on data of genrec-datagen, whose truth is known.

python examples/search_ranking/train.py [--users 2000] [--epochs 2] [--columns 660]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import genrec as gr

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1])]

from columns import read_schema  # noqa: E402
from example import generate  # noqa: E402
from model import SearchRanker  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Data, compilation, training, results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=660, help="feature columns to generate, and so of the model")
    parser.add_argument("--users", type=int, default=2000, help="users to generate")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="requests per step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "search_ranking", help="folder of the results")
    args = parser.parse_args()
    data = args.out / "data"
    print(generate(data, kind="search", columns=args.columns, users=args.users, seed=args.seed))

    schema = read_schema(data / "train.parquet")
    begin = time.perf_counter()
    model = gr.compile(SearchRanker(schema), schema, output=args.out / "model", keep_cpp=args.out / "model.cpp")
    print(f"{model.summary()}; recorded and compiled in {time.perf_counter() - begin:.1f} s")
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
    model.predict(
        data / "valid.parquet", args.out / "probabilities.parquet", keys=["request_id"], threads=args.threads,
        checkpoint=args.out / "checkpoint",
    )  # fmt: skip
    references = json.loads((data / "references.json").read_text())["informed ranking"]
    print(f"\n{'':<22}{'click AUC':>11}{'click GAUC':>11}{'order AUC':>11}")
    ours = "".join(f"{run.metrics[name]:>11.4f}" for name in ("click auc", "click gauc", "order auc"))
    print(f"{'this model':<22}{ours}")
    print(f"{'informed ranking':<22}{references['click']:>11.4f}{'':>11}{references['order']:>11.4f}")
    print(f"{'':<22}('informed ranking' knows the probabilities that clicks and orders were drawn with)")


if __name__ == "__main__":
    main()
