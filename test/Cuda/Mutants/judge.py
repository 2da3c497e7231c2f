"""Draws mutants of CUDA code, and says which of them the tests of CUDA code do not see.

    judge.py --seed 1 --count 500 [--only order.cu] [--models]

Each one is run with the quickest tests in which it makes a difference, as the program with no mutant chosen has noted.
It is seen where one of them fails, as it is in test_planted_defects.py; `survivors.json` has those that are not. What
makes no difference in any test is in `unreached.json`: it is equivalent, or no test has an input for it.

`--models`: what unit tests do not see, or reach, whole models may (models.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[3]
sys.path += [str(Path(__file__).parent), "/usr/lib/python3/dist-packages"]  # clang.cindex, as Debian has it
import mutants  # noqa: E402
from models import Models  # noqa: E402

RUNTIME = SOURCE / "runtime"
FILES = re.compile(
    r"(include/genrec_rt/(kernels/)?cuda|[a-z_]+/cuda|comm_nccl)/.*\.(h|cu)$|session/(device_\w+|ranks|session_steps|step_slot)\.(h|cpp)$"
)
# Of those that make a difference: more would see few mutants more, and take long for those that are equivalent.
MOST_TESTS, MOST_SECONDS = 60, 30.0


@dataclass
class Test:
    name: str
    seconds: float
    reached: set[int]


def compiled(build: Path) -> list[tuple[str, list[str]]]:
    """Files that `genrec-simt-mutants` is made of, as they are in the source tree, with a compiler's arguments."""
    done = subprocess.run(["ninja", "-C", build, "-t", "compdb"], capture_output=True, text=True, check=True)
    commands = []
    for each in json.loads(done.stdout):
        if "genrec_rt_cuda_planted.dir" not in each["output"] and "genrec-simt-tests.dir" not in each["output"]:
            continue
        words, arguments = each["command"].split(), []
        for word in words[words.index(next(w for w in words if "clang++" in w)) + 1 :]:
            if re.match(r"-(I|D|isystem|std=|x)", word) and "planted-defects" not in word:
                arguments.append(word)
            elif word.startswith("/") and arguments and arguments[-1] == "-isystem":
                arguments.append(word)
        files = [each["file"]]
        if "/Unity/" in files[0]:  # several that are compiled as one
            files = re.findall(r'^#include "(.*)"$', Path(files[0]).read_text(), re.MULTILINE)
        for file in files:
            original = file.replace(f"{build}/planted-defects/test", f"{SOURCE}/test")
            original = original.replace(f"{build}/planted-defects", str(RUNTIME))
            if original.endswith((".cu", ".cpp")):
                commands.append((original, [*arguments, f"-I{RUNTIME}", f"-I{RUNTIME}/include", "-xc++"]))
    return sorted(commands, key=lambda each: not each[0].startswith(str(RUNTIME)))


def found(build: Path, models: bool) -> list[mutants.Mutant]:
    from clang.cindex import Config, Index

    Config.set_library_path("/usr/lib/llvm-22/lib")
    files = {path.relative_to(RUNTIME).as_posix() for path in RUNTIME.rglob("*")}
    files = {file for file in files if FILES.match(file)}
    every: list[mutants.Mutant] = []
    for file, arguments in compiled(build):
        unit = Index.create().parse(file, arguments)
        every += mutants.found_in(unit, RUNTIME, files)
        if not files:
            break
    for file in sorted(files) if models else ():  # that emitted kernels alone include
        arguments = next(arguments for source, arguments in compiled(build) if source.endswith("/rank_test.cpp"))
        unit = Index.create().parse("alone.cpp", arguments, [("alone.cpp", f'#include "{RUNTIME / file}"')])
        every += mutants.found_in(unit, RUNTIME, files)
    print(f"{len(every)} mutants; not read: {' '.join(sorted(files)) or 'nothing'}")
    return every


def line_of(m: mutants.Mutant) -> int:
    return (RUNTIME / m.file).read_bytes()[: m.begin].count(b"\n") + 1


def note(numbers: list[int], drawn: dict[int, mutants.Mutant], file: Path) -> None:
    each = [{"number": number, "line": line_of(drawn[number]), **asdict(drawn[number])} for number in numbers]
    file.write_text(json.dumps(each, indent=1))


def write(drawn: dict[int, mutants.Mutant], folder: Path) -> None:
    """The runtime's headers and CUDA sources with these mutants, and none that the runtime no longer has."""
    for path in folder.rglob("*"):
        if path.suffix in (".h", ".cu", ".cpp") and not (RUNTIME / path.relative_to(folder)).exists():
            path.unlink()
    for path in RUNTIME.rglob("*"):
        name = path.relative_to(RUNTIME).as_posix()
        if path.suffix not in (".h", ".cu") and not FILES.match(name):
            continue
        text = mutants.planted(path.read_bytes(), [(n, m) for n, m in drawn.items() if m.file == name])
        text = f'#include "mutants.h"\n#line 1 "{path}"\n{text}' if "simt::" in text else f'#line 1 "{path}"\n{text}'
        to = folder / name
        if not to.exists() or to.read_text() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)


def build_without_errors(drawn: dict[int, mutants.Mutant], build: Path, folder: Path, models: Models | None) -> None:
    """Leaves out mutants of lines that do not compile, until programs do."""
    while True:
        write(drawn, folder)
        done = subprocess.run(
            ["ninja", "-C", build, "-k", "0", "genrec-simt-mutants"], capture_output=True, text=True, check=False
        )
        errors = done.stdout if done.returncode != 0 else models.errors() if models else ""
        if not errors:
            return
        named = re.findall(rf"{RUNTIME}/(\S+?):(\d+):\d+: (?:fatal )?(?:error|note)", errors)
        wrong = {(file, int(line)) for file, line in named}
        gone = [n for n, m in drawn.items() if (m.file, line_of(m)) in wrong]
        print(f"{len(gone)} mutants do not compile", flush=True)
        if not gone:
            sys.exit(errors[-4000:])
        for number in gone:
            m = drawn.pop(number)
            print(f"    {m.file}:{line_of(m)} {m.kind}")


def run(program: Path, number: int, seed: int, tests: str, limit: float, **more: str) -> bool:
    variables = {"DEFECT": str(number), "SEED": str(seed), "PATIENCE": "8", "PLACES": "0"} | more
    try:
        done = subprocess.run(
            [program, f"--gtest_filter={tests}", "--gtest_brief=1", "--gtest_break_on_failure=0",
             "--gtest_throw_on_failure", "--gtest_fail_fast"],
            env=os.environ | {f"GENREC_SIMT_{name}": value for name, value in variables.items()},
            capture_output=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def reached(program: Path, folder: Path, jobs: int) -> list[Test]:
    """Each test, and what makes a difference in it."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suites = re.findall(r"^(\S+\.)(?:  #.*)?$", listed, re.MULTILINE)
    out = folder / "reached.txt"
    out.unlink(missing_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        for suite, fine in zip(
            suites, pool.map(lambda s: run(program, 0, 1, s + "*", 900, REACHED=str(out)), suites), strict=True
        ):
            if not fine:
                print(f"{suite} fails without a mutant")
    tests = []
    for line in out.read_text().splitlines():
        if line.startswith(" "):  # what a program has reached behind its last test (chosen.cpp)
            continue
        name, milliseconds, *numbers = line.split()
        tests.append(Test(name, int(milliseconds) / 1000, set(map(int, numbers))))
    return sorted(tests, key=lambda each: each.seconds)


def turns(tests: list[Test]) -> list[Test]:
    """The quickest of every suite, then the next of each: what one suite does not see another may."""
    place: dict[str, int] = {}
    order = []
    for test in tests:
        suite = test.name.split(".")[0]
        place[suite] = place.get(suite, -1) + 1
        order.append((place[suite], test.seconds, test))
    return [test for *_, test in sorted(order, key=lambda each: each[:2])]


def is_seen(program: Path, number: int, tests: list[Test]) -> bool:
    mine = turns([test for test in tests if number in test.reached])
    until, total = 0, 0.0
    while until < len(mine) and (until < 6 or (total + mine[until].seconds < MOST_SECONDS and until < MOST_TESTS)):
        total += mine[until].seconds
        until += 1
    for chosen, seed in [(mine[:6], 1), (mine[6:until], 1), (mine[:10], 2), (mine[:10], 3)]:
        limit = 30 + 10 * sum(test.seconds for test in chosen)
        if chosen and not run(program, number, seed, ":".join(test.name for test in chosen), limit):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="a regular expression that files' names hold")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder, program = options.build / "mutants", options.build / "bin/genrec-simt-mutants"
    every = [m for m in found(options.build, options.models) if re.search(options.only, m.file)]
    drawn = dict(enumerate(mutants.sampled(every, options.count, options.seed), 1))
    with tempfile.TemporaryDirectory() as for_models:
        models = Models(options.build, Path(for_models)) if options.models else None
        build_without_errors(drawn, options.build, folder, models)
        tests = reached(program, folder, options.jobs)
        somewhere = set().union(*(test.reached for test in tests))
        somewhere |= models.reached(options.jobs) if models else set()

        def seen_by(number: int) -> str:
            if is_seen(program, number, tests):
                return "tests"
            return "models" if models and models.see(number) else ""

        judged, begun, by = sorted(set(drawn) & somewhere), time.monotonic(), Counter[str]()
        survivors: list[int] = []
        note(sorted(set(drawn) - somewhere), drawn, folder / "unreached.json")
        note(survivors, drawn, folder / "survivors.json")
        with ThreadPoolExecutor(options.jobs) as pool:
            for number, seen in zip(judged, pool.map(seen_by, judged), strict=True):
                by[seen] += 1
                if not seen:
                    m = drawn[number]
                    survivors.append(number)
                    print(f"not seen: {m.file}:{line_of(m)} {m.kind}", flush=True)
                    note(survivors, drawn, folder / "survivors.json")
    print(
        f"{len(drawn)} drawn, {len(judged)} make a difference, {by['tests']} of these seen by tests, {by['models']} by "
        f"models, {by['']} by none ({time.monotonic() - begun:.0f} s)"
    )


if __name__ == "__main__":
    main()
