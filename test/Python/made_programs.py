"""Programs made up for the tests of what `make device` packs, and parts that run them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts" / "device"
sys.path[:0] = [str(SCRIPTS), str(ROOT / "scripts"), str(ROOT / "benchmarks" / "cuda")]

import jobs  # noqa: E402

# Of an example.
SPEC = {
    "train": "train.parquet",
    "valid": "valid.parquet",
    "batch": 8,
    "flags": ["--catalogue", "items={folder}/items"],
}
WAITS = {"hopper_forward.h:87": "waitForPhase(&shared.empty[stage], ring.parity ^ 1);"}


def program(path: Path, text: str) -> None:
    """A program of Python that sees its name as NAME and its arguments as WORDS."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = (
        f"#!{sys.executable}\nimport json, os, sys, time\nNAME, WORDS = os.path.basename(sys.argv[0]), sys.argv[1:]\n"
    )
    path.write_text(head + text)
    path.chmod(0o755)


def results(out: Path, number: int) -> dict[str, Any]:
    return json.loads((out / f"part-{number}.json").read_text())


def make_part(out: Path, seconds: float = 60, number: int = 1, **lacks: str) -> jobs.Part:
    out.mkdir(exist_ok=True)
    return jobs.Part(number, out, seconds, lacks, {"commit": "abc123", "date": "2026-11-23"})
