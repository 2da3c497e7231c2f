"""Where the factors of products are rounded to bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from genrec.types import ElementType, float32

_rounds: ContextVar[bool] = ContextVar("genrec_autocast", default=False)


@contextmanager
def autocast(enabled: bool = True) -> Iterator[None]:
    """Rounds the factors of matrix products and attention recorded inside to bfloat16: of linear layers, attention,
    interactions, cross layers, sampled softmax, and of blocks made of them. Weights, sums, results, norms and losses
    stay float32, and so do scores of a catalogue and what the optimizer does. Gradients of such products round their
    own factors.
    `gr.compile(…, mixed_precision=True)` does it to a whole model; docs/mixed-precision.md says what is rounded where.

    Args:
        enabled: False takes a part of a block out of it.

    Raises:
        TypeError: `enabled` is no bool.

    Example:
        >>> layer = nn.Linear(16, 4)
        >>> with gr.autocast():
        ...     narrow = layer(gr.Table("item", dim=16)(batch.history.item))
        >>> narrow
        <[4] float32, one per 'history'>
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"gr.autocast takes True or False, got {enabled!r}")
    token = _rounds.set(enabled)
    try:
        yield
    finally:
        _rounds.reset(token)


def product_attributes(dtype: ElementType) -> dict[str, bool]:
    """Attributes for an op that multiplies values of `dtype`."""
    return {"bf16": True} if _rounds.get() and dtype is float32 else {}
