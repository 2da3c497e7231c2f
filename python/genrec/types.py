"""Element types of values and features."""

from dataclasses import dataclass, replace

_FLOATS = ("float32", "float64")
_INTEGERS = ("int32", "int64")
_UNITS = ("s", "ms", "us", "ns")

RANGES = {"bool": (0, 1), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""The least and the greatest value of the types that hold whole numbers."""


@dataclass(frozen=True)
class ElementType:
    """What one element of a value is: "bool", "int32", "int64", "float32", "float64" or "string".

    As the type of a feature it also has: whether nulls are allowed, the id of padding entries of a list, whether an
    int64 is a time, and the `size` of a vector. `gr.int64`, `gr.float32` and so on are instances;
    `gr.int64.nullable()`, `gr.int64.padded(0)` and `gr.float32.vector(16)` are variants.

    Example:
        >>> schema = gr.Schema({"age": gr.float32.nullable(), "interest": [gr.int64.padded(0)]})
        >>> print(schema)
        request
          age: float32, nullable
          interest
            value: int64
    """

    name: str
    is_nullable: bool = False
    padding_id: int | None = None
    is_time: bool = False
    size: int | None = None

    def nullable(self) -> "ElementType":
        """This type with nulls allowed; a null is an error in any other feature, whatever the file says.

        Example:
            >>> str(gr.float32.nullable())
            'float32, nullable'
        """
        return replace(self, is_nullable=True)

    def padded(self, with_id: int) -> "ElementType":
        """This type for a list whose entries with `with_id` are padding, dropped when read.

        Example:
            >>> gr.int64.padded(0).padding_id
            0
        """
        if not self.is_integer:
            raise ValueError(f"padding is for ids (int32 or int64), not for {self.name}")
        low, high = RANGES[self.name]
        if not low <= with_id <= high:
            raise ValueError(f"the padding id {with_id} is no {self.name}, which lies in {low} to {high}")
        return replace(self, padding_id=with_id)

    def vector(self, size: int) -> "ElementType":
        """This type for a column of lists that all have `size` entries: a value [size] per row.

        The file may have fixed-size lists, or lists of that length. A null among the entries is an error; `nullable()`
        allows null rows.

        Example:
            >>> schema = gr.Schema({"image": gr.float32.vector(64).nullable()})
            >>> print(schema)
            request
              image: float32[64], nullable
        """
        if not self.is_float:
            raise ValueError(f"rows of several values are floats, not {self.name}; [gr.{self.name}] is a list")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"the size of a vector must be a whole number of at least 1, got {size!r}")
        return replace(self, size=size)

    @property
    def is_float(self) -> bool:
        """True for float32 and float64.

        Example:
            >>> gr.float64.is_float
            True
        """
        return self.name in _FLOATS

    @property
    def is_integer(self) -> bool:
        """True for int32 and int64.

        Example:
            >>> gr.int32.is_integer
            True
        """
        return self.name in _INTEGERS

    @property
    def is_number(self) -> bool:
        """True for floats and integers, not for booleans.

        Example:
            >>> gr.bool_.is_number
            False
        """
        return self.is_float or self.is_integer

    @property
    def plain(self) -> "ElementType":
        """The element type without nullability, padding, time and size, which only features have.

        Example:
            >>> gr.int64.nullable().plain == gr.int64
            True
        """
        return ElementType(self.name)

    def __repr__(self) -> str:
        """As it is written in a schema."""
        text = "gr.timestamp()" if self.is_time else "gr.bool_" if self.name == "bool" else f"gr.{self.name}"
        text += f".vector({self.size})" if self.size is not None else ""
        text += f".padded({self.padding_id})" if self.padding_id is not None else ""
        return text + (".nullable()" if self.is_nullable else "")

    def __str__(self) -> str:
        text = "time" if self.is_time else self.name
        text += f"[{self.size}]" if self.size is not None else ""
        return f"{text}, nullable" if self.is_nullable else text


bool_ = ElementType("bool")
"""Labels and flags.

Example:
    >>> gr.Schema({"clicked": gr.bool_}).columns
    ['clicked']
"""
int32 = ElementType("int32")
"""Small whole numbers: counts, positions. Ids are converted to int64 where they are looked up.

Example:
    >>> gr.Schema({"position": gr.int32}).columns
    ['position']
"""
int64 = ElementType("int64")
"""Ids, and whole numbers of any size.

Example:
    >>> gr.Schema({"user": gr.int64}).columns
    ['user']
"""
float32 = ElementType("float32")
"""Numbers of a model: features, vectors, scores.

Example:
    >>> gr.Schema({"price": gr.float32}).columns
    ['price']
"""
float64 = ElementType("float64")
"""Columns of double precision; convert them before arithmetic with float32, `x.astype(gr.float32)`.

Example:
    >>> gr.Schema({"score": gr.float64}).columns
    ['score']
"""
string = ElementType("string")
"""Texts, which a model hashes to ids: `gr.hash(x, bits=52)`.

Example:
    >>> gr.Schema({"country": gr.string}).columns
    ['country']
"""

_BY_NAME = {one.name: one for one in (bool_, int32, int64, float32, float64, string)}


def timestamp(unit: str = "s") -> ElementType:
    """A timestamp or date, read as int64 seconds since 1970 in UTC.

    Args:
        unit: the file's, "s", "ms", "us" or "ns".

    Example:
        >>> print(gr.Schema({"time": gr.timestamp("us")}))
        request
          time: time
    """
    if unit not in _UNITS:
        raise ValueError(f"the unit of a timestamp must be one of {', '.join(_UNITS)}, got {unit!r}")
    return ElementType("int64", is_time=True)


def element_type(of: "ElementType | str") -> ElementType:
    """`of` itself, or the type of that name."""
    if isinstance(of, ElementType):
        return of
    if of not in _BY_NAME:
        raise ValueError(f"there is no element type {of!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[of]
