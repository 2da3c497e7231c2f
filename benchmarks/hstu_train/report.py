"""What a benchmark's results say of where they come from."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTRUCTION_SETS = ("avx2", "fma", "avx512f", "avx512vl", "avx512_bf16", "amx_tile")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def movielens_arguments(description: str | None, name: str) -> argparse.ArgumentParser:
    """A parser with the flags of every benchmark on MovieLens-1M, called `name`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = ROOT.parent / "shared" / "data" / "ml-1m"
    parser.add_argument(
        "--data", type=Path, default=data, help="folder of MovieLens-1M (default: ../shared/data/ml-1m)"
    )
    parser.add_argument("--batch", type=int, default=128, help="sequences per step")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / name, help="folder to work in")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    return parser


def hardware() -> dict[str, object]:
    """Processor, cores, memory in GiB, and the vector instruction sets."""
    text = Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields.get("flags", "").split()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": fields.get("model name", platform.processor()),
        "family": fields.get("cpu family", ""),
        "model": fields.get("model", ""),
        "cache": fields.get("cache size", ""),
        "cores": available_cores(),
        "memory_gib": round(pages / 2**30, 1),
        "instructions": [name for name in INSTRUCTION_SETS if name in flags],
        "load_before": os.getloadavg()[0],
    }


def commit(folder: Path) -> str:
    """The commit of a checkout, with "+" where files differ from it; "unknown" outside of one."""

    def git(*words: str) -> str:
        result = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return result.stdout.strip() if result.returncode == 0 else ""

    name = git("rev-parse", "HEAD")
    return (name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")) if name else "unknown"


def without_machine(value: object) -> object:
    """`value` with absolute paths told from the project's folder: where it lies on a machine says nothing."""
    if isinstance(value, dict):
        return {key: without_machine(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_machine(inner) for inner in value]
    if isinstance(value, (str, Path)) and Path(value).is_absolute():
        return os.path.relpath(value, ROOT)
    return value


def processor_slug(machine: dict[str, object]) -> str:
    """A kind of processor as a part of a file's name; clouds call generations alike, which their model tells apart."""
    words = re.sub(r"\(R\)|\(TM\)|Processor|CPU|@.*", " ", str(machine["processor"]))
    return "-".join(re.findall(r"[a-z0-9]+", f"{words} {machine.get('model', '')}".lower()))


def write(name: str, results: dict[str, object], folder: Path) -> Path:
    """Writes `results` with hardware, date and commit to <folder>/<name>-<processor>-<date>.json; returns the file.

    So results of one kind of machine do not replace those of another. Paths of its arguments are told from the
    project's folder.
    """
    today = datetime.date.today().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    machine = hardware()
    path = folder / f"{name}-{processor_slug(machine)}-{today}.json"
    head = {"benchmark": name, "date": today, "commit": commit(ROOT), "hardware": machine}
    results = {key: without_machine(value) if key == "arguments" else value for key, value in results.items()}
    path.write_text(json.dumps(head | results, indent=1) + "\n")
    return path
