"""Models, and their recording."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from types import TracebackType
from typing import Any

from genrec.domain import Domain, make_batch
from genrec.errors import ModelError
from genrec.hints import MissingNameError, help_for_call
from genrec.nn.module import Module
from genrec.optim import Adam, Optimizer
from genrec.parameter import Parameter
from genrec.recording import Recording, recording
from genrec.refused import told_of_refused_call
from genrec.schema import Schema
from genrec.source import Place, innermost, place_of_failure, refresh
from genrec.table import Table, check_table_names, check_tensor_names
from genrec.tracebacks import VARIABLE, are_own_frames_shown


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes: it rises linearly over `warmup` steps, then goes by `kind` ("constant", "linear"
    or "cosine") to `final` times the base rate at step `steps`.

    Example:
        >>> gr.Schedule("cosine", warmup=500, steps=20_000, final=0.1)
        Schedule(kind='cosine', warmup=500, steps=20000, final=0.1)
    """

    kind: str
    warmup: int = 0
    steps: int = 0
    final: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("constant", "linear", "cosine"):
            raise ValueError(f"a schedule is 'constant', 'linear' or 'cosine', not '{self.kind}'")
        if self.warmup < 0 or self.steps < 0 or not 0 <= self.final <= 1:
            raise ValueError(f"warmup and steps must be at least 0 and final in [0, 1], got {self}")


class Model(Module):
    """A recommendation model: a module whose `forward(batch)` declares losses, metrics and outputs.

    Set by `super().__init__(...)` or as attributes: `optimizer` (of every table and parameter that has none; Adam
    unless set), `clip_norm` and `clip_value` (bounds of the gradients' norm and of their elements; 0: none), `schedule`
    (of the learning rate), `name` (the class's name unless set).

    Example:
        >>> class Ranker(gr.Model):
        ...     def __init__(self):
        ...         super().__init__(optimizer=gr.optim.Adam(1e-3), clip_norm=1.0)
        ...         self.item = gr.Table("item", dim=16)
        ...         self.score = nn.Linear(16, 1)
        ...
        ...     def forward(self, batch):
        ...         logit = self.score(self.item(batch.impression.item))
        ...         gr.loss.bce_with_logits(logit, batch.impression.clicked)
        >>> Ranker().clip_norm
        1.0
    """

    # On the class as well, for models that do not call this class's __init__.
    optimizer: Optimizer | None = None
    clip_norm: float = 0.0
    clip_value: float = 0.0
    schedule: Schedule | None = None
    name: str = ""

    def __init__(
        self,
        optimizer: Optimizer | None = None,
        clip_norm: float = 0.0,
        clip_value: float = 0.0,
        schedule: Schedule | None = None,
        name: str = "",
    ) -> None:
        self.optimizer = optimizer
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self.schedule = schedule
        self.name = name

    def forward(self, batch: Any) -> None:
        """Declares what is computed of one batch; to be defined by subclasses.

        Shape:
            the rows of a batch in, nothing out.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no forward(self, batch)")


def record(model: Model, schema: Schema) -> Recording:
    """Runs `model.forward` on a batch of `schema` that holds no data, and returns the ops it made.

    Raises `ModelError` at the user's line for a mistake in the model.

    Example:
        >>> class Popular(gr.Model):
        ...     def forward(self, batch):
        ...         gr.output(item=batch.history.item.last())
        >>> recording = gr.record(Popular(), gr.Schema({"history": [{"item": gr.int64}]}))
        >>> [op.name for op in recording.ops]
        ['batch', 'feature', 'pool', 'output']
    """
    refresh()
    _check_model(model)
    _check_schema(schema)
    result = Recording(_symbol(model.name or type(model).__name__), model.optimizer or Adam())
    result.clip_norm, result.clip_value = float(model.clip_norm), float(model.clip_value)
    if model.schedule is not None:
        one = model.schedule
        result.schedule = (one.kind, one.warmup, one.steps, one.final)
    tables = []
    for path, thing in _owned(model):
        if isinstance(thing, Parameter):
            result.parameter_names[id(thing)] = path
        elif isinstance(thing, Table):
            tables.append(thing)
    check_table_names(tables)
    result.reserve_public({*(table.name for table in tables), *result.parameter_names.values()})
    with recording(result), _told_at_its_line():
        batch: Domain = make_batch(result, schema.root)
        returned = model.forward(batch)  # type: ignore[func-returns-value]
    check_tensor_names(result)
    if not any(op.name in ("loss", "metric", "output") for op in result.ops):
        raise ModelError(
            f"model '{result.name}' declares no loss, metric or output",
            _place_of(model.forward),
            "",
            "end forward with gr.loss…, gr.metric… or gr.output(...)"
            + ("; what it returns is not looked at" if returned is not None else ""),
        )
    return result


def _owned(root: Module) -> Iterator[tuple[str, object]]:
    """All parameters and tables below `root` with their paths, each once, in the order of assignment."""
    seen: set[int] = set()

    def visit(thing: object, path: str) -> Iterator[tuple[str, object]]:
        if id(thing) in seen:
            return
        if isinstance(thing, Parameter | Table):
            seen.add(id(thing))
            yield path, thing
            return
        children: Iterable[tuple[Any, object]]
        if isinstance(thing, Module):
            children = vars(thing).items()
        elif isinstance(thing, dict):
            children = thing.items()
        elif isinstance(thing, list | tuple):
            children = enumerate(thing)
        else:
            return
        seen.add(id(thing))
        for key, child in children:
            yield from visit(child, f"{path}.{key}" if path else str(key))

    return visit(root, "")


@contextmanager
def _told_at_its_line() -> Iterator[None]:
    """Turns an exception that no check of this package expected (a number for a table, say) into a `ModelError` at the
    user's line.
    """
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        entry = innermost(error.__traceback__)
        if entry is None or isinstance(error, ModelError):
            raise
        place = place_of_failure(entry)
        told = _told(error, place, entry)
        if told is None:
            raise
        message, help = told
        raise ModelError(message, place, "", help) from (error if are_own_frames_shown() else None)


def _told(error: Exception, place: Place, entry: TracebackType) -> tuple[str, str] | None:
    """Message and help for an exception of what the user's `entry` of a traceback executes; None for one of the user's
    own code.
    """
    if isinstance(error, MissingNameError):
        return error.said, error.help
    help = help_for_call(str(error)) if isinstance(error, TypeError) else ""
    told = told_of_refused_call(error, place, entry.tb_frame) if isinstance(error, TypeError) and not help else None
    if told is not None:
        return told
    if entry.tb_next is None and not help:
        return None
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    help = help or f"look at what its arguments are; {VARIABLE}=1 shows where in genrec it failed"
    return f"this call cannot be recorded ({said})", help


_ATTRIBUTES = (
    ("name", str, "a text"),
    ("optimizer", Optimizer | None, "one of gr.optim, such as gr.optim.Adam(1e-3)"),
    ("clip_norm", int | float, "a number"),
    ("clip_value", int | float, "a number"),
    ("schedule", Schedule | None, "a gr.Schedule"),
)  # fmt: skip


def _check_schema(schema: object) -> None:
    """Raises `TypeError` with the remedy for what is no schema."""
    if isinstance(schema, Schema):
        return
    if isinstance(schema, str | PathLike):
        raise TypeError(
            f"a model is recorded for a gr.Schema, got the path {fspath(schema)!r}; "
            f"read it from the file: gr.Schema.from_parquet({fspath(schema)!r})"
        )
    if isinstance(schema, Mapping):
        raise TypeError("a model is recorded for a gr.Schema, got a mapping; make one of it: gr.Schema({...})")
    raise TypeError(f"a model is recorded for a gr.Schema, got {type(schema).__name__}")


def _check_model(model: Model) -> None:
    """Raises `TypeError` for an object that is not a model, `ModelError` if an attribute of `gr.Model` has another type
    (a table, say).
    """
    if isinstance(model, type) and issubclass(model, Model):
        raise TypeError(f"a model is an object: {model.__name__}(...), not the class {model.__name__} itself")
    if not isinstance(model, Model):
        raise TypeError(f"the model must be a gr.Model, got {type(model).__name__}; the model comes before the schema")
    for name, kind, wanted in _ATTRIBUTES:
        value = getattr(model, name)
        if not isinstance(value, kind):
            raise ModelError(
                f"'{name}' of a model must be {wanted}, got {type(value).__name__}",
                _place_of(type(model).__init__),
                "",
                f"it is an attribute of gr.Model itself: what is your own needs another name than '{name}'",
            )


def _place_of(function: Any) -> Place:
    """Where a method is defined."""
    code = getattr(function, "__func__", function).__code__
    return Place(code.co_filename, code.co_firstlineno)


def _symbol(name: str) -> str:
    """`name` with everything but letters, digits and underscores replaced."""
    return re.sub(r"\W", "_", name) or "model"
