"""Random models: their binaries against the interpreter."""

from __future__ import annotations

from compiled import call, tool


def test_binaries_of_random_models() -> None:
    """Six models agree at -O0 and -O2; a model that does not is in the message."""
    assert "6 seeds agree, 0 disagree" in call(tool("genrec-fuzz"), "--compiled", "--seeds", "1..6")
