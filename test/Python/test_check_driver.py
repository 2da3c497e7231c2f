"""scripts/check.py must never report a success that is empty, nor lose a failure."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check  # noqa: E402


def suite_of(tmp_path: Path, shell: str, read=check.read_junit) -> check.Suite:
    """A suite whose program is a line of shell; "$REPORT" is where its report belongs."""
    report = tmp_path / "report"
    return check.Suite("made up", ["sh", "-c", shell], report, read, {"REPORT": str(report)})


def run(tmp_path: Path, shell: str, read=check.read_junit) -> check.Result:
    """Runs such a suite."""
    return check.run(suite_of(tmp_path, shell, read), tmp_path / "log")


def test_junit_counts_passes_failures_errors_and_skips(tmp_path: Path) -> None:
    """Failures and errors are both failures; what they said is kept."""
    cases = (
        '<testcase classname="a" name="good" time="2.5"/><testcase name="left"><skipped/></testcase>'
        '<testcase classname="a" name="bad"><failure message="one"/></testcase>'
        '<testcase classname="a" name="worse"><error>two</error></testcase>'
    )
    result = run(tmp_path, f"echo '<testsuites><testsuite>{cases}</testsuite></testsuites>' > $REPORT; exit 1")
    assert (result.passed, result.skipped) == (1, 1)
    assert result.failures == [("a.bad", "one"), ("a.worse", "two")]
    assert sorted(result.times)[-1] == (2.5, "a.good")


def test_gtest_counts(tmp_path: Path) -> None:
    """A disabled or skipped test is no pass."""
    cases = (
        '{"name": "good", "status": "RUN", "result": "COMPLETED", "time": "1.25s"},'
        '{"name": "off", "status": "NOTRUN", "result": "SUPPRESSED"},'
        '{"name": "later", "status": "RUN", "result": "SKIPPED"},'
        '{"name": "bad", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "why"}]}'
    )
    report = f'{{"testsuites": [{{"name": "S", "testsuite": [{cases}]}}]}}'
    result = run(tmp_path, f"echo '{report}' > $REPORT; exit 1", check.read_gtest)
    assert (result.passed, result.skipped) == (1, 2)
    assert result.failures == [("S.bad", "why")]
    assert sorted(result.times)[-1] == (1.25, "S.good")


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("echo lost; kill -9 $$", "left no report"),
        ("echo '<cut' > $REPORT", "left no report"),
        ("echo '<testsuites/>' > $REPORT", "ran no test"),
        ("echo '<testsuites><testcase name=\"t\"/></testsuites>' > $REPORT; exit 3", "exit status 3"),
    ],
)
def test_a_suite_that_crashes_or_runs_nothing_fails(tmp_path: Path, shell: str, message: str) -> None:
    """A crash, a report cut short, an empty report, and a bad exit status behind good tests."""
    result = run(tmp_path, shell)
    assert len(result.failures) == 1
    assert message in result.failures[0][1]


def test_a_suite_that_does_not_start_fails(tmp_path: Path) -> None:
    """As when the test program was not built."""
    suite = suite_of(tmp_path, "")
    suite.command = [str(tmp_path / "absent")]
    assert "could not be started" in check.run(suite, tmp_path / "log").failures[0][1]


def test_a_stale_report_is_not_read(tmp_path: Path) -> None:
    """What an earlier run left must not stand in for this one."""
    (tmp_path / "report").write_text("<testsuites><testcase name='t'/></testsuites>")
    assert run(tmp_path, "true").passed == 0


def test_shards_are_added_up_and_one_that_crashes_fails(tmp_path: Path) -> None:
    """Each has a report of its own, and knows its number."""
    report = tmp_path / "report"
    case = "<testsuites><testcase name='t$GTEST_SHARD_INDEX'/></testsuites>"

    def run_both(more: str) -> check.Result:
        shell = f'echo "{case}" > {report}; test $GTEST_TOTAL_SHARDS = 2 {more}'
        suite = check.Suite("made up", ["sh", "-c", shell], report, check.read_junit, shards=2)
        return check.run_shards(suite, tmp_path / "log")

    both = run_both("")
    assert (both.passed, both.failures) == (2, [])
    broken = run_both("&& test $GTEST_SHARD_INDEX = 0")
    assert broken.passed == 2
    assert [name for name, _ in broken.failures] == ["made up"]


def test_the_last_line_and_the_exit_status(tmp_path: Path, monkeypatch, capsys) -> None:
    """`N passed, N failed` is the last line, behind the slowest tests, and a run of nothing is a failure."""
    good = suite_of(tmp_path, "echo '<testsuites><testcase name=\"t\" time=\"75\"/></testsuites>' > $REPORT")
    monkeypatch.setattr(check, "binary_folder", lambda preset: tmp_path)
    monkeypatch.setattr(sys, "argv", ["check.py"])
    monkeypatch.setattr(check, "find_suites", lambda preset, folder, reports: {"lit": [good]})
    assert check.main() == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["[check]   slow: t (1 min 15 s)", "1 passed, 0 failed"]
    said = "a.py:3\nE   1 == 2\na.py:3: AssertionError"
    report = f'<testsuites><testcase name="t"><failure>{said}</failure></testcase></testsuites>'
    bad = suite_of(tmp_path, f"echo '{report}' > $REPORT")
    monkeypatch.setattr(check, "find_suites", lambda preset, folder, reports: {"lit": [bad]})
    assert check.main() == 1
    # Where only the end of an output is kept, it says what failed.
    assert capsys.readouterr().out.splitlines()[-2:] == ["[check]   failed: t: E   1 == 2", "0 passed, 1 failed"]
    monkeypatch.setattr(check, "find_suites", lambda preset, folder, reports: {"lit": []})
    assert check.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 0 failed"
