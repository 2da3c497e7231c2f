"""Update rules of tables and dense parameters, reached as `gr.optim`. Equations and defaults are PyTorch's.

Of tables, only the rows that a step touched are updated: moments are lazy, and weight decay (0 unless given) does not
catch up on skipped steps. The learning rate here is the base rate; a compiled binary's `--lr` replaces it.
"""

from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True)
class Optimizer:
    """An update rule and its constants; made by the functions of this module.

    Example:
        >>> gr.optim.SGD(0.1)
        Optimizer(kind='sgd', options=(('lr', 0.1), ('momentum', 0.0), ('weight_decay', 0.0)))
    """

    kind: str
    options: tuple[tuple[str, float], ...]


def _make(kind: str, lr: float, **options: float | None) -> Optimizer:
    values = {"lr": lr, **{name: value for name, value in options.items() if value is not None}}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"option '{name}' of optimizer {kind} must be a number, got {value!r}")
        rate, positive = name in ("alpha", "beta1", "beta2", "momentum"), name == "eps"
        if not 0 <= value < (1 if rate else float("inf")) or (positive and value == 0):
            bound = "in [0, 1)" if rate else "greater than 0" if positive else "at least 0"
            raise ValueError(f"option '{name}' of optimizer {kind} must be {bound}, got {value}")
    return Optimizer(kind, tuple((name, float(value)) for name, value in values.items()))


def _make_adam(
    kind: str, lr: float, betas: tuple[float, float], eps: float, weight_decay: float | None, per_row_step: bool
) -> Optimizer:
    counts = 1.0 if per_row_step else None
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise TypeError(f"'betas' of optimizer {kind} are two numbers, (0.9, 0.999), got {betas!r}")
    beta1, beta2 = betas
    return _make(kind, lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay, per_row_step=counts)


FROZEN = Optimizer("sgd", (("lr", 0.0), ("frozen", 1.0)))
"""The optimizer of frozen tables and parameters, which never updates them; made by `gr.Table(frozen=True)` and
`nn.Parameter(frozen=True)`.
"""


def SGD(lr: float = 1e-3, momentum: float = 0.0, weight_decay: float = 0.0) -> Optimizer:  # noqa: N802
    """Stochastic gradient descent: w -= lr * g, with momentum where given.

    Args:
        lr: the learning rate.
        momentum: in [0, 1).
        weight_decay: times w is added to the gradient.

    Example:
        >>> nn.Parameter((16,), gr.init.zeros(), optimizer=gr.optim.SGD(0.1, momentum=0.9)).shape
        (16,)
    """
    return _make("sgd", lr, momentum=momentum, weight_decay=weight_decay)


def Adagrad(  # noqa: N802
    lr: float = 1e-2, eps: float = 1e-10, initial_accumulator: float = 0.0, weight_decay: float = 0.0
) -> Optimizer:
    """Adagrad (Duchi et al. 2011): a sum of squared gradients per weight.

    Args:
        lr: the learning rate.
        eps: keeps the first steps finite.
        initial_accumulator: what the sums begin with.
        weight_decay: times w is added to the gradient.

    Example:
        >>> gr.Table("item", dim=16, optimizer=gr.optim.Adagrad(0.05))
        <table 'item' of [16]>
    """
    return _make("adagrad", lr, eps=eps, initial_accumulator=initial_accumulator, weight_decay=weight_decay)


def RowWiseAdagrad(  # noqa: N802
    lr: float = 1e-2, eps: float = 1e-10, initial_accumulator: float = 0.0, weight_decay: float = 0.0
) -> Optimizer:
    """Adagrad with one accumulator per table row (tables only): 4 bytes of state per row instead of 4 per weight.

    With g a row's gradient: a += mean(g^2), w -= lr * g / (sqrt(a) + eps). It is Adagrad (Duchi et al. 2011) with the
    mean over the row in place of each squared gradient, as in FBGEMM's EXACT_ROWWISE_ADAGRAD.

    The arguments are those of `gr.optim.Adagrad`.

    Example:
        >>> gr.Table("item", dim=128, optimizer=gr.optim.RowWiseAdagrad(0.01))
        <table 'item' of [128]>
    """
    return _make("rowwise_adagrad", lr, eps=eps, initial_accumulator=initial_accumulator, weight_decay=weight_decay)


def Adam(  # noqa: N802
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    per_row_step: bool = False,
) -> Optimizer:
    """Adam (Kingma and Ba 2015).

    Args:
        lr: the learning rate.
        betas: of the two moments, in [0, 1).
        eps: keeps the first steps finite.
        weight_decay: times w is added to the gradient.
        per_row_step: counts steps per row instead of per table (tables only).

    Example:
        >>> gr.optim.Adam(1e-3).kind
        'adam'
    """
    return _make_adam("adam", lr, betas, eps, weight_decay, per_row_step)


def AdamW(  # noqa: N802
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float | None = None,
    per_row_step: bool = False,
) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019): Adam whose weight decay is apart from the gradient.

    Args:
        lr: as in `gr.optim.Adam`, like `betas`, `eps` and `per_row_step`.
        weight_decay: 0.01 on dense parameters and 0 on table rows, unless given.

    Example:
        >>> gr.optim.AdamW(1e-3, weight_decay=0.01).kind
        'adamw'
    """
    return _make_adam("adamw", lr, betas, eps, weight_decay, per_row_step)


def RMSprop(  # noqa: N802
    lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0, momentum: float = 0.0
) -> Optimizer:
    """RMSprop (Tieleman and Hinton 2012): gradients are divided by the root of a running mean of their squares.

    Args:
        lr: the learning rate.
        alpha: of the running mean, in [0, 1).
        eps: keeps the first steps finite.
        weight_decay: times w is added to the gradient.
        momentum: of the divided gradients, in [0, 1).

    Example:
        >>> gr.optim.RMSprop(0.01, momentum=0.9).kind
        'rmsprop'
    """
    return _make("rmsprop", lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
