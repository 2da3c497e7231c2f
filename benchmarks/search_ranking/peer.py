"""The peer: examples/search_ranking in PyTorch, with sparse gradients; needs a Python with torch (and fbgemm_gpu).

    peer.py --data columns.npz --batch 360 --tables modules|widths|fbgemm [--prepared] --threads 1

Takes training steps on request: a line "steps <begin> <count>" on standard input gives {"seconds": […], "losses": […]}.
`modules` has an nn.Embedding(sparse=True) per table and torch.optim.Adagrad over all; `fbgemm` has batched tables
(fbgemm_gpu, exact Adagrad fused into the backward pass), one batch of tables per kind of row. Transforms run column by
column inside of the step; with --prepared they are done before, as if a loader had done them.

Ids of raw ids and texts are a multiply-and-shift hash here, cheaper than the XXH3 that genrec computes: what ids
collide does not matter to the time of a step.

`--tables widths` has one table per width of rows and kind of them, as FBGEMM's batched tables have, in plain PyTorch:
what a device is compared with where fbgemm_gpu is not there (`make device`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
import torch
from torch import nn

WIDTH, HIDDEN, EXPERTS, TASKS = 32, 128, 4, 2
CROSSED = 1 << 14
NAMED = {"user": (1 << 17, WIDTH), "item": (1 << 14, WIDTH), "query": (1 << 14, WIDTH), "position": (256, 4)}
HOURS = (0.5, 1, 2, 4, 8, 16, 24, 48, 72, 120, 168)
OWNERS = ("request", "impression", "clicks", "searches")


def fold(x: torch.Tensor, buckets: int) -> torch.Tensor:
    """Ids in [0, buckets) of any integers."""
    x = (x ^ (x >> 29)) * 0x3F4A7C15F39CC061
    return torch.remainder(x ^ (x >> 32), buckets)


def size_of(column: dict) -> int:
    """Rows of a column's table."""
    content = column["content"]
    if content in ("id", "text"):
        return column["buckets"]
    return {"value": len(column["edges"]) + 1, "time": len(HOURS) + 1, "level": CROSSED}[content]


def adagrad(tables: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of tables, which counts its steps on the host: it would wait for each count on a device."""
    with torch.device("cpu"):
        return torch.optim.Adagrad(tables.parameters(), lr=0.02)


class Modules(nn.Module):
    """An nn.Embedding per table."""

    def __init__(self, sizes: dict[str, tuple[int, int]]) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({n: nn.Embedding(rows, dim, sparse=True) for n, (rows, dim) in sizes.items()})
        for table in self.tables.values():
            nn.init.uniform_(table.weight, -0.05, 0.05)
        self.optimizer = adagrad(self)

    def look_up(self, ids: dict[str, dict[str, torch.Tensor]]) -> dict[str, dict[str, torch.Tensor]]:
        """Rows by owner and table."""
        return {owner: {n: self.tables[n](x) for n, x in group.items()} for owner, group in ids.items()}

    def step(self) -> None:
        """Updates the tables."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Widths(nn.Module):
    """Tables of one width behind one another in one: a lookup and an update per width, whoever owns the rows."""

    def __init__(self, sizes: dict[str, tuple[int, int]]) -> None:
        super().__init__()
        self.begins: dict[str, int] = {}
        self.shifts: dict[tuple[int, ...], torch.Tensor] = {}
        self.dims = {name: dim for name, (_, dim) in sizes.items()}
        rows: dict[int, int] = {}
        for name, (count, dim) in sizes.items():
            self.begins[name] = rows.get(dim, 0)
            rows[dim] = self.begins[name] + count
        self.tables = nn.ModuleDict({str(d): nn.Embedding(count, d, sparse=True) for d, count in rows.items()})
        for table in self.tables.values():
            nn.init.uniform_(table.weight, -0.05, 0.05)
        self.optimizer = adagrad(self)

    def shift(self, dim: int, counts: list[int], parts: list[tuple[str, str, torch.Tensor]]) -> torch.Tensor:
        """Where the table of each id begins; of batches of equal counts it is computed once."""
        key = dim, *counts
        if key not in self.shifts:
            begins = torch.tensor([self.begins[name] for _, name, _ in parts])
            self.shifts[key] = begins.repeat_interleave(torch.tensor(counts)).to(parts[0][2].device)
        return self.shifts[key]

    def look_up(self, ids: dict[str, dict[str, torch.Tensor]]) -> dict[str, dict[str, torch.Tensor]]:
        """Rows by owner and table."""
        places: dict[int, list[tuple[str, str, torch.Tensor]]] = {}
        for owner, group in ids.items():
            for name, x in group.items():
                places.setdefault(self.dims[name], []).append((owner, name, x))
        found: dict[str, dict[str, torch.Tensor]] = {owner: dict.fromkeys(group) for owner, group in ids.items()}
        for dim, parts in places.items():
            counts = [len(x) for _, _, x in parts]
            rows = self.tables[str(dim)](torch.cat([x for _, _, x in parts]) + self.shift(dim, counts, parts))
            for (owner, name, _), part in zip(parts, rows.split(counts), strict=True):
                found[owner][name] = part
        return found

    def step(self) -> None:
        """Updates the tables."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Batched(nn.Module):
    """FBGEMM's batched tables: one module per kind of row, and one for each table that two kinds of rows share."""

    def __init__(self, sizes: dict[str, tuple[int, int]], owned: dict[str, list[str]], device: str) -> None:
        super().__init__()
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        place = EmbeddingLocation.DEVICE, ComputeDevice.CUDA
        if device == "cpu":
            place = EmbeddingLocation.HOST, ComputeDevice.CPU
        owned = {owner: names for owner, names in owned.items() if names}
        self.groups = {**owned, "item": ["item"], "query": ["query"]}
        self.dims = {name: [sizes[n][1] for n in names] for name, names in self.groups.items()}
        self.batched = nn.ModuleDict(
            {
                group: SplitTableBatchedEmbeddingBagsCodegen(
                    [(*sizes[n], *place) for n in names],
                    optimizer=EmbOptimType.EXACT_ADAGRAD,
                    learning_rate=0.02,
                    eps=1e-10,
                    pooling_mode=PoolingMode.SUM,
                )
                for group, names in self.groups.items()
            }
        )
        for module in self.batched.values():
            module.init_embedding_weights_uniform(-0.05, 0.05)

    def _rows(self, group: str, ids: list[torch.Tensor]) -> list[torch.Tensor]:
        count = sum(len(x) for x in ids)
        rows = self.batched[group](torch.cat(ids), torch.arange(count + 1, device=ids[0].device))
        return list(rows.split(self.dims[group], dim=1))

    def look_up(self, ids: dict[str, dict[str, torch.Tensor]]) -> dict[str, dict[str, torch.Tensor]]:
        """Rows by owner and table."""
        found = {}
        for owner, group in ids.items():
            names = self.groups.get(owner, [])
            rows = self._rows(owner, [group[n] for n in names]) if names else []
            found[owner] = dict(zip(names, rows, strict=True))
        for name, (first, second) in {"item": ("impression", "clicks"), "query": ("request", "searches")}.items():
            both = [ids[first][name], ids[second][name]]
            count = len(both[0]) + len(both[1])
            rows = self.batched[name](torch.cat(both), torch.arange(count + 1, device=both[0].device))
            found[first][name], found[second][name] = rows.split([len(x) for x in both])
        return found

    def step(self) -> None:
        """Updates are part of the backward pass."""


class Din(nn.Module):
    """The local activation unit of DIN."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.Linear(4 * WIDTH, 32), nn.Sigmoid(), nn.Linear(32, 16), nn.Sigmoid(), nn.Linear(16, 1)
        )

    def forward(self, query: torch.Tensor, rows: torch.Tensor, of: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """`of` and `which`: the query and the row of each pair."""
        q, r = query.index_select(0, of), rows.index_select(0, which)
        weight = self.weigh(torch.cat([q, r, q - r, q * r], 1))
        return torch.zeros_like(query).index_add(0, of, r * weight)


def mlp(sizes: list[int], final: bool) -> nn.Sequential:
    """Linear layers with ReLU between, and at the end if `final`."""
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        layers += [nn.Linear(a, b)] + ([nn.ReLU()] if final or i + 2 < len(sizes) else [])
    return nn.Sequential(*layers)


class Dense(nn.Module):
    """Everything but the tables."""

    def __init__(self, widths: dict[str, int]) -> None:
        super().__init__()
        self.click_rows = nn.Linear(widths["clicks"] + WIDTH + 1, WIDTH)
        self.search_rows = nn.Linear(widths["searches"] + WIDTH + 1, WIDTH)
        self.liked, self.sought = Din(), Din()
        self.bottom = nn.Linear(widths["request"] + 3 * WIDTH + widths["impression"] + 2 * WIDTH + 4, HIDDEN)
        self.reduce = nn.ParameterList([nn.Parameter(torch.randn(HIDDEN, 32) / 11) for _ in range(2)])
        self.expand = nn.ParameterList([nn.Parameter(torch.randn(32, HIDDEN) / 6) for _ in range(2)])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(HIDDEN)) for _ in range(2)])
        self.experts = nn.ModuleList([mlp([HIDDEN, 64, 32], True) for _ in range(EXPERTS)])
        self.gates = nn.ModuleList([nn.Linear(HIDDEN, EXPERTS, bias=False) for _ in range(TASKS)])
        self.heads = nn.ModuleList([mlp([32, 16, 1], False) for _ in range(TASKS)])

    def forward(self, rows: dict, numbers: dict, moves: dict) -> list[torch.Tensor]:
        """The logits of both tasks per impression."""

        def joined(owner: str, *first: torch.Tensor) -> torch.Tensor:
            own = [x for name, x in rows[owner].items() if name not in NAMED]
            return torch.cat([*first, *own, *numbers[owner]], 1)

        clicks = torch.relu(self.click_rows(joined("clicks", rows["clicks"]["item"])))
        searches = torch.relu(self.search_rows(joined("searches", rows["searches"]["query"])))
        request, shown = rows["request"], rows["impression"]
        sought = self.sought(request["query"], searches, *moves["searches"])
        about = joined("request", request["user"], request["query"], sought).index_select(0, moves["parents"])
        liked = self.liked(shown["item"], clicks, *moves["pairs"])
        x = torch.relu(
            self.bottom(torch.cat([about, joined("impression", shown["item"], liked, shown["position"])], 1))
        )
        start = x
        for reduce, expand, bias in zip(self.reduce, self.expand, self.bias, strict=True):
            x = start * (x @ reduce @ expand + bias) + x
        outputs = torch.stack([expert(x) for expert in self.experts], 1)
        logits = []
        for gate, head in zip(self.gates, self.heads, strict=True):
            mixed = (outputs * torch.softmax(gate(x), 1).unsqueeze(2)).sum(1)
            logits.append(head(mixed).squeeze(1))
        return logits


class Peer:
    """Data, model, steps, all on torch's default device."""

    def __init__(self, args: argparse.Namespace) -> None:
        file, device = np.load(args.data), torch.get_default_device()
        self.columns: dict[str, list[dict]] = json.loads(str(file["description"]))
        self.batch, self.prepared = args.batch, args.prepared
        values = {name: torch.from_numpy(file[name]).to(device) for name in file.files if name != "description"}
        self.lengths = {owner: values.pop(f"{owner}.lengths") for owner in OWNERS[1:]}
        self.values = {
            owner: {n.split(".", 1)[1]: x for n, x in values.items() if n.startswith(owner + ".")} for owner in OWNERS
        }
        self.ends = {
            owner: torch.cat([torch.zeros(1, dtype=torch.int64), x.cumsum(0)]).tolist()
            for owner, x in self.lengths.items()
        }
        self.edges = {c["name"]: torch.tensor(c["edges"]) for own in self.columns.values() for c in own}
        self.hours = torch.tensor([h * 3600 for h in HOURS], dtype=torch.float64)
        self.level = next((c["name"] for c in self.columns["request"] if c["content"] == "level"), None)
        tabled = {
            o: [c for c in own if c["content"] not in ("amount", "ratio", "count")] for o, own in self.columns.items()
        }
        sizes = {c["name"]: (size_of(c), c["dim"]) for own in tabled.values() for c in own} | NAMED
        owned = {owner: [c["name"] for c in own] for owner, own in tabled.items()}
        owned["request"].append("user")
        owned["impression"].append("position")
        widths = {owner: sum(c["dim"] if c in tabled[owner] else 1 for c in own) for owner, own in self.columns.items()}
        torch.manual_seed(1)
        tables = {
            "modules": lambda: Modules(sizes),
            "widths": lambda: Widths(sizes),
            "fbgemm": lambda: Batched(sizes, owned, device.type),
        }
        self.tables = tables[args.tables]()
        self.dense = Dense(widths)
        self.optimizer = torch.optim.Adam(self.dense.parameters(), lr=1e-3)
        self.requests = len(self.values["request"]["user"])
        self.ready: dict[int, tuple] = {}

    def cut(self, step: int) -> tuple[dict, dict]:
        """The columns of batch `step` by owner, and what leads from rows to rows."""
        batches = self.requests // self.batch
        begin = step % batches * self.batch
        end = begin + self.batch
        raw = {"request": {n: x[begin:end] for n, x in self.values["request"].items()}}
        for owner, ends in self.ends.items():
            raw[owner] = {n: x[ends[begin] : ends[end]] for n, x in self.values[owner].items()}
        lengths = {owner: x[begin:end] for owner, x in self.lengths.items()}
        parents = {o: torch.repeat_interleave(torch.arange(self.batch), x) for o, x in lengths.items()}
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), lengths["clicks"].cumsum(0)])[:-1]
        count = lengths["clicks"][parents["impression"]]
        of = torch.repeat_interleave(torch.arange(len(count)), count)
        within = torch.arange(len(of)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        pairs = of, starts[parents["impression"]][of] + within
        searches = parents["searches"], torch.arange(len(parents["searches"]))
        known = (~torch.isnan(raw["impression"]["order"])).nonzero().squeeze(1)  # of what was clicked
        moves = {"all": parents, "parents": parents["impression"], "pairs": pairs, "searches": searches}
        return raw, moves | {"known": known}

    def transform(self, raw: dict, moves: dict) -> tuple[dict, dict]:
        """Ids and numbers by owner, column by column."""
        ids: dict[str, dict[str, torch.Tensor]] = {}
        numbers: dict[str, list[torch.Tensor]] = {}
        for owner, own in self.columns.items():
            values, group, dense = raw[owner], {}, []
            now = raw["request"]["time"]
            if owner != "request":
                now = now[moves["all"][owner]]
            for c in own:
                x, content = values[c["name"]], c["content"]
                if content in ("id", "text"):
                    group[c["name"]] = fold(x, c["buckets"])
                elif content == "value":
                    group[c["name"]] = torch.bucketize(x, self.edges[c["name"]], right=True)
                elif content == "time":
                    group[c["name"]] = torch.bucketize((now - x).clamp(min=0), self.hours, right=True)
                elif content == "level" and owner == "impression" and self.level is not None:
                    group[c["name"]] = fold(raw["request"][self.level][moves["parents"]] * 4096 + x, CROSSED)
                elif content == "level":
                    group[c["name"]] = torch.remainder(x, 32)
                elif content == "amount":
                    dense.append(torch.log1p(x.clamp(min=0)).unsqueeze(1))
                elif content == "ratio":
                    dense.append((torch.nan_to_num(x, nan=0.5).clamp(0, 1) * 2 - 1).unsqueeze(1))
                else:
                    dense.append(torch.log1p(x.to(torch.float32).clamp(0, 1000)).unsqueeze(1))
            if owner in ("clicks", "searches"):
                age = (now - values["time"]).clamp(min=0).to(torch.float32) / 3600
                dense.insert(0, torch.log1p(age).unsqueeze(1))
            ids[owner], numbers[owner] = group, dense
        for owner, name in (("request", "user"), ("impression", "item"), ("clicks", "item"), ("request", "query"),
                            ("searches", "query"), ("impression", "position")):  # fmt: skip
            ids[owner][name] = fold(raw[owner][name], NAMED[name][0])
        return ids, numbers

    def inputs(self, step: int) -> tuple:
        """What the model takes, and the labels."""
        return self.inputs_of(*self.cut(step))

    def inputs_of(self, raw: dict, moves: dict) -> tuple:
        """The same of a batch that has been cut."""
        return *self.transform(raw, moves), moves, raw["impression"]["click"], raw["impression"]["order"]

    def step(self, inputs: tuple) -> torch.Tensor:
        """One training step; returns its loss."""
        ids, numbers, moves, click, order = inputs
        click_logit, order_logit = self.dense(self.tables.look_up(ids), numbers, moves)
        known = moves["known"]
        loss = nn.functional.binary_cross_entropy_with_logits(click_logit, click)
        loss = loss + nn.functional.binary_cross_entropy_with_logits(order_logit[known], order[known])
        loss.backward()
        self.tables.step()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def steps(self, begin: int, count: int) -> dict[str, list[float]]:
        """Times `count` steps; with --prepared without what makes their inputs."""
        seconds, losses = [], []
        for number in range(begin, begin + count):
            ready = self.inputs(number) if self.prepared else None
            start = time.perf_counter()
            losses.append(float(self.step(ready if ready is not None else self.inputs(number))))
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds, "losses": losses}


def main() -> None:
    """Answers lines of standard input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, required=True, help="requests per step")
    parser.add_argument("--tables", choices=("modules", "widths", "fbgemm"), default="modules")
    parser.add_argument("--prepared", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    peer = Peer(args)
    print(json.dumps({"ready": peer.requests, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        _, begin, count = line.split()
        print(json.dumps(peer.steps(int(begin), int(count))), flush=True)


if __name__ == "__main__":
    main()
