"""TorchRec on CPU processes with gloo: `torchrun … peer.py <ids.npz> <steps> <warm-up>`.

An EmbeddingBagCollection of 26 tables with Adagrad in the backward pass, sharded as the planner says (table-wise: it
has no row-wise kernel for CPUs), and an MLP, data-parallel. Rank 0 prints the seconds and losses of its steps as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor, PoolingType
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ShardingType
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

RATE = 0.01


class Ranker(torch.nn.Module):
    """Looked-up rows of all features, side by side, through an MLP."""

    def __init__(self, features: int, rows: int, dim: int) -> None:
        super().__init__()
        tables = [
            EmbeddingBagConfig(
                name=f"t{i}", num_embeddings=rows, embedding_dim=dim, feature_names=[f"f{i}"], pooling=PoolingType.SUM
            )
            for i in range(features)
        ]
        self.tables = EmbeddingBagCollection(tables=tables, device=torch.device("cpu"))
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(features * dim, 256),
            torch.nn.ReLU(),
            torch.nn.Linear(256, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
        )

    def forward(self, ids: KeyedJaggedTensor) -> torch.Tensor:
        """The logit of every row."""
        return self.mlp(self.tables(ids).values())


def shard(model: Ranker, features: int, world: int) -> DistributedModelParallel:
    """The model with tables dealt to processes."""
    apply_optimizer_in_backward(torch.optim.Adagrad, model.tables.parameters(), {"lr": RATE})
    constraints = {
        f"t{i}": ParameterConstraints(sharding_types=[ShardingType.TABLE_WISE.value]) for i in range(features)
    }
    topology = Topology(world_size=world, compute_device="cpu")
    sharder = EmbeddingBagCollectionSharder()
    plan = EmbeddingShardingPlanner(topology=topology, constraints=constraints).collective_plan(
        model, [sharder], dist.group.WORLD
    )
    return DistributedModelParallel(module=model, device=torch.device("cpu"), plan=plan, sharders=[sharder])


def main() -> None:
    """Takes the steps."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    data = np.load(sys.argv[1])
    steps, warm_up = int(sys.argv[2]), int(sys.argv[3])
    ids, labels = data["ids"], data["labels"]  # [batches, ranks, features, batch], [batches, ranks, batch]
    batches, _, features, batch = ids.shape
    keys = [f"f{i}" for i in range(features)]
    lengths = torch.ones(features * batch, dtype=torch.int32)
    mine = torch.from_numpy(ids[:, rank].reshape(batches, -1))
    inputs = [KeyedJaggedTensor(keys, of, lengths=lengths) for of in mine]
    targets = [torch.from_numpy(labels[i, rank]).unsqueeze(1) for i in range(batches)]
    model = shard(Ranker(features, int(data["rows"]), int(data["dim"])), features, world)
    optimizer = torch.optim.Adagrad([p for name, p in model.named_parameters() if "mlp" in name], lr=RATE)
    measure = torch.nn.BCEWithLogitsLoss()
    seconds, losses = [], []
    for step in range(warm_up + steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = measure(model(inputs[step % batches]), targets[step % batches])
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    if rank == 0:
        print(json.dumps({"seconds": seconds[warm_up:], "losses": losses}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
