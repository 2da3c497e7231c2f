"""Trains DLRM or DCN v2 on a click log, several seeds, and prints the test AUC of each.

python examples/criteo_dlrm/train.py                       DLRM, seeds 1 to 5
python examples/criteo_dlrm/train.py --model dcnv2         DCN v2, the same way
python examples/criteo_dlrm/train.py --mixed-precision     products of bfloat16
python examples/criteo_dlrm/train.py --row-wise --rows bf16-stochastic       vectors of tables in bfloat16
python examples/criteo_dlrm/train.py --row-wise --admit-after 2 --bounded 10000      tables that take less memory
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import genrec as gr
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from example import load_example  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT.parent / "shared" / "data" / "criteo-80k" / "criteo_80k.tsv.zst"
STORAGE = {
    "f32": {},
    "bf16": {"dtype": "bf16"},
    "bf16-stochastic": {"dtype": "bf16", "rounding": "stochastic"},
}
MODELS = {"dlrm": ("criteo_dlrm", "DLRM"), "dcnv2": ("criteo_dcnv2", "DCNv2")}


def main() -> None:
    """Prepares, compiles, trains every seed, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="dlrm")
    parser.add_argument("--mixed-precision", action="store_true", help="products of bfloat16")
    parser.add_argument("--data", type=Path, default=LOG, help="the log: a .tsv, or .tsv.zst, in Criteo's layout")
    parser.add_argument("--seeds", default="1,2,3,4,5", help="comma-separated")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256, help="rows per step")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--row-wise", action="store_true", help="tables learn by row-wise Adagrad")
    parser.add_argument("--rows", choices=STORAGE, default="f32", help="how tables store their vectors")
    parser.add_argument("--bounded", type=int, metavar="N", help="rows of a table at most")
    parser.add_argument("--admit-after", type=int, metavar="K", help="steps that see an id before it has a row")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "criteo", help="folder of the results")
    args = parser.parse_args()
    if not args.data.exists():
        sys.exit(f"train.py: error: there is no click log at {args.data}; name one with --data")
    out = args.out / (args.model + ("_bf16" if args.mixed_precision else ""))
    prepare = load_example("criteo_dlrm", "prepare")
    rows = prepare.prepare(args.data, out / "data")
    example, name = MODELS[args.model]
    table = {"bounded": args.bounded, "admit_after": args.admit_after, **STORAGE[args.rows]}
    if args.row_wise:
        table["optimizer"] = gr.optim.RowWiseAdagrad(0.01)
    model = getattr(load_example(example, "model"), name)(table=table)
    model = gr.compile(model, prepare.SCHEMA, output=out / "model", mixed_precision=args.mixed_precision)
    print(model.summary())
    results = {}
    for seed in map(int, args.seeds.split(",")):
        run = model.train(
            out / "data" / "train.parquet",
            validation=out / "data" / "test.parquet",
            epochs=args.epochs,
            batch=args.batch,
            seed=seed,
            threads=args.threads,
            checkpoint=out / f"checkpoint{seed}",
            overwrite=True,
            metrics_json=out / f"seed{seed}.json",
        )
        results[seed] = {"auc": run.metrics["auc"], "ne": run.metrics["ne"]}
        model.predict(
            out / "data" / "test.parquet", out / f"test{seed}.parquet", keys=["label"],
            checkpoint=out / f"checkpoint{seed}",
        )  # fmt: skip
    print(f"\n{args.model}, {rows['train']:,} rows trained, {rows['test']:,} tested")
    print(f"{'':<8}{'AUC':>8}{'NE':>8}")
    for seed, result in results.items():
        print(f"seed {seed:<3}{result['auc']:>8.4f}{result['ne']:>8.4f}")
    for metric in ("auc", "ne"):
        values = pl.Series([result[metric] for result in results.values()])
        print(f"mean {metric} {values.mean():.4f}, standard deviation {values.std() or 0:.4f}")
    (out / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
