"""Every function that emitted code calls has a CUDA form, or docs/cuda-kernels.md says why it has none."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2]


def list_without_form() -> set[str]:
    """The callees of Callees.cpp that have a header for the CPU only."""
    text = (SOURCE / "lib" / "Target" / "EmitC" / "Callees.cpp").read_text()
    entries = re.findall(r'^    \{"([\w:]+)", (.*)\},$', text, re.MULTILINE)
    assert len(entries) > 90
    one_header = re.compile(r'(ABI|(CPU|SHARED)\("\w+"\))')
    return {name.removeprefix("kernels::") for name, headers in entries if one_header.fullmatch(headers)}


def list_reasons() -> dict[str, str]:
    """What docs/cuda-kernels.md says of each."""
    section = (SOURCE / "docs" / "cuda-kernels.md").read_text().partition("## What has no CUDA form\n")[2].partition("\n## ")[0]
    reasons = {}
    for names, reason in re.findall(r"^\| (`.*?`) \| (.+) \|$", section, re.MULTILINE):
        reasons |= {name: reason for name in re.findall(r"`(\w+)`", names)}
    return reasons


def test_each_has_a_form_or_a_reason() -> None:
    assert set(list_reasons()) == list_without_form()
