"""What losses and metrics have in common: a prediction per row, its label, and a weight."""

from genrec.errors import ModelError
from genrec.operands import as_value, expect_float
from genrec.ops import cast, squeeze
from genrec.rules import common_domain
from genrec.source import Part, Place
from genrec.types import float32
from genrec.value import Value, ValueLike


def scalar(x: ValueLike, what: str, place: Place, *part: Part) -> Value:
    """`x` as a float per row; [1] counts as a scalar."""
    value = squeeze(as_value(x, place.part(*part), what=what), place.named(""))
    expect_float(value, what, place, *part)
    if value.domain is None or value.shape:
        raise ModelError(f"{what} must be one number per row", place.part(*part), value._label())
    return value


def labelled(name: str, what: str, prediction: ValueLike, label: ValueLike, place: Place) -> tuple[Value, Value]:
    """The first two arguments of `name` as float32 per row, of one domain; `what` is the first one for messages."""
    value = cast(scalar(prediction, what, place, 0), float32, place.named(""))
    given = as_value(label, place.part(1), like=value)
    truth = squeeze(cast(given, float32, place.part(1).named("")), place.named(""))
    expect_one_domain(name, value, truth, place)
    if truth.shape:
        raise ModelError(f"the label of '{name}' must be one number per row", place.part(1), truth._label())
    return value, truth


def expect_logits(name: str, logits: ValueLike, place: Place) -> None:
    """Raises `ModelError` for the result of a sigmoid or softmax, which `name` would apply a second time."""
    value = as_value(logits, place.part(0))
    makers = {result: op for op in value._recording.ops for result in op.results}
    op = makers[value._result]
    while op.name in ("cast", "slice_columns") or (op.name == "row_reduce" and op.operands[0].type.shape == (1,)):
        op = makers[op.operands[0]]
    if op.name in ("sigmoid", "softmax"):
        raise ModelError(
            f"'{name}' takes logits, but this is the result of a {op.name}",
            place.part(0),
            value._label(),
            f"pass the operand of the {op.name}: '{name}' applies its own",
        )


def is_column(value: Value) -> bool:
    """Whether `value` is a column of the data, converted at most: 0 where it is null."""
    makers = {result: op for op in value._recording.ops for result in op.results}
    op = makers[value._result]
    while op.name == "cast":
        op = makers[op.operands[0]]
    return op.name == "feature"


def expect_one_domain(name: str, x: Value, label: Value, place: Place) -> None:
    """Raises `ModelError` unless prediction and label are of one domain."""
    common_domain(name, [x, label], place, ((0,), (1,)))
    if label.domain is None:
        raise ModelError(f"the label of '{name}' is shared by all rows", place.part(1), label._label())
