"""Models, and their recording."""

import re
from dataclasses import dataclass
from typing import Any

from genrec.domain import Domain, make_batch
from genrec.errors import ModelError
from genrec.nn.module import Module, Parameter, owned
from genrec.optim import Adam, Optimizer
from genrec.recording import Recording, recording
from genrec.schema import Schema
from genrec.source import Place, refresh
from genrec.table import Table, check_table_names


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes: it rises linearly over `warmup` steps, then goes by `kind` ("constant", "linear"
    or "cosine") to `final` times the base rate at step `steps`.
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

    May be set by `super().__init__(...)` or as attributes: `optimizer` (of every table and parameter without one of its
    own; Adam unless set), `clip_norm` and `clip_value` (bounds of the gradients' norm and of their elements; 0: none),
    `schedule` (of the learning rate), `name` (the class's name unless set).
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
        """Declares what is computed of one batch; to be defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(self, batch)")


def record(model: Model, schema: Schema) -> Recording:
    """Runs `model.forward` on a batch of `schema` that holds no data, and returns the ops it made.

    Raises `ModelError` at the user's line for a mistake in the model.
    """
    refresh()
    _check_attributes(model)
    result = Recording(_symbol(model.name or type(model).__name__), model.optimizer or Adam())
    result.clip_norm, result.clip_value = float(model.clip_norm), float(model.clip_value)
    if model.schedule is not None:
        one = model.schedule
        result.schedule = (one.kind, one.warmup, one.steps, one.final)
    tables = []
    for path, thing in owned(model):
        if isinstance(thing, Parameter):
            result.parameter_names[id(thing)] = path
        elif isinstance(thing, Table):
            tables.append(thing)
    check_table_names(tables)
    result.reserve_public({*(table.name for table in tables), *result.parameter_names.values()})
    with recording(result):
        batch: Domain = make_batch(result, schema.root)
        model.forward(batch)
    if not any(op.name in ("loss", "metric", "output") for op in result.ops):
        raise ModelError(
            f"model '{result.name}' declares no loss, metric or output",
            _place_of(model.forward),
            "",
            "end forward with gr.loss…, gr.metric… or gr.output(...)",
        )
    return result


_ATTRIBUTES = (
    ("name", str, "a text"),
    ("optimizer", Optimizer | None, "one of gr.optim, such as gr.optim.Adam(1e-3)"),
    ("clip_norm", int | float, "a number"),
    ("clip_value", int | float, "a number"),
    ("schedule", Schedule | None, "a gr.Schedule"),
)  # fmt: skip


def _check_attributes(model: Model) -> None:
    """Raises `ModelError` for a model that is none, or whose own attributes hold something else (a table, say)."""
    if not isinstance(model, Model):
        raise TypeError(f"gr.record takes a gr.Model, got {type(model).__name__}")
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
