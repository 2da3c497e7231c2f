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

INPUTS = Path(__file__).parent / "Inputs"
PROGRAMS = Path(__file__).parent / "RowKernels"
# What the runtime has for devices and these programs call.
RUNTIME_SOURCES = [
    ROOT / "runtime" / "kernels" / "cuda" / "segment_sums.cu",
    ROOT / "runtime" / "core" / "cuda" / "memory.cu",
]
HOST_LIBRARY = BUILD / "lib" / "libgenrec_simt.a"


def toolchain() -> dict[str, object]:
    return json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())


def printed(model: str, folder: Path) -> dict[str, Path]:
    """The kernels of a model by target."""
    paths = {"cpu": folder / "cpu.cpp", "cuda": folder / "kernels.cu"}
    call(tool("genrec-compile"), INPUTS / model, "--emit=cpp", "-o", paths["cpu"])
    call(tool("genrec-compile"), INPUTS / model, "--emit=cuda-kernels", "-o", paths["cuda"])
    return paths


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return printed("row_kernels.mlir", tmp_path_factory.mktemp("row_kernels"))


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return printed("optimizers.mlir", tmp_path_factory.mktemp("optimizers"))


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


def test_the_step_of_an_optimizer_is_one_body_on_both_targets(steps: dict[str, Path]) -> None:
    cpu, cuda = (computed(steps[target].read_text()) for target in ("cpu", "cuda"))
    updates = [name for name in cuda if "_update_" in name]
    assert len(updates) == len(re.findall("genrec.table @", (INPUTS / "optimizers.mlir").read_text()))
    for name in updates:
        adds = any(token.startswith("kernels::segmentSum<") for token in cuda[name])
        assert adds or not name.endswith(("momentum", "adam")), name
        assert cuda[name] == cpu[name], name


def test_no_file_for_devices_knows_optimizers() -> None:
    names = re.compile(r"\b(sgd|momentum|adagrad|adamw?|rowwise|rmsprop)", re.IGNORECASE)
    folders = [ROOT / "runtime", ROOT / "test" / "Cuda", ROOT / "benchmarks" / "cuda"]
    files = [path for folder in folders for path in folder.rglob("*.cu")]
    headers = ROOT / "runtime" / "include" / "genrec_rt"
    files += [path for folder in ("cuda", "kernels/cuda") for path in (headers / folder).rglob("*.h")]
    assert len(files) > 20
    assert [path.name for path in files if names.search(path.read_text())] == []


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


def built(sources: dict[str, Path], main: str, others: list[Path]) -> Path:
    """Both targets' kernels in one program for the host."""
    if not HOST_LIBRARY.exists():
        pytest.skip("this build runs no kernels on the host")
    folder, compiler = sources["cpu"].parent, str(toolchain()["compiler"])
    flags = (BUILD / "share" / "genrec" / "simt-flags").read_text().split()
    includes = [f"-I{ROOT}/test/Cuda/Simt/include", f"-I{ROOT}/runtime/include"]
    on_device = [compiler, "-xc++", "-std=c++20", *flags, "-include", "cuda_runtime.h", *includes, "-c"]
    host, program = folder / "host.o", folder / "run"
    call(*on_device, "-DGENREC_WARP_ROWS", sources["cuda"], "-o", folder / "device.o")
    objects = [folder / f"{path.stem}.o" for path in others]
    for path, target in zip(others, objects, strict=True):
        call(*on_device, path, "-o", target)
    # The stages and their calls of the runtime are not wanted: nothing refers to them.
    call(compiler, "-std=c++20", "-O2", "-march=x86-64-v3", "-ffp-contract=off", "-ffunction-sections",
         "-fdata-sections", "-Wno-unused-function", f'-DGENREC_CPU_UNIT="{sources["cpu"]}"', *includes, "-c",
         PROGRAMS / main, "-o", host)  # fmt: skip
    call(
        compiler,
        "-fuse-ld=lld-22",
        "-Wl,--gc-sections",
        host,
        folder / "device.o",
        *objects,
        HOST_LIBRARY,
        "-o",
        program,
    )
    return program


def lines_of(program: Path, seed: int) -> list[str]:
    result = subprocess.run([program, str(seed)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def program(sources: dict[str, Path]) -> Path:
    return built(sources, "run.cpp", [])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_results_are_those_of_the_cpu(program: Path, seed: int) -> None:
    lines = lines_of(program, seed)
    assert len(lines) == 9 and all(line.endswith(" same") for line in lines)


@pytest.fixture(scope="module")
def step_program(steps: dict[str, Path]) -> Path:
    return built(steps, "steps.cpp", RUNTIME_SOURCES)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_optimizer_steps_as_on_the_cpu(step_program: Path, seed: int) -> None:
    lines = lines_of(step_program, seed)
    assert len(lines) == 11 and all(line.endswith(" same") for line in lines), lines
