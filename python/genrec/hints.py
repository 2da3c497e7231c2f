"""What to write instead of what other libraries have and this one does not."""

import difflib
import inspect
import re
from typing import Any, NoReturn

from genrec import optim

_NO_NUMBERS = "values have no numbers while the model is recorded; gr.output(...) writes them when predicting"
_ROWS = "rows are [d]: gr.concat joins them, x[:, a:b] takes columns, gr.concat(x) makes rows [1] of scalars"
_DEVICES = "devices are chosen by gr.compile(..., target=...)"
_PRODUCT = "(a * b).row_sum() is a dot product per row; nn.Linear and nn.linear multiply by a matrix"
_NULLS = "x.valid is false where x is null; gr.fill_missing(x, value) replaces nulls"
_GRADIENTS = "losses are declared by gr.loss…; genrec differentiates them"
_TEXTS = "texts are hashed, gr.hash(x, bits=52); change them in the data"
_TIMES = "times are seconds since 1970: gr.time_delta(now, then, unit=3600), or gr.mod(x, 86400) within a day"

ELSEWHERE = {
    **dict.fromkeys(
        ("T", "t", "mT", "transpose", "permute", "swapaxes"),
        "rows are not transposed; inner products with every item are gr.scores or gr.top_k",
    ),
    "unsqueeze": "a scalar per row becomes rows [1] by gr.concat(x)",
    **dict.fromkeys(("reshape", "view"), _ROWS),
    "flatten": "x.tile(n) puts the rows of a list side by side",
    **dict.fromkeys(("expand", "repeat", "expand_as", "broadcast_to"), "x.fanout(batch.history) copies rows to lists"),
    **dict.fromkeys(("chunk", "split"), "take columns: x[:, :n], x[:, n:]; .split_rows() undoes gr.concat_rows"),
    "float": "x.astype(gr.float32)",
    "double": "x.astype(gr.float64)",
    **dict.fromkeys(("half", "bfloat16"), "gr.autocast() rounds the factors of products to bfloat16"),
    "long": "x.astype(gr.int64)",
    "int": "x.astype(gr.int64)",
    "bool": "compare: x != 0",
    "type": "x.astype(...) converts, x.dtype is the element type",
    "to": "x.astype(...) converts; devices are chosen by gr.compile(..., target=...)",
    **dict.fromkeys(("cuda", "cpu", "device"), _DEVICES),
    **dict.fromkeys(("size", "ndim", "dim", "numel", "nelement"), "x.shape is the shape of one row"),
    **dict.fromkeys(("item", "numpy", "tolist", "data"), _NO_NUMBERS),
    **dict.fromkeys(("clamp", "clip"), "gr.clip(x, low, high)"),
    **dict.fromkeys(("argmax", "topk", "argsort", "sort"), "of a catalogue: gr.top_k(..., k=1)"),
    **dict.fromkeys(("backward", "grad", "requires_grad_", "zero_grad"), _GRADIENTS),
    "requires_grad": "gr.detach(x) has no gradient; gr.Table(..., frozen=True) and nn.Parameter(..., frozen=True)",
    "detach": "gr.detach(x)",
    **dict.fromkeys(("clone", "copy", "contiguous"), "values do not change: x itself will do"),
    **dict.fromkeys(("dot", "matmul", "mm", "bmm", "inner"), _PRODUCT),
    **dict.fromkeys(("mul", "add", "sub", "div"), "write + - * /"),
    **dict.fromkeys(("mul_", "add_", "sub_", "div_", "fill_", "copy_"), "values do not change: y = x * 2"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "write == != < <= > >="),
    "pow": "x ** 2",
    "min": "-(-x).max() over lists, -(-x).row_max() along a row; gr.minimum(a, b) of two values",
    "prod": "nn.exp(nn.log(x).sum()) over lists of positive values",
    **dict.fromkeys(("std", "var"), "((x - m) ** 2).row_mean(), where m is x.row_mean(): along a row"),
    "norm": "nn.sqrt((x * x).row_sum()); nn.l2_normalize(x) divides by it",
    "any": "of a list, x.astype(gr.int64).max() > 0",
    "all": "of a list, (~x).astype(gr.int64).max() == 0",
    "cumsum": "nn.attention and nn.SelfAttention look at all rows before; a running sum is made in the data",
    "shift": "x.lag(n) and x.lead(n)",
    **dict.fromkeys(("head", "tail"), "x.truncate(n, keep='first') or x.truncate(n)"),
    **dict.fromkeys(("masked_fill", "where"), "gr.where(condition, a, b)"),
    **dict.fromkeys(("fillna", "isna", "isnull", "is_null", "fill_null", "notna", "isnan"), _NULLS),
    **dict.fromkeys(("lower", "upper", "str", "strip", "startswith"), _TEXTS),
    **dict.fromkeys(("dt", "hour", "day", "weekday", "total_seconds"), _TIMES),
    "values": "x itself is the value",
}
"""Help by the name of the missing attribute; `genrec.nn` adds its functions."""


OF_DOMAINS = {
    **dict.fromkeys(("get", "keys", "items", "columns", "values"), "batch['user'] is a feature, list(batch) all names"),
    **dict.fromkeys(
        ("shape", "size", "ndim"), "a model is recorded without data; .length() counts the rows of each list"
    ),
    **dict.fromkeys(("head", "tail"), ".truncate(n, keep='first') and .truncate(n)"),
    **dict.fromkeys(("to", "cuda", "cpu", "device"), _DEVICES),
}
"""Help by the name of something that rows of a batch are asked for, and that is no feature of them."""


def help_for_attribute(name: str, names: list[str]) -> str:
    """Help for an attribute that a value or parameter, which has `names`, lacks; empty where there is none."""
    return ELSEWHERE.get(name) or close_to(name, names)


def close_to(name: str, names: list[str]) -> str:
    """A question for the public one of `names` that `name` may stand for; empty where there is none."""
    close = difflib.get_close_matches(name, [one for one in names if not one.startswith("_")], n=1, cutoff=0.7)
    return f"did you mean '{close[0]}'?" if close else ""


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
    **dict.fromkeys(("BatchNorm1d", "BatchNorm"), "nn.LayerNorm or nn.RMSNorm; nothing is averaged over a batch"),
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
_CONSTANTS = "a number or a list of numbers stands for itself in every row: x + 1.0, x * [1.0, 2.0]"
OF_DATA = {
    **dict.fromkeys(("read_csv", "load", "open"), "data.read reads delimited text"),
    "read_parquet": "pl.read_parquet reads it; models read Parquet as it is",
    **dict.fromkeys(("split", "train_test_split"), "data.leave_one_out by user, data.temporal_split by time"),
    **dict.fromkeys(("to_parquet", "write_parquet", "save"), "data.write"),
    **dict.fromkeys(("encode", "factorize", "LabelEncoder"), "data.encode_ids"),
    **dict.fromkeys(("group_by", "groupby"), "data.group"),
}
"""Help by the name of something that `genrec.data` lacks."""
OF_GENREC = {
    **{name: "it is in gr.optim" for name, _ in inspect.getmembers(optim, inspect.isfunction) if name[0] != "_"},
    "cat": "gr.concat",
    **dict.fromkeys(("zeros", "ones", "full", "tensor", "array", "constant", "zeros_like", "ones_like"), _CONSTANTS),
    **dict.fromkeys(("matmul", "mm", "bmm", "dot", "einsum", "inner"), _PRODUCT),
    **dict.fromkeys(("arange", "range"), "batch.history.position() counts the rows of each list"),
    "max": "x.max() over lists, x.row_max() along a row, gr.maximum(a, b) of two values",
    "min": "gr.minimum(a, b) of two values",
    "sum": "x.sum() over lists, x.row_sum() along a row, + of two values",
    "mean": "x.mean() over lists, x.row_mean() along a row",
    "load": "gr.CompiledModel(path) opens a compiled binary",
    **dict.fromkeys(("int", "long", "integer"), "gr.int64"),
    **dict.fromkeys(("float", "float16", "double"), "gr.float32 or gr.float64"),
    **dict.fromkeys(("str", "text", "utf8"), "gr.string"),
    **dict.fromkeys(("bool", "boolean"), "gr.bool_"),
    **dict.fromkeys(("datetime", "time", "date"), "gr.timestamp()"),
}
"""Help by the name of something that `genrec` lacks; `genrec` adds the names of `genrec.nn`."""
_TRAINING = "dropout acts while training, and only then: the compiled model trains, evaluates and predicts"
_WEIGHTS = "gr.compile(model, schema) gives what trains: .train(), .export() writes tables and parameters"
OF_MODULES = {
    **dict.fromkeys(("training", "train", "eval"), _TRAINING),
    **dict.fromkeys(
        ("parameters", "named_parameters"), "an optimizer is for the whole model: optimizer=gr.optim.Adam(1e-3)"
    ),
    **dict.fromkeys(("state_dict", "load_state_dict", "save", "load", "fit"), _WEIGHTS),
    **dict.fromkeys(("to", "cuda", "cpu", "half"), _DEVICES),
    **dict.fromkeys(("register_buffer", "register_parameter"), "assign it to an attribute: self.w = nn.Parameter(...)"),
    **dict.fromkeys(
        ("add_module", "children", "modules", "apply"), "modules are attributes, or in lists and dicts of them"
    ),
    **dict.fromkeys(("log", "training_step", "validation_step"), "forward declares losses, metrics and outputs"),
}
"""Help by the name of an attribute that modules and models lack."""
OF_COMPILED = {
    "fit": ".train(data, epochs=...)",
    **dict.fromkeys(("eval", "test", "score"), ".evaluate(data)"),
    **dict.fromkeys(("forward", "infer", "transform", "run"), ".predict(data, out)"),
    **dict.fromkeys(
        ("save", "save_weights", "state_dict"), ".train() saves checkpoints, .export(out) what serving needs"
    ),
    **dict.fromkeys(
        ("load", "load_weights", "load_state_dict"), ".train(data, init=...), .evaluate(data, checkpoint=...)"
    ),
    **dict.fromkeys(("to", "cuda", "cpu"), _DEVICES),
}
"""Help by the name of something that compiled models lack."""
OF_TABLES = {
    **dict.fromkeys(
        ("weight", "weights", "data"), "self.table(ids) reads rows; .export() of the compiled model writes all"
    ),
    "embedding_dim": "its size is .dim",
    **dict.fromkeys(("num_embeddings", "size", "shape"), "a table grows with its ids; the size of a row is .dim"),
    **dict.fromkeys(("lookup", "forward", "get", "embedding"), "call it: self.table(ids)"),
}
"""Help by the name of an attribute that tables lack."""

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
    (r"object of type 'Parameter' has no len\(\)", "p.shape has the sizes of a parameter"),
    (r"object of type 'Table' has no len\(\)", "a table has no number of rows: it grows with its ids"),
    (
        r"'(?:Value|Parameter|Domain)' object does not support item (?:assignment|deletion)",
        "values do not change: gr.where(condition, a, b) chooses, gr.concat joins columns",
    ),
    (r"'Table' object is not subscriptable|for .+: '.+' and 'Table'|for .+: 'Table' and", "call it: self.table(ids)"),
    (
        r"'(?:Value|Parameter)' object is not callable",
        "it is a value, not a layer: x * y, or a layer of nn called with x",
    ),
    (
        r"unsupported format string passed to (?:Value|Parameter|Domain)",
        "a model is recorded without data, so there is no number to print; f'{x}' says what x is",
    ),
    (
        r"operand type\(s\) for @",
        "nn.Linear and nn.linear multiply by a matrix; (a * b).row_sum() is a dot product per row",
    ),
    (
        r"operand type\(s\) for \*\* or pow\(\): '(?:int|float)' and '(?:Value|Parameter)'",
        "a power of a number a is nn.exp(x * math.log(a))",
    ),
    (r"operand type\(s\) for \^", "of bools a ^ b is a != b"),
    (r"operand type\(s\) for (?:<<|>>)", "x * 2 and gr.bucketize(x, edges)"),
    (r"operand type\(s\) for (?:%|divmod)", "gr.mod(x, n) is the remainder of an integer"),
    (
        r"operand type\(s\) for //",
        "gr.bucketize(x, edges) makes buckets of numbers, .astype(gr.int64) truncates floats",
    ),
    (r"^output\(\) takes 0 positional arguments", "name each column: gr.output(score=score)"),
    (r"^hash\(\) missing 1 required positional argument: 'bits'", "gr.hash(x, bits=52) makes ids for a table"),
)
"""Messages of Python for a wrong call, and what to write instead."""


_NO_AXIS = "it works along each row: a model has no axis of rows"
_OF_ARGUMENTS = {
    "concat": {
        ("dim", "axis"): "rows are joined end to end, there is no other axis; gr.concat_rows joins lists one after "
        "another"
    },
    "concat_rows": {("dim", "axis"): "lists are joined one after another; gr.concat joins rows end to end"},
    "stack": {("dim", "axis"): "each row becomes a list of rows; gr.concat joins rows end to end"},
    "dropout": {("training",): "rows are dropped while training, and only then", ("p",): "the share is called rate"},
    "": {
        ("dim", "axis", "keepdim", "keepdims"): _NO_AXIS,
        ("inplace",): "values do not change: take the result",
        ("reduction",): "a loss is the weighted mean of its rows",
    },
}
"""Help by the function and the names of arguments that it lacks; "" is any function."""


def help_for_argument(function: str, argument: str) -> str:
    """Help for an argument that `function` lacks; empty where there is none."""
    of_function = {**_OF_ARGUMENTS[""], **_OF_ARGUMENTS.get(function, {})}
    return next((help for names, help in reversed(of_function.items()) if argument in names), "")


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
