"""Builds the tests or benchmarks for a CUDA device and packs them into one folder; runs them where there is a device.

Usage: python scripts/cuda_pack.py check|bench [--preset release] [--hkv <checkout of HierarchicalKV>]

The folder, build/cuda-check or build/cuda-bench, needs nothing but a driver where it runs: copy it and call ./run in
it. Results are JSON files in its folder results/, with device, date and commit. What can be checked without a device is
checked here: size, libraries, that test programs list tests and that benchmarks say what they lack.
"""

import argparse
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

RUN_CHECK = """#!/bin/sh
# Tests on this machine's device; results/ holds a report of each program. Ends with the number of programs that failed.
cd "$(dirname "$0")" && mkdir -p results
failed=0
for program in {programs}; do
  echo "== $program"
  timeout 240 "./$program" --gtest_brief=1 "--gtest_output=json:results/$program.json" || failed=$((failed + 1))
done
if command -v compute-sanitizer >/dev/null; then
  for program in {programs}; do
    echo "== compute-sanitizer $program"
    timeout 180 compute-sanitizer --error-exitcode 1 "./$program" --gtest_brief=1 \\
      '--gtest_filter=*BatchesOfEverySize*:*ErasedIds*:*Segments*:*Gather*' || failed=$((failed + 1))
  done
else
  echo "compute-sanitizer is not here: left out"
fi
echo "$failed failed"
exit "$failed"
"""

RUN_BENCH = """#!/bin/sh
# Benchmarks on this machine's device; results/<program>-<date>.json holds the figures. PYTHON is the Python that has
# torch (python3), GENERATIVE_RECOMMENDERS a checkout of the public HSTU code with the Triton attention.
cd "$(dirname "$0")" && mkdir -p results
failed=0
bench() {{ # <seconds> <name> <command>...
  seconds=$1 name=$2 && shift 2
  echo "== $name"
  if timeout "$seconds" "$@" results/figures.json; then
    day=$(date -u +%Y-%m-%d)
    {{ printf '{{"date": "%s", "commit": "{commit}", "report": ' "$day"; cat results/figures.json; printf '}}\n'; }} \
      >"results/$name-$day.json"
  else
    echo "$name failed"
    failed=$((failed + 1))
  fi
  rm -f results/figures.json
}}
{calls}
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
        return RUN_CHECK.format(programs=" ".join(targets))
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


def check_without_device(program: Path, kind: str) -> str:
    """What a program shows where there may be no device."""
    if kind == "check":
        listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=False)
        count = len(re.findall(r"^  \S", listing.stdout, re.MULTILINE))
        if listing.returncode != 0 or count == 0:
            fail(f"{program.name} lists no tests:\n{listing.stdout}{listing.stderr}")
        return f"{count} tests"
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
    parser.add_argument("--hkv", help="checkout of HierarchicalKV, to compare with")
    arguments = parser.parse_args()
    folder = binary_folder(arguments.preset)
    if arguments.hkv:
        option = f"-DGENREC_HKV={Path(arguments.hkv).resolve()}"
        subprocess.run(["cmake", option, folder], check=True, stdout=subprocess.DEVNULL)
    targets = find_targets(folder, arguments.kind)
    if not targets:
        fail("there is no nvcc: install the CUDA toolkit 13.0 and configure again (cmake build)")
    print(f"[cuda]   building {', '.join(targets)}", flush=True)
    if subprocess.run(["ninja", "-C", folder, *targets], check=False, stdout=subprocess.DEVNULL).returncode != 0:
        fail(f"the build failed: ninja -C {folder} {' '.join(targets)}")

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
        shutil.copy2(ROOT / "benchmarks" / "cuda" / "peers.py", pack)
    run = pack / "run"
    run.write_text(run_script(arguments.kind, targets, commit))
    run.chmod(0o755)
    size = sum(path.stat().st_size for path in pack.iterdir())
    if size > MOST_BYTES:
        fail(f"{pack} takes {size / 2**20:.1f} MiB: at most {MOST_BYTES >> 20} are allowed")
    print(f"[cuda]   {pack}: {size / 2**20:.1f} MiB")
    if arguments.kind == "bench" and not arguments.hkv:
        print("[cuda]   SKIPPED: the comparison with HierarchicalKV: make bench-cuda HKV=<checkout>")
    if not has_device():
        print(f"[cuda]   no device here: copy {pack} to a machine with one and call ./run in it")
        return 0
    return subprocess.run([run], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
