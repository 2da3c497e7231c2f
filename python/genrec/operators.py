"""Python's operators on values: arithmetic, comparisons and logic, row by row; and what needs numbers, which there are
none of while a model is recorded.
"""

import operator
from typing import TYPE_CHECKING, Any, NoReturn

from genrec import methods
from genrec.errors import ModelError
from genrec.source import find_place

if TYPE_CHECKING:
    from genrec.value import Number, Value, ValueLike


# By the names of numpy's functions.
_NUMPY_ARITHMETIC = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
}  # fmt: skip


class Symbolic:
    """What has no numbers while a model is recorded: `Value`, and `Parameter`, which stands for its value."""

    _noun = "a value"

    def _label(self) -> str:
        """A description for the caret line of an error."""
        raise NotImplementedError

    def _refuse(self, why: str, help: str) -> NoReturn:
        raise ModelError(f"{self._noun} {why}", find_place(), self._label(), help)

    def __bool__(self) -> bool:
        self._refuse(
            "has no truth while the model is recorded",
            "choose per row with gr.where(condition, a, b); 'and', 'or' and 'if' see no rows",
        )

    def __iter__(self) -> NoReturn:
        self._refuse(
            "cannot be iterated over: a model is recorded without data",
            "ops work on all rows at once; .sum() reduces lists, .row_sum() each row",
        )

    def _has_no_number(self, *_: object, **__: object) -> NoReturn:
        self._refuse(
            "has no number while the model is recorded",
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
        plain = [one if isinstance(one, Symbolic) else one.tolist() for one in operands]
        return act(*plain)


class Arithmetic(Symbolic):
    """The operators that compute."""

    def __add__(self, other: "ValueLike") -> "Value":
        return methods.binary("add", self, other)

    def __radd__(self, other: "ValueLike") -> "Value":
        return methods.binary("add", other, self)

    def __sub__(self, other: "ValueLike") -> "Value":
        return methods.binary("sub", self, other)

    def __rsub__(self, other: "ValueLike") -> "Value":
        return methods.binary("sub", other, self)

    def __mul__(self, other: "ValueLike") -> "Value":
        return methods.binary("mul", self, other)

    def __rmul__(self, other: "ValueLike") -> "Value":
        return methods.binary("mul", other, self)

    def __truediv__(self, other: "ValueLike") -> "Value":
        return methods.binary("div", self, other)

    def __rtruediv__(self, other: "ValueLike") -> "Value":
        return methods.binary("div", other, self)

    def __pow__(self, exponent: "Number") -> "Value":
        """`x ** exponent`: powers of a fixed exponent, a whole one from 1 to 64, 0.5 or -0.5.

        Shape:
            any in, the same out.

        Example:
            >>> batch.history.price ** 2
            <float32, one per 'history'>
        """
        return methods.power(self, exponent)

    def __neg__(self) -> "Value":
        return methods.unary("neg", self)

    def __abs__(self) -> "Value":
        return methods.unary("abs", self)


class Operators(Arithmetic):
    """All operators, of `Value` and `Parameter`."""

    __hash__ = object.__hash__

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def __eq__(self, other: "ValueLike") -> "Value":  # type: ignore[override]
        return methods.compare("eq", self, other)

    def __ne__(self, other: "ValueLike") -> "Value":  # type: ignore[override]
        return methods.compare("ne", self, other)

    def __lt__(self, other: "ValueLike") -> "Value":
        return methods.compare("lt", self, other)

    def __le__(self, other: "ValueLike") -> "Value":
        return methods.compare("le", self, other)

    def __gt__(self, other: "ValueLike") -> "Value":
        return methods.compare("gt", self, other)

    def __ge__(self, other: "ValueLike") -> "Value":
        return methods.compare("ge", self, other)

    # -- logic ---------------------------------------------------------------------------------------------------------

    def __and__(self, other: "ValueLike") -> "Value":
        """True where both bools are. Comparisons beside it need parentheses: `(a > 0) & (b > 0)`."""
        return methods.logical("&", self, other)

    def __rand__(self, other: "ValueLike") -> "Value":
        return methods.logical("&", other, self)

    def __or__(self, other: "ValueLike") -> "Value":
        """True where one of the bools is. Comparisons beside it need parentheses: `(a > 0) | (b > 0)`."""
        return methods.logical("|", self, other)

    def __ror__(self, other: "ValueLike") -> "Value":
        return methods.logical("|", other, self)

    def __invert__(self) -> "Value":
        """True where the bool is false."""
        return methods.negation(self)
