"""Functions of values without parameters of their own."""

from genrec.emit import emit
from genrec.errors import ModelError
from genrec.operands import as_value, expect_float
from genrec.ops import unary
from genrec.precision import product_attributes
from genrec.source import Place, find_place
from genrec.value import Value, ValueLike


def neg(x: ValueLike) -> Value:
    """-x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.neg(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("neg", x)


def abs(x: ValueLike) -> Value:
    """|x|; gradient 0 at 0.

    Shape:
        any in, the same out.

    Example:
        >>> nn.abs(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("abs", x)


def square(x: ValueLike) -> Value:
    """x * x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.square(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("square", x)


def sqrt(x: ValueLike) -> Value:
    """The square root of x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.sqrt(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("sqrt", x)


def rsqrt(x: ValueLike) -> Value:
    """1 / sqrt(x).

    Shape:
        any in, the same out.

    Example:
        >>> nn.rsqrt(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("rsqrt", x)


def exp(x: ValueLike) -> Value:
    """e to the x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.exp(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("exp", x)


def log(x: ValueLike) -> Value:
    """The natural logarithm of x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.log(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("log", x)


def log1p(x: ValueLike) -> Value:
    """log(1 + x), exact near 0.

    Shape:
        any in, the same out.

    Example:
        >>> nn.log1p(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("log1p", x)


def sin(x: ValueLike) -> Value:
    """The sine of x, in radians.

    Shape:
        any in, the same out.

    Example:
        >>> hours = (gr.mod(batch.history.time, 86400)).astype(gr.float32) / 3600.0
        >>> nn.sin(hours * (6.2831853 / 24))
        <float32, one per 'history'>
    """
    return unary("sin", x)


def cos(x: ValueLike) -> Value:
    """The cosine of x, in radians.

    Shape:
        any in, the same out.

    Example:
        >>> nn.cos(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("cos", x)


def tanh(x: ValueLike) -> Value:
    """The hyperbolic tangent of x.

    Shape:
        any in, the same out.

    Example:
        >>> nn.tanh(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("tanh", x)


def sigmoid(x: ValueLike) -> Value:
    """1 / (1 + exp(-x)).

    Shape:
        any in, the same out.

    Example:
        >>> nn.sigmoid(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("sigmoid", x)


def silu(x: ValueLike) -> Value:
    """x * sigmoid(x).

    Shape:
        any in, the same out.

    Example:
        >>> nn.silu(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("silu", x)


def relu(x: ValueLike) -> Value:
    """max(x, 0); gradient 0 at 0.

    Shape:
        any in, the same out.

    Example:
        >>> nn.relu(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("relu", x)


def gelu(x: ValueLike) -> Value:
    """x * (1 + erf(x / sqrt 2)) / 2.

    Shape:
        any in, the same out.

    Example:
        >>> nn.gelu(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("gelu", x)


def softplus(x: ValueLike) -> Value:
    """log(1 + exp(x)), without overflow.

    Shape:
        any in, the same out.

    Example:
        >>> nn.softplus(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("softplus", x)


def softmax(x: ValueLike) -> Value:
    """exp(x) / Σ exp(x) along each row.

    Shape:
        [d] in, [d] out.

    Example:
        >>> gate = nn.softmax(nn.Linear(16, 4)(gr.Table("user", dim=16)(batch.user)))
        >>> gate
        <[4] float32, one per 'request'>
    """
    place = find_place()
    value = as_value(x, place.part(0), what="what 'softmax' takes")
    if value.domain is not None and not value.shape and value.dtype.is_float:
        raise _softmax_of_numbers(value, place.part(0))
    value = rows_of_floats(value, "'softmax'", 0)
    return emit("softmax", [value], value.domain, value.shape, value.dtype, place, value.valid)


def _softmax_of_numbers(value: Value, at: Place) -> ModelError:
    """The error of a softmax of one number per row, which would be 1 for each."""
    domain = value.domain
    if domain is None or domain._parent is None:
        help = "join the numbers of a row first: nn.softmax(gr.concat(x, y))"
    else:
        text, rows = at.operand, domain._expression
        text = text if 0 < len(text) <= 24 else "x"
        help = f"over the rows of each list: e = nn.exp({text} - {text}.max().fanout({rows})), then "
        help += f"e / e.sum().fanout({rows}); nn.DIN and nn.CrossAttention weigh the rows of a list themselves"
    message = "'softmax' is over the columns of a row, and this is one number per row"
    return ModelError(message, at, value._label(), help)


def dropout(x: ValueLike, rate: float) -> Value:
    """Elements zeroed with probability `rate` in training, the others scaled by 1 / (1 - rate); the identity otherwise.

    What is dropped is a function of (seed, step, this op, the row's place in the dataset, the element).

    Args:
        x: floats.
        rate: in [0, 1).

    Shape:
        any in, the same out.

    Example:
        >>> nn.dropout(gr.Table("item", dim=16)(batch.history.item), 0.2)
        <[16] float32, one per 'history'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    expect_float(value, "'dropout'", place, 0)
    check_rate("rate", rate)
    if value.domain is None:
        raise ModelError("'dropout' draws per row, but this value is shared by all rows", place.part(0), value._label())
    if rate == 0:
        return value
    return emit(
        "dropout", [value], value.domain, value.shape, value.dtype, place, value.valid, rate=float(rate), stream=0
    )


def l2_normalize(x: ValueLike, eps: float = 1e-6) -> Value:
    """x / max(‖x‖₂, eps) along each row: vectors of length 1, whose products are cosines.

    Shape:
        [d] in, [d] out.

    Example:
        >>> nn.l2_normalize(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """
    place = find_place()
    value = rows_of_floats(x, "'l2_normalize'", 0)
    return emit("l2_normalize", [value], value.domain, value.shape, value.dtype, place, value.valid, eps=float(eps))


def layer_norm(x: ValueLike, scale: ValueLike | None = None, bias: ValueLike | None = None, eps: float = 1e-5) -> Value:
    """(x - mean) / sqrt(variance + eps) along each row, then scale and bias (Ba et al. 2016, equation 4).

    `nn.LayerNorm` is the same with a scale and a bias of its own.

    Args:
        x: floats.
        scale: what a row is multiplied with, a parameter.
        bias: what is added then, a parameter.
        eps: keeps a row of equal numbers finite.

    Shape:
        x [d], scale and bias shared [d]; [d] out.

    Example:
        >>> nn.layer_norm(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """
    place = find_place()
    value = rows_of_floats(x, "'layer_norm'", 0)
    given = [as_value(one, place) for one in (scale, bias) if one is not None]
    check_weights("layer_norm", value, given)
    segments = (1, int(scale is not None), int(bias is not None))
    return emit(
        "layer_norm", [value, *given], value.domain, value.shape, value.dtype, place, value.valid, segments,
        eps=float(eps),
    )  # fmt: skip


def rms_norm(x: ValueLike, scale: ValueLike | None = None, eps: float = 1e-6) -> Value:
    """x / sqrt(mean(x²) + eps) along each row, then scale (Zhang and Sennrich 2019, equation 4).

    Args:
        x: floats.
        scale: what a row is multiplied with, a parameter.
        eps: keeps a row of zeros finite.

    Shape:
        x [d], scale shared [d]; [d] out.

    Example:
        >>> nn.rms_norm(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """
    place = find_place()
    value = rows_of_floats(x, "'rms_norm'", 0)
    given = [as_value(one, place) for one in (scale,) if one is not None]
    check_weights("rms_norm", value, given)
    return emit("rms_norm", [value, *given], value.domain, value.shape, value.dtype, place, value.valid, eps=float(eps))


def linear(x: ValueLike, weight: ValueLike, bias: ValueLike | None = None) -> Value:
    """x · weight + bias, with a weight of your own; `nn.Linear` has its own.

    Args:
        x: floats.
        weight: a parameter of two sizes.
        bias: a parameter.

    Shape:
        x [k], weight shared [k, n], bias shared [n]; [n] out.

    Example:
        >>> weight = nn.Parameter((16, 4), gr.init.xavier_uniform())
        >>> nn.linear(gr.Table("item", dim=16)(batch.history.item), weight)
        <[4] float32, one per 'history'>
    """
    place = find_place()
    value = rows_of_floats(x, "'linear'", 0)
    matrix = as_value(weight, place.part(1))
    if matrix.domain is not None or len(matrix.shape) != 2 or matrix.shape[0] != value.shape[0]:
        raise ModelError(
            f"'linear' multiplies rows of [{value.shape[0]}] by a shared [{value.shape[0]}, n]",
            place.part(0), value._label(), f"the weight is {matrix._describe()}",
        )  # fmt: skip
    operands = [value, matrix]
    width = matrix.shape[1]
    if bias is not None:
        operands.append(as_value(bias, place.part(2)))
        if operands[2].domain is not None or operands[2].shape != (width,):
            raise ModelError(f"the bias of 'linear' must be a shared [{width}]", place.part(2), operands[2]._label())
    precision = product_attributes(value.dtype)
    return emit("linear", operands, value.domain, (width,), value.dtype, place, **precision)


def rows_of_floats(x: ValueLike, what: str, *part: int | str, size: int | None = None) -> Value:
    """`x` as rows of floats of shape [d], `size` of them where that is given. Raises `ModelError` for others."""
    place = find_place()
    value = as_value(x, place.part(*part), what=f"what {what} takes")
    expect_float(value, what, place, *part)
    if value.domain is None or len(value.shape) != 1 or (size is not None and value.shape[0] != size):
        wanted = f"[{size}]" if size is not None else "one size [d]"
        got = f"rows of [{', '.join(map(str, value.shape))}]" if value.domain is not None else "a shared value"
        at = place.part(*part)
        raise ModelError(f"{what} takes rows of {wanted}, got {got}", at, value._label(), _row_help(value, at, size))
    return value


def _row_help(value: Value, at: Place, size: int | None) -> str:
    """How `value`, written at `at`, becomes rows of one size."""
    text = at.text or "x"
    if value.domain is None:
        return "what all rows share has no row of its own: fan it out of a row, or add it to rows"
    if not value.shape and size in (None, 1):
        return f"one number per row becomes rows of [1] by gr.concat({text})"
    if not value.shape:
        return f"join {size} numbers per row to rows of [{size}]: gr.concat({text}, …)"
    if size is not None:
        return "give the layer the size of its rows, or take columns of them: x[:, a:b]"
    return ""


def check_weights(name: str, x: Value, weights: list[Value]) -> None:
    """Raises `ModelError` unless `weights` are shared vectors of the size of a row of `x`."""
    for weight in weights:
        if weight.domain is not None or weight.shape != x.shape:
            place = find_place()
            raise ModelError(
                f"the weights of '{name}' must be shared [{x.shape[0]}] float32, got {weight._describe()}",
                place.part(0),
                x._label(),
            )


def check_rate(what: str, rate: float) -> None:
    """Raises `ModelError` unless `rate` is a probability below 1."""
    if not 0 <= rate < 1:
        raise ModelError(f"the {what} of dropout must be in [0, 1), got {rate:g}", find_place())


def head_sizes(what: str, dim: int, heads: int, qk: int | None, v: int | None) -> tuple[int, int]:
    """The sizes of a head's keys and values, dim / heads where they are not given; raises where heads do not share
    `dim` equally.
    """
    for name, size in {"heads": heads, "dim": dim, "qk": qk, "v": v}.items():
        if size is not None and size < 1:
            raise ValueError(f"{name} of {what} must be at least 1, got {size}")
    if dim % heads and None in (qk, v):
        raise ModelError(
            f"{what} cannot split {dim} columns into {heads} heads", find_place().part("heads"), "",
            "take a number of heads that divides dim, or give the sizes of a head: qk= and v=",
        )  # fmt: skip
    return dim // heads if qk is None else qk, dim // heads if v is None else v
