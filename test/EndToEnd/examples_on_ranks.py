#!/usr/bin/env python3
"""Trains every example on 1 to 4 ranks, in 12 portions: equal losses of every step, equal metrics, equal bytes saved.

    build/venv/bin/python test/EndToEnd/examples_on_ranks.py [--only dlrm,hstu] [--ranks 1,2,3,4] [--out folder]
    build/venv/bin/python test/EndToEnd/examples_on_ranks.py --random 20 [--seed 1]

Each runs on one process first, then on every number of ranks with every --overlap; at last on 1 rank, resumed on 4, on 2
and on 3. With --random, runs with flags drawn by the seed take the place of those: the flags that change what is trained
are given to one process, too, and those that must not change it to the ranks alone. MovieLens-100K, MIND and the click log are read from ../shared/data; an example whose data is not there is said
to be left out, HSTU and SASRec then train on generated histories. Prints a table of checksums; the status is 1 where any
run differs. Takes some minutes, so it is not part of make check.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import genrec as gr
import polars as pl
from launching import launcher

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
PORTIONS, STEPS, EPOCHS = 12, 24, 2
CHAIN = ((1, 5), (4, 11), (2, 14), (3, STEPS))  # ranks, and the step that they stop after

sys.path.insert(0, str(ROOT / "examples"))
from example import generate, load_example  # noqa: E402


@dataclass
class Example:
    """A model, and the files that it trains on and is evaluated on."""

    model: gr.Model
    schema: gr.Schema
    train: Path
    valid: Path
    batch: int

    @staticmethod
    def cut(path: Path, rows: int) -> Path:
        """The first rows of a file, in its place, in small row groups."""
        frame = pl.read_parquet(path).head(rows)
        frame.write_parquet(path, row_group_size=50)
        return path


def histories(folder: Path) -> None:
    """train, valid and items.parquet of MovieLens-100K, or as genrec-datagen makes them."""
    if (SHARED / "ml-100k").exists():
        load_example("hstu_retrieval", "prepare").prepare(SHARED / "ml-100k", folder)
    else:
        generate(folder, users=700, seed=1)
    Example.cut(folder / "train.parquet", 600)
    Example.cut(folder / "valid.parquet", 60)


def retrieval(example: str, name: str) -> Callable[[Path], Example]:
    def make(folder: Path) -> Example:
        histories(folder)
        train, valid = folder / "train.parquet", folder / "valid.parquet"
        model = getattr(load_example(example, "model"), name)(gr.catalogue(folder / "items.parquet", id="item"))
        return Example(model, gr.Schema.from_parquet(train, valid), train, valid, batch=50)

    return make


def two_tower(folder: Path) -> Example:
    generate(folder, users=300, seed=1)
    load_example("two_tower", "prepare").from_histories(folder, 8)
    train, valid = (Example.cut(folder / f"{name}.parquet", rows) for name, rows in (("train", 1200), ("valid", 300)))
    model = load_example("two_tower", "model").TwoTower(gr.catalogue(folder / "items.parquet", id="item"))
    return Example(model, gr.Schema.from_parquet(train), train, valid, batch=100)


def request_ranking(folder: Path) -> Example:
    generate(folder, kind="requests", users=700, seed=1)
    train, valid = (Example.cut(folder / f"{name}.parquet", rows) for name, rows in (("train", 1500), ("valid", 300)))
    return Example(
        load_example("request_ranking", "model").Ranker(), gr.Schema.from_parquet(train), train, valid, batch=125
    )


def news_ranking(folder: Path) -> Example:
    load_example("news_request_ranking", "prepare").prepare(
        SHARED / "mind-small-sample" / "behaviors.tsv.zst", folder, 5
    )
    train, valid = (Example.cut(folder / f"{name}.parquet", rows) for name, rows in (("train", 720), ("test", 100)))
    return Example(
        load_example("news_request_ranking", "model").NewsRanker(),
        gr.Schema.from_parquet(train),
        train,
        valid,
        batch=60,
    )


def clicks(example: str, name: str, **table: Any) -> Callable[[Path], Example]:
    def make(folder: Path) -> Example:
        prepare = load_example("criteo_dlrm", "prepare")
        prepare.prepare(SHARED / "criteo-80k" / "criteo_80k.tsv.zst", folder)
        train, valid = (
            Example.cut(folder / f"{name}.parquet", rows) for name, rows in (("train", 3000), ("test", 500))
        )
        return Example(
            getattr(load_example(example, "model"), name)(table=table), prepare.SCHEMA, train, valid, batch=250
        )

    return make


def search_ranking(folder: Path) -> Example:
    generate(folder, kind="search", columns=60, users=300, seed=1)
    sys.path.insert(0, str(ROOT / "examples" / "search_ranking"))  # its model imports `columns`
    columns, model = importlib.import_module("columns"), importlib.import_module("model")
    train, valid = (Example.cut(folder / f"{name}.parquet", rows) for name, rows in (("train", 600), ("valid", 100)))
    schema = columns.read_schema(train)
    return Example(model.SearchRanker(schema), schema, train, valid, batch=50)


EXAMPLES: dict[str, tuple[str, Callable[[Path], Example]]] = {
    "hstu": ("", retrieval("hstu_retrieval", "Retrieval")),
    "sasrec": ("", retrieval("sasrec", "SASRec")),
    "request ranking": ("", request_ranking),
    "news ranking": ("mind-small-sample", news_ranking),
    "dlrm": ("criteo-80k", clicks("criteo_dlrm", "DLRM")),
    "dlrm by rules": ("criteo-80k", clicks("criteo_dlrm", "DLRM", bounded=300, admit_after=2)),
    "dcn v2": ("criteo-80k", clicks("criteo_dcnv2", "DCNv2")),
    "search ranking": ("", search_ranking),
    "two tower": ("", two_tower),
}


@dataclass
class Result:
    """What must not depend on ranks: the loss of every step, evaluations, the tensors that are saved."""

    losses: dict[int, float]
    evaluations: list[Any]
    checksum: str

    def difference(self, other: Result) -> str:
        """What differs; "": nothing. `other` may have a part of the steps."""
        steps = [step for step, loss in other.losses.items() if self.losses.get(step) != loss]
        evaluations = [one for one in other.evaluations if one not in self.evaluations]
        found = [f"the loss of step {steps[0]}"] if steps else []
        found += ["an evaluation"] if evaluations else []
        found += ["what is saved"] if self.checksum != other.checksum else []
        return ", ".join(found)


class FlagError(RuntimeError):
    """A flag that cannot act on the model."""


class Trial:
    def __init__(self, example: Example, folder: Path) -> None:
        self.example, self.folder = example, folder
        gr.compile(example.model, example.schema, output=folder / "model")

    def train(self, name: str, ranks: int, *flags: object) -> Result:
        """On so many ranks; 0: one process without a launcher."""
        usual = {"--batch": self.example.batch, "--seed": 3, "--portions": PORTIONS, "--threads": 1}
        words = [
            *launcher(ranks), self.folder / "model", "train", "--data", self.example.train,
            "--validation", self.example.valid, "--epochs", EPOCHS, "--progress", "json", "--log-every", 1, "--checkpoint", self.folder / name, *flags,
            *(word for flag, value in usual.items() if flag not in flags for word in (flag, value)),
        ]  # fmt: skip
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise (FlagError if "cannot act" in done.stderr else RuntimeError)(
                f"{' '.join(map(str, words))} ends with {done.returncode}: {done.stdout[-300:]}{done.stderr}"
            )
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        losses = {e["step"]: e["loss"] for e in events if e["event"] == "step" and e["phase"] == "train"}
        evaluations = [{k: v for k, v in e.items() if k != "seconds"} for e in events if e["event"] == "evaluation"]
        return Result(losses, evaluations, self._checksum(self.folder / name))

    def _tables(self) -> list[str]:
        """Those that may be replicated: without rules."""
        done = subprocess.run([self.folder / "model", "info", "--json"], capture_output=True, text=True, check=True)
        tables = json.loads(done.stdout)["tables"]
        return [t["name"] for t in tables if not t.keys() & {"bounded", "ttl", "ttl_seconds", "admit_after"}]

    @staticmethod
    def _checksum(checkpoint: Path) -> str:
        newest = json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]["name"]
        return hashlib.sha256((checkpoint / newest / "model.safetensors").read_bytes()).hexdigest()[:16]

    def compare(self, ranks: list[int]) -> tuple[str, dict[str, str]]:
        """The checksum of one process, and what differs by run."""
        alone = self.train("alone", 0)
        if sorted(alone.losses) != list(range(1, STEPS + 1)) or len(alone.evaluations) != EPOCHS:
            raise RuntimeError(
                f"{len(alone.losses)} steps and {len(alone.evaluations)} evaluations instead of {STEPS} and {EPOCHS}"
            )
        found = {}
        for count in ranks:
            for overlap in ("none", "keys", "rows"):
                result = self.train(f"on{count}{overlap}", count, "--overlap", overlap)
                found[f"{count} {overlap}"] = alone.difference(result)
        for count, step in CHAIN:
            chained = self.train(
                "chain", count, "--resume", "--max-steps", step, "--overlap", "rows" if count % 2 else "none"
            )
            if step == STEPS:  # evaluations in the middle of an epoch are the chain's own
                chained.evaluations = [one for one in chained.evaluations if one["step"] == STEPS]
                found["1→4→2→3"] = alone.difference(chained)
        return alone.checksum, found

    def compare_random(self, count: int, seed: int) -> dict[str, str]:
        """What differs, by the flags of a run on ranks."""
        draw, found, number = random.Random(seed), {}, 0
        while len(found) < count:
            number += 1
            ranks = draw.choice((2, 2, 3, 4))
            trained, placed = draw_trained(draw, self.example, ranks), draw_placed(draw, self._tables())
            name = " ".join(map(str, [f"{ranks}:", *trained, *placed]))
            try:
                alone = self.train(f"random{number}", 0, *trained)
            except FlagError:
                continue  # of clipping, for a model without it
            found[name] = alone.difference(self.train(f"random{number}ranks", ranks, *trained, *placed))
        return found


def draw_trained(draw: random.Random, example: Example, ranks: int) -> list[object]:
    """Flags that change what is trained."""
    flags: list[object] = ["--portions", ranks * draw.choice((1, 2, 3)), "--seed", draw.randrange(100)]
    flags += ["--batch", draw.choice((example.batch, example.batch // 2, 2 * example.batch + 1))]
    flags += draw.choice(([], ["--no-shuffle"], ["--shuffle-window", 40]))
    for words in (["--clip-norm", 0.3], ["--clip-value", 0.01], ["--schedule", "cosine"], ["--max-steps", 7],
                  ["--lr", 0.003]):  # fmt: skip
        flags += words if draw.random() < 0.25 else []
    return flags


def draw_placed(draw: random.Random, tables: list[str]) -> list[object]:
    """Flags that say where and when things are done."""
    replicas = ",".join(draw.sample(tables, draw.randint(1, len(tables)))) if tables else ""
    flags: list[object] = ["--overlap", draw.choice(("none", "keys", "rows"))]
    flags += ["--early-gradients", draw.choice(("on", "off", "auto"))]
    for words in (["--replicate", replicas] if replicas else [], ["--shard-optimizer"], ["--deduplicate", "requester"],
                  ["--threads", 2], ["--data-memory", 1], ["--checkpoint-every", 3]):  # fmt: skip
        flags += words if draw.random() < 0.3 else []
    return flags


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(EXAMPLES), help="comma-separated: " + ", ".join(EXAMPLES))
    parser.add_argument("--ranks", default="1,2,3,4", help="comma-separated")
    parser.add_argument("--random", type=int, metavar="RUNS", help="of each example, with flags drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for data, models and checkpoints (default: a temporary one)")
    arguments = parser.parse_args()
    ranks = [int(count) for count in arguments.ranks.split(",")]
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.only.split(","):
            data, make = EXAMPLES[name]
            if data and not (SHARED / data).exists():
                print(f"{name}: left out, {SHARED / data} is not there")
                continue
            folder = (arguments.out or Path(temporary)) / name.replace(" ", "_")
            folder.mkdir(parents=True)
            trial = Trial(make(folder), folder)
            if arguments.random:
                checksum, found = f"seed {arguments.seed}", trial.compare_random(arguments.random, arguments.seed)
            else:
                checksum, found = trial.compare(ranks)
            differing = {run: what for run, what in found.items() if what}
            wrong += len(differing)
            print(
                f"{name:<16} {checksum}  equal: {len(found) - len(differing)} of {len(found)}  {differing or ''}",
                flush=True,
            )
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
