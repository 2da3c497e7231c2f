"""The stand-ins for the toolkit's headers have the toolkit's names and values."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
STAND_INS = SOURCE / "test/Cuda/Simt/include"
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
TOOLKIT = Path(NVCC).resolve().parents[1] / "include"
HEADERS = ["cuda_runtime_api.h", "cublasLt.h", "nccl.h"]

pytestmark = pytest.mark.skipif(
    not all((TOOLKIT / header).exists() for header in HEADERS), reason="no CUDA toolkit with cuBLASLt and NCCL"
)


def constants() -> list[str]:
    text = "".join((STAND_INS / header).read_text() for header in HEADERS)
    enumerators = re.findall(r"\b((?:CUBLAS|CUDA_R|cuda|nccl)\w+) = -?\d", text)
    return sorted({*enumerators, *re.findall(r"X\((cuda\w+), \d", text)})


def values(folder: Path, work: Path) -> list[str]:
    program = work / "values.cpp"
    lines = "\n".join(f'std::printf("{name} %lld\\n", static_cast<long long>({name}));' for name in constants())
    includes = "\n".join(f"#include <{header}>" for header in HEADERS)
    program.write_text(f"#include <cstdio>\n{includes}\nint main() {{\n{lines}\n}}\n")
    subprocess.run(["g++", "-std=c++20", "-w", f"-I{folder}", program, "-o", work / "values"], check=True)
    return subprocess.run([work / "values"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_constants_are_those_of_the_toolkit(tmp_path: Path) -> None:
    assert len(constants()) > 100
    assert values(STAND_INS, tmp_path) == values(TOOLKIT, tmp_path)
