"""What a program with an emulated device never gives back is told at its end (`GENREC_SIMT_HELD`)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", Path(__file__).parents[2] / "build"))
PROGRAM = BUILD / "bin" / "genrec-simt-tests"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="not built")


def held(test: str, file: Path) -> str:
    """What the program of one test leaves."""
    environment = os.environ | {"GENREC_SIMT_HELD": str(file)}
    subprocess.run(
        [PROGRAM, f"--gtest_filter={test}", "--gtest_also_run_disabled_tests"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return file.read_text()


def test_what_is_kept_is_told_with_the_place(tmp_path: Path) -> None:
    text = held("Held.DISABLED_Memory", tmp_path / "held.txt")
    assert re.search(r"^40 bytes of device memory is never given back: made at held_test\.cpp:\d+", text, re.MULTILINE)


def test_nothing_is_told_where_nothing_is_kept(tmp_path: Path) -> None:
    assert held("Held.IsWhatWasNotGivenBack", tmp_path / "held.txt") == ""
