"""Row kernels for CUDA: from the same IR as the CPU's, compiled by nvcc, run on the host, with the same results."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from compiled import BUILD, ROOT, call, compile_with_nvcc, read_toolchain, tool
from example_models import MODELS, write_example

INPUTS = Path(__file__).parent / "Inputs"
PROGRAMS = Path(__file__).parent / "RowKernels"
# What the runtime has for devices and these programs call.
RUNTIME_SOURCES = [
    ROOT / "runtime" / "kernels" / "cuda" / "segment_sums.cu",
    ROOT / "runtime" / "core" / "cuda" / "memory.cu",
]
SUM_SOURCES = [
    ROOT / "runtime" / "kernels" / "cuda" / f"{name}.cu"
    for name in ("row_sums", "scattered_sums", "order", "prefix_sums", "pools")
]
HOST_LIBRARY = BUILD / "lib" / "libgenrec_simt.a"
# Rows of every domain in examples.cpp; where lists of several pieces are among them.
ROWS, MANY_ROWS = 37, 1300


def printed(model: Path, folder: Path) -> dict[str, Path]:
    """The kernels of a model by target."""
    paths = {"cpu": folder / "cpu.cpp", "cuda": folder / "kernels.cu"}
    call(tool("genrec-compile"), model, "--emit=cpp", "-o", paths["cpu"])
    call(tool("genrec-compile"), model, "--emit=cuda-kernels", "-o", paths["cuda"])
    return paths


@pytest.fixture(autouse=True)
def nothing_of_a_device_is_kept() -> None:
    """The programs here have their memory until they end (conftest.py)."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return printed(INPUTS / "row_kernels.mlir", tmp_path_factory.mktemp("row_kernels"))


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return printed(INPUTS / "optimizers.mlir", tmp_path_factory.mktemp("optimizers"))


@pytest.fixture(scope="module", params=["row_kernels", "pools", *MODELS])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    path = write_example(request.param, folder) if request.param in MODELS else INPUTS / f"{request.param}.mlir"
    return printed(path, folder)


# ---- the same IR ----

# Who has which rows and elements, where arrays and arguments are, what waits, and what separates the phases.
OWN = re.compile(
    r"kernels::(argument|column(?:Pointer|Domain)|prefetchRow|sharedArray|meet|firstOfPack|loadPack|storePack|chunkBegin|chunkEnd)\b"
    r"|kernels::(clearSums|addRows|meetTeam|chunkOfTeam|rowOfTeam|teamRows)"
    r"|#pragma|alignas|for \(int64_t (?:pack|j|i) ="
)


# What reads the gathered rows of a sampled softmax once, by what the CPU calls in its place.
JOINED = {"gatherSoftmax": "gatherDot", "softmaxSum": "gatherSum"}


def computed(source: str) -> dict[str, Counter[str]]:
    """The functions that each row kernel calls, by name, without what is a target's own."""
    kernels: dict[str, Counter[str]] = {}
    for name, body in re.findall(r"\bvoid (row_\w+)\([^\n]*\{\n(.*?)\n\}\n", source, re.DOTALL):
        body = "\n".join(line for line in body.splitlines() if not OWN.search(line))
        # A function of a whole row has its lanes and packs among its template arguments.
        own = r"(?!firstRow|rowStep|rowOfBlock|blockStep|isFirstLane|valueOf|chunkSums|sumFloats|termsOf"
        own += r"|(?:behind|[rR]ow|Scattered)Terms|[pP]ool|hasFirstRow|hasLastRow)"
        calls = re.findall(rf"kernels::{own}(\w+)(?:<(\d+))?", body)
        calls = [(JOINED.get(callee, callee), size) for callee, size in calls]
        unsized = ("addElement", "drawRows")
        kernels[name] = Counter(callee if callee in unsized else f"{callee}<{size}>" for callee, size in calls)
    return kernels


def find_joins(source: str, cpu: str) -> dict[str, list[str]]:
    """Of each kernel that makes the parts of a wide join as columns, the body of each column."""
    joins = {}
    for name, bodies in re.findall(r"\n  kernels::runColumns<(row_\w+)([^>]*)>", source):
        programs = [name, *re.findall(r"\w+", bodies)]
        if all(f"void {program}(" in cpu for program in programs):
            continue
        launch = re.search(rf"void run_(row_\w+)\([^\n]*\n  kernels::runColumns<{name}{bodies}>", source)
        assert launch is not None
        shapes = re.search(rf" run_{launch[1]}_columns\[\d+\] = \{{(.*?)\}};", source, re.DOTALL)
        assert shapes is not None
        joins[launch[1]] = [programs[int(program)] for program in re.findall(r"\.program = (\d+)", shapes[1])]
    return joins


def test_both_targets_lower_from_one_row_kernel(model: dict[str, Path]) -> None:
    cpu, cuda = (computed(model[target].read_text()) for target in ("cpu", "cuda"))
    # The columns of a join call together what the kernel of the CPU does.
    joins = find_joins(*(model[target].read_text() for target in ("cuda", "cpu")))
    made = {name: sum((cuda[body] for body in bodies), Counter()) for name, bodies in joins.items()}
    for body in {body for bodies in joins.values() for body in bodies}:
        del cuda[body]
    cuda |= made
    assert cuda.keys() <= cpu.keys()
    assert all(cpu[name] in cuda.values() for name in cpu.keys() - cuda.keys()), "kernels share bodies with their like"
    assert sum(tokens.total() for tokens in cuda.values()) > 2
    for name, tokens in cuda.items():
        assert tokens == cpu[name], name


def test_the_step_of_an_optimizer_is_one_body_on_both_targets(steps: dict[str, Path]) -> None:
    cpu, cuda = (computed(steps[target].read_text()) for target in ("cpu", "cuda"))
    updates = [name for name in cuda if "_update_" in name]
    assert len(updates) == len(re.findall("genrec.table @", (INPUTS / "optimizers.mlir").read_text()))
    for name in updates:
        adds = any(token.startswith("segmentSum<") for token in cuda[name])
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


# ---- for a device ----


@pytest.mark.parametrize("program", ["row_kernels", "pools"])
def test_nvcc_compiles_every_kernel(program: str, tmp_path: Path) -> None:
    """Those of the examples: test_cuda_examples.py."""
    nvcc = read_toolchain()["nvcc"]
    if not nvcc:
        pytest.skip("no nvcc")
    source = printed(INPUTS / f"{program}.mlir", tmp_path)["cuda"]
    command = [nvcc, "-std=c++20", "-O1", "-fmad=false", "-Xptxas=-v", "-Werror", "all-warnings", "-arch=sm_90a"]
    ccache = [shutil.which("ccache")] if shutil.which("ccache") else []
    command += ["-ccbin", "g++", f"-I{ROOT}/runtime/include", "-c", source, "-o", tmp_path / "kernels.o"]
    result = subprocess.run([*ccache, *command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    report = tmp_path / "kernels.ptxas"
    report.write_text(result.stderr)
    count = source.read_text().count("__global__")
    checked = call(sys.executable, ROOT / "scripts" / "cuda_resources.py", report, INPUTS / "row_kernels.allowance")
    assert f"{count} kernels, 0 over" in checked


MANY_SUMS = 220
ADDS_UP = """
!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
!s = tensor<f32>
#reduced = #genrec<result_role reduced>
genrec.model @sums {{
  genrec.domain @user
  genrec.program @train mode train {{
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %one = genrec.constant dense<1.0> : !s
    %sums:{count} = genrec.row_kernel %user(%x)
        attributes {{name = "sums", operand_roles = [#genrec<operand_role aligned>], result_roles = [{roles}]}}
        : (!user, !u) -> ({types}) {{
    ^bb0(%f: f32, {sums}):
      {adds}
      genrec.row_yield
    }}
    genrec.report_loss "sum" %sums#0, %one : !s, !s
  }}
}}
"""


def test_nvcc_compiles_a_launch_of_many_sums(tmp_path: Path) -> None:
    """As a model of many losses has them: more than nvcc nests templates."""
    sums = [f"%sum{i} : !genrec.accumulator<!s>" for i in range(MANY_SUMS)]
    model = tmp_path / "sums.mlir"
    model.write_text(
        ADDS_UP.format(
            count=MANY_SUMS,
            roles=", ".join(["#reduced"] * MANY_SUMS),
            types=", ".join(["!s"] * MANY_SUMS),
            sums=", ".join(sums),
            adds="\n".join(f"genrec.accumulate %f into {to}, f32" for to in sums),
        )
    )
    unit = tmp_path / "sums.cu"
    call(tool("genrec-compile"), model, "--target=cuda", "--emit=cpp", "-o", unit)
    assert f"launchSums<{MANY_SUMS}>" in unit.read_text()
    compile_with_nvcc(unit)


# ---- on the host ----


@functools.cache
def on_device_command() -> list[object]:
    """What compiles a unit for the emulated device, up to its name. Not optimised: few rows run."""
    flags = (BUILD / "share" / "genrec" / "simt-flags").read_text().replace("-O1", "-O0").split()
    includes = [f"-I{ROOT}/test/Cuda/Simt/include", f"-I{ROOT}/runtime/include"]
    compiler = str(read_toolchain()["compiler"])
    return [compiler, "-xc++", "-std=c++20", *flags, "-include", "cuda_runtime.h", *includes, "-c"]


@pytest.fixture(scope="session")
def runtime_objects(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Compiles a file of the runtime for the emulated device, once for all programs."""
    folder = tmp_path_factory.mktemp("runtime_objects")

    @functools.cache
    def compiled(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        call(*on_device_command(), source, "-o", target)
        return target

    return compiled


def built(sources: dict[str, Path], main: str, others: list[Path], defines: list[str] | None = None) -> Path:
    """Both targets' kernels in one program for the host, with objects of the runtime."""
    if not HOST_LIBRARY.exists():
        pytest.skip("this build runs no kernels on the host")
    folder, compiler = sources["cpu"].parent, str(read_toolchain()["compiler"])
    includes = [f"-I{ROOT}/test/Cuda/Simt/include", f"-I{ROOT}/runtime/include"]
    host, program = folder / "host.o", folder / "run"
    call(*on_device_command(), "-DGENREC_WARP_ROWS", sources["cuda"], "-o", folder / "device.o")
    # The stages and their calls of the runtime are not wanted: nothing refers to them.
    on_host = [compiler, "-std=c++20", "-O0", "-march=x86-64-v3", "-ffp-contract=off", *includes, "-c"]
    on_host += ["-ffunction-sections", "-fdata-sections", "-Wno-unused-function"]
    unit = f'-DGENREC_CPU_UNIT="{sources["cpu"]}"'
    call(*on_host, unit, *(defines or []), PROGRAMS / main, "-o", host)
    objects = [*others, folder / "hash.o"]
    call(*on_host, ROOT / "runtime" / "kernels" / "cpu" / "hash.cpp", "-o", objects[-1])
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


KINDS = {
    "float *": "floats", "int64_t *": "integers", "bool *": "flags", "uint8_t *": "flags", "uint64_t *": "words",
    "float *const *": "rows", "float **": "rows", "kernels::SegmentSums *": "segments", "genrec_string *": "strings",
    "parts": "parts", "domain": "domain",
}  # fmt: skip


@dataclass(frozen=True)
class Signature:
    """A kernel's parameters behind the step, as the list of examples.cpp has them."""

    types: list[str]

    def arguments(self) -> str:
        entries = []
        for type in self.types:
            kind = KINDS[type.removeprefix("const ")]
            # Rows are written through their handles.
            constant = type.startswith("const ")
            entries.append(f"{{Argument::{kind}, {str(constant).lower()}}}")
        return "{" + ", ".join(entries) + "}"


def sums_of(body: str, rows: int) -> list[int]:
    """Floats of the results that a kernel for the CPU adds up, over domains of `rows` rows."""
    sizes = []
    for size in re.findall(r"kernels::sumFloats\((\w+)\)", body):
        if size.isdigit():
            sizes.append(int(size))
            continue
        stride = re.search(rf"{size} = step->domains\[\d+\]\.count(?: \* (\d+))?", body)
        assert stride is not None, size
        sizes.append(rows * int(stride[1] or 1))
    return sizes


def rows_of(body: str, rows: int) -> int:
    """Rows that a kernel can run on: those of a parameter, whose states lie behind all of its values, else `rows`."""
    width = re.search(r"_state \+ (\w+);", body)
    step = re.search(rf"{width[1]} = row \* (\d+);", body) if width else None
    states = re.search(r"_row(?:_2)? \+ (\d+)", body)
    return min(rows, int(states[1]) // int(step[1] if step else 1)) if width and states else rows


def width_of(body: str) -> int:
    """At least the elements of the widest row that a kernel has, and where the last state of a parameter ends."""
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", body)]
    # Behind a parameter's states there are others.
    states = [int(n) // 16 + 1 for n in re.findall(r"_row(?:_2)? \+ (\d+)", body)]
    return max([n for n in numbers if n <= 4096] + states + [211])


def kernel_list(source: str, cpu: str, rows: int) -> str:
    """The list of a unit's kernels that examples.cpp includes, over domains of `rows` rows."""
    declarations, kernels, columns = [], [], []
    on_cpu = dict(re.findall(r"\bvoid (\w+)\([^\n]*\{\n(.*?)\n\}\n", cpu, re.DOTALL))
    bodies: dict[str, Signature] = {}
    programs_of: dict[str, str] = {}  # of columns, as examples.cpp has them
    functions = r'((?:extern "C" __global__|static __device__)[^\n]*?) void (\w+)\(([^\n]*)\) \{\n(.*?)\n\}\n'
    for kind, name, parameters, body in re.findall(functions, source, re.DOTALL):
        if "__device__" in kind:
            types = re.findall(r"((?:const )?[\w:]+ \*(?:const \*)?)__restrict__ \w+ = kernels::columnPointer", body)
            domains = set(re.findall(r"kernels::columnDomain\(step, pointers, (\d+)\)", body))
            splits = f" {name}_pools = " in source
            bodies[name] = Signature([*(types[:-1] + ["parts"] if splits else types), *["domain"] * len(domains)])
            programs_of[name] = f"{{{name}, {rows_of(body, rows)}, {width_of(body)}}}"
        elif "kernels::Columns<" in parameters:
            columns.append((name, re.findall(r"\w+", re.findall(r"runColumns<([^>]*)>", body)[0]), parameters))
        else:
            types = [re.sub(r"__restrict__ \w+$|\w+$", "", part).strip() for part in parameters.split(", ")[1:]]
            declarations.append(f"__global__ void {name}({parameters});")
            casts = "".join(f", static_cast<{type}>(a[{i}])" for i, type in enumerate(types))
            adds, gathers = "partial_sums" in parameters, re.search("gather(Dot|Sum|Softmax)<", body) is not None
            sums = ", ".join(str(size) for size in sums_of(on_cpu[name], rows)) if adds else ""
            kernels.append(
                f'{{"{name}", {name}, {name}_mapping, {Signature(types).arguments()}, {rows_of(body, rows)}, '
                f"{width_of(body)}, {str(adds).lower()}, {str(gathers).lower()}, {{{sums}}}, "
                f"{f'{name}_sums' if adds else 'nullptr'}, "
                f"{f'&{name}_pools' if f' {name}_pools = ' in source else 'nullptr'},\n"
                " [](const genrec::rt::cuda::LaunchShape &shape, const genrec_step *step, void *const *a) {\n"
                "   (void)a;\n"
                f"   GENREC_CUDA_LAUNCH(kStream, shape, device::{name}, step{casts}); }}}},"
            )
    lists = []
    joins = find_joins(source, cpu)
    for name, programs, parameters in columns:
        if name.removeprefix("run_") in joins:  # test_cuda_column_joins.py
            continue
        declarations.append(f"__global__ void {name}({parameters});")
        shapes = re.search(rf" {name}_columns\[\d+\] = \{{(.*?)\}};", source, re.DOTALL)
        assert shapes is not None
        arguments = [
            entry.strip("{}") for shape in re.findall(r"\.program = (\d+)", shapes[1])
            for entry in re.findall(r"\{[^{}]*\}", bodies[programs[int(shape)]].arguments())
        ]  # fmt: skip
        all_arguments = ", ".join(f"{{{entry}}}" for entry in arguments)
        split = [f", {program}_pools" for program in programs if f" {program}_pools = " in source]
        lists.append(
            f'{{"{name}", {{{", ".join(programs_of[program] for program in programs)}}}, '
            f"{{std::begin({name}_columns), std::end({name}_columns)}}, "
            f"{{{all_arguments}}},\n [](genrec_step *step, void *const *a) {{\n"
            f"   genrec::rt::kernels::launch{'Pool' if split else ''}Columns("
            f"step, {name}_columns, device::{name}, a{(split or [''])[0]}); }}}},"
        )
    mappings = re.findall(r"^inline constexpr kernels::.*?;$", source, re.MULTILINE | re.DOTALL)
    return "\n".join(
        [*mappings, 'namespace device { extern "C" {', *declarations, "} }", "const std::vector<Kernel> allKernels = {"]
        + [*kernels, "};", "const std::vector<Columns> allColumns = {", *lists, "};", ""]
    )


def without_stages(cpu: Path) -> Path:
    """The kernels of a unit alone, which compile in a tenth of the time."""
    path = cpu.with_name("cpu_kernels.cpp")
    path.write_text(re.split(r"\n[^\n]*GENREC_STAGE", cpu.read_text(), maxsplit=1)[0] + "\n")
    return path


def expect_results_of_the_cpu(model: dict[str, Path], rows: int, compiled: Callable[[Path], Path]) -> None:
    source = model["cuda"].read_text()
    listed = model["cuda"].with_name(f"kernels_{rows}.inc")
    listed.write_text(kernel_list(source, model["cpu"].read_text(), rows))
    units = {"cpu": without_stages(model["cpu"]), "cuda": model["cuda"]}
    program = built(
        units, "examples.cpp", [*map(compiled, SUM_SOURCES)], [f'-DGENREC_KERNELS="{listed}"', f"-DGENREC_ROWS={rows}"]
    )
    for seed in (1, 2):
        lines = lines_of(program, seed)
        assert len(lines) == source.count("__global__") - len(find_joins(source, model["cpu"].read_text()))
        assert [line for line in lines if not line.endswith(" same")] == []


def test_every_kernel_has_the_results_of_the_cpu(
    model: dict[str, Path], runtime_objects: Callable[[Path], Path]
) -> None:
    expect_results_of_the_cpu(model, ROWS, runtime_objects)


@pytest.mark.parametrize("name", ["row_kernels", "pools"])
def test_lists_of_several_pieces_have_the_results_of_the_cpu(
    name: str, tmp_path: Path, runtime_objects: Callable[[Path], Path]
) -> None:
    model = printed(INPUTS / f"{name}.mlir", tmp_path)
    assert "_pools = {" in model["cuda"].read_text()
    expect_results_of_the_cpu(model, MANY_ROWS, runtime_objects)


@pytest.fixture(scope="module")
def step_program(steps: dict[str, Path], runtime_objects: Callable[[Path], Path]) -> Path:
    return built(steps, "steps.cpp", [*map(runtime_objects, RUNTIME_SOURCES)])


@pytest.mark.parametrize("seed", [1, 2])
def test_every_optimizer_steps_as_on_the_cpu(step_program: Path, seed: int) -> None:
    lines = lines_of(step_program, seed)
    assert len(lines) == 11 and all(line.endswith(" same") for line in lines), lines
