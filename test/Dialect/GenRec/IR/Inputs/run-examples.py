"""Runs the example of every op of the dialect, as written in its TableGen description, through genrec-opt.

Every op must have a fenced ```mlir block that uses it. The block is put into example-context.mlir, which
supplies domains, tables, parameters and values by name (%user_vector, %history …; see there), by the
class of the op's record:

- GenRec_DeclarationOp: in the model ("// example: declaration");
- GenRec_BodyOp: in the row kernel of example-body.mlir, which has values of its own, in the program;
- any other: in the program ("// example: program").

A block that holds a genrec.model is a file by itself.

Each must parse, verify, and be the same after printing and parsing again, as text and as bytecode.

usage: run-examples.py <include folder>
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^([ ]*)```mlir\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INPUTS = Path(__file__).parent
MARKER = re.compile(r"^ *// example: (\w+)\n", re.MULTILINE)


def load_ops(include: Path) -> dict[str, dict]:
    """The TableGen record of each op, by mnemonic."""
    tblgen = shutil.which("llvm-tblgen")
    if tblgen is None:
        sys.exit("llvm-tblgen is not on the path")
    llvm_include = Path(tblgen).resolve().parent.parent / "include"
    command = [tblgen, "--dump-json", "-I", str(include), "-I", str(llvm_include)]
    definitions = include / "genrec" / "Dialect" / "GenRec" / "IR" / "GenRecOps.td"
    dump = subprocess.run([*command, str(definitions)], check=True, capture_output=True, text=True).stdout
    records = json.loads(dump)
    return {records[name]["opName"]: records[name] for name in records["!instanceof"]["GenRec_Op"]}


def wrap(block: str, classes: list[str]) -> str:
    """The whole file that an example stands for, by the TableGen classes of its op."""
    if re.search(r"\bgenrec\.model\b", block):
        return block
    place = "declaration" if "GenRec_DeclarationOp" in classes else "program"
    if "GenRec_BodyOp" in classes:
        block = MARKER.sub(lambda _: block, (INPUTS / "example-body.mlir").read_text(encoding="utf-8"))
    context = (INPUTS / "example-context.mlir").read_text(encoding="utf-8")
    return MARKER.sub(lambda marker: block if marker.group(1) == place else "", context)


def check(source: str) -> str:
    """What genrec-opt has to say about `source`; empty when all is well."""
    command = ["genrec-opt", "--split-input-file", "--verify-roundtrip", "-", "-o", "/dev/null"]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stderr or f"exit status {result.returncode}"


def main() -> int:
    failures: list[str] = []
    sources: list[tuple[str, str]] = []
    ops = load_ops(Path(sys.argv[1]))
    for name, record in sorted(ops.items()):
        blocks = [block for _, block in BLOCK.findall(record["description"])]
        if not any(re.search(rf"\bgenrec\.{name}\b", block) for block in blocks):
            failures.append(f"genrec.{name}: the description has no ```mlir example that uses the op")
        sources += [(name, wrap(block, record["!superclasses"])) for block in blocks]
    # All at once is fast; one by one says which.
    if check("\n// -----\n".join(source for _, source in sources)):
        for name, source in sources:
            if message := check(source):
                failures.append(f"genrec.{name}: the example fails:\n{message}")
    for failure in failures:
        print(failure)
    print(f"{len(sources)} examples of {len(ops)} ops, {len(failures)} failures")
    return 1 if failures or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
