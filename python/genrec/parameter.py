"""Dense parameters: trained tensors that all rows share."""

from genrec.errors import ModelError
from genrec.init import Initializer
from genrec.operators import Arithmetic
from genrec.optim import FROZEN, Optimizer
from genrec.recording import ParameterDeclaration, Symbol, ValueType, current
from genrec.source import find_place
from genrec.value import Value


class Parameter(Arithmetic):
    """A dense trained tensor of float32, of up to two sizes.

    Its name is its attribute path in the model: `self.blocks[0].weight` is "blocks.0.weight". In arithmetic it stands
    for its current value, shared by all rows. Unless it has an optimizer, the model's updates it. `frozen`: no step
    updates it, and it has no optimizer state; `train(init=...)` gives it values.

    Example:
        >>> scale = nn.Parameter((16,), gr.init.ones())
        >>> gr.Table("item", dim=16)(batch.history.item) * scale
        <[16] float32, one per 'history'>
        >>> nn.exp(0.5 * scale)
        <shared [16] float32>
    """

    def __init__(
        self, shape: tuple[int, ...], init: Initializer, optimizer: Optimizer | None = None, frozen: bool = False
    ) -> None:
        if frozen and optimizer is not None:
            raise ValueError("a parameter that is frozen takes no optimizer")
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
