"""Python's operators on values: arithmetic, comparisons and logic, row by row."""

from typing import TYPE_CHECKING

from genrec import methods

if TYPE_CHECKING:
    from genrec.value import Number, Value, ValueLike


class Arithmetic:
    """The operators that compute: of `Value`, and of `Parameter`, which stands for its value."""

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
    """The operators of `Value`, which is their only subclass."""

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
