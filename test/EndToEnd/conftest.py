"""The CPU's binary that an emulated device is held to is compiled without optimization, a sixth of the time.

Modules that are not listed compile models as users do: of those that run a binary often, running takes longer than
compiling, as it does for the emulator's units, which are the same everywhere.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import BUILD

QUICK = {"test_cuda_models", "test_cuda_rankers"}


@pytest.fixture(scope="session")
def quick_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for GENREC_BIN: the tools, of which genrec-compile has a toolchain with -O0 unless another is given."""
    folder = tmp_path_factory.mktemp("quick_tools")
    for program in (BUILD / "bin").glob("genrec-*"):
        (folder / program.name).symlink_to(program)
    toolchain = json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())
    toolchain["compile"] = ["-O0" if flag.startswith("-O") else flag for flag in toolchain["compile"]]
    (folder / "toolchain.json").write_text(json.dumps(toolchain))
    compiler, given = folder / "genrec-compile", shlex.quote(f"--toolchain={folder}/toolchain.json")
    compiler.unlink()
    compiler.write_text(
        f'#!/bin/sh\ncase " $* " in *" --toolchain="*) given= ;; *) given={given} ;; esac\n'
        f'exec {shlex.quote(str(BUILD / "bin" / "genrec-compile"))} ${{given:+"$given"}} "$@"\n'
    )
    compiler.chmod(0o755)
    return folder


@pytest.fixture(scope="module", autouse=True)
def compile_quickly(request: pytest.FixtureRequest, quick_tools: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__.rpartition(".")[2] in QUICK:
            patch.setenv("GENREC_BIN", str(quick_tools))
        yield
