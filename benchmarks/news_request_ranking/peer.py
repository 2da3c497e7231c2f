"""The PyTorch side, in a process of its own: `peer.py <train.parquet> <weights> <form> <batch> <rate> <threads>`.

`form`: "impression" or "deferred" (test/Torch/news.py). Reads lines "<first step> <steps>" and answers each with the
seconds and losses of these steps as JSON. Batches are padded before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test" / "Torch"))

import news  # noqa: E402


def main() -> None:
    """Answers until there are no more lines."""
    file, weights, form, batch, rate, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    log = news.read(Path(file))
    model = news.Ranker(load_file(weights), deferred=form == "deferred")
    optimizer = torch.optim.Adagrad(model.parameters(), lr=float(rate))
    size = int(batch)
    per_epoch = -(-len(log.user) // size)
    for line in sys.stdin:
        first, steps = map(int, line.split())
        seconds, losses = [], []
        for step in range(first, first + steps):
            at = step % per_epoch * size
            requests = log.batch(slice(at, at + size))
            begin = time.perf_counter()
            loss = model.loss(requests)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - begin)
            losses.append(loss.item())
        print(json.dumps({"seconds": seconds, "losses": losses}), flush=True)


if __name__ == "__main__":
    main()
