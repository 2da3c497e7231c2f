"""Makes one file of what part 2 of a run on a device found, and compares ours with the peers.

Usage: python3 collect.py RESULTS [--out FOLDER]

RESULTS holds what `./run 2 RESULTS` of the packed folder (make device) left, part-2.json, and where part 3 ran,
part-3.json, of which the shares of a step's kernels are taken. Writes
FOLDER/cuda-<date>-<device>.json (FOLDER is RESULTS where not given), which benchmarks/common/table.py reads, and prints
the comparisons, the most important first. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

FILE, PROFILE = "part-2.json", "part-3.json"
EXAMPLES = ("criteo_dlrm", "criteo_dcnv2", "news_request_ranking")  # that PyTorch runs beside ours
LARGE = "hstu_large"  # the model that is there for its speed
LESS = ("us", "ms", "%")  # less is better; of everything else more is


@dataclass(frozen=True)
class Asked:
    """What is asked of figure `ours`: to be `ratio` times as good as `peer`, or `share` of `limit`.

    A limit is a number in the figure's unit, or the name of another figure; of times and shares it is the most. Without
    a ratio the peer is shown for comparison.
    """

    ours: str
    peer: str = ""
    ratio: float | None = None
    limit: float | str | None = None
    share: float = 1.0


def attention() -> list[Asked]:
    """Rates that are asked for, what biases may cost, and the Triton kernel wherever it ran."""
    asked = []
    for direction, least in (("forward", 550.0), ("backward", 450.0)):
        for length in (4096, 8192, 16384):
            bare = f"attention {direction}, hopper, D 128, T {length}, bias none"
            asked.append(Asked(bare, limit=least))
            for bias in ("position", "position, time"):
                asked.append(Asked(bare.replace("none", bias), limit=bare, share=0.85))
    cases = [(dim, f"T {length}") for length in (4096, 16384, 512) for dim in (128, 64, 256)]
    for peer in ("Triton attention", "HSTU CUDA attention"):
        for direction in ("forward", "backward"):
            for dim, lists in (*cases, (128, "jagged to 8192")):
                case = f"D {dim}, {lists}, bias none"
                asked.append(Asked(f"attention {direction}, hopper, {case}", f"{peer} {direction}, {case}"))
    return asked


def step() -> list[Asked]:
    """Times of a step of ten tables."""
    case = "10 tables, 1 Mi ids, D 128"
    return [
        Asked(f"table step forward, {case}", f"EmbeddingBag forward, {case}", limit=0.30),
        Asked(
            f"table step forward and a step of two states, {case}", f"EmbeddingBag and SparseAdam, {case}", limit=1.0
        ),
        Asked(f"table step forward and a step of two states, {case}", f"FBGEMM's batched tables and Adam, {case}"),
    ]


def store() -> list[Asked]:
    """Ratios by the load of the table; at 0.75 none is asked where it differs between loads."""
    asked = []
    for dim in (8, 32, 64):
        for load in ("0.50", "0.75", "1.00"):
            ratios = {
                "find, pointers": {"0.50": 1.2, "1.00": 1.6}.get(load),
                "find, values": 1.3,
                "find_or_insert, pointers, ids known": {"0.50": 1.3, "1.00": 2.0}.get(load),
                "insert_and_evict, an eighth new": {"0.50": 1.3, "1.00": 2.0}.get(load),
            }
            for call, ratio in ratios.items():
                case = f"{call}, dim {dim}, load {load}"
                asked.append(Asked(f"cache, {case}", f"HierarchicalKV {case}", ratio))
    return asked


def sparse() -> list[Asked]:
    """Distinct ids, rows and columns."""
    asked = [Asked("segment-unique, 1 Mi ids in 10", limit=40.0)]
    for case in ("1 Mi ids in 10", "64 Mi ids in 40"):
        asked += [Asked(f"segment-unique, {case}", f"{peer}, {case}", 3.0) for peer in ("torch.unique", "CUB sort")]
    for count in (1, 64):
        for owners in (8, 64):
            case = f"{count} Mi ids into {owners}"
            asked.append(Asked(f"unique and partition, {case}", f"CUB sort and partition, {case}", 3.0))
    for size, share in ((64, 0.85), (512, 0.95)):
        for ours, peer in (("gatherRows", "index_select"), ("scatterRows", "index_copy_")):
            rows = f"rows of {size} B"
            asked.append(Asked(f"{ours}, {rows}", f"{peer}, {rows}", limit="copy", share=share))
    for peer in ("torch.bucketize, 100 x 10 k, in a loop", "torch.compile of the loop"):
        asked.append(Asked("bucketize 100 x 10 k, enqueue to done", peer, limit=15.0))
    for program in ("truncate, hash and mod", "truncate and bucketize"):
        asked.append(Asked(f"{program}, 600 ragged columns, 60 M values", limit="copy", share=0.70))
    return asked


def examples() -> list[Asked]:
    """Training steps of whole models. Where fbgemm_gpu is not there, its peers in plain PyTorch are asked instead."""
    public, tables = "PyTorch, a step of hstu_movielens, public code", "PyTorch, a step of search_ranking"
    return [
        Asked(f"{LARGE}, products and attention of a step", limit=480.0),
        Asked(f"{LARGE}, elementwise kernels of a step", limit=8.0),
        *(
            Asked("hstu_movielens, a step", f"{public}{operators}, {how}", 5.0)
            for operators in ("", " without FBGEMM")
            for how in ("eager", "torch.compile")
        ),
        *(
            Asked("search_ranking, a step", f"{tables}, {name}{when}", None if when else ratio)
            for when in ("", ", transformed before")
            for name, ratio in (("FBGEMM", 3.0), ("a table per width", 3.0), ("a table each", None))
        ),
        *(Asked(f"{name}, a step", f"PyTorch, a step of {name}") for name in EXAMPLES),
    ]


ASKED = attention() + step() + store() + sparse() + examples()


class ResultsError(Exception):
    """What the folder holds cannot be the results of one run."""


def steps_of(job: str, details: dict) -> dict | None:
    """What an example's job says of its steps, as a program's report; None of other jobs."""
    name = job.removeprefix("example ")
    sides = {"device": f"{name}, a step", "cpu": f"{name}, a step on the CPU"}
    figures = [
        {"what": what, "value": 1e3 * details[f"{side}_step_seconds"], "unit": "ms"}
        for side, what in sides.items()
        if f"{side}_step_seconds" in details
    ]
    if "tflops_per_second" in details:
        what = f"{name}, products and attention of a step"
        figures.append({"what": what, "value": details["tflops_per_second"], "unit": "TFLOP/s"})
    return {"figures": figures} if name != job and figures else None


def shares_of(folder: Path) -> dict[str, dict]:
    """Shares of a step's kernel time by class of kernels, by the profiling job; none where part 3 did not run."""
    path = folder / PROFILE
    jobs = json.loads(path.read_text())["jobs"] if path.exists() else {}
    return {
        job: {
            "figures": [
                {
                    "what": f"{job.removeprefix('times of ')}, {kind} kernels of a step",
                    "value": 100 * share,
                    "unit": "%",
                }
                for kind, share in record["details"]["classes"].items()
            ]
        }
        for job, record in jobs.items()
        if record.get("details", {}).get("classes")
    }


def read(folder: Path) -> tuple[dict, dict[str, dict]]:
    """The results of the part, and the report of every job that has one."""
    path = folder / FILE
    if not path.exists():
        raise ResultsError(f"'{folder}' has no {FILE}: ./run 2 {folder} makes it")
    try:
        content = json.loads(path.read_text())
        reports = {}
        for job, record in content["jobs"].items():
            details = record.get("details", {})
            report = details.get("report") or steps_of(job, details)
            if report:
                reports[job] = report
                if not all({"what", "value", "unit"} <= figure.keys() for figure in report["figures"]):
                    raise KeyError("what, value or unit of a figure")
        return {"date": content["date"], "commit": content["commit"]}, reports | shares_of(folder)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"'{path}' is not what a run writes: {error}") from error


def the_one(what: str, values: dict[str, str]) -> str:
    """The value that all programs agree on."""
    if len(set(values.values())) > 1:
        said = ", ".join(f"{program} '{value}'" for program, value in values.items())
        raise ResultsError(f"results of one run have one {what}, found {said}")
    return next(iter(values.values()), "unknown")


def row(asked: Asked, figures: dict[str, dict]) -> dict | None:
    """A row of the table; None where ours was not measured, or nothing that it is held against."""
    ours, theirs = figures.get(asked.ours), figures.get(asked.peer)
    limit = asked.limit
    if isinstance(limit, str):
        limit = figures[limit]["value"] if limit in figures else None
    if ours is None or ours["value"] is None or (theirs is None and limit is None):
        return None
    value, unit = ours["value"], ours["unit"]
    result = {"what": asked.ours, "unit": unit, "ours": value}
    if theirs is not None and theirs["value"]:
        ratio = theirs["value"] / value if unit in LESS else value / theirs["value"]
        result |= {"peer": asked.peer, "theirs": theirs["value"], "ratio": ratio}
        if asked.ratio is not None:
            result["asked"] = asked.ratio
    if limit:
        share = limit / value if unit in LESS else value / limit
        name = asked.limit if isinstance(asked.limit, str) else f"{limit:g} {unit} asked"
        result |= {"limit": name, "limit_share": share, "limit_share_asked": asked.share}
    return result


def collect(head: dict, files: dict[str, dict]) -> dict:
    """One run's results as benchmarks/results holds them."""
    figures = {figure["what"]: figure for content in files.values() for figure in content["figures"]}
    devices = {program: content.get("device", {}) for program, content in files.items()}
    named = {program: device["name"] for program, device in devices.items() if "name" in device}
    hardware = {"processor": the_one("device", named)}
    for device in devices.values():
        hardware |= {key: value for key, value in device.items() if key != "name"}
    rows = [row(asked, figures) for asked in ASKED]
    return {
        "benchmark": "cuda",
        **head,
        "hardware": hardware,
        "summary": [made for made in rows if made],
        "not_compared": sorted({asked.ours for asked, made in zip(ASKED, rows, strict=True) if not made}),
        "figures": list(figures.values()),
        "skipped": [entry for content in files.values() for entry in content.get("skipped", [])],
    }


def line(made: dict) -> str:
    """A row as text, with what it misses."""
    text = f"{made['what']:<66} {made['ours']:10.3f} {made['unit']:<8}"
    if "ratio" in made:
        text += f" {made['ratio']:6.2f}x of {made['peer']}"
        if "asked" in made:
            text += f", asked {made['asked']:g}x" + ("" if made["ratio"] >= made["asked"] else ": MISSED")
    if "limit_share" in made:
        met = made["limit_share"] >= made["limit_share_asked"]
        text += f" {made['limit_share']:.0%} of {made['limit']}" + ("" if met else ": MISSED")
    return text


def main(words: list[str]) -> int:
    """Entry point; 1 where the folder does not hold the results of one run."""
    parser = argparse.ArgumentParser(description="collects the results of the benchmarks of a CUDA device")
    parser.add_argument("results", type=Path, help="folder of a run's results")
    parser.add_argument("--out", type=Path, help="folder of the file that is made")
    arguments = parser.parse_args(words)
    try:
        results = collect(*read(arguments.results))
        slug = "-".join(re.findall(r"[a-z0-9]+", results["hardware"]["processor"].lower()))
        path = (arguments.out or arguments.results) / f"cuda-{results['date']}-{slug}.json"
        path.write_text(json.dumps(results, indent=1) + "\n")
    except (ResultsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(line(made) for made in results["summary"]))
    print(f"{len(results['not_compared'])} figures had nothing to be compared with; all are in {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
