"""A sample of what test/Faults/inject.py does: calls of the system that fail leave nothing damaged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import genrec as gr
import pytest
from compiled import BUILD, ROOT, call, draft
from session_models import SCHEMA, Later, write_rows

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


def test_a_step_ends_where_memory_is_not_there(harness: Harness, tmp_path: Path) -> None:
    """Each large allocation in turn: what a call did not write, the calls behind it do not read."""
    binary, counts = tmp_path / "later", tmp_path / "counts"
    gr.compile(Later(), SCHEMA, output=binary, flags=draft())
    data = ["--data", write_rows(tmp_path / "rows.parquet"), "--batch", "17", "--threads", "2", "--progress", "none"]
    call(binary, "train", *data, "--checkpoint", tmp_path / "kept", "--max-steps", "1")  # later ids are unseen

    def run(words: list[object], **faults: object) -> subprocess.CompletedProcess[str]:
        variables = {name: str(value) for name, value in {"LD_PRELOAD": harness.shim, **faults}.items()}
        return subprocess.run(
            list(map(str, words)), env=os.environ | variables, capture_output=True, text=True, timeout=60, check=False
        )

    train = [binary, "train", *data, "--profile", tmp_path / "profile"]
    for words in (train, [binary, "evaluate", *data, "--checkpoint", tmp_path / "kept"]):
        assert run(words, GENREC_FAULT_COUNTS=counts).returncode == 0
        large = dict(line.split() for line in counts.read_text().splitlines())["large_allocation"]
        told = set()
        for number in range(1, int(large) + 1):
            done = run(words, GENREC_FAULT=f"large_allocation:{number}")
            assert done.returncode in (0, 1), (number, done.returncode, done.stderr)  # some are not needed
            told |= set(re.findall(r"^Later: error: (.*)", done.stderr, re.MULTILINE))
        assert told == {"out of memory"}
