"""Trains the news ranker on a log in MIND's layout, and scores it as papers do.

python examples/news_request_ranking/train.py [--impressions 5] [--epochs 3]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import genrec as gr
import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))

import metrics  # noqa: E402
from model import NewsRanker  # noqa: E402
from prepare import prepare  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT.parent / "shared" / "data" / "mind-small-sample" / "behaviors.tsv.zst"
COLUMNS = ("auc", "mrr", "ndcg@5", "ndcg@10")


def impressions(file: Path) -> pl.DataFrame:
    """request, item and label of every impression of a prepared file, in its order."""
    return pl.read_parquet(file).select("request", "impression").explode("impression").unnest("impression")


def popularity(train: pl.DataFrame, test: pl.DataFrame) -> np.ndarray:
    """How often each item of the test impressions was clicked when shown in training; the mean for unseen ones."""
    prior = train["label"].mean()
    rates = train.group_by("item").agg(rate=(pl.col("label").sum() + 10 * prior) / (pl.len() + 10))
    return test.join(rates, on="item", how="left", maintain_order="left")["rate"].fill_null(prior).to_numpy()


def main() -> None:
    """Prepares, compiles, trains, predicts, scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=LOG, help="behaviors.tsv of MIND, plain or compressed")
    parser.add_argument("--impressions", type=int, default=0, help="impressions kept per request (default: all)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="requests per step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "news", help="folder of the results")
    args = parser.parse_args()
    if not args.data.exists():
        sys.exit(f"train.py: error: there is no log at {args.data}; name one with --data")
    data, files = args.out / "data", {name: args.out / "data" / f"{name}.parquet" for name in ("train", "test")}
    found = prepare(args.data, data, args.impressions)
    print(
        f"{found['train']:,} requests, {found['impressions']:.1f} impressions and {found['history']:.1f} news read each"
    )
    schema = gr.Schema.from_parquet(files["train"])
    model = gr.compile(NewsRanker(), schema, output=args.out / "model", keep_cpp=args.out / "model.cpp")
    print(model.summary())
    run = model.train(
        files["train"], validation=files["test"], epochs=args.epochs, batch=args.batch, seed=args.seed,
        threads=args.threads, checkpoint=args.out / "checkpoint", overwrite=True,
        metrics_json=args.out / "metrics.json",
    )  # fmt: skip
    predicted = model.predict(files["test"], args.out / "clicks.parquet", checkpoint=args.out / "checkpoint")
    test = impressions(files["test"])
    scores = {
        "popularity": popularity(impressions(files["train"]), test),
        "this model": pl.read_parquet(predicted)["probability"].to_numpy(),
    }
    request, label = test["request"].to_numpy(), test["label"].to_numpy()
    results = {name: metrics.mean(request, score, label) for name, score in scores.items()}
    print(f"\n{'':<14}" + "".join(f"{name.upper():>10}" for name in COLUMNS))
    for name, result in results.items():
        print(f"{name:<14}" + "".join(f"{result[column]:>10.4f}" for column in COLUMNS))
    print(f"{'':<14}(means over requests; over all impressions the model's AUC is {run.metrics['auc']:.4f})")
    (args.out / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
