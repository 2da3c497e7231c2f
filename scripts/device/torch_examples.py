"""Training steps of the examples in PyTorch on this machine's device: what the binaries' times are held against.

    python3 torch_examples.py [--dry-run] [--only NAME] [FILE.json]

The models are those that test/Torch holds the compiled ones to (criteo.py, news.py beside this script), in float
without TF32, eager, with sparse gradients of tables, on random batches of the examples' shapes. A step is what happens
from batches that lie on the device to updated parameters; times are medians between events. Results are written as
peers.py writes them.
"""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import Report, find_torch, milliseconds

CLICK_BATCH, NEWS_BATCH = 2048, 64  # as example.json has them
CLICK_IDS, NEWS_ITEMS, NEWS_USERS = 10_000, 20_000, 5_000
NEWS_SHOWN, BATCHES, SEED = 5, 8, 1


def module(name: str) -> Any:
    """A module of test/Torch; what reads files with polars in it is not called."""
    if "polars" not in sys.modules:
        try:
            __import__("polars")
        except ImportError:
            sys.modules["polars"] = types.ModuleType("polars")
    return __import__(name)


def measure(torch: Any, report: Report, what: str, model: Any, batches: list[Any], optimizers: list[Any]) -> None:
    """The time of a training step, over the batches in turn."""
    turn = 0

    def step() -> None:
        nonlocal turn
        model.loss(batches[turn % len(batches)]).backward()
        turn += 1
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    report.add(f"PyTorch, a step of {what}", milliseconds(torch, step), "ms")


def to_device(torch: Any, rows: Any) -> Any:
    """A dataclass of tensors, on the device."""
    return type(rows)(**{name: value.to("cuda") for name, value in vars(rows).items()})


def clicks(kind: str) -> Callable[[Any, Report], None]:
    """DLRM or DCN v2."""

    def run(torch: Any, report: Report) -> None:
        import numpy as np

        criteo = module("criteo")
        ids = {name: np.arange(CLICK_IDS) for name in criteo.CATEGORIES}
        with torch.device("cpu"):
            model = criteo.Ranker(kind, criteo.initial_weights(kind, ids, SEED))
        model = model.to("cuda")
        draw = np.random.default_rng(SEED)
        batches = [
            to_device(
                torch,
                criteo.Rows(
                    torch.from_numpy(draw.integers(0, 2, CLICK_BATCH).astype(np.float32)),
                    torch.from_numpy(draw.random((CLICK_BATCH, len(criteo.COUNTS)), dtype=np.float32)),
                    torch.from_numpy(draw.zipf(1.2, (CLICK_BATCH, len(criteo.CATEGORIES))) % CLICK_IDS),
                ),
            )
            for _ in range(BATCHES)
        ]
        sparse = [p for name, p in model.weights.items() if name.endswith(".values")]
        dense = [p for name, p in model.weights.items() if not name.endswith(".values")]
        optimizers = [torch.optim.SparseAdam(sparse, lr=1e-3), torch.optim.Adam(dense, lr=1e-3, fused=True)]
        measure(torch, report, f"criteo_{kind}", model, batches, optimizers)

    return run


def news(torch: Any, report: Report) -> None:
    """The history once per request, as the compiler makes the model."""
    import numpy as np

    source = module("news")
    draw = np.random.default_rng(SEED)
    ids = {"item": np.arange(NEWS_ITEMS), "user": np.arange(NEWS_USERS)}
    with torch.device("cpu"):
        model = source.Ranker(source.initial_weights(ids, SEED), deferred=True)
        rows = NEWS_BATCH * BATCHES
        log = source.Log(
            ids,
            draw.integers(0, NEWS_USERS, rows),
            [draw.integers(0, NEWS_ITEMS, draw.integers(10, source.LENGTH + 1)) for _ in range(rows)],
            [draw.integers(0, NEWS_ITEMS, NEWS_SHOWN) for _ in range(rows)],
            [(draw.random(NEWS_SHOWN) < 0.2).astype(np.float32) for _ in range(rows)],
        )
        made = [log.batch(slice(at, at + NEWS_BATCH)) for at in range(0, rows, NEWS_BATCH)]
    batches = [to_device(torch, one) for one in made]
    model = model.to("cuda")
    optimizer = torch.optim.Adagrad(list(model.weights.values()), lr=0.01)
    measure(torch, report, "news_request_ranking", model, batches, [optimizer])


MODELS: dict[str, Callable[[Any, Report], None]] = {
    "criteo_dlrm": clicks("dlrm"),
    "criteo_dcnv2": clicks("dcnv2"),
    "news_request_ranking": news,
}


def main(words: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="training steps of the examples in PyTorch on a CUDA device")
    parser.add_argument("--dry-run", action="store_true", help="say what would be measured; needs no device")
    parser.add_argument("--only", choices=list(MODELS))
    parser.add_argument("file", nargs="?", type=Path, help="where to write results")
    given = parser.parse_args(words)
    names = [name for name in MODELS if given.only in (None, name)]
    torch, lack = find_torch()
    if given.dry_run:
        print("\n".join(f"would measure: {name}" for name in names))
        return 0
    report = Report(given.file)
    for name in names:
        if not torch:
            report.skip(name, lack)
            continue
        torch.set_default_device("cuda")
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            MODELS[name](torch, report)
        except Exception as error:  # one model that does not run here must not hide the others
            report.skip(name, f"{type(error).__name__}: {error}".splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
