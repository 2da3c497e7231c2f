"""Registers of what scripts/device_pack.py packs: of a build that ninja knows, with reports as nvcc leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_programs import SCRIPTS  # noqa: F401 -- says where the next one is

import device_pack  # isort: skip

# What nvcc -Xptxas -v says of a kernel.
REPORT = """ptxas info    : Compiling entry function '{name}' for 'sm_90a'
ptxas info    : Function properties for {name}
    {spilled} bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads
ptxas info    : Used {registers} registers, 400 bytes cmem[0]
"""
PEER = "_ZN3cub23DeviceRadixSortOnesweepEv"  # cub::DeviceRadixSortOnesweep()


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Two programs, of an object each, and one of the runtime's."""
    (tmp_path / "build.ninja").write_text(
        "rule make\n  command = true\n"
        "build cuda-program-objects/one.cu.o: make\n"
        "build cuda-program-objects/two.cu.o: make\n"
        "build cuda-objects/runtime.cu.o: make\n"
        "build bench-cuda-one: make cuda-program-objects/one.cu.o cuda-objects/runtime.cu.o\n"
        "build bench-cuda-two: make cuda-program-objects/two.cu.o cuda-objects/runtime.cu.o\n"
    )
    (tmp_path / "CMakeCache.txt").write_text("GENREC_CUDA_DRAFTS:BOOL=OFF\n")
    (tmp_path / "cuda-program-objects").mkdir()
    for program in ("one", "two"):
        report(tmp_path, program, "anyKernel", 64)
    return tmp_path


def report(build: Path, program: str, name: str, registers: int, spilled: int = 0) -> None:
    """Adds a kernel to a program's report."""
    file = build / "cuda-program-objects" / f"{program}.cu.o.ptxas"
    with file.open("a") as opened:
        opened.write(REPORT.format(name=name, registers=registers, spilled=spilled))


def test_kernels_of_what_is_packed_are_counted(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device_pack.check_registers(build, ["bench-cuda-one", "bench-cuda-two"])
    assert "of 2 kernels are as" in capsys.readouterr().out


def test_one_kernel_too_large_ends_the_script(build: Path) -> None:
    report(build, "one", "anyOther", 65)
    with pytest.raises(SystemExit, match="anyOther takes 65 registers, .* allowed for '.' are 64"):
        device_pack.check_registers(build, ["bench-cuda-one"])


def test_what_another_program_left_is_not_asked_for(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(build, "two", "anyOther", 65)
    device_pack.check_registers(build, ["bench-cuda-one"])
    assert "of 1 kernels are as" in capsys.readouterr().out


def test_peers_may_take_what_they_take(build: Path) -> None:
    report(build, "one", PEER, 119, 4)
    device_pack.check_registers(build, ["bench-cuda-one"])


def test_programs_without_reports_are_not_taken_for_checked(build: Path) -> None:
    (build / "build.ninja").write_text("rule make\n  command = true\nbuild bench-cuda-one: make\n")
    with pytest.raises(SystemExit, match="no reports of bench-cuda-one"):
        device_pack.check_registers(build, ["bench-cuda-one"])


def test_drafts_are_not_asked(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (build / "CMakeCache.txt").write_text("GENREC_CUDA_DRAFTS:BOOL=ON\n")
    report(build, "one", "anyOther", 65)
    device_pack.check_registers(build, ["bench-cuda-one"])
    assert "packed from the preset release" in capsys.readouterr().out
