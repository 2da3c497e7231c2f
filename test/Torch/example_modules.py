"""Modules of examples/, which are no packages."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from example import load_example  # noqa: E402, F401
