"""What to write instead of what other libraries have and this one does not."""

import difflib
import inspect
import re
from typing import Any, NoReturn

from genrec import optim

ELSEWHERE = {
    "T": "rows are not transposed; inner products with every item are gr.scores or gr.top_k",
    "transpose": "rows are not transposed; inner products with every item are gr.scores or gr.top_k",
    "unsqueeze": "a scalar per row becomes rows [1] by gr.concat(x)",
    "reshape": "rows are [d]: gr.concat joins them, x[:, a:b] takes columns, gr.concat(x) makes rows [1] of scalars",
    "view": "rows are [d]: gr.concat joins them, x[:, a:b] takes columns, gr.concat(x) makes rows [1] of scalars",
    "flatten": "x.tile(n) puts the rows of a list side by side",
    "float": "x.astype(gr.float32)",
    "long": "x.astype(gr.int64)",
    "int": "x.astype(gr.int64)",
    "bool": "compare: x != 0",
    "to": "x.astype(...) converts; devices are chosen by gr.compile(..., target=...)",
    "cuda": "devices are chosen by gr.compile(..., target=...)",
    "cpu": "devices are chosen by gr.compile(..., target=...)",
    "size": "x.shape is the shape of one row",
    "ndim": "x.shape is the shape of one row",
    "item": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "numpy": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "tolist": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "clamp": "gr.clip(x, low, high)",
    "clip": "gr.clip(x, low, high)",
    "argmax": "of a catalogue: gr.top_k(..., k=1)",
    "backward": "losses are declared by gr.loss…; genrec differentiates them",
}
"""Help by the name of the missing attribute; `genrec.nn` adds its functions."""

OF_NN = {
    "Sequential": "call the layers one after another in forward, or use nn.MLP",
    "ModuleList": "a list in an attribute will do: self.layers = [nn.Linear(8, 8) for _ in range(2)]",
    "ModuleDict": "a dict in an attribute will do",
    "EmbeddingBag": "look the ids up and pool the rows: table(batch.history.item).sum()",
    "MultiheadAttention": "nn.SelfAttention, or nn.CrossAttention between two lists",
    **dict.fromkeys(("GRU", "LSTM", "RNN"), "nn.SelfAttention and nn.HSTUBlock read sequences"),
    "leaky_relu": "gr.maximum(x, 0.01 * x)",
    "concat": "gr.concat",
    "cat": "gr.concat",
    "ReLU": 'nn.relu is a function; layers take activation="relu"',
    "GELU": 'nn.gelu is a function; layers take activation="gelu"',
    "Sigmoid": 'nn.sigmoid is a function; layers take activation="sigmoid"',
    "Tanh": 'nn.tanh is a function; layers take activation="tanh"',
    "BCEWithLogitsLoss": "gr.loss.bce_with_logits",
    "CrossEntropyLoss": "gr.loss.softmax_cross_entropy",
    "MSELoss": "gr.loss.mse",
}
"""Help by the name of something that `genrec.nn` lacks."""
OF_LOSS = {
    "cross_entropy": "gr.loss.softmax_cross_entropy of classes, gr.loss.bce_with_logits of one logit",
    "bce": "gr.loss.bce_with_logits, which takes a logit without a sigmoid",
    "binary_cross_entropy": "gr.loss.bce_with_logits, which takes a logit without a sigmoid",
    "softmax": "gr.loss.softmax_cross_entropy of classes; full_softmax, sampled_softmax, in_batch_softmax of items",
    "in_batch": "gr.loss.in_batch_softmax, whose negatives are the items of other rows",
    "infonce": "gr.loss.in_batch_softmax, whose negatives are the items of other rows",
    "info_nce": "gr.loss.in_batch_softmax, whose negatives are the items of other rows",
    "l1": "gr.loss.mae",
    "hinge": "gr.loss.mean(nn.relu(1 - y * score)), where y is 1 or -1",
}
"""Help by the name of something that `genrec.loss` lacks."""
OF_METRIC = {
    **dict.fromkeys(
        ("ndcg", "hr", "hit_rate", "hit_ratio", "recall", "mrr", "recall_at_k", "precision"),
        "gr.metric.ranking(…, at=(10, 50)) over a catalogue, gr.metric.list_ranking within lists",
    ),
    "logloss": "gr.metric.ne is the log loss, normalised; the loss itself is reported by every evaluation",
    "accuracy": "gr.metric.auc",
    "mse": "gr.metric.rmse",
}
"""Help by the name of something that `genrec.metric` lacks."""
OF_GENREC = {
    **dict.fromkeys(
        ("Linear", "MLP", "Embedding", "LayerNorm", "Dropout", "relu", "softmax"), "it is in nn: from genrec import nn"
    ),
    **{name: "it is in gr.optim" for name, _ in inspect.getmembers(optim, inspect.isfunction) if name[0] != "_"},
    "cat": "gr.concat",
    "sum": "x.sum() over lists, x.row_sum() along a row, + of two values",
    "mean": "x.mean() over lists, x.row_mean() along a row",
    "load": "gr.CompiledModel(path) opens a compiled binary",
}
"""Help by the name of something that `genrec` lacks."""

_CALLS = (
    (
        r"Value\.(sum|mean|max)\(\) got an unexpected keyword argument '(?:dim|axis|keepdims?)'",
        r"x.row_\1() reduces along each row, x.\1() the rows of each list to their parent",
    ),
    (
        r"object of type 'Domain' has no len\(\)",
        "a model is recorded without data; rows.length() is the number of rows of each list",
    ),
    (r"object of type 'Value' has no len\(\)", "a model is recorded without data; x.shape is the shape of one row"),
    (
        r"operand type\(s\) for @",
        "nn.Linear and nn.linear multiply by a matrix; (a * b).row_sum() is a dot product per row",
    ),
    (
        r"operand type\(s\) for \*\* or pow\(\): '(?:int|float)' and '(?:Value|Parameter)'",
        "a power of a number a is nn.exp(x * math.log(a))",
    ),
    (r"'([<>]=?)' not supported between .*'Parameter'", r"compare its value: p.value() \1 …"),
    (r"operand type\(s\) for %", "gr.mod(x, n) is the remainder of an integer"),
    (
        r"operand type\(s\) for //",
        "gr.bucketize(x, edges) makes buckets of numbers, .astype(gr.int64) truncates floats",
    ),
    (r"^output\(\) takes 0 positional arguments", "name each column: gr.output(score=score)"),
    (r"^hash\(\) missing 1 required positional argument: 'bits'", "gr.hash(x, bits=52) makes ids for a table"),
)
"""Messages of Python for a wrong call, and what to write instead."""


def help_for_call(message: str) -> str:
    """Help for a call that Python refused with `message`; empty where there is none."""
    for pattern, help in _CALLS:
        found = re.search(pattern, message)
        if found:
            return found.expand(help)
    return ""


def public_names(module: dict[str, Any]) -> list[str]:
    """The names of what a module, given by its globals, defines itself."""
    return [
        one for one, thing in module.items() if one[0] != "_" and getattr(thing, "__module__", "") == module["__name__"]
    ]


class MissingNameError(AttributeError):
    """A name that a module of this package lacks. `said` says so for the error of a model, `help` what to write instead
    or what there is.
    """

    def __init__(self, module: str, name: str, hint: str, names: list[str]) -> None:
        super().__init__(f"module '{module}' has no attribute '{name}'" + (f"; {hint}" if hint else ""))
        shown = "nn" if module == "genrec.nn" else module.replace("genrec", "gr", 1)
        self.said = f"there is no {shown}.{name}"
        few = len(names) <= _FEW_NAMES
        self.help = hint or (f"there are {', '.join(sorted(names))}" if few else f"dir({shown}) lists what there is")


_FEW_NAMES = 12


def raise_missing(module: str, name: str, helps: dict[str, str], names: list[str]) -> NoReturn:
    """Raises `MissingNameError` for a module's missing attribute `name`, with a hint if there is one."""
    raise MissingNameError(module, name, helps.get(name) or _close_names(name, names), names)


def _close_names(name: str, names: list[str]) -> str:
    """A question for the names that `name` may stand for; empty where there is none."""
    lower = {one.lower(): one for one in names}
    close = [lower[one] for one in difflib.get_close_matches(name.lower(), lower, n=1)]
    parts = [one for key, one in lower.items() if len(key) > 2 and key in re.split(r"[_\W]+", name.lower())]
    meant = list(dict.fromkeys([*close, *parts]))[:3]
    return f"did you mean {' or '.join(repr(one) for one in meant)}?" if meant else ""
