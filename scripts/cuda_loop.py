"""Counts the instructions of a kernel's loop over tiles, from its machine code.

Usage: cuobjdump -sass <object> | python scripts/cuda_loop.py <pattern in the kernel's name>

The loop is the shortest way from a product of a warpgroup (HGMMA) back to it: it leaves out what only some tiles take
(masks on the diagonal, steps between time buckets, tries of a wait that has to wait). Printed is, for every kernel of
that name, in which order products, waits for them and special functions come, and how many instructions of each kind
a warp executes. The exit status is 1 where no kernel has a loop.
"""

import re
import sys
from collections import Counter, deque
from itertools import groupby

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)(.*?);", re.MULTILINE)
TARGET = re.compile(r"(U?P\w+,\s*)?\(?(0x[0-9a-f]+)\)?\s*$")

KINDS = {
    "products (HGMMA)": "HGMMA",
    "special functions (MUFU, F2I)": "MUFU|F2I|I2F(?!P)|FRND",
    "float (FADD, FMUL, FFMA, FMNMX, FSETP)": "FADD|FMUL|FFMA|FMNMX|FSETP|FSEL",
    "roundings to bfloat16 (F2FP)": "F2FP",
    "shared memory (LDS, STS)": "LDS|STS",
    "device memory (LDG, RED, ATOM)": "LDG|STG|RED|ATOM|LDC",
    "bulk reductions (UBLKRED)": "UBLKRED",
    "shuffles, votes (SHFL, VOTE, REDUX)": "SHFL|VOTE|REDUX",
    "spilled registers (LDL, STL)": "LDL|STL",
    "barriers of threads (BAR)": r"BAR\.",
    "mbarriers (SYNCS)": "SYNCS",
    "waits and fences (WARPGROUP, DEPBAR, MEMBAR)": "WARPGROUP|DEPBAR|MEMBAR|FENCE|WARPSYNC",
    "moves (MOV)": "MOV|IMAD.MOV|R2UR",
}


def ways(instructions: list[tuple[int, bool, str, str]]) -> list[list[int]]:
    """For every instruction the ones that may come next, by index."""
    index = {address: i for i, (address, *_) in enumerate(instructions)}
    following = []
    for i, (_, predicated, name, operands) in enumerate(instructions):
        after = [i + 1] if i + 1 < len(instructions) else []
        if name.startswith("BRA") and (target := TARGET.search(operands)):
            conditional = predicated or target[1] is not None or name != "BRA"
            after = (after if conditional else []) + [index[int(target[2], 16)]]
        elif name in ("EXIT", "RET", "RET.REL.NODEC") and not predicated:
            after = []
        following.append(after)
    return following


def cycle(following: list[list[int]], start: int) -> list[int]:
    """The shortest way from an instruction back to it; empty where there is none."""
    before: dict[int, int] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for after in following[at]:
            if after == start:
                way = [at]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if after not in before:
                before[after] = at
                queue.append(after)
    return []


def loop_of(text: str) -> list[str]:
    """Names of the instructions of a kernel's loop over tiles."""
    found = [(int(m[1], 16), m[2] is not None, m[3], m[4].strip()) for m in INSTRUCTION.finditer(text)]
    following = ways(found)
    loops = [cycle(following, i) for i, (_, _, name, _) in enumerate(found) if name.startswith("HGMMA")]
    products = [[found[i][2] for i in way] for way in loops if way]
    # Around it may be one over blocks' tiles, in which the inner one is left out.
    return max(products, key=lambda names: (sum(n.startswith("HGMMA") for n in names), -len(names)), default=[])


def order_of(names: list[str]) -> str:
    """Products, waits for them and special functions of a loop in their order, from the first of its products on."""
    steps = {"HGMMA": "HGMMA", "WARPGROUP.DEPBAR": "wait", "MUFU": "MUFU", "F2I": "F2I", "BAR.SYNC": "meet"}
    found = [step for n in names for start, step in steps.items() if n.startswith(start)]
    starts = [i for i, step in enumerate(found) if step == "HGMMA" and found[i - 1] != "HGMMA"]
    first = next((i for i in starts if found[i - 1] == "meet"), starts[0])
    found = found[first:] + found[:first]
    return ", ".join(f"{len(list(group))} {step}" for step, group in groupby(found))


def main() -> int:
    """Entry point."""
    functions = re.split(r"^\s*Function : ", sys.stdin.read(), flags=re.MULTILINE)[1:]
    loops = 0
    for function in functions:
        name = function.split("\n", 1)[0].strip()
        if not re.search(sys.argv[1], name) or not (names := loop_of(function)):
            continue
        loops += 1
        counts = Counter(
            next((kind for kind, pattern in KINDS.items() if re.match(pattern, n)), "integers, branches, other")
            for n in names
        )
        shapes = Counter(n for n in names if n.startswith("HGMMA"))
        print(f"{name}\n{len(names):6} instructions; {', '.join(f'{c} {n}' for n, c in shapes.items())}")
        print(f"order: {order_of(names)}")
        for kind in [*KINDS, "integers, branches, other"]:
            if counts[kind]:
                print(f"{counts[kind]:6} {kind}")
    return 0 if loops else 1


if __name__ == "__main__":
    sys.exit(main())
