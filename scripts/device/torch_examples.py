"""Training steps of the examples in PyTorch on this machine's device: what the binaries' times are held against.

    python3 torch_examples.py [--dry-run] [--only NAME,…] [--examples FOLDER] [--compile] [FILE.json]

criteo_* and news: the models that test/Torch holds the compiled ones to (criteo.py, news.py beside this script), on
random batches of the examples' shapes. hstu_movielens: the public PyTorch code (generative_recommenders beside this
script), on the batches that the binary has. search_ranking: the peer of benchmarks/search_ranking, on the binary's
batches, its tables by FBGEMM where fbgemm_gpu is there, and in plain PyTorch: one for each, and one per width. The two
read FOLDER/<example>/peer.npz.

All in float without TF32, eager (--compile: hstu_movielens by torch.compile), with sparse gradients of tables. A step
is what happens from batches that lie on the device to updated parameters: the time from the end of a step to the end of
the next, by events, without waiting in between; medians. Losses of the first and last steps are in the results, which
are written as peers.py writes them.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import Report, find_torch

CLICK_BATCH, NEWS_BATCH, MOVIELENS_BATCH, SEARCH_BATCH = 2048, 64, 128, 360  # as example.json has them
CLICK_IDS, NEWS_ITEMS, NEWS_USERS = 10_000, 20_000, 5_000
NEWS_SHOWN, BATCHES, SEED = 5, 8, 1
WARM, STEPS = 10, 40  # of each model
HERE = Path(__file__).resolve().parent


def module(name: str) -> Any:
    """A module of test/Torch; what reads files with polars in it is not called."""
    if "polars" not in sys.modules:
        try:
            __import__("polars")
        except ImportError:
            sys.modules["polars"] = types.ModuleType("polars")
    return importlib.import_module(name)


def time_steps(torch: Any, report: Report, what: str, step: Callable[[int], Any], on_device: bool) -> None:
    """The median time of step(0), step(1), …, each of which returns its loss, behind those that warm up."""

    def mark() -> Any:
        if not on_device:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    ends, losses = [], []
    for number in range(WARM + STEPS):
        losses.append(step(number))
        ends.append(mark())
    if on_device:
        torch.cuda.synchronize()
    pairs = list(zip(ends, ends[1:], strict=False))[WARM - 1 :]
    times = [a.elapsed_time(b) if on_device else 1e3 * (b - a) for a, b in pairs]
    seen = [float(loss) for loss in losses]
    if not all(value == value and abs(value) < 1e9 for value in seen):
        report.skip(what, f"its losses are not finite: {seen[:3]}, …")
        return
    report.add(f"PyTorch, a step of {what}", statistics.median(times), "ms")
    report.figures[-1] |= {"first_loss": seen[0], "last_loss": seen[-1]}
    report.write()


def measure(torch: Any, report: Report, what: str, model: Any, batches: list[Any], optimizers: list[Any]) -> None:
    """The time of a training step, over the batches in turn."""

    def step(number: int) -> Any:
        loss = model.loss(batches[number % len(batches)])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    time_steps(torch, report, what, step, torch.get_default_device().type == "cuda")


def to_device(torch: Any, rows: Any) -> Any:
    """A dataclass of tensors, on the device."""
    return type(rows)(**{name: value.to(torch.get_default_device()) for name, value in vars(rows).items()})


Measure = Callable[[Any, Report, argparse.Namespace], None]


def clicks(kind: str) -> Measure:
    """DLRM or DCN v2."""

    def run(torch: Any, report: Report, given: argparse.Namespace) -> None:
        import numpy as np

        criteo = module("criteo")
        ids = {name: np.arange(CLICK_IDS) for name in criteo.CATEGORIES}
        with torch.device("cpu"):
            model = criteo.Ranker(kind, criteo.initial_weights(kind, ids, SEED))
        model = model.to(torch.get_default_device())
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


def news(torch: Any, report: Report, given: argparse.Namespace) -> None:
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
    model = model.to(torch.get_default_device())
    with torch.device("cpu"):  # where it counts its steps: it would wait for a count on the device
        optimizer = torch.optim.Adagrad(list(model.weights.values()), lr=0.01)
    measure(torch, report, "news_request_ranking", model, batches, [optimizer])


def arrays(given: argparse.Namespace, example: str) -> Path:
    """The peer's data of a packed example. Raises FileNotFoundError where it was packed without."""
    path = given.examples / example / "peer.npz"
    if not path.exists():
        raise FileNotFoundError(f"{example} was packed without data for its peer")
    return path


def hstu(torch: Any, report: Report, given: argparse.Namespace) -> None:
    """The public code in its MovieLens-1M configuration, position bias only, as benchmarks/hstu_train runs it."""
    data = arrays(given, "hstu_movielens")
    if not (HERE / "generative_recommenders").is_dir():
        raise FileNotFoundError(
            "packed without the public code: make device PEER=<checkout of generative-recommenders>"
        )
    operators = "" if module("jagged").install() else " without FBGEMM"  # jagged.py has the operators of it
    options = argparse.Namespace(
        data=data, batch=MOVIELENS_BATCH, model="hstu", position_bias_only=True, compile=given.compile, seed=SEED
    )
    torch.set_default_device(None)  # which every call of torch would look up; and optimizers count steps on the host
    step = module("hstu_peer").make_steps(options, given.device, WARM + STEPS)
    how = "torch.compile" if given.compile else "eager"
    time_steps(torch, report, f"hstu_movielens, public code{operators}, {how}", step, given.device == "cuda")


def search(torch: Any, report: Report, given: argparse.Namespace) -> None:
    """Batches are cut before; transforms of columns are a part of the step, or were made before, too."""
    data, source = arrays(given, "search_ranking"), module("search_peer")
    for tables, shown in {"fbgemm": "FBGEMM", "widths": "a table per width", "modules": "a table each"}.items():
        what = f"search_ranking, {shown}"
        torch.set_default_device(given.device)
        try:
            peer = source.Peer(argparse.Namespace(data=data, batch=SEARCH_BATCH, prepared=False, tables=tables))
        except (ImportError, OSError) as error:
            report.skip(f"PyTorch, a step of {what}", f"fbgemm_gpu cannot be loaded: {error}".splitlines()[0])
            continue
        cut = [peer.cut(number) for number in range(peer.requests // SEARCH_BATCH)]
        ready = [peer.inputs_of(*batch) for batch in cut]
        torch.set_default_device(None)
        for name, step in (
            (f"{what}, transformed before", lambda n, p=peer, r=ready: p.step(r[n % len(r)])),
            (what, lambda n, p=peer, c=cut: p.step(p.inputs_of(*c[n % len(c)]))),
        ):
            time_steps(torch, report, name, step, given.device == "cuda")


# The two that something is asked of come first.
MODELS: dict[str, Measure] = {
    "hstu_movielens": hstu,
    "search_ranking": search,
    "criteo_dlrm": clicks("dlrm"),
    "criteo_dcnv2": clicks("dcnv2"),
    "news_request_ranking": news,
}


def main(words: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="training steps of the examples in PyTorch on a CUDA device")
    parser.add_argument("--dry-run", action="store_true", help="say what would be measured; needs no device")
    parser.add_argument("--only", default="", help="models, separated by commas")
    parser.add_argument("--examples", type=Path, default=HERE / "examples", help="folder of the packed examples")
    parser.add_argument("--compile", action="store_true", help="hstu_movielens by torch.compile")
    parser.add_argument("--device", default="cuda", help="where they run (tests: cpu)")
    parser.add_argument("file", nargs="?", type=Path, help="where to write results")
    given = parser.parse_args(words)
    wanted = given.only.split(",") if given.only else list(MODELS)
    if unknown := [name for name in wanted if name not in MODELS]:
        parser.error(f"there is no model '{unknown[0]}'; there are {', '.join(MODELS)}")
    names = [name for name in MODELS if name in wanted]
    torch, lack = find_torch(given.device)
    if given.dry_run:
        print("\n".join(f"would measure: {name}" for name in names))
        return 0
    report = Report(given.file)
    for name in names:
        if not torch:
            report.skip(name, lack)
            continue
        torch.set_default_device(given.device)
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            MODELS[name](torch, report, given)
        except Exception as error:  # one model that does not run here must not hide the others
            report.skip(name, f"{type(error).__name__}: {error}".splitlines()[0])
        if given.device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
