"""Values of a model being recorded: a table of rows of one domain, or something shared by all rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, Union

from genrec import methods
from genrec.domain import Domain
from genrec.errors import FeatureError
from genrec.hints import help_for_attribute
from genrec.operators import Operators
from genrec.recording import Recording, Result
from genrec.source import Place, find_place
from genrec.types import ElementType, element_type

if TYPE_CHECKING:
    from genrec.parameter import Parameter

Number = bool | int | float
"""A plain number, which stands for itself in every row."""
ValueLike = Union["Value", "Domain", "Parameter", Number, Sequence[Number]]
"""What ops take: a value, a list of plain values (for its entries), a parameter, a number or a list of numbers."""


class Value(Operators):
    """A table of rows: one scalar or vector of `shape` per row of `domain`. With `domain` None: one scalar, vector or
    matrix shared by all rows (a parameter, a constant).

    Arithmetic works elementwise on rows of one domain; shared values and numbers go with any. A row of shape [] is
    repeated along a row of shape [d]. `valid` marks nulls: a bool per row, false for null, or None if no row is null.
    A null row stays null through ops that work row by row, but for layers with weights, which read a null of a column
    as 0; a null id looks up the zero vector, a null label has weight 0 in a loss. `elements_valid` is the same per
    element of rows [k]: false where `gr.top_k` found no item, which outputs write as null.

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
        help = help_for_attribute(name, dir(Value))
        raise FeatureError(f"a value has no '{name}'", find_place(), self._label(), help)

    def __pos__(self) -> "Value":
        return self

    def _describe(self) -> str:
        """ "[50] float32, one per 'event'" or "shared [50, 200] float32"."""
        size = "" if not self.shape and self.domain is not None else f"[{', '.join(map(str, self.shape))}] "
        if self.domain is None:
            return f"shared {size}{self.dtype.name}"
        return f"{size}{self.dtype.name}, one per '{self.domain._name}'"

    def _label(self) -> str:
        """The value's description and where it was made, for the caret line of an error."""
        return f"{self._describe()}{made_at(self._place)}"

    # -- within a row --------------------------------------------------------------------------------------------------

    def __getitem__(self, index: object) -> "Value":
        """`x[:, a:b]`: columns [a, b) of every row; `x[:, i]`: column i as a number per row. Of a value that all rows
        share, `x[a:b]` and `x[i]`.

        `x[ids]`, where `x` is per item of a catalogue: the item's row for each item id of other rows, such as
        `items.price[batch.history.item]`. A null id gives null; an id that the catalogue lacks is an error of the run.
        No gradient: `x` must not be trained.

        Shape:
            [d] in, [b - a] or [] out; `x[ids]`: any in, the same out.

        Example:
            >>> x = gr.Table("item", dim=16)(batch.history.item)
            >>> x[:, :4]
            <[4] float32, one per 'history'>
            >>> x[:, 0]
            <float32, one per 'history'>
        """
        if isinstance(index, Value | Domain):
            return methods.read_by_id(self, index)
        return methods.columns(self, index)

    def astype(self, dtype: ElementType | str) -> "Value":
        """Converted to another element type. Floats to integers truncate towards 0 and saturate, NaN becomes 0;
        gradients pass between floats only.

        Shape:
            any in, the same out.

        Example:
            >>> batch.impression.clicked.astype(gr.float32)
            <float32, one per 'impression'>
        """
        return methods.cast(self, dtype, find_place())

    def squeeze(self) -> "Value":
        """Rows of one element as numbers; numbers stay what they are.

        Shape:
            [1] or [] in, [] out.

        Example:
            >>> nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.history.item)).squeeze()
            <float32, one per 'history'>
        """
        return methods.squeezed(self)

    def row_sum(self) -> "Value":
        """The sum along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> item = gr.Table("item", dim=16)
            >>> (item(batch.history.item) * item(batch.history.next)).row_sum()  # a dot product per event
            <float32, one per 'history'>
        """
        return methods.row_reduce("sum", self)

    def row_mean(self) -> "Value":
        """The mean along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).row_mean()
            <float32, one per 'history'>
        """
        return methods.row_reduce("mean", self)

    def row_max(self) -> "Value":
        """The maximum along each row.

        Shape:
            [d] in, [] out.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).row_max()
            <float32, one per 'history'>
        """
        return methods.row_reduce("max", self)

    # -- between rows --------------------------------------------------------------------------------------------------

    def fanout(self, domain: Domain) -> "Value":
        """Each row copied to its descendants in `domain` (a child, a child's child, …).

        Shape:
            any in, the same out, per row of `domain`.

        Example:
            >>> batch.user.fanout(batch.history)
            <int64, one per 'history'>
        """
        return methods.fanout(self, domain)

    def pool(self, kind: str, to: Domain | None = None) -> "Value":
        """The children of each row of `to` reduced to one; an empty list gives 0.

        Args:
            kind: "sum", "mean", "max", "first" or "last".
            to: the parent, which it is unless given; "sum" reaches any ancestor.

        Shape:
            any in, the same out, per row of `to`.

        Example:
            >>> batch.history.price.pool("max")
            <float32, one per 'request'>
        """
        return methods.pool(kind, self, to)

    def sum(self, to: Domain | None = None) -> "Value":
        """The sum over each list; see `pool`.

        Shape:
            any in, the same out, per row of the parent, or of any ancestor.

        Example:
            >>> gr.Table("tag", dim=8)(batch.history.tags).sum(to=batch)
            <[8] float32, one per 'request'>
        """
        return methods.pool("sum", self, to)

    def mean(self, to: Domain | None = None) -> "Value":
        """The mean over each list; see `pool`.

        Shape:
            any in, the same out, per row of the parent.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).mean()
            <[16] float32, one per 'request'>
        """
        return methods.pool("mean", self, to)

    def max(self, to: Domain | None = None) -> "Value":
        """The elementwise maximum over each list (ties: the first row); see `pool`.

        Shape:
            any in, the same out, per row of the parent.

        Example:
            >>> batch.history.price.max()
            <float32, one per 'request'>
        """
        return methods.pool("max", self, to)

    def first(self, to: Domain | None = None) -> "Value":
        """The first row of each list; see `pool`.

        Shape:
            any in, the same out, per row of the parent.

        Example:
            >>> batch.history.item.first()
            <int64, one per 'request'>
        """
        return methods.pool("first", self, to)

    def last(self, to: Domain | None = None) -> "Value":
        """The last row of each list; see `pool`.

        Shape:
            any in, the same out, per row of the parent.

        Example:
            >>> batch.history.item.last()
            <int64, one per 'request'>
        """
        return methods.pool("last", self, to)

    def lead(self, distance: int = 1) -> "Value":
        """The value `distance` rows later in the same list; null past its end.

        Shape:
            any in, the same out.

        Example:
            >>> batch.history.item.lead()  # the next item of a history
            <int64, one per 'history'>
        """
        return methods.shift("lead", self, distance)

    def lag(self, distance: int = 1) -> "Value":
        """The value `distance` rows earlier in the same list; null before its start.

        Shape:
            any in, the same out.

        Example:
            >>> batch.history.time - batch.history.time.lag()
            <int64, one per 'history'>
        """
        return methods.shift("lag", self, distance)

    def truncate(self, count: int, keep: str = "last") -> "Value":
        """The rows that `domain.truncate(count, keep)` keeps, as a value of that (one) domain.

        Shape:
            any in, the same out.

        Example:
            >>> tags = gr.Table("tag", dim=8)(batch.history.tags).mean()
            >>> recent = batch.history.truncate(50)
            >>> gr.Table("item", dim=8)(recent.item) + tags.truncate(50)
            <[8] float32, one per 'recent'>
        """
        return methods.truncate(self, count, keep)

    def pad(self, count: int, side: str = "back") -> "Value":
        """This value in lists of at least `count` rows: null (and 0) in the new rows.

        Args:
            count: at least 1.
            side: where the new rows are, at the "back" of each list or at its "front".

        Shape:
            any in, the same out.

        Example:
            >>> batch.history.price.pad(20, side="front")
            <float32, one per 'history_padded_20'>
        """
        return methods.pad(self, count, side)

    def tile(self, count: int, keep: str = "first") -> "Value":
        """The "first" (or "last") `count` rows of each list end to end, as one row [count * d] of the parent; 0 past
        the end of a list.

        Shape:
            [d] in, [count * d] out, per row of the parent.

        Example:
            >>> gr.Table("item", dim=16)(batch.history.item).tile(5, keep="last")
            <[80] float32, one per 'request'>
        """
        return methods.tile(self, count, keep)

    def beside(self, pairs: Domain) -> "Value":
        """The row of this value that is the second half of each pair of `gr.pairs`.

        Shape:
            any in, the same out, per pair.

        Example:
            >>> both = gr.pairs(batch.impression, batch.history)
            >>> batch.history.item.beside(both)
            <int64, one per 'both'>
        """
        return methods.beside(self, pairs)

    def split_rows(self) -> "tuple[Value, ...]":
        """Undoes `gr.concat_rows`: the rows of each of its parts, in their own domains again.

        Shape:
            any in, a tuple of the same out.

        Example:
            >>> rows = gr.concat_rows(batch.history.item, batch.impression.item)
            >>> gr.Table("item", dim=16)(rows).split_rows()
            (<[16] float32, one per 'history'>, <[16] float32, one per 'impression'>)
        """
        return methods.split_rows(self)


def made_at(place: Place) -> str:
    """ " (made at ranker.py:33)", or nothing where that is unknown."""
    return f" (made at {place})" if place.line else ""
