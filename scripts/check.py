"""Runs every test and sums them up. The last line printed is "N passed, N failed".

Usage: build/venv/bin/python scripts/check.py [--preset release] [--only lit,gtest,python,endtoend]

A suite that crashes, cannot be read or runs nothing counts as one failure, so that no success is ever empty.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from build import ROOT, binary_folder, duration

LIT = "/usr/lib/llvm-22/bin/lit"
SUITE_LIMIT_SECONDS = 30 * 60
SHOWN_LINES_PER_FAILURE = 60
SHOWN_SLOW_TESTS = 20
SUMMARY_CHARACTERS = 300
WORKERS = os.cpu_count() or 1
SHARDS_PER_WORKER = {"genrec-runtime-tests": 1, "genrec-simt-tests": 4}
"""Of long test programs; where there are several, the last ones are short: no processor waits long for another."""
WAITING_WORKERS = 1
"""More than there are processors, for tests of which some wait: for signals, time limits and ranks."""
LONG_LIT_TESTS = ("Tools/genrec-fuzz-coverage.test", "Tools/genrec-fuzz.test", "Cuda/pack.test")
"""What lit has to start first, minutes each. It knows by itself once it has run."""


@dataclass
class Result:
    """What one suite came to; `failures` holds (test, output), `times` (seconds, test)."""

    passed: int = 0
    skipped: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    times: list[tuple[float, str]] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        """Takes in what another suite, or another process of this one, came to."""
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures
        self.times += other.times


@dataclass
class Suite:
    """A command that runs tests and leaves a report, and what reads that report."""

    name: str
    command: list[str]
    report: Path
    read: Callable[[Path], Result]
    environment: dict[str, str] = field(default_factory=dict)
    shards: int = 1
    """Processes that share the tests of a GoogleTest program; as many run at once as there are processors."""

    def shard(self, index: int) -> "Suite":
        """One of the processes, with a report of its own."""
        report = self.report.with_suffix(f".{index}{self.report.suffix}")
        command = [word.replace(str(self.report), str(report)) for word in self.command]
        environment = {"GTEST_TOTAL_SHARDS": str(self.shards), "GTEST_SHARD_INDEX": str(index)}
        return Suite(self.name, command, report, self.read, self.environment | environment)


def read_junit(report: Path) -> Result:
    """Reads the XML that lit and pytest write."""
    result = Result()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}".lstrip(".")
        result.times.append((float(case.get("time") or 0), name))
        broken = [child for child in case if child.tag in ("failure", "error")]
        if broken:
            text = "\n".join(filter(None, (broken[0].get("message"), broken[0].text)))
            result.failures.append((name, text))
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1
    return result


def read_gtest(report: Path) -> Result:
    """Reads the JSON that GoogleTest writes."""
    result = Result()
    for group in json.loads(report.read_text())["testsuites"]:
        for case in group["testsuite"]:
            result.times.append((float(case.get("time", "0s").rstrip("s")), f"{group['name']}.{case['name']}"))
            if case.get("failures"):
                text = "\n".join(failure["failure"] for failure in case["failures"])
                result.failures.append((f"{group['name']}.{case['name']}", text))
            elif case.get("status") == "NOTRUN" or case.get("result") in ("SKIPPED", "SUPPRESSED"):
                result.skipped += 1
            else:
                result.passed += 1
    return result


AVX512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
PROGRAMS_FOR = {"genrec-runtime-tests-avx512": AVX512, "genrec-runtime-tests-avx512bf16": AVX512 | {"avx512_bf16"}}
"""Test programs that not every CPU runs, with the flags of /proc/cpuinfo that it must have. Built here."""


def cpu_flags() -> set[str]:
    """What this machine's CPU has, as /proc/cpuinfo names it."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return set(flags.split())


def find_suites(preset: str, folder: Path, reports: Path) -> dict[str, list[Suite]]:
    """Every suite of `preset`, built in `folder`, by the name that --only takes."""
    python = sys.executable
    environment = {"GENREC_BUILD_DIR": str(folder), "GENREC_CACHE": str(reports / "cache")}
    lit = Suite(
        "lit",
        [python, LIT, "-q", "-j", str(WORKERS), "--xunit-xml-output", str(reports / "lit.xml"), str(folder / "test")],
        reports / "lit.xml",
        read_junit,
    )
    suites: dict[str, list[Suite]] = {"lit": [lit], "gtest": [], "python": [], "endtoend": []}
    programs = [("genrec-runtime-tests", "Runtime"), ("genrec-unit-tests", "Unit"), ("genrec-simt-tests", "Cuda")]
    for name, needed in PROGRAMS_FOR.items():
        if needed <= cpu_flags():
            # Where this fails, running the program says so.
            subprocess.run(["ninja", "-C", folder, name], stdout=subprocess.DEVNULL, check=False)
            programs.insert(1, (name, "Runtime"))
        else:
            lacking = " ".join(sorted(needed - cpu_flags()))
            print(f"[check]   {name}: not run, this machine lacks {lacking}", flush=True)
    if preset in ("asan", "tsan"):
        programs.pop()  # kernels on the host are checked by callbacks that a sanitizer needs itself
    for name, tests in programs:
        if not any((ROOT / "test" / tests).rglob("*.cpp")):
            continue
        report = reports / f"{name}.json"
        command = [str(folder / "bin" / name), "--gtest_brief=1", f"--gtest_output=json:{report}"]
        shards = max(1, SHARDS_PER_WORKER.get(name, 0) * WORKERS)
        suites["gtest"].append(Suite(name, command, report, read_gtest, environment, shards))
    for key, tests, workers in (
        ("python", "test/Python", WORKERS),
        ("endtoend", "test/EndToEnd", WORKERS + WAITING_WORKERS),
    ):
        report = reports / f"{key}.xml"
        # A worker takes neighbours, which share what a module makes once, until it takes from another's.
        spread = ["-n", str(workers), "--dist", "worksteal"]
        command = [python, "-m", "pytest", "-q", *spread, f"--junitxml={report}", str(ROOT / tests)]
        suites[key].append(Suite(tests, command, report, read_junit, environment))
    return suites


def run(suite: Suite, log: Path) -> Result:
    """Runs one suite, its output into `log`; whatever keeps it from giving a report becomes a failure."""
    suite.report.unlink(missing_ok=True)
    # libMLIR is not instrumented: what its containers tell the address sanitizer of their sizes is not to be believed.
    environment = {"ASAN_OPTIONS": "detect_container_overflow=0"} | dict(os.environ, **suite.environment)
    try:
        with log.open("w") as output:
            status = subprocess.run(
                suite.command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=SUITE_LIMIT_SECONDS,
            ).returncode
        reason = f"exit status {status}"
    except subprocess.TimeoutExpired:
        status, reason = -1, f"did not end within {SUITE_LIMIT_SECONDS // 60} minutes"
    except OSError as error:
        return Result(failures=[(suite.name, f"could not be started: {error}")])
    tail = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-SHOWN_LINES_PER_FAILURE:])
    try:
        result = suite.read(suite.report)
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        return Result(failures=[(suite.name, f"left no report that can be read ({reason}; {error})\n{tail}")])
    if status != 0 and not result.failures:
        result.failures.append((suite.name, f"failed outside of any test ({reason})\n{tail}"))
    if result.passed == 0 and not result.failures:
        result.failures.append((suite.name, f"ran no test\n{tail}"))
    return result


def run_shards(suite: Suite, log: Path) -> Result:
    """Runs a suite in as many processes as it asks for; a shard that fails as a whole is a failure of its own."""
    if suite.shards == 1:
        return run(suite, log)
    shards = range(suite.shards)
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(run, map(suite.shard, shards), (log.with_suffix(f".{i}.log") for i in shards)))
    whole = Result()
    for result in results:
        whole.add(result)
    return whole


def start_long_tests_first(times: Path) -> None:
    """Tells lit what it does not know yet: it starts what took longest the last time."""
    if not times.exists():
        times.parent.mkdir(parents=True, exist_ok=True)
        times.write_text("".join(f"{600:e} {test}\n" for test in LONG_LIT_TESTS))


def show(suite: Suite, result: Result, seconds: float) -> None:
    """Prints one line for the suite, then what its failing tests said."""
    skipped = f", {result.skipped} skipped" if result.skipped else ""
    print(
        f"[check]   {suite.name}: {result.passed} passed, {len(result.failures)} failed{skipped} ({duration(seconds)})",
        flush=True,
    )
    for name, text in result.failures:
        lines = text.strip().splitlines()
        hidden = len(lines) - SHOWN_LINES_PER_FAILURE
        print(f"\n--- failed: {name}")
        if hidden > 0:
            print(f"    … {hidden} lines more in the report {suite.report.relative_to(ROOT)}")
        print("\n".join(lines[-SHOWN_LINES_PER_FAILURE:]), flush=True)


def summary(text: str) -> str:
    """One line of what a failing test said: pytest's first line of an error (E), else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["said nothing"]
    return next((line for line in lines if line.startswith("E  ")), lines[-1])[:SUMMARY_CHARACTERS]


def main() -> int:
    """Entry point; returns 0 when something ran and nothing failed."""
    parser = argparse.ArgumentParser(description="runs every test and sums them up")
    parser.add_argument("--preset", default="release", help="the preset whose build is tested (default: release)")
    parser.add_argument("--only", default="", help="lit, gtest, python, endtoend, or several, separated by commas")
    arguments = parser.parse_args()
    folder = binary_folder(arguments.preset)
    reports = folder / "check"
    reports.mkdir(parents=True, exist_ok=True)
    groups = find_suites(arguments.preset, folder, reports)
    chosen = arguments.only.split(",") if arguments.only else list(groups)
    for key in chosen:
        if key not in groups:
            parser.error(f"there is no suite '{key}'; there are {', '.join(groups)}")
    start_long_tests_first(folder / "test" / ".lit_test_times.txt")
    whole = Result()
    for suite in [suite for key in chosen for suite in groups[key]]:
        begin = time.monotonic()
        result = run_shards(suite, reports / f"{suite.name.replace('/', '-')}.log")
        show(suite, result, time.monotonic() - begin)
        whole.add(result)
    for seconds, test in sorted(whole.times, reverse=True)[:SHOWN_SLOW_TESTS]:
        print(f"[check]   slow: {test} ({duration(seconds)})")
    # Again, as what keeps an output may keep its end only.
    for name, text in whole.failures:
        print(f"[check]   failed: {name}: {summary(text)}")
    print(f"{whole.passed} passed, {len(whole.failures)} failed")
    return 0 if whole.passed and not whole.failures else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\n[check]   interrupted", file=sys.stderr)
        sys.exit(130)
