"""Tests on the device, the simplest first: some to a process, and alone what does not pass there; then what failed
again, and the sanitizers.

A test that hangs is ended at its limit and run again by a program whose waits give up (GENREC_WATCHDOG in
kernels/cuda/tensor/bulk.h): what it prints names the barrier and who waited.
"""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jobs import Job, Outcome, Part, Work

PROBE_SECONDS, TEST_SECONDS, MEMCHECK_SECONDS = 10, 30, 60
# What all tests of a kind may take, by the test suite; others, and what comes behind the tests.
SECONDS = {"Probes.": 40, "AttentionMask": 20, "AttentionPlain.": 60, "AttentionMma.": 40, "AttentionHopper.": 60}
OTHER_SECONDS, AGAIN_SECONDS, BITS_SECONDS, SANITIZER_SECONDS = 90, 70, 40, 40
AT_A_TIME = 8  # processes: those of one device take turns, and tests compute on the host what they expect
GROUP = 12  # tests of one process: most of a small test is the start of its process
MOST_AGAIN = 6  # failures that are run again
RUNS_OF_BITS = 1000
# The simplest first: where a level fails, its failures are read before those of the next.
ORDER = tuple(SECONDS)
OTHERS = 1  # behind the probes
# Of every program something, and in little time.
SANITIZED = (
    "*BatchesOfEverySize*:*ErasedIds*:CrossAttention.*:Rank.InLists"
    ":*Segments*:*Gather*:*Scatter*:*NoLists*:*Dropout*:*Sizes*:Probes.*"
)
TOOLS = ("racecheck", "synccheck", "initcheck")
WATCHED = "check-cuda-watched"

# Of a test that is over, and has not failed.
ENDED = re.compile(r"^\[ +(OK|SKIPPED) +\] (\S+)", re.MULTILINE)
# What the driver prints of an assertion of the device, per thread.
STUCK = re.compile(
    r"(?P<file>[\w./-]+):(?P<line>\d+): (?P<role>[^:]*): block: \[(?P<block>\d+),\d+,\d+\], "
    r"thread: \[(?P<thread>\d+),\d+,\d+\] Assertion `(?P<what>[^`']*)"
)


def rank(test: str) -> int:
    """Where a test comes: those of stores and row kernels behind the probes, attention by its levels."""
    name = test.partition("/")[2] if "/" in test.split(".")[0] else test
    found = [place for place, prefix in enumerate(ORDER) if name.startswith(prefix)]
    return 2 * found[0] if found else OTHERS


def grouped(tests: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Tests that share a process, with their program; in order."""
    by_program: dict[str, list[str]] = {}
    for program, test in tests:
        by_program.setdefault(program, []).append(test)
    return [(p, named[at : at + GROUP]) for p, named in by_program.items() for at in range(0, len(named), GROUP)]


def stuck(output: str, waits: dict[str, str]) -> list[str]:
    """Who waits for what, of a program whose waits gave up. `waits`: lines of source by file:line."""
    seen: Counter[tuple[str, str, str, int]] = Counter()
    first: dict[tuple[str, str, str, int], str] = {}
    for match in STUCK.finditer(output):
        place = f"{Path(match['file']).name}:{match['line']}"
        key = (place, match["role"].split("(")[0].split()[-1], match["what"], int(match["thread"]) // 32)
        seen[key] += 1
        first.setdefault(key, match["block"])
    return [
        f"warp {warp} of block {first[key]} in {role} waits at {place}: {waits.get(place, what)} ({count} threads)"
        for key, count in sorted(seen.items())
        for place, role, what, warp in [key]
    ]


class Tests:
    """Runs tests of the packed programs and remembers what failed. `programs`: tests by program."""

    def __init__(self, folder: Path, programs: dict[str, list[str]], waits: dict[str, str]) -> None:
        self.folder, self.waits = folder, waits
        every = [(program, test) for program, tests in programs.items() if program != WATCHED for test in tests]
        self.every = sorted(every, key=lambda pair: rank(pair[1]))
        self.watched = set(programs.get(WATCHED, []))
        self.failed: list[tuple[str, str, Outcome]] = []

    def jobs(self) -> list[Job]:
        """Those of part 1, in order."""
        levels: dict[int, list[tuple[str, str]]] = {}
        for program, test in self.every:
            levels.setdefault(rank(test), []).append((program, test))
        made = [self.level(place, tests) for place, tests in levels.items()]
        made.append(Job("failures again", AGAIN_SECONDS, self.run_again, shown="with a watchdog, and under memcheck"))
        shown = f"Hopper attention, {RUNS_OF_BITS:,} random runs"
        made.append(Job("bits", BITS_SECONDS, self.run_bits, shown=shown))
        for tool in TOOLS:
            needs = ("device", "compute-sanitizer")
            made.append(Job(tool, SANITIZER_SECONDS, self.sanitizer(tool), needs, f"a part of the tests: {SANITIZED}"))
        return made

    def level(self, place: int, tests: list[tuple[str, str]]) -> Job:
        """The tests of one place in the order."""
        suite = "" if place == OTHERS else ORDER[place // 2]
        each = PROBE_SECONDS if place == 0 else TEST_SECONDS

        def run(part: Part, job: Job) -> list[str]:
            job.details["passed"] = 0
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                found = pool.map(lambda group: self.run_group(part, job, *group, each), grouped(tests))
                return [failure for failures in found for failure in failures]

        name = suite.strip(".") or "stores and rows"
        return Job(name, SECONDS.get(suite, OTHER_SECONDS), run, shown=f"{len(tests)} tests, at most {each} s each")

    def run_group(self, part: Part, job: Job, program: str, tests: list[str], seconds: float) -> list[str]:
        """Failures of tests that share a process. What breaks there breaks those behind it, too: a test that neither
        passes nor is skipped there is run alone.
        """
        ended: dict[str, str] = {}
        if len(tests) > 1 and part.job_left >= 2:
            outcome = part.call([self.folder / program, f"--gtest_filter={':'.join(tests)}"], seconds)
            ended = {test: how for how, test in ENDED.findall(outcome.output) if test in tests}
        with part.lock:
            job.details["passed"] += sum(how == "OK" for how in ended.values())
        for test in [test for test, how in ended.items() if how == "SKIPPED"]:
            job.details.setdefault("skipped", []).append(test)
        part.write()
        left = [test for test in tests if test not in ended]
        failures = [self.run_one(part, job, program, test, seconds) for test in left]
        if left and len(tests) > 1 and not failures[0]:  # the others failed for its sake
            failures[0] = f"{left[0]}: passes alone, and not in one process with {', '.join(ended) or 'others'}"
        return [failure for failure in failures if failure]

    def run_one(self, part: Part, job: Job, program: str, test: str, seconds: float) -> str:
        """The failure of one test."""
        if part.job_left < 2:
            return f"{test}: not run, the time was over"
        outcome = part.call([self.folder / program, f"--gtest_filter={test}", "--gtest_brief=1"], seconds)
        ran = re.search(r"\[  PASSED  \] (\d+) test", outcome.output)
        if outcome.status == 0 and "[  SKIPPED ]" in outcome.output:
            job.details.setdefault("skipped", []).append(test)
            return ""
        if outcome.status == 0 and ran and ran[1] == "1":
            with part.lock:
                job.details["passed"] += 1
            part.write()
            return ""
        self.failed.append((program, test, outcome))
        wrong = [line for line in outcome.output.splitlines() if "Failure" in line or "rror" in line]
        return f"{test}: {outcome.failure or 'it did not run'}" + (f" ({wrong[0].strip()[:300]})" if wrong else "")

    def run_again(self, part: Part, job: Job) -> list[str]:
        """Names what hung; the accesses of what failed. Reports: what failed has been counted."""
        first = self.failed[:MOST_AGAIN]
        with ThreadPoolExecutor(MOST_AGAIN) as pool:
            for found in pool.map(lambda failed: self.look_again(part, *failed), first):
                job.details |= found
                part.write()
        if len(self.failed) > MOST_AGAIN:
            job.details["not run again"] = [test for _, test, _ in self.failed[MOST_AGAIN:]]
        return []

    def look_again(self, part: Part, program: str, test: str, outcome: Outcome) -> dict[str, Any]:
        """What is found of a test that failed."""
        reports: dict[str, Any] = {}
        if outcome.status is None and test in self.watched:
            command = [self.folder / WATCHED, f"--gtest_filter={test}", "--gtest_brief=1"]
            reports[f"{test}, watched"] = self.watch(part, command)
            for line in reports[f"{test}, watched"]:
                part.say(f"  {test}: {line}")
        elif outcome.status is None:
            reports[test] = "hung; no barrier that is watched"
        if part.lacks.get("compute-sanitizer"):
            return {**reports, f"{test}, memcheck": part.lacks["compute-sanitizer"]}
        checked = part.call(self.sanitize("memcheck", program, test), MEMCHECK_SECONDS)
        errors = [line for line in checked.output.splitlines() if line.startswith("=========")]
        return {**reports, f"{test}, memcheck": errors[:12] or checked.failure or "no errors"}

    def watch(self, part: Part, command: list[object]) -> list[str]:
        """Who waits for what in a test that hung."""
        outcome = part.call(command, TEST_SECONDS)
        return stuck(outcome.output, self.waits) or [
            "it hung again, at no barrier that is watched" if outcome.status is None else "it did not hang again"
        ]

    def sanitize(self, tool: str, program: str, tests: str) -> list[object]:
        """The command of a sanitizer."""
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        return [*command, self.folder / program, "--gtest_brief=1", f"--gtest_filter={tests}"]

    def sanitizer(self, tool: str) -> Work:
        """A sanitizer over all programs."""

        def run(part: Part, job: Job) -> list[str]:
            programs = sorted({program for program, _ in self.every})
            seconds = min(job.seconds, part.left) - 1
            # All lanes of a warp release a barrier in the program with a watchdog: racecheck does not follow __syncwarp
            # to the lane that arrives for the others.
            but = {WATCHED: ":-Probes.*"} if tool == "racecheck" and self.watched else {}
            programs += but

            def check(program: str) -> str:
                tests = SANITIZED + but.get(program, ":-AttentionHopper.*" if but else "")
                outcome = part.call(self.sanitize(tool, program, tests), seconds)
                found = re.findall(r"^========= .*(?:rror|azard|Barrier).*", outcome.output, re.MULTILINE)
                if outcome.status is None and not found:  # slow, which is no defect
                    job.details[program] = f"nothing found within {outcome.seconds:.0f} s, not at its end"
                    return ""
                job.details[program] = outcome.failure or "nothing found"
                return f"{program}: {outcome.failure} {' | '.join(found[:3])}" if outcome.failure else ""

            with ThreadPoolExecutor(len(programs) or 1) as pool:
                return [failure for failure in pool.map(check, programs) if failure]

        return run

    def run_bits(self, part: Part, job: Job) -> list[str]:
        """Attention sums in fixed point, or in one order: a bit that changes from run to run is a race."""
        found = [(program, test) for program, test in self.every if test.startswith("AttentionHopper.SameBits")]
        failures = []
        for program, test in found:
            command = [self.folder / program, f"--gtest_filter={test}"]
            outcome = part.call(command, job.seconds, GENREC_RUNS=str(RUNS_OF_BITS))
            job.details[test] = outcome.failure or f"{RUNS_OF_BITS} runs in {outcome.seconds:.1f} s"
            failures += [f"{test}: {outcome.failure}"] if outcome.failure else []
        return failures if found else ["there is no test AttentionHopper.SameBits"]
