"""The news ranker of examples/news_request_ranking in PyTorch, from the equations of its layers.

Two forms of one model: at impression level, every impression encodes its own copy of the history; deferred, the
history is encoded once per request and only target attention and the network on top run per impression. Lists are
padded to the longest of a batch. Parameters have the names and shapes of the compiled model; a table is a matrix with
a row per distinct id and sparse gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)

LENGTH, WIDTH, LAYERS, HEADS = 50, 64, 2, 2
SIZES = [4 * WIDTH, 128, 64, 1]

Tensors = dict[str, np.ndarray]


@dataclass
class Requests:
    """A batch: rows of the tables, padded behind, and which places are real.

    user [B]; read [B, H] and its valid; item, label [B, C] and their valid.
    """

    user: torch.Tensor
    read: torch.Tensor
    read_valid: torch.Tensor
    item: torch.Tensor
    label: torch.Tensor
    valid: torch.Tensor


@dataclass
class Log:
    """All requests as rows of the tables: users [n], lists of items read (latest LENGTH), of items shown, of labels."""

    ids: dict[str, np.ndarray]
    user: np.ndarray
    read: list[np.ndarray]
    item: list[np.ndarray]
    label: list[np.ndarray]

    def batch(self, rows: slice) -> Requests:
        """The requests `rows`, padded."""
        read, read_valid = pad(self.read[rows], np.int64)
        item, valid = pad(self.item[rows], np.int64)
        label, _ = pad(self.label[rows], np.float32)
        return Requests(torch.from_numpy(self.user[rows]), read, read_valid, item, label, valid)


def pad(lists: list[np.ndarray], kind: type) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, longest] of lists, 0 behind, and which places are real."""
    result = np.zeros((len(lists), max(1, *map(len, lists))), kind)
    valid = np.zeros(result.shape, bool)
    for row, one in enumerate(lists):
        result[row, : len(one)] = one
        valid[row, : len(one)] = True
    return torch.from_numpy(result), torch.from_numpy(valid)


def read(file: Path) -> Log:
    """What the example's prepare wrote."""
    frame = pl.read_parquet(file)
    histories = frame["history"].list.eval(pl.element().struct.field("item")).list.tail(LENGTH).to_list()
    shown = frame["impression"].list.eval(pl.element().struct.field("item")).to_list()
    labels = frame["impression"].list.eval(pl.element().struct.field("label")).to_list()
    ids = {
        "item": np.unique(np.concatenate([*map(np.array, histories), *map(np.array, shown)]).astype(np.int64)),
        "user": np.unique(frame["user"].to_numpy()),
    }

    def places(values: list[int]) -> np.ndarray:
        return np.searchsorted(ids["item"], np.array(values, np.int64))

    return Log(
        ids,
        np.searchsorted(ids["user"], frame["user"].to_numpy()),
        [places(one) for one in histories],
        [places(one) for one in shown],
        [np.array(one, np.float32) for one in labels],
    )


def initial_weights(ids: dict[str, np.ndarray], seed: int) -> Tensors:
    """Random weights of the size that training starts from."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    def uniform(bound: float, *shape: int) -> np.ndarray:
        return random.uniform(-bound, bound, shape).astype(np.float32)

    weights = {f"{name}.values": normal(len(ids[name]), WIDTH, scale=0.05) for name in ("item", "user")}
    weights["position.weight"] = normal(LENGTH, WIDTH, scale=0.02)
    for layer in range(LAYERS):
        weights |= {
            f"blocks.{layer}.uvqk": normal(WIDTH, 4 * WIDTH, scale=0.02),
            f"blocks.{layer}.out_weight": uniform(math.sqrt(3 / WIDTH), WIDTH, WIDTH),
            f"blocks.{layer}.out_bias": uniform(1 / math.sqrt(WIDTH), WIDTH),
        }
    for name in ("query", "key", "values"):
        weights[f"attention.{name}.weight"] = uniform(1 / math.sqrt(WIDTH), WIDTH, WIDTH)
        weights[f"attention.{name}.bias"] = uniform(1 / math.sqrt(WIDTH), WIDTH)
    for i, (a, b) in enumerate(zip(SIZES, SIZES[1:], strict=False)):
        weights[f"head.layers.{i}.weight"] = uniform(1 / math.sqrt(a), a, b)
        weights[f"head.layers.{i}.bias"] = uniform(1 / math.sqrt(a), b)
    return weights


class Ranker(torch.nn.Module):
    """The model; `weights` are its initial values by name. `deferred`: the history once per request."""

    def __init__(self, weights: Tensors, deferred: bool) -> None:
        super().__init__()
        self.deferred = deferred
        self.weights = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()}
        for name, parameter in self.weights.items():
            self.register_parameter(name.replace(".", "_"), parameter)

    def linear(self, path: str, x: torch.Tensor) -> torch.Tensor:
        """x · weight + bias."""
        weight, bias = self.weights[f"{path}.weight"], self.weights[f"{path}.bias"]
        return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], weight.shape[1])

    def block(self, index: int, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """One HSTU layer (Zhai et al. 2024, equations 1 to 3) on x [N, H, WIDTH]; seen [N, H, H]: what a query sees."""
        uvqk, out_weight, out_bias = (
            self.weights[f"blocks.{index}.{name}"] for name in ("uvqk", "out_weight", "out_bias")
        )
        count, length, _ = x.shape
        u, v, q, k = F.silu(F.layer_norm(x, (WIDTH,), eps=1e-6) @ uvqk).split(WIDTH, dim=-1)
        v, q, k = (one.view(count, length, HEADS, -1).transpose(1, 2) for one in (v, q, k))
        scores = F.silu(q @ k.transpose(2, 3)) * (1 / LENGTH) * seen[:, None]
        attended = (scores @ v).transpose(1, 2).reshape(count, length, WIDTH)
        gated = u * F.layer_norm(attended, (WIDTH,), eps=1e-6)
        return x + gated @ out_weight + out_bias

    def encode(self, read: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """[N, H, WIDTH] of lists [N, H] of rows of the item table."""
        lengths = valid.sum(dim=1, keepdim=True)
        place = (lengths - 1 - torch.arange(read.shape[1])[None, :]).clamp(min=0)
        x = F.embedding(read, self.weights["item.values"], sparse=True) + self.weights["position.weight"][place]
        length = read.shape[1]
        seen = torch.tril(torch.ones(length, length))[None] * valid[:, None, :]
        for index in range(LAYERS):
            x = self.block(index, x, seen)
        return F.layer_norm(x, (WIDTH,), eps=1e-5)

    def attend(self, query: torch.Tensor, history: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """query [N, Q, WIDTH] over history [N, H, WIDTH]; 0 where there is none."""
        key, value = self.linear("attention.key", history), self.linear("attention.values", history)
        scores = query @ key.transpose(1, 2) * WIDTH**-0.5
        scores = scores.masked_fill(~valid[:, None, :], -1e30)
        weight = torch.softmax(scores, dim=-1) * valid[:, None, :]
        return weight @ value

    def forward(self, batch: Requests) -> torch.Tensor:
        """The logit of every real impression, in their order."""
        request = batch.valid.nonzero()[:, 0]
        candidate = F.embedding(batch.item[batch.valid], self.weights["item.values"], sparse=True)
        query = self.linear("attention.query", candidate)
        if self.deferred:
            encoded = self.encode(batch.read, batch.read_valid)
            padded = query.new_zeros(*batch.valid.shape, WIDTH)
            padded[batch.valid] = query
            interest = self.attend(padded, encoded, batch.read_valid)[batch.valid]
            user = F.embedding(batch.user, self.weights["user.values"], sparse=True)[request]
        else:
            read_valid = batch.read_valid[request]
            encoded = self.encode(batch.read[request], read_valid)
            interest = self.attend(query[:, None], encoded, read_valid)[:, 0]
            user = F.embedding(batch.user[request], self.weights["user.values"], sparse=True)
        x = torch.cat([user, interest, candidate, interest * candidate], dim=1)
        for i in range(len(SIZES) - 1):
            x = self.linear(f"head.layers.{i}", x)
            x = F.relu(x) if i + 2 < len(SIZES) else x
        return x.squeeze(1)

    def loss(self, batch: Requests) -> torch.Tensor:
        """The mean cross entropy of the real impressions."""
        return F.binary_cross_entropy_with_logits(self(batch), batch.label[batch.valid])
