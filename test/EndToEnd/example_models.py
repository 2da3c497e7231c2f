"""The model files of all examples, as the Python front end writes them, without training."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import genrec as gr
from compiled import ROOT, call, tool


@contextlib.contextmanager
def example(name: str) -> Iterator[Callable[[str], ModuleType]]:
    """Imports modules of an example's folder; those of several examples have the same names."""
    sys.path.insert(0, str(ROOT / "examples" / name))
    imported: list[str] = []

    def load(module: str) -> ModuleType:
        imported.append(module)
        sys.modules.pop(module, None)
        return importlib.import_module(module)

    try:
        yield load
    finally:
        sys.path.pop(0)
        for module in imported:
            sys.modules.pop(module, None)


EVENTS = gr.Schema({"history": [{"item": gr.int64, "next": gr.int64, "time": gr.int64}], "held_out": gr.int64})
POSITIVES = gr.Schema({"user": gr.int64, "history": [gr.int64], "item": gr.int64, "log_q": gr.float32})
NEWS = gr.Schema(
    {
        "request": gr.int64,
        "user": gr.int64,
        "history": [{"item": gr.int64}],
        "impression": [{"item": gr.int64, "label": gr.float32}],
    }
)


def _items() -> gr.Catalogue:
    return gr.catalogue("items.parquet", id="item", schema=gr.Schema({"item": gr.int64}))


def _generated(folder: Path, *flags: str) -> Path:
    call(tool("genrec-datagen"), *flags, "--users", "5", "--out", folder)
    return folder / "train.parquet"


def _click(name: str, model: str) -> tuple[gr.Model, gr.Schema]:
    with example("criteo_dlrm") as load:
        schema = load("prepare").SCHEMA
    with example(name) as load:
        return getattr(load("model"), model)(), schema


def _retrieval(name: str, model: str, **options: bool) -> tuple[gr.Model, gr.Schema]:
    with example(name) as load:
        return getattr(load("model"), model)(_items(), **options), EVENTS


def _two_tower() -> tuple[gr.Model, gr.Schema]:
    with example("two_tower") as load:
        return load("model").TwoTower(_items()), POSITIVES


def _news() -> tuple[gr.Model, gr.Schema]:
    with example("news_request_ranking") as load:
        return load("model").NewsRanker(), NEWS


def _requests(folder: Path) -> tuple[gr.Model, gr.Schema]:
    schema = gr.Schema.from_parquet(_generated(folder, "--kind", "requests"))
    with example("request_ranking") as load:
        return load("model").Ranker(), schema


def _search(folder: Path) -> tuple[gr.Model, gr.Schema]:
    data = _generated(folder, "--kind", "search", "--columns", "660")
    with example("search_ranking") as load:
        schema = load("columns").read_schema(data)
        return load("model").SearchRanker(schema), schema


MODELS: dict[str, Callable[[Path], tuple[gr.Model, gr.Schema]]] = {
    "criteo_dcnv2": lambda _: _click("criteo_dcnv2", "DCNv2"),
    "criteo_dlrm": lambda _: _click("criteo_dlrm", "DLRM"),
    "hstu_retrieval": lambda _: _retrieval("hstu_retrieval", "Retrieval", time_bias=True),
    "news_request_ranking": lambda _: _news(),
    "request_ranking": _requests,
    "sasrec": lambda _: _retrieval("sasrec", "SASRec"),
    "search_ranking": _search,
    "two_tower": lambda _: _two_tower(),
}


def write_example(name: str, folder: Path) -> Path:
    """Writes the model file of an example into `folder`."""
    path = folder / f"{name}.genrec"
    gr.write_model(gr.record(*MODELS[name](folder)), path)
    return path
