"""Row kernels for CUDA: from the same IR as the CPU's, compiled by nvcc, run on the host, with the same results."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from compiled import BUILD, ROOT, call, tool

MODEL = Path(__file__).parent / "Inputs" / "row_kernels.mlir"
HOST_LIBRARY = BUILD / "lib" / "libgenrec_simt.a"


def toolchain() -> dict[str, object]:
    return json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The printed kernels by target."""
    folder = tmp_path_factory.mktemp("row_kernels")
    paths = {"cpu": folder / "cpu.cpp", "cuda": folder / "kernels.cu"}
    call(tool("genrec-compile"), MODEL, "--emit=cpp", "-o", paths["cpu"])
    call(tool("genrec-compile"), MODEL, "--emit=cuda-kernels", "-o", paths["cuda"])
    return paths


def computed(source: str) -> dict[str, Counter[str]]:
    """What each row kernel computes, by name: its calls, arithmetic and loops, without what is a target's own."""
    kernels: dict[str, Counter[str]] = {}
    for name, body in re.findall(r"\bvoid (row_\w+)\([^\n]*\{\n(.*?)\n\}\n", source, re.DOTALL):
        # Who has which elements and rows, where arrays and arguments are, what waits, and what separates the phases.
        body = re.sub(r"for \(int64_t i = [^\n]*; i < (\d+); [^\n]*", r"kernels::elements<\1>", body)
        body = re.sub(r"for \(int64_t (\w*row) = (?:begin|kernels::firstRow\(\)); [^\n]*", r"kernels::rows", body)
        body = body.replace("kernels::firstRow()", "chunk").replace("if (kernels::lane() == 0)", "")
        own = re.compile(r"kernels::argument|kernels::prefetchRow|#pragma|alignas|kernels::sharedRow")
        body = "\n".join(line for line in body.splitlines() if not own.search(line))
        kernels[name] = Counter(re.findall(r"kernels::\w+(?:<[^>]*>)?|(?<= )[-+*/%?<>](?= )|\w+(?= = )", body))
        # Whether a value has a name depends on where it is used.
        for token in [
            token for token in kernels[name] if re.fullmatch(r"t(_\d+)?|size|\w+_(value|rows?|end|begin)", token)
        ]:
            del kernels[name][token]
    return kernels


def test_both_targets_lower_from_one_row_kernel(sources: dict[str, Path]) -> None:
    cpu, cuda = (computed(sources[target].read_text()) for target in ("cpu", "cuda"))
    assert list(cuda) == ["row_roles", "row_norm", "row_vectors", "row_sampled"]
    for name, tokens in cuda.items():
        assert tokens.total() > 2
        assert tokens == cpu[name], name


def test_nvcc_compiles_the_printed_kernels(sources: dict[str, Path], tmp_path: Path) -> None:
    nvcc = toolchain()["nvcc"]
    if not nvcc:
        pytest.skip("no nvcc")
    command = [nvcc, "-std=c++20", "-O3", "-Xptxas=-v", "-Werror", "all-warnings", "-arch=sm_90a", "-ccbin", "g++"]
    ccache = [shutil.which("ccache")] if shutil.which("ccache") else []
    command += [f"-I{ROOT}/runtime/include", "-c", sources["cuda"], "-o", tmp_path / "kernels.o"]
    result = subprocess.run([*ccache, *command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    report, allowance = tmp_path / "kernels.ptxas", tmp_path / "allowance"
    report.write_text(result.stderr)
    allowance.write_text(
        "row_norm 96 104 0 # sine and cosine: large arguments index the digits of 2/pi on the stack\n"
        ". 64 0 0 # a warp per row, and all that a multiprocessor holds at half the registers\n"
    )
    assert "4 kernels, 0 over" in call(sys.executable, ROOT / "scripts" / "cuda_resources.py", report, allowance)


@pytest.fixture(scope="module")
def program(sources: dict[str, Path]) -> Path:
    """Both targets' kernels in one program for the host."""
    if not HOST_LIBRARY.exists():
        pytest.skip("this build runs no kernels on the host")
    folder, compiler = sources["cpu"].parent, str(toolchain()["compiler"])
    flags = (BUILD / "share" / "genrec" / "simt-flags").read_text().split()
    includes = [f"-I{ROOT}/test/Cuda/Simt/include", f"-I{ROOT}/runtime/include"]
    device, host, program = folder / "device.o", folder / "host.o", folder / "run"
    call(compiler, "-xc++", "-std=c++20", *flags, "-DGENREC_WARP_ROWS", "-include", "cuda_runtime.h", *includes, "-c",
         sources["cuda"], "-o", device)  # fmt: skip
    # The stages and their calls of the runtime are not wanted: nothing refers to them.
    call(compiler, "-std=c++20", "-O2", "-march=x86-64-v3", "-ffp-contract=off", "-ffunction-sections",
         "-fdata-sections", "-Wno-unused-function", f'-DGENREC_CPU_UNIT="{sources["cpu"]}"', *includes, "-c",
         Path(__file__).parent / "RowKernels" / "run.cpp", "-o", host)  # fmt: skip
    call(compiler, "-fuse-ld=lld-22", "-Wl,--gc-sections", host, device, HOST_LIBRARY, "-o", program)
    return program


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_results_are_those_of_the_cpu(program: Path, seed: int) -> None:
    result = subprocess.run([program, str(seed)], capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(lines) == 9 and all(line.endswith(" same") for line in lines)
