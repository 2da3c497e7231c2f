"""A sample of what test/Faults/inject.py does: calls of the system that fail leave nothing damaged."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from compiled import BUILD, ROOT

sys.path.insert(0, str(ROOT / "test" / "Faults"))
from inject import KINDS, Harness  # noqa: E402

FAULTS = 60
# A sanitizer has an allocator of its own.
pytestmark = pytest.mark.skipif(
    re.search(r"^GENREC_SANITIZE:STRING=.", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE) is not None,
    reason="the build has sanitizers",
)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    return Harness(BUILD, tmp_path_factory.mktemp("faults"))


def test_faults_end_in_errors_and_lose_nothing(harness: Harness) -> None:
    faults = harness.faults(FAULTS)
    assert len(faults) == FAULTS
    assert {fault.kind for fault in faults} == set(KINDS)
    assert {fault.command for fault in faults} == set(harness.commands)
    outcome = harness.inject_all(faults)
    assert outcome.wrong == []
    assert outcome.ended["error"] > FAULTS // 4  # they do fail
    assert set(outcome.ended) <= {"error", "success"}


def test_a_lost_checkpoint_is_noticed(harness: Harness) -> None:
    """The judge itself: with the tensors gone, the state is wrong."""
    place = harness.place("judged", checkpoint=True)
    for tensors in Path(place / "ck").rglob("*.safetensors"):
        tensors.unlink()
    with pytest.raises(RuntimeError, match="evaluate without a fault ends with 1"):
        harness.evaluation(place)
