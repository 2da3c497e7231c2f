"""Jagged operators of fbgemm_gpu that the public HSTU code calls, in plain PyTorch: for a Python without fbgemm_gpu.

`install` puts them where the code looks for them, torch.ops.fbgemm. Values and gradients are those of fbgemm_gpu
(test/Torch/test_jagged.py). Where a row of a padded tensor lies is computed once per tensor of offsets and width; the
operators of fbgemm_gpu compute it in every call, so a step is not slower for them.
"""

from __future__ import annotations

import types

import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)


def places(offsets: torch.Tensor, width: int) -> torch.Tensor:
    """Rows of [B * width, …] that hold a value; `offsets` [B + 1] int, lists of at most `width` rows."""
    known: dict[int, torch.Tensor] = offsets.__dict__.setdefault("genrec_places", {})
    if width not in known:
        lengths = offsets.diff()
        valid = torch.arange(width, device=offsets.device)[None, :] < lengths[:, None]
        known[width] = valid.flatten().nonzero().squeeze(1)
    return known[width]


def complete_cumsum(lengths: torch.Tensor) -> torch.Tensor:
    """Offsets [B + 1] of lists of these lengths."""
    return F.pad(lengths.cumsum(0, dtype=lengths.dtype), (1, 0))


def dense_to_jagged(
    dense: torch.Tensor, offsets: list[torch.Tensor], total: int | None = None
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The rows [rows, D] of a padded tensor [B, width, D], and the offsets."""
    return dense.flatten(0, 1).index_select(0, places(offsets[0], dense.shape[1])), offsets


def jagged_to_padded(
    values: torch.Tensor, offsets: list[torch.Tensor], max_lengths: list[int], padding_value: float = 0.0
) -> torch.Tensor:
    """Rows [rows, D] as [B, max_lengths[0], D], `padding_value` behind the end of each list."""
    lists, width = len(offsets[0]) - 1, int(max_lengths[0])
    padded = values.new_full((lists * width, values.shape[-1]), padding_value)
    return padded.index_copy(0, places(offsets[0], width), values).view(lists, width, -1)


def install() -> bool:
    """Makes torch.ops.fbgemm have the operators; returns whether they are fbgemm_gpu's own."""
    try:
        import fbgemm_gpu  # noqa: F401  (registers them)
    except (ImportError, OSError):
        torch.ops.fbgemm = types.SimpleNamespace(
            asynchronous_complete_cumsum=complete_cumsum,
            dense_to_jagged=dense_to_jagged,
            jagged_to_padded_dense=jagged_to_padded,
        )
        return False
    return True
