"""The result of running a model's `forward`: declarations and a list of ops, as they go into the model file."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from genrec.errors import ModelError
from genrec.init import Initializer
from genrec.optim import Optimizer
from genrec.source import Place, find_place

STREAMS_PER_OP = 256
"""Random streams reserved for one recorded op: its own and those of the ops it is decomposed into."""


@dataclass(frozen=True)
class Symbol:
    """An attribute that names a domain, table or parameter."""

    name: str


@dataclass(frozen=True)
class Enum:
    """An attribute that is a case of one of the dialect's enums, such as `Enum("pool_kind", "mean")`."""

    kind: str
    value: str


@dataclass(frozen=True)
class ValueType:
    """The type of a value in the model file: `domain` is empty for a shared tensor; with `is_domain` it is the domain
    itself. `shape` is that of one row, or the whole of a shared tensor.
    """

    domain: str
    shape: tuple[int, ...] = ()
    element: str = "float32"
    is_domain: bool = False


@dataclass(frozen=True)
class Tensor:
    """An attribute that is a constant: a shared scalar or vector."""

    type: ValueType
    numbers: tuple[float, ...]


Attribute = bool | int | float | str | Symbol | Enum | Tensor | tuple[int, ...] | tuple[float, ...]


@dataclass(eq=False)
class Result:
    """One result of a recorded op."""

    type: ValueType


@dataclass(eq=False)
class Op:
    """A recorded op; `number` is its id, from which its random streams follow. `segments` holds the number of values
    per operand of ops with optional ones.
    """

    number: int
    name: str
    operands: list[Result]
    results: list[Result]
    attributes: dict[str, Attribute]
    place: Place
    segments: tuple[int, ...] = ()


@dataclass
class DomainDeclaration:
    """A row domain as the model file declares it; `kind` is "data", "derived" or "catalogue"."""

    name: str
    kind: str
    parent: str = ""
    column: str = ""
    source: str = ""
    place: Place = field(default_factory=Place)
    expected_rows: int | None = None
    """Of a catalogue: the rows that it has now."""


@dataclass(frozen=True)
class RowRules:
    """The rules by which rows of a table come and leave; see `gr.Table`."""

    bounded: int | None = None
    evict: str = "lru"
    ttl: int | timedelta | None = None
    admit_after: int | None = None

    KINDS = ("lru", "lfu")

    @property
    def ttl_steps(self) -> int | None:
        """`ttl` where it counts steps."""
        return None if isinstance(self.ttl, timedelta) else self.ttl

    @property
    def ttl_seconds(self) -> int | None:
        """`ttl` where it is a time."""
        return self.ttl // timedelta(seconds=1) if isinstance(self.ttl, timedelta) else None

    def check(self, table: str) -> None:
        """Raises `ValueError` where a rule of `table` makes no sense."""
        rules = {"bounded": self.bounded, "ttl": self.ttl, "admit_after": self.admit_after}
        if isinstance(self.ttl, timedelta):
            del rules["ttl"]
            if self.ttl < timedelta(seconds=1) or self.ttl % timedelta(seconds=1):
                raise ValueError(f"'ttl' of table '{table}' must be whole seconds, at least 1, got {self.ttl!r}")
        for name, value in rules.items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                also = " of steps, or a datetime.timedelta" if name == "ttl" else ""
                raise TypeError(f"'{name}' of table '{table}' must be a whole number{also}, got {value!r}")
            if value < 1:
                raise ValueError(f"'{name}' of table '{table}' must be at least 1, got {value}")
        if self.evict not in self.KINDS:
            raise ValueError(f"'evict' of table '{table}' must be one of {', '.join(self.KINDS)}, got {self.evict!r}")
        if self.bounded is None and self.evict != self.KINDS[0]:
            raise ValueError(f"'evict' of table '{table}' says what leaves a bounded table, but 'bounded' is not given")


@dataclass(frozen=True)
class RowStorage:
    """In what the values of a table's rows are stored; see `gr.Table`."""

    dtype: str = "f32"
    rounding: str | None = None
    hot_after: int | None = None

    DTYPES = ("f32", "bf16")
    ROUNDINGS = ("nearest", "stochastic")

    def check(self, table: str) -> None:
        """Raises `ValueError` where the storage of `table` makes no sense."""
        if self.dtype not in self.DTYPES:
            raise ValueError(f"'dtype' of table '{table}' must be one of {', '.join(self.DTYPES)}, got {self.dtype!r}")
        self._check_hot_after(table)
        if self.rounding is None:
            return
        if self.rounding not in self.ROUNDINGS:
            known = ", ".join(self.ROUNDINGS)
            raise ValueError(f"'rounding' of table '{table}' must be one of {known}, got {self.rounding!r}")
        if self.dtype == "f32":
            raise ValueError(f"'rounding' of table '{table}' says how bf16 is stored, but its 'dtype' is f32")

    def _check_hot_after(self, table: str) -> None:
        value = self.hot_after
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"'hot_after' of table '{table}' must be a whole number, got {value!r}")
        if value < 1:
            raise ValueError(f"'hot_after' of table '{table}' must be at least 1, got {value}")
        if self.dtype == "f32":
            raise ValueError(
                f"'hot_after' of table '{table}' says which rows of bf16 keep float32, but its 'dtype' is f32, which "
                'all rows keep: dtype="bf16"'
            )


@dataclass
class TableDeclaration:
    """An embedding table as the model file declares it."""

    name: str
    dim: int
    id_bits: int
    init: Initializer
    optimizer: Optimizer
    place: Place
    rules: RowRules = field(default_factory=RowRules)
    storage: RowStorage = field(default_factory=RowStorage)


@dataclass
class ParameterDeclaration:
    """A dense parameter as the model file declares it."""

    name: str
    shape: tuple[int, ...]
    init: Initializer
    optimizer: Optimizer
    place: Place


class Recording:
    """A model being recorded, and afterwards what was recorded."""

    RESERVED = ("main", "train", "evaluate", "predict")
    """Names of programs, which share a name space with domains, tables and parameters."""

    def __init__(self, name: str, optimizer: Optimizer) -> None:
        self.name = name
        self.optimizer = optimizer
        self.clip_norm = 0.0
        self.clip_value = 0.0
        self.schedule: tuple[str, int, int, float] | None = None
        self.domains: dict[str, DomainDeclaration] = {}
        self.tables: dict[str, TableDeclaration] = {}
        self.parameters: dict[str, ParameterDeclaration] = {}
        self.ops: list[Op] = []
        # Recorded values, domains and declarations by what they stand for, so that each is recorded once.
        self.cache: dict[Hashable, Any] = {}
        # Names taken by more than one kind of thing; see `unique_name`.
        self._names: set[str] = set(self.RESERVED)
        # Names of dense parameters, by the id() of their objects.
        self.parameter_names: dict[int, str] = {}
        # The domains of a batch appear as they are used, but all of them are results of the first op.
        self.batch = self.emit("batch", [], [], {}, Place())

    def emit(
        self,
        name: str,
        operands: Sequence[Result],
        results: Sequence[ValueType],
        attributes: dict[str, Attribute],
        place: Place,
        segments: tuple[int, ...] = (),
    ) -> Op:
        """Appends an op. A `stream` attribute is filled in from the op's number."""
        number = len(self.ops)
        if "stream" in attributes:
            attributes = {**attributes, "stream": number * STREAMS_PER_OP}
        op = Op(number, name, list(operands), [Result(one) for one in results], attributes, place, segments)
        self.ops.append(op)
        return op

    def declare_domain(self, declaration: DomainDeclaration) -> None:
        """Adds a domain whose name is not taken."""
        self._take(declaration.name)
        self.domains[declaration.name] = declaration

    def declare_table(self, declaration: TableDeclaration) -> None:
        """Adds a table. Its name is public (checkpoints speak of it), so a taken one is an error."""
        self._claim(declaration.name, "table", declaration.place)
        self.tables[declaration.name] = declaration

    def declare_parameter(self, declaration: ParameterDeclaration) -> None:
        """Adds a dense parameter. Its name is public, so a taken one is an error."""
        if declaration.optimizer.kind == "rowwise_adagrad":
            raise ModelError(
                f"parameter '{declaration.name}' would be trained by RowWiseAdagrad, which is for tables only",
                declaration.place,
                help="give the model another optimizer of gr.optim, and RowWiseAdagrad to its tables",
            )
        self._claim(declaration.name, "parameter", declaration.place)
        self.parameters[declaration.name] = declaration

    def unique_name(self, wanted: str, suffix: str) -> str:
        """`wanted`, or, where that is taken, `wanted` with `suffix` and, if need be, a number."""
        if wanted not in self._names:
            return wanted
        name, count = f"{wanted}_{suffix}", 2
        while name in self._names:
            name, count = f"{wanted}_{suffix}_{count}", count + 1
        return name

    def reserve_public(self, names: set[str]) -> None:
        """Keeps the names of tables and parameters, which are public, from being given to domains."""
        self._names |= names

    def effect_name(self, kind: str, wanted: str, is_default: bool, place: Place) -> str:
        """The name of a loss, metric or output: `wanted`, numbered where that is a default and taken."""
        taken = {op.attributes["name"]: op.place for op in self.ops if op.name == kind}
        name, count = wanted, 2
        while is_default and name in taken:
            name, count = f"{wanted}_{count}", count + 1
        if not name:
            raise ModelError(f"the name of a {kind} must not be empty", place)
        if name in taken:
            plural = "losses" if kind == "loss" else f"{kind}s"
            raise ModelError(f"two {plural} are named '{name}'", place, "", f"the other is at {taken[name]}")
        return name

    def _take(self, name: str) -> None:
        assert name not in self.domains, name
        self._names.add(name)

    def _claim(self, name: str, kind: str, place: Place) -> None:
        for other, taken in (("table", self.tables), ("parameter", self.parameters), ("domain", self.domains)):
            if name in taken:
                raise ModelError(
                    f"the name '{name}' is given twice",
                    place,
                    f"a {kind}, but a {other} has this name too (made at {taken[name].place})",
                    "give it another name, or use one object in both places",
                )
        if name in self.RESERVED:
            raise ModelError(f"a {kind} cannot be named '{name}'", place, "", "choose another name")
        self._names.add(name)


_active: ContextVar[Recording | None] = ContextVar("genrec_recording", default=None)


@contextmanager
def recording(target: Recording) -> Iterator[None]:
    """Records what happens inside into `target`."""
    token = _active.set(target)
    try:
        yield
    finally:
        _active.reset(token)


def current(what: str) -> Recording:
    """The recording in progress. Raises `ModelError` outside of a model's `forward`; `what` is what was tried."""
    active = _active.get()
    if active is None:
        raise ModelError(
            f"{what} outside of a model",
            find_place(),
            "",
            "values exist only while genrec records a model: use it in the model's forward",
        )
    return active
