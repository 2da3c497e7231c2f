"""Embedding tables."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from genrec.emit import emit
from genrec.errors import FeatureError, ModelError
from genrec.hints import OF_TABLES
from genrec.init import Initializer, truncated_normal
from genrec.nn.functional import l2_normalize
from genrec.ops import as_ids
from genrec.optim import FROZEN, Optimizer
from genrec.recording import (
    ParameterDeclaration,
    Recording,
    RowRules,
    RowStorage,
    Symbol,
    TableDeclaration,
    current,
)
from genrec.source import find_place
from genrec.types import float32
from genrec.value import Value, ValueLike

DEFAULT_ID_BITS = 52
MOST_ID_BITS = 63


class Table:
    """A table of vectors of `dim` floats by integer id, which grows as ids appear.

    `name` is public: checkpoints and exports use it, and the initial value of a row is a function of (seed, name, id).
    Ids must lie in [0, 2^id_bits); others are errors, never wrapped. Unless the table has an optimizer, the model's
    updates it. Calling the table with ids looks them up; a null id gives the zero vector.

    Without the following rules a table keeps every row. "Seen" means: by a training step, which counts once however
    often its batch has the id; evaluation and prediction do not count. The optimizer state leaves with its row, and the
    id starts anew.

    - `bounded`: when a step leaves more than this many rows, the lowest leave until `bounded - bounded // 16` remain.
      `evict` says which are lowest: "lru", those not seen for longest; "lfu", those seen in the fewest steps.
    - `ttl`: rows not seen for this many steps leave. A `datetime.timedelta` counts time instead: with
      `ttl=timedelta(days=30)`, rows that no step has seen for 30 days leave, up to an eighth of that later. The time of
      a step is what `train(clock=...)` says: the latest time of a column in its batch, or the machine's clock.
    - `admit_after`: an id gets a row once this many steps have seen it; until then it reads its initial value and
      does not train.

    `dtype="bf16"` stores vectors in bfloat16, half the bytes; optimizer state stays float32. A lookup gives them as
    float32, exactly, and a step computes in float32 and rounds the new vector once: with `rounding="nearest"` (the
    default), or with `rounding="stochastic"`, up or down by chance so that the mean is right. To nearest, a step
    smaller than 1/512 of a value is lost; stochastically, many of them add up. What is drawn depends on the run's seed,
    the step, the table's name, the id and the column alone.

    `hot_after`, with `dtype="bf16"`: a row is *hot* from the step on that is the n-th to see it. A hot row is float32
    to the step that updates it, which rounds nothing; it takes 2 more bytes for each value. Lookups read the upper
    halves of its floats, rounded towards 0 to bfloat16, so they cost the same.

    `frozen`: no step updates the table. It has the rows that `train(init=...)` gives it and no optimizer state; an id
    without a row reads its initial value and gets none. Gradients stop there. It takes no optimizer and none of the
    rules above.

    Example:
        >>> item = gr.Table("item", dim=16, optimizer=gr.optim.RowWiseAdagrad(0.01), bounded=1_000_000)
        >>> item(batch.history.item)
        <[16] float32, one per 'history'>
    """

    def __init__(
        self,
        name: str,
        dim: int,
        init: Initializer | None = None,
        optimizer: Optimizer | None = None,
        id_bits: int = DEFAULT_ID_BITS,
        bounded: int | None = None,
        evict: str = "lru",
        ttl: int | timedelta | None = None,
        admit_after: int | None = None,
        frozen: bool = False,
        dtype: str = "f32",
        rounding: str | None = None,
        hot_after: int | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f'the name of a table must be a text, got {name!r}: gr.Table("item", dim=16). A table grows with its '
                "ids, it has no number of rows"
            )
        for what, number in (("dim", dim), ("id_bits", id_bits)):
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"'{what}' of table '{name}' must be a whole number, got {number!r}")
        if isinstance(init, int) and init > 0:
            raise TypeError(
                f"table '{name}' takes the size of its rows alone: gr.Table({name!r}, dim=16). It has no number of rows"
            )
        if init is not None and not isinstance(init, Initializer):
            raise TypeError(f"'init' of table '{name}' must be one of gr.init, got {init!r}")
        if optimizer is not None and not isinstance(optimizer, Optimizer):
            raise TypeError(f"'optimizer' of table '{name}' must be one of gr.optim, got {optimizer!r}")
        if dim < 1:
            raise ValueError(f"the dimension of table '{name}' must be at least 1, got {dim}")
        if not 1 <= id_bits <= MOST_ID_BITS:
            raise ValueError(f"the id_bits of table '{name}' must be 1 to {MOST_ID_BITS}, got {id_bits}")
        if not name:
            raise ValueError("a table needs a name")
        self.rules = RowRules(bounded, evict, ttl, admit_after)
        self.rules.check(name)
        self.storage = RowStorage(dtype, rounding, hot_after)
        self.storage.check(name)
        if frozen and (optimizer is not None or self.rules != RowRules() or hot_after is not None):
            raise ValueError(
                f"table '{name}' is frozen: it takes no optimizer, and no rule by which rows come, leave or are hot "
                "(bounded, ttl, admit_after, hot_after)"
            )
        self.name = name
        self.dim = dim
        self.init = init if init is not None else truncated_normal(0.02)
        self.optimizer = FROZEN if frozen else optimizer
        self.id_bits = id_bits
        self._place = find_place()

    def __repr__(self) -> str:
        return f"<table '{self.name}' of [{self.dim}]>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        help = OF_TABLES.get(name, "")
        raise FeatureError(f"table '{self.name}' has no '{name}'", find_place(), f"made at {self._place}", help)

    def __call__(self, ids: ValueLike) -> Value:
        """The rows of some ids; a null id has the row of zeros.

        Shape:
            integers [] in, [dim] out.

        Example:
            >>> gr.Table("user", dim=8)(batch.user)
            <[8] float32, one per 'request'>
        """
        place = find_place()
        recording = current(f"table '{self.name}'")
        value = as_ids(ids, f"the ids of table '{self.name}'", place.part(0))
        self._declare(recording)
        operands = [value] if value.valid is None else [value, value.valid]
        return emit("lookup", operands, value.domain, (self.dim,), float32, place, table=Symbol(self.name))

    def l2_normalized(self, eps: float = 1e-6) -> "Normalized":
        """This table with every row divided by max(its length, eps) when looked up.

        Example:
            >>> gr.Table("item", dim=16).l2_normalized()(batch.history.item)
            <[16] float32, one per 'history'>
        """
        return Normalized(self, eps)

    def _declare(self, recording: Recording) -> None:
        key = ("table", self)
        if key not in recording.cache:
            optimizer = self.optimizer or recording.optimizer
            recording.declare_table(
                TableDeclaration(
                    self.name,
                    self.dim,
                    self.id_bits,
                    self.init,
                    optimizer,
                    self._place.named(self.name),
                    self.rules,
                    self.storage,
                )
            )
            recording.cache[key] = True


@dataclass(frozen=True)
class Normalized:
    """A table whose rows are divided by max(their length, eps) when looked up."""

    table: Table
    eps: float

    def __call__(self, ids: ValueLike) -> Value:
        """The normalised rows of `ids`."""
        return l2_normalize(self.table(ids), self.eps)


def check_table_names(tables: list[Table]) -> None:
    """Raises `ModelError` when two tables of a model have one name."""
    by_name: dict[str, Table] = {}
    for table in tables:
        other = by_name.setdefault(table.name, table)
        if other is not table:
            raise ModelError(
                f"two tables are named '{table.name}'",
                table._place,
                f"the other is made at {other._place}",
                "use one table in both places, or give them different names",
            )


# Tensors of checkpoints by tables, as in runtime/checkpoint/tensor_names.h.
_OF_TABLES = (
    "ids", "values", "last_step", "steps", "removed.ids", "waiting.ids", "waiting.last_step", "waiting.steps",
    "waiting.removed.ids",
)  # fmt: skip
_STATE = re.compile(r"(.+)\.state(?:0|[1-9]\d*)")

_Declaration = TableDeclaration | ParameterDeclaration


def check_tensor_names(recording: Recording) -> None:
    """Raises `ModelError` where two tensors of a checkpoint would have one name.

    A table takes all the names that tables can have, whatever its rules and its optimizer: these may change between two
    trainings.
    """
    declared: dict[str, _Declaration] = {**recording.tables, **recording.parameters}
    owners: dict[str, _Declaration] = {}
    for name, one in declared.items():
        tensors = [f"{name}.{suffix}" for suffix in _OF_TABLES] if isinstance(one, TableDeclaration) else [name]
        for tensor in tensors:
            other = owners.setdefault(tensor, one)
            if other is not one:
                raise _clash(one, other, tensor)
    for tensor, one in owners.items():
        state = _STATE.fullmatch(tensor)
        if state is not None and state[1] in declared:
            raise _clash(one, declared[state[1]], tensor)


def _clash(one: _Declaration, other: _Declaration, tensor: str) -> ModelError:
    if isinstance(one, TableDeclaration) and isinstance(other, ParameterDeclaration):
        one, other = other, one
    first, second = _named(one), _named(other)
    return ModelError(
        f"{first} and {second} would both be saved as '{tensor}'",
        one.place,
        f"{second} is made at {other.place}",
        "checkpoints name tensors after tables and after the attributes of parameters: rename one of the two",
    )


def _named(one: _Declaration) -> str:
    return f"{'table' if isinstance(one, TableDeclaration) else 'parameter'} '{one.name}'"
