"""Reports registers, spills and shared memory of every compiled kernel and checks them against an allowance.

Usage: python scripts/cuda_resources.py <folder or file of ptxas reports, or model compiled for CUDA> <allowance file>

A report (*.ptxas) is what nvcc -Xptxas -v says; the build leaves one beside each object. Of a compiled model its own
kernels are looked up, in its machine code (by cuobjdump, of the wheel beside this Python), which does not say what is
spilled, only what stack is taken. Each line of the allowance
file is "<pattern> <registers> <stack bytes> <spilled bytes> # reason"; the first pattern (a regular expression) found
in a kernel's name counts. Stack holds indexed local arrays and what spills. The last line printed is "N kernels, N over
their allowance"; the exit status is 1 where one is over, or where there is none.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ENTRY = re.compile(
    r"Compiling entry function '(?P<name>[^']+)' for '(?P<target>\w+)'\n"
    r".*?(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads\n"
    r".*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
SHARED = re.compile(r"(\d+) bytes smem")
# A name of C: those of the runtime's kernels are of C++.
IN_MODEL = re.compile(
    r"Function (?P<name>(?!_Z)\w+):\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+)"
)


@dataclass(frozen=True)
class Kernel:
    """What ptxas gave a kernel, per thread; `shared` is static, per block."""

    name: str
    target: str
    registers: int
    stack: int
    spilled: int
    shared: int


@dataclass(frozen=True)
class Allowance:
    """The most that kernels whose name holds `pattern` may take."""

    pattern: re.Pattern[str]
    registers: int
    stack: int
    spilled: int


def read_allowances(path: Path) -> list[Allowance]:
    """Every line of the file that is not a comment."""
    allowances = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 4 or not all(word.isdigit() for word in words[1:]):
            sys.exit(f"{path}:{number}: expected '<pattern> <registers> <stack bytes> <spilled bytes>', found '{line}'")
        allowances.append(Allowance(re.compile(words[0]), *map(int, words[1:])))
    return allowances


def shortened(name: str) -> str:
    """A kernel's readable name without its parameters, our namespace and the types of enumerators."""
    depth = 0
    for at, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0 and not name.startswith("(anonymous", at):
            name = name[:at]
            break
    return re.sub(r"\(genrec[^)]*\)", "", name).removeprefix("void ").replace("genrec::rt::cuda::", "")


def kernels_of(report: Path) -> list[Kernel]:
    """The kernels of one report, with readable names."""
    entries = list(ENTRY.finditer(report.read_text()))
    names = "\n".join(entry["name"] for entry in entries)
    readable = subprocess.run(["c++filt"], input=names, capture_output=True, text=True, check=True).stdout.splitlines()
    kernels = []
    for name, entry in zip(readable, entries, strict=True):
        shared = SHARED.search(entry["rest"])
        kernels.append(
            Kernel(
                name=shortened(name),
                target=entry["target"],
                registers=int(entry["registers"]),
                stack=int(entry["stack"]),
                spilled=max(int(entry["stores"]), int(entry["loads"])),
                shared=int(shared[1]) if shared else 0,
            )
        )
    return sorted(kernels, key=lambda kernel: (kernel.name, kernel.target))


def kernels_of_model(binary: Path) -> list[Kernel]:
    """The kernels that a model's binary has besides those of the runtime."""
    cuobjdump = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin", "cuobjdump")
    listed = subprocess.run([cuobjdump, "-res-usage", binary], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        sys.exit(f"{binary}: cuobjdump: {listed.stderr.strip()}")
    return [
        Kernel(entry["name"], "", int(entry["registers"]), int(entry["stack"]), 0, int(entry["shared"]))
        for entry in IN_MODEL.finditer(listed.stdout)
    ]


def kernels_at(path: Path) -> list[Kernel]:
    """The kernels of a folder of reports, a report or a model."""
    if path.is_dir():
        return [kernel for report in sorted(path.rglob("*.ptxas")) for kernel in kernels_of(report)]
    return kernels_of(path) if path.suffix == ".ptxas" else kernels_of_model(path)


def excess(kernel: Kernel, allowances: list[Allowance]) -> str:
    """What is wrong with the kernel; empty where nothing is."""
    allowed = next((a for a in allowances if a.pattern.search(kernel.name)), None)
    if allowed is None:
        return f"error: no allowance is stated for {kernel.name}"
    taken = (kernel.registers, kernel.stack, kernel.spilled)
    most = (allowed.registers, allowed.stack, allowed.spilled)
    if all(a <= b for a, b in zip(taken, most, strict=True)):
        return ""
    return (
        f"error: {kernel.name} takes {taken[0]} registers, {taken[1]} bytes of stack and {taken[2]} of spills; "
        f"allowed for '{allowed.pattern.pattern}' are {most[0]}, {most[1]} and {most[2]}"
    )


def main() -> int:
    """Entry point; returns 0 when there are kernels and all are within their allowance."""
    parser = argparse.ArgumentParser(description="checks registers and spills of compiled kernels")
    parser.add_argument("reports", type=Path, help="folder of reports (*.ptxas), one of them, or a compiled model")
    parser.add_argument("allowances", type=Path)
    arguments = parser.parse_args()
    allowances = read_allowances(arguments.allowances)
    kernels = kernels_at(arguments.reports)
    over = 0
    print("registers  stack  spilled  shared  kernel")
    for kernel in kernels:
        taken = f"{kernel.registers:9} {kernel.stack:6} {kernel.spilled:8} {kernel.shared:7}"
        print(f"{taken}  {kernel.name}" + f" ({kernel.target})" * bool(kernel.target))
        if complaint := excess(kernel, allowances):
            over += 1
            print(complaint)
    print(f"{len(kernels)} kernels, {over} over their allowance")
    return 1 if over or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
