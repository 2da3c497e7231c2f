"""HSTU in PyTorch, from the equations of the paper and of docs/reference: dense, padded, written apart from genrec.

Zhai et al. 2024, equations 1 to 3, in the configuration of examples/hstu_retrieval without dropout, with the softmax
over the whole catalogue as loss. Parameters have the names and shapes of the compiled model.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)

LENGTH, POSITIONS, WIDTH, BLOCKS = 200, 211, 50, 2
TEMPERATURE = 0.05
ITEM = "item.values"

Tensors = dict[str, np.ndarray]


def initial_weights(items: int, seed: int) -> Tensors:
    """Random weights of the size that training starts from; biases differ from 0 so that nothing is hidden by a 0."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    weights = {
        ITEM: normal(items, WIDTH, scale=0.02),
        "position.weight": normal(POSITIONS, WIDTH, scale=math.sqrt(2 / (POSITIONS + WIDTH))),
    }
    for block in range(BLOCKS):
        weights |= {
            f"blocks.{block}.uvqk": normal(WIDTH, 4 * WIDTH, scale=0.02),
            f"blocks.{block}.out_weight": normal(WIDTH, WIDTH, scale=math.sqrt(1 / WIDTH)),
            f"blocks.{block}.out_bias": normal(WIDTH, scale=0.02),
            f"blocks.{block}.bias.weight": normal(2 * POSITIONS - 1, scale=0.02),
        }
    return weights


class Hstu(torch.nn.Module):
    """The model; `weights` are its initial values by name."""

    def __init__(self, weights: Tensors) -> None:
        super().__init__()
        self.weights = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()}
        for name, parameter in self.weights.items():
            self.register_parameter(name.replace(".", "_"), parameter)

    def block(self, index: int, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """One layer on x [B, L, WIDTH]; seen [B, L, L] says which key (last) a query sees."""
        weight = {
            name: self.weights[f"blocks.{index}.{name}"] for name in ("uvqk", "out_weight", "out_bias", "bias.weight")
        }
        length = x.shape[1]
        u, v, q, k = F.silu(F.layer_norm(x, (WIDTH,), eps=1e-6) @ weight["uvqk"]).split(WIDTH, dim=-1)
        place = torch.arange(length)
        bias = weight["bias.weight"][place[None, :] - place[:, None] + POSITIONS - 1]
        scores = F.silu(q @ k.transpose(1, 2) + bias) / POSITIONS
        attended = (scores * seen) @ v
        gated = u * F.layer_norm(attended, (WIDTH,), eps=1e-6)
        return x + gated @ weight["out_weight"] + weight["out_bias"]

    def forward(self, items: torch.Tensor, labels: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The mean loss over all events. items, labels: [B, L] rows of the catalogue, padded behind; lengths: [B]."""
        table = self.weights[ITEM]
        longest = items.shape[1]
        valid = torch.arange(longest)[None, :] < lengths[:, None]
        seen = torch.tril(torch.ones(longest, longest))[None] * valid[:, None, :]
        x = table[items] * math.sqrt(WIDTH) + self.weights["position.weight"][:longest]
        for index in range(BLOCKS):
            x = self.block(index, x, seen)
        query = F.normalize(x[valid], dim=-1, eps=1e-6)
        logits = query @ F.normalize(table, dim=-1, eps=1e-6).T / TEMPERATURE
        return F.cross_entropy(logits, labels[valid])


def pad(histories: list[np.ndarray]) -> torch.Tensor:
    """[B, longest] of lists of rows, 0 behind."""
    result = np.zeros((len(histories), max(map(len, histories))), np.int64)
    for row, history in enumerate(histories):
        result[row, : len(history)] = history
    return torch.from_numpy(result)
