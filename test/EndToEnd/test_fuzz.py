"""Random models: their binaries against the interpreter."""

from __future__ import annotations

import subprocess

from compiled import call, tool


def test_binaries_of_random_models() -> None:
    """Six models agree at -O0 and -O2, at -O1 and as users compile them; a model that does not is in the message."""
    assert "6 seeds agree, 0 disagree" in call(tool("genrec-fuzz"), "--compiled", "--seeds", "1..6")


def test_a_gradient_off_by_a_thousandth_is_noticed() -> None:
    """What two binaries may differ by is too little for one gradient that is scaled by 1.001."""
    command = [tool("genrec-fuzz"), "--compiled", "--seeds", "2..3", "--no-shrink", "--scale-gradient=1.001"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 1, result.stderr
    assert "0 seeds agree, 2 disagree" in result.stdout, result.stdout + result.stderr
