"""What an op is, it says itself: no pass, analysis, report, random batch or verifier has a list of op classes.

A list of classes is an `isa` of several, or a `TypeSwitch`. Where one is needed, an interface or a trait is missing
(include/genrec/Dialect/GenRec/IR/GenRecInterfaces.td, Step/StepOpInterface.td). Descriptions of ops may name them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPS = set(re.findall(r"def GenRec_(\w+Op)\b", "".join(
    path.read_text() for path in (ROOT / "include/genrec/Dialect/GenRec/IR").glob("GenRec*Ops.td"))))
# Where ops are described one by one: their part in a step, the defects that are planted in them, their form in a file.
DESCRIPTIONS = ("lib/Dialect/GenRec/Step/StepOpModels", "lib/Dialect/GenRec/Step/StepCalls", "lib/Fuzz/Mutation.cpp",
                "lib/Model/Export.cpp")  # fmt: skip
SOURCES = sorted(
    path
    for folder in ("lib", "include", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".cpp", ".h") and not str(path.relative_to(ROOT)).startswith(DESCRIPTIONS)
)


def lists(text: str) -> list[str]:
    """The lists of op classes in C++ source `text`."""
    found = []
    for match in re.finditer(r"\b(?:dyn_cast|isa(?:_and_\w+)?|IsaPred|Case)<([^<>()]*)>", text):
        if len([name for name in re.findall(r"(?<![\w:])\w+(?![\w:])", match[1]) if name in OPS]) > 1:
            found.append(" ".join(match[0].split()))
    cases = [name for name in re.findall(r"\.Case\(\[[^\]]*\]\((\w+) ", text) if name in OPS]
    return found + ([f"TypeSwitch over {', '.join(cases)}"] if len(cases) > 1 else [])


def test_lists_are_seen() -> None:
    assert lists("if (isa<FanoutOp,\n    PoolOp>(op))") == ["isa<FanoutOp, PoolOp>"]
    assert lists(".Case([&](LeadOp op) { }).Case([](LagOp op) {})") == ["TypeSwitch over LeadOp, LagOp"]
    assert lists("isa<LeadOp>(op) || isa<arith::AddFOp, arith::SubFOp>(op)") == []
    assert {"FanoutOp", "LaunchOp", "RowKernelOp"} <= OPS


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_list_of_op_classes(path: Path) -> None:
    assert lists(path.read_text()) == []
