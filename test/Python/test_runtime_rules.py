"""Rules that all sources of the runtime keep."""

from __future__ import annotations

import re
from pathlib import Path

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


def test_json_is_written_in_one_place() -> None:
    """The library's own dump throws at names that are not UTF-8: `toText` of core/json.h does not."""
    sources = [path for pattern in ("*.cpp", "*.h") for path in RUNTIME.rglob(pattern)]
    assert len(sources) > 100
    found = [path.name for path in sources if re.search(r"\.dump\(", path.read_text()) and path.name != "json.h"]
    assert found == []
