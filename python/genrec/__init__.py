"""Front end of genrec: record a model, write its file, compile it and drive the binary.

    import genrec as gr
    from genrec import nn

    class Ranker(gr.Model):
        def __init__(self):
            self.item = gr.Table("item", dim=16, optimizer=gr.optim.Adam(1e-3))
            self.score = nn.Linear(16, 1)

        def forward(self, batch):
            score = self.score(self.item(batch.impression.item))
            gr.loss.bce_with_logits(score, batch.impression.clicked)

    model = gr.compile(Ranker(), gr.Schema.from_parquet("train.parquet"))
    run = model.train("train.parquet", epochs=1, batch=4096)

docs/guide.md is the guide; every name exported here has its own documentation.
"""

from importlib import import_module
from types import ModuleType

from genrec import init, loss, metric, nn, optim, random, tracebacks
from genrec.catalogues import Catalogue, catalogue
from genrec.compiled import CompiledModel
from genrec.compiler import compile
from genrec.domain import Batch, Domain
from genrec.errors import CompileError, DataError, FeatureError, GenRecError, ModelError, RunError
from genrec.hints import OF_GENREC, raise_missing
from genrec.lists import pairs
from genrec.model import Model, Schedule, record
from genrec.model_file import model_bytes, write_model
from genrec.moves import concat_rows, stack
from genrec.nn.module import Module
from genrec.ops import concat, detach, maximum, minimum, where
from genrec.outputs import output
from genrec.parameter import Parameter
from genrec.plugins import load_plugin, plugin_op
from genrec.precision import autocast
from genrec.ranking import Found, Ranks, rank, scores, top_k
from genrec.row_functions import row_function
from genrec.run import Run
from genrec.schema import Schema, parallel
from genrec.table import Table
from genrec.transforms import (
    bucketize,
    clip,
    cross,
    fill_missing,
    hash,
    log1p,
    mod,
    multi_hash,
    scale,
    sequence_length,
    time_delta,
)
from genrec.types import ElementType, bool_, float32, float64, int32, int64, string, timestamp
from genrec.value import Value
from genrec.version import __version__

tracebacks.install()


def __getattr__(name: str) -> ModuleType:
    """`genrec.data` is loaded when it is first used: it needs Polars, which takes a while."""
    if name == "data":
        return import_module("genrec.data")
    helps = {**dict.fromkeys(nn.__all__, "it is in nn: from genrec import nn"), **OF_GENREC}
    raise_missing(__name__, name, {} if name.startswith("_") else helps, __all__)


__all__ = [
    "Batch", "Catalogue", "CompileError", "CompiledModel", "DataError", "Domain", "ElementType", "FeatureError",
    "Found", "GenRecError", "Model", "ModelError", "Module", "Parameter", "Ranks", "Run", "RunError", "Schedule",
    "Schema", "Table", "Value", "__version__", "autocast", "bool_", "bucketize", "catalogue", "clip", "compile",
    "concat", "concat_rows", "cross", "detach", "fill_missing", "float32", "float64", "hash", "init", "int32", "int64",
    "load_plugin", "log1p", "loss", "maximum", "metric", "minimum", "mod", "model_bytes", "multi_hash", "nn", "optim",
    "output", "pairs", "parallel", "plugin_op", "random", "rank", "record", "row_function", "scale", "scores",
    "sequence_length", "stack", "string", "time_delta", "timestamp", "top_k", "where", "write_model",
]  # fmt: skip
