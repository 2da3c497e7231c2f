"""No two sources of a library clash, however `GENREC_UNITY` puts them together (cmake/GenRecUnits.cmake).

Builds of continuous integration compile some neighbours as one file, those of developers none, and a source that comes
or goes makes others neighbours. So all sources of a library are compiled here as one, though no further than names.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build"


def place(source: str) -> int:
    """Of a file that CMake has made of neighbours: its number. Others are listed in their order."""
    number = re.search(r"/unity_(\d+)_\w+\.cxx$", source)
    return int(number[1]) if number else 0


def commands() -> dict[str, dict[tuple[str, ...], list[str]]]:
    """Of every library that is compiled in units: the sources, in their order, by the command that compiles one."""
    names = (BUILD / "units.txt").read_text().split()
    found: dict[str, dict[tuple[str, ...], list[str]]] = {name: defaultdict(list) for name in names}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        command = shlex.split(entry["command"])
        output = command.index("-o")
        name = command[output + 1].partition("CMakeFiles/")[2].partition(".dir/")[0]
        if name in found and "cmake_pch" not in entry["file"]:
            found[name][tuple(command[:output])].append(entry["file"])
    for of in found.values():
        for sources in of.values():
            sources.sort(key=place)
    return found


COMMANDS = commands()


def clashes(command: tuple[str, ...], sources: list[str]) -> str:
    """What the compiler says of `sources` as one file; "" where nothing is wrong."""
    unit = "".join(f'#include "{source}"\n' for source in sources)
    check = [*command, "-fsyntax-only", "-fno-color-diagnostics", "-x", "c++", "-"]
    done = subprocess.run(check, input=unit, capture_output=True, text=True, cwd=BUILD, check=False)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("library", sorted(COMMANDS))
def test_sources_of_a_library_are_one_unit(library: str) -> None:
    assert COMMANDS[library], f"{library} has no sources in compile_commands.json"
    for command, sources in COMMANDS[library].items():
        assert not clashes(command, sources)


def test_a_name_that_two_sources_have_is_a_clash(tmp_path: Path) -> None:
    command = next(iter(COMMANDS["GenRecReport"]))
    for name in ("one", "other"):
        (tmp_path / f"{name}.cpp").write_text("namespace {\nint width(int value) { return value; }\n} // namespace\n")
    sources = [str(tmp_path / f"{name}.cpp") for name in ("one", "other")]
    assert "redefinition of 'width'" in clashes(command, sources)
    assert not clashes(command, sources[:1])
