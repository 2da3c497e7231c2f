"""Programs of Python in place of tools and compiled models."""

from __future__ import annotations

import stat
import sys
import textwrap
from pathlib import Path


def write_program(path: Path, body: str) -> Path:
    """A Python program that can be started, in place of a binary."""
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\n" + textwrap.dedent(body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
