"""Values of a model being recorded: a table of rows of one domain, or something shared by all rows."""

import difflib
import inspect
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Union

from genrec.domain import Domain
from genrec.errors import FeatureError, ModelError
from genrec.recording import Recording, Result, Tensor, ValueType, current
from genrec.source import Part, Place, find_place
from genrec.types import ElementType, bool_, element_type, float32, int64

if TYPE_CHECKING:
    from genrec.nn.module import Parameter

Number = bool | int | float
"""A plain number, which stands for itself in every row."""
ValueLike = Union["Value", "Domain", "Parameter", Number, Sequence[Number]]
"""What ops take: a value, a list of plain values (for its entries), a parameter, a number or a list of numbers."""

# By the names of numpy's functions.
_NUMPY_ARITHMETIC = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
}  # fmt: skip

# What arrays of other libraries have, and what to write here.
_ELSEWHERE = {
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


class Value:
    """A table of rows: one scalar or vector of `shape` per row of `domain`; or, with `domain` None, one scalar, vector
    or matrix shared by all rows (a parameter, a constant).

    Arithmetic works elementwise on rows of one domain; shared values and numbers go with any. A row of shape [] is
    repeated along a row of shape [d]. `valid` tells nulls apart: a bool per row, or None where no row is null. Nulls
    read as 0; a null id looks up the zero vector, a null label has weight 0 in a loss. `elements_valid` tells apart the
    elements of rows [k] that `gr.top_k` found nothing for, which outputs write as nulls.

    Example:
        >>> x = gr.Table("item", dim=16)(batch.history.item)
        >>> x
        <[16] float32, one per 'history'>
        >>> x.shape, x.dtype.name, x.domain
        ((16,), 'float32', <rows of 'history'>)
        >>> 2.0 * x + 1.0
        <[16] float32, one per 'history'>
        >>> batch.history.price > 10.0
        <bool, one per 'history'>
    """

    def __init__(
        self, recording: Recording, result: Result, domain: Domain | None, place: Place, valid: "Value | None" = None
    ) -> None:
        self._recording = recording
        self._result = result
        self._place = place
        self.domain = domain
        self.valid = valid
        self.elements_valid: Value | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row: () or (d,); the whole shape of a shared value."""
        return self._result.type.shape

    @property
    def dtype(self) -> ElementType:
        """The element type."""
        return element_type(self._result.type.element)

    def __repr__(self) -> str:
        return f"<{self._describe()}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        close = difflib.get_close_matches(name, [one for one in dir(Value) if not one.startswith("_")], n=1)
        in_nn = f"nn.{name}(x)" if hasattr(_functional(), name) else ""
        help = _ELSEWHERE.get(name) or in_nn or (f"did you mean '{close[0]}'?" if close else "")
        raise FeatureError(f"a value has no '{name}'", find_place(), self._label(), help)

    def __bool__(self) -> bool:
        raise ModelError(
            "a value has no truth while the model is recorded",
            find_place(),
            self._label(),
            "choose per row with gr.where(condition, a, b); 'and', 'or' and 'if' see no rows",
        )

    __hash__ = object.__hash__

    def _has_no_number(self, *_: object) -> NoReturn:
        raise ModelError(
            "a value has no number while the model is recorded",
            find_place(),
            self._label(),
            "use functions of values: nn.exp and its kin, gr.where, gr.maximum, x.astype(gr.int64)",
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __array__ = _has_no_number

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> "Value":
        """Arithmetic with numpy's scalars on the left, such as `np.float32(2) * x`. Raises `ModelError` for numpy's
        functions, which work on numbers.
        """
        act = _NUMPY_ARITHMETIC.get(ufunc.__name__)
        if act is None or method != "__call__" or options:
            self._has_no_number()
        plain = [one if isinstance(one, Value) else one.tolist() for one in operands]
        return act(*plain)

    def _describe(self) -> str:
        """ "[50] float32, one per 'event'" or "shared [50, 200] float32"."""
        size = "" if not self.shape and self.domain is not None else f"[{', '.join(map(str, self.shape))}] "
        if self.domain is None:
            return f"shared {size}{self.dtype.name}"
        return f"{size}{self.dtype.name}, one per '{self.domain._name}'"

    def _label(self) -> str:
        """For the caret line: what this value is and where it was made."""
        return f"{self._describe()}{made_at(self._place)}"

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def __add__(self, other: ValueLike) -> "Value":
        return _ops().binary("add", self, other)

    def __radd__(self, other: ValueLike) -> "Value":
        return _ops().binary("add", other, self)

    def __sub__(self, other: ValueLike) -> "Value":
        return _ops().binary("sub", self, other)

    def __rsub__(self, other: ValueLike) -> "Value":
        return _ops().binary("sub", other, self)

    def __mul__(self, other: ValueLike) -> "Value":
        return _ops().binary("mul", self, other)

    def __rmul__(self, other: ValueLike) -> "Value":
        return _ops().binary("mul", other, self)

    def __truediv__(self, other: ValueLike) -> "Value":
        return _ops().binary("div", self, other)

    def __rtruediv__(self, other: ValueLike) -> "Value":
        return _ops().binary("div", other, self)

    def __pow__(self, exponent: Number) -> "Value":
        """`x ** exponent`: powers of a fixed exponent, a whole one from 1 to 64, 0.5 or -0.5.

        Shape:
            any, and the same out.

        Example:
            >>> batch.history.price ** 2
            <float32, one per 'history'>
        """
        return _ops().power(self, exponent)

    def __neg__(self) -> "Value":
        return _ops().unary("neg", self)

    def __abs__(self) -> "Value":
        return _ops().unary("abs", self)

    def __eq__(self, other: ValueLike) -> "Value":  # type: ignore[override]
        return _ops().compare("eq", self, other)

    def __ne__(self, other: ValueLike) -> "Value":  # type: ignore[override]
        return _ops().compare("ne", self, other)

    def __lt__(self, other: ValueLike) -> "Value":
        return _ops().compare("lt", self, other)

    def __le__(self, other: ValueLike) -> "Value":
        return _ops().compare("le", self, other)

    def __gt__(self, other: ValueLike) -> "Value":
        return _ops().compare("gt", self, other)

    def __ge__(self, other: ValueLike) -> "Value":
        return _ops().compare("ge", self, other)

    # -- logic ---------------------------------------------------------------------------------------------------------

    def __and__(self, other: ValueLike) -> "Value":
        """True where both bools are. Comparisons beside it need parentheses: `(a > 0) & (b > 0)`."""
        return _ops().logical("&", self, other)

    def __rand__(self, other: ValueLike) -> "Value":
        return _ops().logical("&", other, self)

    def __or__(self, other: ValueLike) -> "Value":
        """True where one of the bools is. Comparisons beside it need parentheses: `(a > 0) | (b > 0)`."""
        return _ops().logical("|", self, other)

    def __ror__(self, other: ValueLike) -> "Value":
        return _ops().logical("|", other, self)

    def __invert__(self) -> "Value":
        """True where the bool is false."""
        return _ops().negation(self)

    # -- within a row --------------------------------------------------------------------------------------------------

    def __getitem__(self, index: object) -> "Value":
        """`x[:, a:b]`: columns [a, b) of every row; `x[:, i]`: column i as a number per row.

        `x[ids]`, where `x` is per item of a catalogue: the item's row for each item id of other rows, such as
        `items.price[batch.history.item]`. A null id gives null; an id that the catalogue lacks is an error of the run.
        No gradient: `x` must not be trained.

        Shape:
            [d] in, [b - a] or [] out; `x[ids]`: any, kept.

        Example:
            >>> x = gr.Table("item", dim=16)(batch.history.item)
            >>> x[:, :4]
            <[4] float32, one per 'history'>
            >>> x[:, 0]
            <float32, one per 'history'>
        """
        if isinstance(index, Value | Domain):
            from genrec.catalogues import read_by_id

            return read_by_id(self, index)
        return _ops().columns(self, index)

    def astype(self, dtype: ElementType | str) -> "Value":
        """Converted to another element type. Floats to integers truncate towards 0 and saturate, NaN becomes 0;
        gradients pass between floats only.

        Shape:
            any, and the same out.

        Example:
            >>> batch.impression.clicked.astype(gr.float32)
            <float32, one per 'impression'>
        """
        return _ops().cast(self, dtype, find_place())

    def squeeze(self) -> "Value":
        """Rows of one element as numbers; numbers stay what they are.

        Shape:
            [1] or [] in, [] out.

        Example:
            >>> nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.history.item)).squeeze()
            <float32, one per 'history'>
        """
        return _ops().squeezed(self)

    def row_sum(self) -> "Value":
        """The sum along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> item = gr.Table("item", dim=16)
            >>> (item(batch.history.item) * item(batch.history.next)).row_sum()  # a dot product per event
            <float32, one per 'history'>
        """
        return _ops().row_reduce("sum", self)

    def row_mean(self) -> "Value":
        """The mean along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).row_mean()
            <float32, one per 'history'>
        """
        return _ops().row_reduce("mean", self)

    def row_max(self) -> "Value":
        """The maximum along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).row_max()
            <float32, one per 'history'>
        """
        return _ops().row_reduce("max", self)

    # -- between rows --------------------------------------------------------------------------------------------------

    def fanout(self, domain: Domain) -> "Value":
        """Each row copied to its descendants in `domain` (a child, a child's child, …).

        Shape:
            any, and the same out, per row of `domain`.

        Example:
            >>> batch.user.fanout(batch.history)
            <int64, one per 'history'>
        """
        return _moves().fanout(self, domain)

    def pool(self, kind: str, to: Domain | None = None) -> "Value":
        """The children of each row of `to` reduced to one; an empty list gives 0.

        Args:
            kind: "sum", "mean", "max", "first" or "last".
            to: the parent, which it is unless given; "sum" reaches any ancestor.

        Shape:
            any, and the same out, per row of `to`.

        Example:
            >>> batch.history.price.pool("max")
            <float32, one per 'request'>
        """
        return _moves().pool(kind, self, to)

    def sum(self, to: Domain | None = None) -> "Value":
        """The sum over each list; see `pool`.

        Shape:
            any, and the same out, per row of the parent, or of any ancestor.

        Example:
            >>> gr.Table("tag", dim=8)(batch.history.tags).sum(to=batch)
            <[8] float32, one per 'request'>
        """
        return _moves().pool("sum", self, to)

    def mean(self, to: Domain | None = None) -> "Value":
        """The mean over each list; see `pool`.

        Shape:
            any, and the same out, per row of the parent.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).mean()
            <[16] float32, one per 'request'>
        """
        return _moves().pool("mean", self, to)

    def max(self, to: Domain | None = None) -> "Value":
        """The elementwise maximum over each list (ties: the first row); see `pool`.

        Shape:
            any, and the same out, per row of the parent.

        Example:
            >>> batch.history.price.max()
            <float32, one per 'request'>
        """
        return _moves().pool("max", self, to)

    def first(self, to: Domain | None = None) -> "Value":
        """The first row of each list; see `pool`.

        Shape:
            any, and the same out, per row of the parent.

        Example:
            >>> batch.history.item.first()
            <int64, one per 'request'>
        """
        return _moves().pool("first", self, to)

    def last(self, to: Domain | None = None) -> "Value":
        """The last row of each list; see `pool`.

        Shape:
            any, and the same out, per row of the parent.

        Example:
            >>> batch.history.item.last()
            <int64, one per 'request'>
        """
        return _moves().pool("last", self, to)

    def lead(self, distance: int = 1) -> "Value":
        """The value `distance` rows later in the same list; null past its end.

        Shape:
            any, and the same out.

        Example:
            >>> batch.history.item.lead()  # the next item of a history
            <int64, one per 'history'>
        """
        return _moves().shift("lead", self, distance)

    def lag(self, distance: int = 1) -> "Value":
        """The value `distance` rows earlier in the same list; null before its start.

        Shape:
            any, and the same out.

        Example:
            >>> batch.history.time - batch.history.time.lag()
            <int64, one per 'history'>
        """
        return _moves().shift("lag", self, distance)

    def truncate(self, count: int, keep: str = "last") -> "Value":
        """The rows that `domain.truncate(count, keep)` keeps, as a value of that (one) domain.

        Shape:
            any, and the same out.

        Example:
            >>> tags = gr.Table("tag", dim=8)(batch.history.tags).mean()
            >>> recent = batch.history.truncate(50)
            >>> gr.Table("item", dim=8)(recent.item) + tags.truncate(50)
            <[8] float32, one per 'recent'>
        """
        return _moves().truncate(self, count, keep)

    def pad(self, count: int, side: str = "back") -> "Value":
        """This value in lists of at least `count` rows: null (and 0) in the new rows.

        Args:
            count: at least 1.
            side: where the new rows are, at the "back" of each list or at its "front".

        Shape:
            any, and the same out.

        Example:
            >>> batch.history.price.pad(20, side="front")
            <float32, one per 'history_padded_20'>
        """
        return _lists().pad(self, count, side)

    def tile(self, count: int, keep: str = "first") -> "Value":
        """The "first" (or "last") `count` rows of each list end to end, as one row [count * d] of the parent; 0 past
        the end of a list.

        Shape:
            [d] in, [count * d] out, per row of the parent.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).tile(5, keep="last")
            <[80] float32, one per 'request'>
        """
        return _lists().tile(self, count, keep)

    def beside(self, pairs: Domain) -> "Value":
        """The row of this value that is the second half of each pair of `gr.pairs`.

        Shape:
            any, and the same out, per pair.

        Example:
            >>> both = gr.pairs(batch.impression, batch.history)
            >>> batch.history.item.beside(both)
            <int64, one per 'both'>
        """
        return _lists().beside(self, pairs)

    def split_rows(self) -> "tuple[Value, ...]":
        """Undoes `gr.concat_rows`: the rows of each of its parts, in their own domains again.

        Shape:
            any, and a tuple of the same out.

        Example:
            >>> rows = gr.concat_rows(batch.history.item, batch.impression.item)
            >>> gr.Table("item", dim=16)(rows).split_rows()
            (<[16] float32, one per 'history'>, <[16] float32, one per 'impression'>)
        """
        return _moves().split_rows(self)


def _ops():  # type: ignore[no-untyped-def]
    """The module of ops, which needs `Value` itself."""
    from genrec import ops

    return ops


def _functional():  # type: ignore[no-untyped-def]
    """The module of functions without parameters, which needs `Value` itself."""
    from genrec.nn import functional

    return functional


def _moves():  # type: ignore[no-untyped-def]
    """The module of moves between domains, which needs `Value` itself."""
    from genrec import moves

    return moves


def _lists():  # type: ignore[no-untyped-def]
    """The module of what is done with lists, which needs `Value` itself."""
    from genrec import lists

    return lists


def made_at(place: Place) -> str:
    """ " (made at ranker.py:33)", or nothing where that is unknown."""
    return f" (made at {place})" if place.line else ""


def as_value(given: object, place: Place, like: "Value | None" = None, what: str = "an operand") -> Value:
    """`given` as a value. Numbers take the element type of `like`, else float32 (int64 for integers). Raises
    `ModelError` at `place` for what no value can be made of.
    """
    from genrec.nn.module import Parameter

    if isinstance(given, Value):
        return given
    if isinstance(given, Parameter):
        return given.value()
    if isinstance(given, Domain):
        element = given._element()
        if element is not None:
            return element
        raise ModelError(
            f"{what} must be a value, got the row domain '{given._name}'",
            place,
            "a domain says whose rows there are",
            f"take one of its features: {given._expression}.<feature>" if len(list(given)) else "",
        )
    if inspect.ismethod(given) and isinstance(given.__self__, Domain):
        owner, name = given.__self__, given.__name__
        help = f"{owner._expression}['{name}'] is the feature" if name in owner else ""
        help = help or f"call it: {owner._expression}.{name}(...)"
        raise ModelError(f"{what} must be a value, got the method '{name}' of a row domain", place, "", help)
    numbers = _numbers(given)
    if numbers is not None:
        return constant(numbers, like.dtype if like is not None else None, place)
    raise ModelError(f"{what} must be a value, got {type(given).__name__}", place)


def _numbers(given: object) -> "Number | list[Number] | None":
    """A number or a flat list of numbers (also of numpy); None for anything else."""
    given = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(given, bool | int | float):
        return given
    if isinstance(given, Sequence) and given and all(isinstance(one, bool | int | float) for one in given):
        return list(given)
    return None


def constant(numbers: "Number | Sequence[Number]", dtype: ElementType | str | None, place: Place) -> Value:
    """A shared scalar or vector of constants."""
    flat = list(numbers) if isinstance(numbers, Sequence) else [numbers]
    if dtype is None:
        dtype = bool_ if all(isinstance(n, bool) for n in flat) else int64
        dtype = float32 if any(isinstance(n, float) for n in flat) else dtype
    kind = element_type(dtype).plain
    if kind.is_integer and any(n != int(n) for n in flat):
        raise ModelError(
            f"a constant of {kind} cannot hold {next(n for n in flat if n != int(n))}",
            place,
            "",
            "convert the other operand first: .astype(gr.float32)",
        )
    shape = (len(flat),) if isinstance(numbers, Sequence) else ()
    type_ = ValueType("", shape, kind.name)
    recording = current("a constant")
    convert = float if kind.is_float else int
    tensor = Tensor(type_, tuple(convert(n) for n in flat))
    op = recording.emit("constant", [], [type_], {"value": tensor}, place.named(""))
    return Value(recording, op.results[0], None, place)


def expect_float(x: Value, what: str, place: Place, *part: Part) -> None:
    """Raises `ModelError` unless `x` is of floats."""
    if not x.dtype.is_float:
        raise ModelError(
            f"{what} takes floats, got {x.dtype.name}",
            place.part(*part),
            x._label(),
            "convert it: .astype(gr.float32), or look it up in a table",
        )
