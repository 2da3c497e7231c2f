"""Builds the tests or benchmarks for a CUDA device and packs them into one folder; runs them where there is a device.

Usage: python scripts/cuda_pack.py check|bench [--preset release] [--build <folder>]
    [--hkv <checkout of HierarchicalKV>] [--pack-only]

The folder, build/cuda-check or build/cuda-bench, needs nothing but a driver where it runs: copy it and call ./run in
it. Results are JSON files in its folder results/, with device, date and commit; those of benchmarks, collected into one
(benchmarks/cuda/collect.py), go to benchmarks/results where they ran here. What can be checked without a device is
checked here: size, libraries, that test programs list tests and that benchmarks say what they lack.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from build import ROOT, binary_folder

MOST_BYTES = 60 << 20
# Of any Linux; the driver's own library is loaded by name.
ALLOWED_LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread)\.so|ld-linux")
# The most important first, with the seconds that each benchmark may take: 8 minutes in all.
BENCH_SECONDS = {
    "ceilings": 40,
    "attention": 120,
    "step": 40,
    "store": 80,
    "hkv": 60,
    "unique": 40,
    "columns": 30,
    "peers.py": 70,
}

# A program, and it once more under compute-sanitizer: 8 minutes in all.
CHECK_SECONDS = {"test": 130, "sanitize": 100}

RUN_CHECK = """#!/bin/sh
# Tests on this machine's device; results/ holds a report of each program. Ends with the number of programs that failed.
# COMPUTE_SANITIZER is the sanitizer (compute-sanitizer), which checks a part of the tests where it is.
cd "$(dirname "$0")" && mkdir -p results
failed=0
sanitizer=${{COMPUTE_SANITIZER:-compute-sanitizer}}
for program in {programs}; do
  echo "== $program"
  timeout {test} "./$program" --gtest_brief=1 "--gtest_output=json:results/$program.json" || failed=$((failed + 1))
done
if command -v "$sanitizer" >/dev/null; then
  for program in {programs}; do
    echo "== compute-sanitizer $program"
    timeout {sanitize} "$sanitizer" --error-exitcode 1 "./$program" --gtest_brief=1 \\
      '--gtest_filter={filter}' || failed=$((failed + 1))
  done
else
  echo "SKIPPED: compute-sanitizer, which is not here"
fi
echo "$failed failed"
exit "$failed"
"""
# Of every program something, and in little time.
SANITIZED = "*BatchesOfEverySize*:*ErasedIds*:*Segments*:*Gather*:*Scatter*:*NoLists*:*Dropout*:*Sizes*"

RUN_BENCH = """#!/bin/sh
# Benchmarks on this machine's device; results/<program>-<date>.json holds the figures. PYTHON is the Python that has
# torch (python3), GENERATIVE_RECOMMENDERS a checkout of the public HSTU code with the Triton attention.
cd "$(dirname "$0")" && mkdir -p results
failed=0
bench() {{ # <seconds> <name> <command>...
  seconds=$1 name=$2 && shift 2
  echo "== $name"
  timeout "$seconds" "$@" results/figures.json || {{
    echo "$name failed, or took more than $seconds seconds; what it had measured is kept"
    failed=$((failed + 1))
  }}
  if [ -s results/figures.json ]; then
    day=$(date -u +%Y-%m-%d)
    {{ printf '{{"date": "%s", "commit": "{commit}", "report": ' "$day"; cat results/figures.json; printf '}}\n'; }} \
      >"results/$name-$day.json"
    rm -f results/figures.json
  fi
}}
{calls}
if command -v "${{PYTHON:-python3}}" >/dev/null; then
  "${{PYTHON:-python3}}" collect.py results --out "${{RESULTS:-results}}" || failed=$((failed + 1))
else
  echo "SKIPPED: the comparison of ours with the peers, for want of Python: python3 collect.py results"
fi
echo "$failed failed"
exit "$failed"
"""


def fail(message: str) -> None:
    """Ends the script."""
    sys.exit(f"[cuda] error: {message}")


def find_targets(folder: Path, kind: str) -> list[str]:
    """Programs of this kind that the build knows, the most important first."""
    listing = subprocess.run(
        ["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True
    )
    names = set(re.findall(rf"^({kind}-cuda-\w+): phony", listing.stdout, re.MULTILINE))
    rank = {f"{kind}-cuda-{name}": number for number, name in enumerate(BENCH_SECONDS)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def run_script(kind: str, targets: list[str], commit: str) -> str:
    """What ./run of a packed folder is."""
    if kind == "check":
        return RUN_CHECK.format(programs=" ".join(targets), filter=SANITIZED, **CHECK_SECONDS)
    calls = [f"bench {BENCH_SECONDS[name.removeprefix('bench-cuda-')]} {name} ./{name}" for name in targets]
    calls.append(
        f'bench {BENCH_SECONDS["peers.py"]} peers "${{PYTHON:-python3}}" peers.py '
        '${GENERATIVE_RECOMMENDERS:+--generative-recommenders "$GENERATIVE_RECOMMENDERS"}'
    )
    return RUN_BENCH.format(calls="\n".join(calls), commit=commit)


def check_libraries(program: Path) -> None:
    """Fails where a program needs more than any Linux has."""
    text = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    others = [name for name in re.findall(r"NEEDED.*\[(.+)\]", text) if not ALLOWED_LIBRARIES.match(name)]
    if others:
        fail(f"{program.name} needs {', '.join(others)}, which a bare machine lacks: link them statically")


def count_tests(program: Path, names: str) -> int:
    """How many tests of that name a test program has; fails where it has none."""
    command = [program, "--gtest_list_tests", f"--gtest_filter={names}"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    count = len(re.findall(r"^  \S", listing.stdout, re.MULTILINE))
    if listing.returncode != 0 or count == 0:
        fail(f"{program.name} lists no tests '{names}':\n{listing.stdout}{listing.stderr}")
    return count


def check_without_device(program: Path, kind: str) -> str:
    """What a program shows where there may be no device."""
    if kind == "check":
        count = count_tests(program, "*")
        return f"{count} tests, {count_tests(program, SANITIZED)} under compute-sanitizer"
    dry = subprocess.run([program, "--dry-run"], capture_output=True, text=True, check=False, timeout=60)
    groups = re.findall(r"^would measure: (\w+)$", dry.stdout, re.MULTILINE)
    if dry.returncode != 0 or not groups:
        fail(f"{program.name} --dry-run names nothing to measure:\n{dry.stdout}{dry.stderr}")
    if has_device():
        return f"measures {', '.join(groups)}; a device is here"
    result = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    if result.returncode != 1 or "error: no CUDA device" not in result.stderr:
        fail(f"{program.name} should end with an error where there is no device, but ended with {result.returncode}")
    return f"measures {', '.join(groups)}; says that there is no device"


def has_device() -> bool:
    """Whether this machine has a CUDA device that works."""
    tool = shutil.which("nvidia-smi")
    return bool(tool) and subprocess.run([tool, "-L"], capture_output=True, check=False).returncode == 0


def main() -> int:
    """Entry point; returns what running came to, 0 where there is no device."""
    parser = argparse.ArgumentParser(description="packs tests or benchmarks for a CUDA device")
    parser.add_argument("kind", choices=["check", "bench"])
    parser.add_argument("--preset", default="release", help="the preset that is built (default: release)")
    parser.add_argument("--build", type=Path, help="the build folder (default: the preset's)")
    parser.add_argument("--pack-only", action="store_true", help="build and pack, and run nothing")
    parser.add_argument("--hkv", help="checkout of HierarchicalKV, to compare with")
    arguments = parser.parse_args()
    folder = arguments.build or binary_folder(arguments.preset)
    if arguments.hkv:
        option = f"-DGENREC_HKV={Path(arguments.hkv).resolve()}"
        subprocess.run(["cmake", option, folder], check=True, stdout=subprocess.DEVNULL)
    targets = find_targets(folder, arguments.kind)
    if not targets:
        fail("there is no nvcc: install the CUDA toolkit 13.0 and configure again (cmake build)")
    print(f"[cuda]   building {', '.join(targets)}", flush=True)
    made = subprocess.run(["ninja", "-C", folder, *targets], check=False, capture_output=True, text=True)
    if made.returncode != 0:
        fail(f"the build failed: ninja -C {folder} {' '.join(targets)}\n{made.stdout}{made.stderr}")

    pack = folder / f"cuda-{arguments.kind}"
    shutil.rmtree(pack, ignore_errors=True)
    pack.mkdir()
    for target in targets:
        program = Path(shutil.copy2(folder / "bin" / "cuda" / target, pack))
        subprocess.run(["strip", program], check=True)
        check_libraries(program)
        size = program.stat().st_size / 2**20
        print(f"[cuda]   {target}: {size:.1f} MiB, {check_without_device(program, arguments.kind)}")
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    if arguments.kind == "bench":
        for script in ("peers.py", "collect.py"):
            shutil.copy2(ROOT / "benchmarks" / "cuda" / script, pack)
    run = pack / "run"
    run.write_text(run_script(arguments.kind, targets, commit))
    run.chmod(0o755)
    size = sum(path.stat().st_size for path in pack.iterdir())
    if size > MOST_BYTES:
        fail(f"{pack} takes {size / 2**20:.1f} MiB: at most {MOST_BYTES >> 20} are allowed")
    print(f"[cuda]   {pack}: {size / 2**20:.1f} MiB")
    if arguments.kind == "bench" and not arguments.hkv:
        print("[cuda]   SKIPPED: the comparison with HierarchicalKV: make bench-cuda HKV=<checkout>")
    if arguments.pack_only:
        return 0
    if not has_device():
        print(f"[cuda]   no device here: copy {pack} to a machine with one and call ./run in it")
        return 0
    environment = dict(os.environ, RESULTS=str(ROOT / "benchmarks" / "results"))
    return subprocess.run([run], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
