"""What joins two row kernels of one domain and stage is listed, with a reason, where `--explain` finds it."""

import re
import subprocess
from pathlib import Path

import pytest
from model_writing import EXAMPLES, find_tool, import_model, write_example

KERNEL = re.compile(r"^ *(?:(%\w+)(?::\d+)? = )?genrec\.row_kernel (%\S+?)\((.*?)\) attributes \{(.*?)\} :")
NOTE = re.compile(r"^(\S+) keeps .+ for (\S+): \S")


def form_kernels(model: str, folder: Path) -> str:
    """The IR of a model once row kernels are formed at -O2."""
    source = folder / "model.mlir"
    source.write_text(model)
    command = [find_tool("genrec-opt"), str(source), "--genrec-graph-pipeline=opt=2"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def joins(program: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Pairs of kernels (maker, reader) of one domain and stage that a value in memory joins, and pairs that are noted."""
    notes = re.findall(r'"([^"]* keeps [^"]*)"', program.splitlines()[0])
    noted = {(match[1], match[2]) for note in notes if (match := NOTE.match(note))}
    made, read = {}, set()
    for line in program.splitlines():
        if not (kernel := KERNEL.match(line)):
            continue
        result, domain, operands, attributes = kernel.groups()
        name = re.search(r'name = "([^"]*)"', attributes)[1]
        place = domain, re.search(r"genrec\.stage = #genrec<stage (\w+)>", attributes)[1]
        roles = re.findall(r"operand_role (\w+)", attributes)
        values = [value.split("#")[0] for value in operands.split(", ") if value]
        assert len(values) == len(roles), line
        for value, role in zip(values, roles, strict=True):
            maker = made.get(value)
            if role == "aligned" and maker and maker[1] == place:
                read.add((maker[0], name))
        if result:
            made[result] = name, place
    return read, noted


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_value_between_kernels_has_a_reason(example, tmp_path):
    ir = form_kernels(import_model(write_example(example, tmp_path)), tmp_path)
    programs = re.split(r"(?m)^ +(?=genrec\.program )", ir)[1:]
    assert len(programs) >= 2
    assert all(KERNEL.search(line) for line in ir.splitlines() if " genrec.row_kernel " in line)
    for program in programs:
        read, noted = joins(program)
        assert read <= noted, f"joined without a reason: {read - noted}"
