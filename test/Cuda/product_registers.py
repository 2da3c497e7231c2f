"""Registers of products that are under way, in machine code: nobody may touch them before the product is awaited.

    python3 product_registers.py FILE…      # what nvcc compiled for sm_90a

A wgmma reads its left operand from registers, and writes its sums into registers, until wgmma.wait_group. For ptxas a
left operand is dead behind the instruction that starts the product: it gives its registers to whatever comes next,
unless something names the operand behind the wait (keepInRegisters in tensor/wgmma.h). No source shows that, and no
emulator: so this reads what ptxas wrote. Every path through a kernel is followed with the products under way on it; the
first access of a kernel is reported. Needs cuobjdump and nvdisasm (wheels nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FUNCTION = re.compile(r"^\s*Function : (\S+)")
LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);")
REGISTER = re.compile(r"(?<![A-Z])R(\d+)")
TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")
WIDE = re.compile(r"\.(?:64|128)\b|\.WIDE\b|^D(?:ADD|MUL|FMA)\b|^CS2R(?!\.32)|\.F64\b|^LDSM.*\.[24]$")
# What has no result in a register.
STORES = re.compile(r"^(?:ST[A-Z]*|RED[A-Z]*|SYNCS\S*ARRIVE\S*|UTMA\S*|UBLK\S*|BAR|MEMBAR|ERRBAR|CCTL\S*)\b")
MOST_STATES = 64  # of an instruction: paths differ by few groups


@dataclass(frozen=True)
class Product:
    """Registers of a product: those that it reads, and those that it adds to."""

    place: str
    left: frozenset[int]
    sums: frozenset[int]


Groups = tuple[tuple[Product, ...], ...]  # under way, the oldest first; the last one is not closed


@dataclass
class Instruction:
    """A line of machine code."""

    at: int
    text: str
    opcode: str = ""
    operands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        words = re.sub(r"^@!?U?P\w+\s+", "", self.text).split(None, 1)
        self.opcode = words[0]
        self.operands = [word.strip() for word in words[1].split(",")] if len(words) > 1 else []

    @property
    def is_conditional(self) -> bool:
        return self.text.startswith("@")

    def registers(self) -> frozenset[int]:
        """All that it names; of wide ones the first."""
        return frozenset(int(number) for number in REGISTER.findall(self.text.partition(" ")[2]))

    def written(self) -> frozenset[int]:
        """The registers of its result."""
        if STORES.match(self.opcode) or self.opcode.startswith(("BRA", "EXIT", "WARPGROUP", "R2UR", "HGMMA")):
            return frozenset()
        first = next((word for word in self.operands[:2] if re.fullmatch(r"R\d+(?:\.\w+)*", word)), "")
        if not first:
            return frozenset()
        count = 4 if ".128" in self.opcode or self.opcode.endswith("M88.4") else 2 if WIDE.search(self.opcode) else 1
        begin = int(REGISTER.match(first)[1])  # type: ignore[index]
        return frozenset(range(begin, begin + count))


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """The kernels of a listing of cuobjdump -sass."""
    name, code = "", []
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            if code:
                yield name, code
            name, code = found[1], []
        elif found := LINE.match(line):
            code.append(Instruction(int(found[1], 16), found[2].strip()))
    if code:
        yield name, code


def product_of(instruction: Instruction) -> Product:
    """The registers of HGMMA.64x<columns>x16 <sums>, <left or descriptor>, <right>, <sums or RZ>."""
    columns = int(re.search(r"\.64x(\d+)x", instruction.opcode)[1])  # type: ignore[index]
    left = REGISTER.match(instruction.operands[1])
    begin = int(REGISTER.match(instruction.operands[0])[1])  # type: ignore[index]
    return Product(
        f"{instruction.at:04x}",
        frozenset(range(int(left[1]), int(left[1]) + 4)) if left else frozenset(),
        frozenset(range(begin, begin + columns // 2)),
    )


def step(instruction: Instruction, groups: Groups) -> tuple[Groups, str]:
    """What is under way behind an instruction, and what is wrong with it."""
    if instruction.opcode.startswith("HGMMA"):
        product = product_of(instruction)
        for other in (other for group in groups for other in group):
            if product.sums & other.left:
                return groups, f"adds to the left operand of the product at {other.place}"
        groups = (*groups[:-1], (*groups[-1], product))
        return ((*groups, ()) if "gsb0" in instruction.operands[-1] else groups), ""
    if instruction.opcode.startswith("WARPGROUP.DEPBAR"):
        left = int(instruction.operands[-1], 16)
        return groups[max(0, len(groups) - 1 - left) :], ""
    written, named = instruction.written(), instruction.registers()
    for product in (product for group in groups for product in group):
        if hit := written & product.left:
            return groups, f"writes R{min(hit)}, of the left operand of the product at {product.place}"
        if hit := (written | named) & product.sums:
            return groups, f"takes R{min(hit)}, of the sums of the product at {product.place}"
    return groups, ""


def check(code: list[Instruction]) -> str:
    """The first access to registers of a product that is under way; "": there is none."""
    places = {instruction.at: number for number, instruction in enumerate(code)}
    seen: dict[int, set[Groups]] = {}
    waiting: list[tuple[int, Groups]] = [(0, ((),))]
    while waiting:
        number, groups = waiting.pop()
        while number < len(code):
            states = seen.setdefault(number, set())
            if groups in states or len(states) >= MOST_STATES:
                break
            states.add(groups)
            instruction = code[number]
            groups, wrong = step(instruction, groups)
            if wrong:
                return f"{instruction.at:04x}: {instruction.text}: {wrong}"
            if instruction.opcode.startswith("EXIT") and not instruction.is_conditional:
                break
            if instruction.opcode.startswith("BRA") and (target := TARGET.search(instruction.text)):
                waiting.append((places[int(target[1], 16)], groups))
                if not instruction.is_conditional and instruction.operands[0].startswith("0x"):
                    break
            number += 1
    return ""


def tool(name: str) -> str:
    """Of the wheels beside this Python; nvdisasm, which cuobjdump calls, is beside it."""
    return str(Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin", name))


def check_file(path: Path) -> tuple[int, list[str]]:
    """How many kernels of a file have products, and what is wrong with them."""
    cuobjdump = tool("cuobjdump")
    environment = {**os.environ, "PATH": f"{Path(cuobjdump).parent}:{os.environ['PATH']}"}
    listed = subprocess.run([cuobjdump, "-sass", path], capture_output=True, text=True, check=False, env=environment)
    if listed.returncode != 0:
        raise RuntimeError(f"cuobjdump {path}: {listed.stderr.strip()}")
    count, failures = 0, []
    for name, code in functions(listed.stdout):
        if not any(instruction.opcode.startswith("HGMMA") for instruction in code):
            continue
        count += 1
        if wrong := check(code):
            failures.append(f"{name}: {wrong}")
    return count, failures


def main(words: list[str]) -> int:
    """Entry point."""
    if not words:
        sys.exit(__doc__)
    total, failures = 0, []
    for path in map(Path, words):
        count, found = check_file(path)
        total += count
        failures += [f"{path.name}: {failure}" for failure in found]
    print(*failures, f"{total} kernels with products, {len(failures)} wrong", sep="\n")
    return 1 if failures or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
