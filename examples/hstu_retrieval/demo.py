"""`make demo`: compiles and trains this example, and compares it with references.

Without `--data` it generates data with known truth (genrec-datagen), so that a reference is the ranker that knows each
user's true taste. With ``--data <folder>`` it trains on MovieLens-1M, and the upper reference is what the
public PyTorch code reached there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import genrec as gr

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1])]

from example import generate  # noqa: E402
from model import Retrieval  # noqa: E402
from prepare import prepare  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("hr@10", "hr@50", "hr@200", "ndcg@10", "ndcg@50", "ndcg@200", "mrr")

# meta-recsys/generative-recommenders (research folder), its MovieLens-1M configuration, one seed, epoch 100, on the
# same events with constant timestamps.
PUBLIC_CODE = {"hr@10": 0.2924, "ndcg@10": 0.1690, "hr@50": 0.5651, "mrr": 0.1473}


def say(stage: str, text: str) -> None:
    """One line of progress."""
    print(f"{'[' + stage + ']':<10}{text}", flush=True)


def convert(folder: Path, out: Path) -> tuple[dict[str, dict[str, float]], bool]:
    """MovieLens to the data set; returns the references and whether events carry times."""
    try:
        found = prepare(folder, out)
    except gr.data.DataError as error:
        sys.exit(f"demo: error: {error}")
    say("data", f"{found['users']:,} users, {found['events']:,} events, {found['items']:,} items from {folder}")
    return {"popularity": popularity(out), "public PyTorch code": PUBLIC_CODE}, bool(found["times"])


def popularity(out: Path) -> dict[str, float]:
    """What ranking by the number of events in training reaches, the user's history excluded."""
    import numpy as np
    import polars as pl

    train = pl.read_parquet(out / "train.parquet")
    valid = pl.read_parquet(out / "valid.parquet")
    items = pl.read_parquet(out / "items.parquet")["item"].to_numpy()
    place = {int(item): row for row, item in enumerate(items)}
    counts = np.zeros(len(items))
    events = train["history"].explode().struct.field("item")
    for item, count in events.value_counts().iter_rows():
        counts[place[item]] = count
    ranks = []
    for history, target in zip(valid["history"], valid["held_out"], strict=True):
        own = place[target]
        better = counts >= counts[own]
        better[[place[item] for item in history.struct.field("item").tail(200)]] = False
        better[own] = False
        ranks.append(1 + int(better.sum()))
    rank = np.array(ranks)
    result = {"mrr": float((1 / rank).mean())}
    for cut in (10, 50, 200):
        result[f"hr@{cut}"] = float((rank <= cut).mean())
        result[f"ndcg@{cut}"] = float(((rank <= cut) / np.log2(rank + 1)).mean())
    return result


def table(rows: dict[str, dict[str, float]]) -> str:
    """The metrics of each ranker, one line each; a figure that is not known is left blank."""
    lines = [" " * 22 + "".join(f"{name.upper():>10}" for name in COLUMNS)]
    for name, metrics in rows.items():
        cells = (f"{metrics[c]:>10.4f}" if c in metrics else " " * 10 for c in COLUMNS)
        lines.append(f"{name:<22}" + "".join(cells))
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of MovieLens-1M; without it data is generated")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="folder of the results")
    parser.add_argument("--users", type=int, default=20000, help="users to generate")
    parser.add_argument("--epochs", type=int, help="default: 20 on generated data, 101 on MovieLens-1M")
    parser.add_argument("--batch", type=int, default=128, help="users per step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="default: all cores")
    return parser.parse_args()


def main() -> None:
    """Data, compilation, training, results."""
    args = parse_arguments()
    out: Path = args.out
    data = out / "data"
    data.mkdir(parents=True, exist_ok=True)
    if args.data:
        references, _ = convert(args.data, data)
    else:
        say("data", generate(data, users=args.users, seed=args.seed))
        references = json.loads((data / "references.json").read_text())
    epochs = args.epochs or (101 if args.data else 20)

    begin = time.perf_counter()
    schema = gr.Schema.from_parquet(data / "train.parquet", data / "valid.parquet")
    model = gr.compile(
        Retrieval(gr.catalogue(data / "items.parquet", id="item")),
        schema,
        output=out / "model",
        keep_cpp=out / "model.cpp",
    )
    say("compile", f"{model.summary()}, {time.perf_counter() - begin:.1f} s   ({out / 'model.cpp'})")

    run = model.train(
        data / "train.parquet",
        validation=data / "valid.parquet",
        epochs=epochs,
        batch=args.batch,
        seed=args.seed,
        threads=args.threads,
        eval_every=max(1, epochs // 10),
        checkpoint=out / "checkpoint",
        overwrite=True,  # the demo is run again and again
        metrics_json=out / "metrics.json",
    )
    run.plot(out / "curve.png", references={name: row.get("hr@10") for name, row in references.items()})
    names = list(references)
    print()
    print(table({names[0]: references[names[0]], "this model": run.metrics, names[1]: references[names[1]]}))
    if not args.data:
        print(f"{'':<22}('{names[1]}' knows each user's true taste)")
    print(f"Wrote {out}/{{metrics.json, curve.png, model, model.cpp, checkpoint/}}")
    print(
        "Next: make demo DATA=<MovieLens-1M folder> · docs/guide.md · "
        "build/bin/genrec-compile --explain build/demo/model.genrec"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ndemo: interrupted; run make demo again to start over")
    except (gr.GenRecError, OSError) as error:  # a full disk, a folder that cannot be written
        sys.exit(f"demo: error: {error}")
