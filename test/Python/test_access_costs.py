"""What accesses cost, as the emulated device counts it (`GENREC_SIMT_ACCESSES`), of kernels whose cost is known."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", Path(__file__).parents[2] / "build"))
PROGRAM = BUILD / "bin" / "genrec-simt-tests"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="not built")

LINE = re.compile(
    r" *(?P<wasted>\d+) of +(?P<taken>\d+) (?P<unit>\w+) *, +(?P<times>[\d.]+) times the least; (?P<warps>\d+) warps, "
    r"+(?P<lanes>[\d.]+) lanes: (?P<what>[^,]+, [^,]+), (?P<kernel>\S+) at access_costs_test\.cpp:\d+"
)
ROUNDS = re.compile(
    r" *(?P<total>\d+) rounds of the longest threads, of one launch at most (?P<most>\d+); (?P<launches>\d+) launches: "
    r"(?P<kernel>\S+), (?P<what>[^,]+, [^,]+), \S+ at access_costs_test\.cpp:\d+"
)

OPERATION = re.compile(r" *(?P<count>\d+) times: (?P<what>[^ ].*)")


def report_of(test: str, folder: Path) -> list[str]:
    """The report of a test, by line."""
    report = folder / "accesses.txt"
    done = subprocess.run(
        [PROGRAM, f"--gtest_filter=*AccessCosts.{test}/*"],
        env=os.environ | {"GENREC_SIMT_ACCESSES": str(report)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "PASSED" in done.stdout, done.stdout
    return report.read_text().splitlines()


def costs(test: str, folder: Path) -> list[tuple[str, str, int, int, str, int, float]]:
    """(kernel, access, wasted, taken, unit, warps, lanes) of each line of the report, the worst first."""
    rows = []
    for line in report_of(test, folder):
        if OPERATION.match(line):
            continue
        found = LINE.match(line)
        assert found, line
        taken, wasted = int(found["taken"]), int(found["wasted"])
        assert float(found["times"]) == pytest.approx(taken / (taken - wasted), abs=0.01)
        rows.append((
            found["kernel"].rsplit("::", 1)[-1], found["what"], wasted, taken, found["unit"], int(found["warps"]),
            float(found["lanes"]),
        ))  # fmt: skip
    return rows


def test_device_memory(tmp_path: Path) -> None:
    """Words 32 bytes apart are a sector each, of which 4 would hold them; what lies together is not told."""
    assert costs("OfDeviceMemory", tmp_path) == [
        ("scaleApart", "device, read of 4 bytes", 2 * 28, 2 * 32, "sectors", 2, 32.0)
    ]


def test_lanes_that_part(tmp_path: Path) -> None:
    """16 lanes go round once, 15 twice, lane 0 not at all. Sectors of words that lanes share count once."""
    (row,) = costs("OfLanesThatPart", tmp_path)
    kernel, what, wasted, taken, unit, warps, lanes = row
    assert (kernel, what, unit, warps, lanes) == ("addUneven", "device, read of 4 bytes", "sectors", 2, 23.0)
    # First rounds: 16 words, second ones (lanes from 17 on): 15 words.
    assert (taken, wasted) == (16 + 15, 16 + 15 - 2 - 2)


def test_shared_memory(tmp_path: Path) -> None:
    """Columns of 32 words lie in one bank; a pad of one word spreads them."""
    assert costs("OfSharedMemory", tmp_path) == [
        ("transpose", "shared, write of 4 bytes", 32 * 31, 32 * 32, "passes", 32, 32.0)
    ]


def test_padded_shared_memory(tmp_path: Path) -> None:
    assert not costs("OfPaddedSharedMemory", tmp_path)


def test_words_of_16_bytes(tmp_path: Path) -> None:
    """Eight lanes are served together: side by side at once, 64 bytes apart in four passes."""
    assert sorted(costs("OfWordsOf16Bytes", tmp_path)) == [
        ("copyWords", "shared, read of 16 bytes", 12, 20, "passes", 2, 32.0),
        ("copyWords", "shared, write of 16 bytes", 12, 20, "passes", 2, 32.0),
    ]


def test_long_loops(tmp_path: Path) -> None:
    """Thread 0 goes round for every word; of three launches the longest has 300."""
    (found,) = [match for line in report_of("OfLongLoops", tmp_path) if (match := ROUNDS.match(line))]
    assert found["kernel"].rsplit("::", 1)[-1] == "addEvery" and found["what"] == "device, read of 4 bytes"
    assert [int(found[name]) for name in ("total", "most", "launches")] == [600, 300, 3]


def test_operations(tmp_path: Path) -> None:
    """What ran how often, the most often first: three launches of a kernel among it."""
    found = [match for line in report_of("OfLongLoops", tmp_path) if (match := OPERATION.match(line))]
    assert [int(match["count"]) for match in found if match["what"].endswith("::addEvery")] == [3]
    counts = [int(match["count"]) for match in found]
    assert counts == sorted(counts, reverse=True)
