"""Dense parameters: trained tensors that all rows share."""

from typing import Any, NoReturn

from genrec.errors import FeatureError, ModelError
from genrec.hints import help_for_attribute
from genrec.init import Initializer
from genrec.operators import Operators
from genrec.optim import FROZEN, Optimizer
from genrec.recording import ParameterDeclaration, Symbol, ValueType, current
from genrec.source import find_place
from genrec.value import Value, made_at

_OF_ITS_VALUE = ("row_sum", "row_mean", "row_max", "squeeze", "astype", "dtype")


class Parameter(Operators):
    """A dense trained tensor of float32, of up to two sizes.

    Its name is its attribute path in the model: `self.blocks[0].weight` is "blocks.0.weight". In arithmetic it stands
    for its current value, shared by all rows; of one size, `p[i]` and `p[a:b]` are elements of it. Unless it has an
    optimizer, the model's updates it. `frozen`: no step updates it, and it has no optimizer state; `train(init=...)`
    gives it values.

    Example:
        >>> scale = nn.Parameter((16,), gr.init.ones())
        >>> gr.Table("item", dim=16)(batch.history.item) * scale
        <[16] float32, one per 'history'>
        >>> nn.exp(0.5 * scale)
        <shared [16] float32>
        >>> scale[:4]
        <shared [4] float32>
    """

    _noun = "a parameter"

    def __init__(
        self, shape: tuple[int, ...], init: Initializer, optimizer: Optimizer | None = None, frozen: bool = False
    ) -> None:
        if frozen and optimizer is not None:
            raise ValueError("a parameter that is frozen takes no optimizer")
        if not isinstance(shape, list | tuple):
            told = f"a parameter takes its sizes, such as (16,) or (16, 4), got {type(shape).__name__}"
            raise TypeError(f"{told}; values come by train(init=...)")
        shape = tuple(shape)
        if not isinstance(init, Initializer):
            raise TypeError(f"the init of a parameter must be one of gr.init, such as gr.init.zeros(), got {init!r}")
        if any(isinstance(size, bool) or not isinstance(size, int) for size in shape):
            raise TypeError(f"the sizes of a parameter must be whole numbers, got {shape}")
        if len(shape) > 2 or any(size < 1 for size in shape):
            raise ValueError(f"a parameter has up to two sizes of at least 1, got {shape}")
        if init.kind.startswith("xavier") and len(shape) != 2:
            raise ValueError(f"gr.init.{init.kind} needs two sizes (fan in and fan out), got {shape}")
        self.shape = shape
        self.init = init
        self.optimizer = FROZEN if frozen else optimizer
        self._place = find_place()

    def __repr__(self) -> str:
        return f"<parameter [{', '.join(map(str, self.shape))}]>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        own = name if name in _OF_ITS_VALUE else f"row_{name}" if f"row_{name}" in _OF_ITS_VALUE else ""
        help = f"its value has it: p.value().{own}" if own else help_for_attribute(name, dir(self))
        raise FeatureError(f"a parameter has no '{name}'", find_place(), self._label(), help)

    def __getitem__(self, index: object) -> Value:
        """Elements of a parameter of one size; see `Value`."""
        return self.value()[index]

    def __pos__(self) -> Value:
        return self.value()

    def __eq__(self, other: object) -> Any:
        """Elementwise beside a value or a number. Two parameters are equal if they are one, so lists can hold them."""
        return self is other if isinstance(other, Parameter) else super().__eq__(other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Any:
        """As `==`."""
        return self is not other if isinstance(other, Parameter) else super().__ne__(other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def _label(self) -> str:
        return f"parameter [{', '.join(map(str, self.shape))}]{made_at(self._place)}"

    def value(self) -> Value:
        """The parameter's current value in the model being recorded.

        Shape:
            shared, the parameter's own.

        Example:
            >>> nn.Parameter((16, 4), gr.init.zeros()).value()
            <shared [16, 4] float32>
        """
        recording = current("a parameter")
        key = ("parameter", self)
        if key in recording.cache:
            return recording.cache[key]
        name = recording.parameter_names.get(id(self))
        if name is None:
            raise ModelError(
                "a parameter is used that the model does not own",
                find_place(),
                f"a {self!r} made at {self._place}",
                "assign it, or the module it is in, to an attribute of the model",
            )
        declaration = ParameterDeclaration(
            name, self.shape, self.init, self.optimizer or recording.optimizer, self._place.named(name)
        )
        recording.declare_parameter(declaration)
        type_ = ValueType("", self.shape)
        place = find_place().named(name)
        op = recording.emit("param", [], [type_], {"parameter": Symbol(name)}, place)
        recording.cache[key] = Value(recording, op.results[0], None, place)
        return recording.cache[key]
