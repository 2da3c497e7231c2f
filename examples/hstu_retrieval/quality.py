"""Ranking quality of an example on MovieLens, as papers report it: several seeds, the mean of the last evaluations.

    python examples/hstu_retrieval/quality.py                                    HSTU on MovieLens-1M, seeds 1, 2 and 3
    python examples/hstu_retrieval/quality.py --model sasrec                     SASRec, the same way
    python examples/hstu_retrieval/quality.py --time-bias --data <ml-100k>       with relative time bias
    python examples/hstu_retrieval/quality.py --mixed-precision                  products of bfloat16

Every seed trains 101 epochs. The public code counts epochs from 0 and is quoted at its epochs 80, 85, …, 100; the same
amounts of training end after the epochs 81, 86, …, 101 as counted here.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import genrec as gr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from example import load_example  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {"hstu": ("hstu_retrieval", "Retrieval"), "sasrec": ("sasrec", "SASRec")}
COLUMNS = ("hr@10", "ndcg@10", "hr@50", "ndcg@50", "hr@200", "ndcg@200", "mrr")
WHOLE = "whole history excluded."


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=EXAMPLES, default="hstu")
    parser.add_argument(
        "--time-bias", action="store_true", help="HSTU with relative time bias; the data must have times"
    )
    parser.add_argument("--mixed-precision", action="store_true", help="products of bfloat16")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "ml-1m", help="MovieLens folder")
    parser.add_argument("--seeds", default="1,2,3", help="comma-separated")
    parser.add_argument("--epochs", type=int, default=101)
    parser.add_argument("--eval-epochs", default="81,86,91,96,101", help="comma-separated, counted from 1")
    parser.add_argument("--batch", type=int, default=128, help="users per step")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "quality", help="folder of the results")
    args = parser.parse_args()
    if args.time_bias and args.model != "hstu":
        parser.error("--time-bias is an option of --model hstu")
    return args


def compile_model(args: argparse.Namespace, data: Path, out: Path) -> gr.CompiledModel:
    """The example, for the data that `prepare` wrote."""
    example, name = EXAMPLES[args.model]
    options = {"time_bias": True} if args.time_bias else {}
    model = getattr(load_example(example, "model"), name)(gr.catalogue(data / "items.parquet", id="item"), **options)
    schema = gr.Schema.from_parquet(data / "train.parquet", data / "valid.parquet")
    return gr.compile(model, schema, output=out / "model", mixed_precision=args.mixed_precision)


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def train(model: gr.CompiledModel, args: argparse.Namespace, data: Path, out: Path, seed: int) -> dict[str, float]:
    """One seed; the mean of its evaluations."""
    run = model.train(
        data / "train.parquet",
        validation=data / "valid.parquet",
        epochs=args.epochs,
        eval_epochs=[int(epoch) for epoch in args.eval_epochs.split(",")],
        batch=args.batch,
        threads=args.threads,
        seed=seed,
        checkpoint=False,
        metrics_json=out / f"seed{seed}.json",
    )
    return mean([record["evaluation"]["metrics"] for record in run.history if "evaluation" in record])


def table(rows: dict[str, dict[str, float]], prefix: str = "") -> str:
    """One line per row; metrics whose name begins with `prefix`."""
    lines = [" " * 10 + "".join(f"{name.upper():>10}" for name in COLUMNS)]
    for name, row in rows.items():
        lines.append(f"{name:<10}" + "".join(f"{row[prefix + column]:>10.4f}" for column in COLUMNS))
    return "\n".join(lines)


def main() -> None:
    """Prepares, compiles, trains every seed, prints and writes the results."""
    args = parse_arguments()
    variant = ("_time" if args.time_bias else "") + ("_bf16" if args.mixed_precision else "")
    out: Path = args.out / (args.model + variant)
    data = out / "data"
    try:
        found = load_example("hstu_retrieval", "prepare").prepare(args.data, data)
    except gr.data.DataError as error:
        sys.exit(f"quality.py: error: {error}")
    if args.time_bias and not found["times"]:
        sys.exit(f"quality.py: error: {args.data} has no times, which --time-bias needs; MovieLens-100K has them")
    model = compile_model(args, data, out)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    rows = {f"seed {seed}": train(model, args, data, out, seed) for seed in seeds}
    rows["mean"] = mean(list(rows.values()))
    print(f"\n{args.model}, {found['users']:,} users, mean of epochs {args.eval_epochs}")
    print("the items of the model's own history excluded")
    print(table(rows))
    if WHOLE + COLUMNS[0] in rows["mean"]:
        print("the whole history excluded")
        print(table(rows, WHOLE))
    (out / "quality.json").write_text(
        json.dumps({"arguments": {k: str(v) for k, v in vars(args).items()}, **rows}, indent=1)
    )
    print(f"wrote {out / 'quality.json'}")


if __name__ == "__main__":
    main()
