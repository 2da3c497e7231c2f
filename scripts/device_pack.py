"""Packs all that is run on a CUDA device into one folder, and runs it where there is one: `make device`.

Usage: python scripts/device_pack.py [--preset release] [--build FOLDER] [--out FOLDER] [--hkv CHECKOUT]
    [--peer CHECKOUT] [--programs NAME,…] [--examples NAME,…] [--small] [--level 9] [--pack-only]

The folder, build/device, needs a driver and Python where it runs: carry it there and call `./run PART OUT` in it
(scripts/device/run.py). It has tests and benchmarks (programs of nvcc, nothing of the toolkit needed), the examples'
binaries for a device and for the CPU with generated data (device_models.py), the libraries that these are linked with,
scripts, and a manifest. What can be checked without a device is checked here: size, libraries, that test programs list
tests, that benchmarks say what they measure and that binaries start.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cuda_resources import excess, kernels_of, read_allowances

from build import ROOT, binary_folder

MOST_BYTES = 50 << 20
DICTIONARY_BYTES = 128 << 20  # of the compressor: code that several programs hold is seen, at every level
NONE = "none"  # of examples
PARTS, SKIPPED = (1, 2, 3), 77  # of ./run, and its status where there is no device; part 0 is a choice of them
SCRIPTS = [
    "jobs.py",
    "environment.py",
    "device_tests.py",
    "device_figures.py",
    "device_examples.py",
    "kernel_profile.py",
]
# Run by the Python that has torch; beside the programs.
PEERS = {
    "peers.py": "benchmarks/cuda/peers.py",
    "torch_examples.py": "scripts/device/torch_examples.py",
    "criteo.py": "test/Torch/criteo.py",
    "news.py": "test/Torch/news.py",
    "hstu_peer.py": "benchmarks/hstu_train/peer.py",
    "jagged.py": "benchmarks/hstu_train/jagged.py",
    "search_peer.py": "benchmarks/search_ranking/peer.py",
}
# The package of the public HSTU code's checkout, and what of it is packed: the models and the Triton attention.
PUBLIC_CODE = "generative_recommenders"
PUBLIC_FILES = ("*.py", "research/modeling/**/*.py", "research/rails/**/*.py", "ops/*.py", "ops/triton/*.py")
# Of any Linux; the driver's own library is loaded by name.
ALLOWED = re.compile(r"lib(c|m|dl|rt|pthread)\.so|ld-linux")
FALLBACK = re.compile(r"lib(stdc\+\+|gcc_s)\.so")
WAITS = "waitForPhase("
PROGRAM_OBJECTS = "cuda-program-objects/"  # of a build folder: code of tests and benchmarks


def fail(message: str) -> None:
    """Ends the script."""
    sys.exit(f"[device] error: {message}")


def say(text: str) -> None:
    """One line."""
    print(f"[device] {text}", flush=True)


def output_of(*command: object, **more: Any) -> str:
    """What a program prints; ends the script with its messages where it fails."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if result.returncode != 0:
        fail(f"{' '.join(map(str, command[:4]))} … failed:\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout


#
# Programs of nvcc
#


def toolkit_version(folder: Path) -> int:
    """Of the toolkit that the build uses, as drivers say theirs: 13000 is 13.0."""
    cache = (folder / "CMakeCache.txt").read_text()
    found = re.search(r"^GENREC_NVCC:\w+=(.+)$", cache, re.MULTILINE)
    said = re.search(r"release (\d+)\.(\d+)", output_of(found[1] if found else "nvcc", "--version"))
    if not said:
        fail("nvcc --version names no release")
    return 1000 * int(said[1]) + 10 * int(said[2])


def find_programs(folder: Path) -> list[str]:
    """Tests and benchmarks that the build knows."""
    listing = output_of("ninja", "-C", folder, "-t", "targets", "all")
    return sorted(set(re.findall(r"^((?:check|bench)-cuda-\w+): phony", listing, re.MULTILINE)))


def needed(program: Path) -> list[str]:
    """Libraries that a program is linked with and not every Linux has."""
    text = output_of("readelf", "-d", program)
    return [name for name in re.findall(r"NEEDED.*\[(.+)\]", text) if not ALLOWED.match(name)]


def newest_libc(files: Iterable[Path]) -> str:
    """The version of glibc that programs and libraries need."""
    found = {"2.17"}
    for file in files:
        with file.open("rb") as opened:
            if opened.read(4) == b"\x7fELF":
                found |= set(re.findall(r"GLIBC_([\d.]+)", output_of("readelf", "-V", file)))
    return max(found, key=lambda version: [int(part) for part in version.split(".")])


def list_tests(program: Path) -> list[str]:
    """Full names of a program's tests."""
    tests, suite = [], ""
    for line in output_of(program, "--gtest_list_tests").splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        else:
            tests.append(suite + line.split("#")[0].strip())
    return [test for test in tests if "." in test and not test.startswith("Running")]


def check_program(program: Path) -> list[str]:
    """Tests of a test program, groups of a benchmark; fails where it needs libraries or names nothing."""
    if others := needed(program):
        fail(f"{program.name} needs {', '.join(others)}, which a bare machine lacks: link them statically")
    if program.name.startswith("check-"):
        found = list_tests(program)
    else:
        found = re.findall(r"^would measure: (\w+)$", output_of(program, "--dry-run"), re.MULTILINE)
    if not found:
        fail(f"{program.name} names no tests and nothing to measure")
    return found


def find_waits() -> dict[str, str]:
    """Lines that wait for a barrier, by file:line: a watchdog names these places, and a bare machine has no sources."""
    places = {}
    folders = [ROOT / "runtime" / "include" / "genrec_rt" / "kernels" / "cuda", ROOT / "test" / "Cuda"]
    for path in sorted(path for folder in folders for path in [*folder.rglob("*.h"), *folder.glob("*_test.cpp")]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if WAITS in line and "inline" not in line:
                places[f"{path.name}:{number}"] = line.strip()
    return places


# Files whose kernels have a class of their own in the profile of a step; those of others are of tables.
CLASSES = {
    r"/attention/|cross_attention": "attention",
    r"products|distinct\.cu|interaction|item_scores|in_batch_softmax": "products",
    r"part_copies|row_sums|scattered_sums|row_checks|list_rows|columns|exact_sum": "elementwise",
}
BOUNDS = r"(?:__launch_bounds__\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?"
KERNEL = re.compile(rf"__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\(")


def classify_kernels() -> dict[str, str]:
    """The class of each kernel of the runtime, by its name."""
    found = {}
    for path in sorted((ROOT / "runtime").rglob("*")):
        if path.suffix in (".h", ".cu"):
            place = path.relative_to(ROOT).as_posix()
            kind = next((kind for files, kind in CLASSES.items() if re.search(files, place)), "tables")
            found |= dict.fromkeys(KERNEL.findall(path.read_text()), kind)
    return found


#
# Examples
#


def compile_example(name: str, folder: Path, tools: Path, sizes: Any) -> tuple[dict[str, Any] | None, str]:
    """A model's binaries and data in `folder`; None and why where it has no CUDA form."""
    import device_models
    import genrec as gr

    model, schema, packed = device_models.MODELS[name](folder, sizes)
    file = folder / "model.genrec"
    gr.write_model(gr.record(model, schema), file)
    # The CPU's code runs on another machine: kernels of the runtime choose by the processor, a model's own do not.
    targets = {"device": ["--target=cuda"], "cpu": ["--target=cpu", "--march=x86-64-v3"]}
    if packed.step_flops:
        del targets["cpu"]

    def make(side: str) -> subprocess.CompletedProcess[str]:
        command = [tools / "genrec-compile", file, *targets[side], *packed.compile, "-o", folder / side]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(len(targets)) as pool:
        for side, made in zip(targets, pool.map(make, targets), strict=True):
            if made.returncode != 0:
                why = next((line for line in made.stderr.splitlines() if "error:" in line), made.stderr)
                if "no CUDA form" not in why:
                    fail(f"{name} does not compile:\n{made.stderr}")
                shutil.rmtree(folder)
                return None, why.partition("error: ")[2]
            output_of("strip", folder / side)
    for left in ("model.genrec", "references.json"):
        (folder / left).unlink(missing_ok=True)
    for file in folder.glob("*.parquet"):
        write_plainly(file)
    (folder / "example.json").write_text(json.dumps(packed.spec(), indent=1) + "\n")
    return packed.spec(), ""


def write_plainly(file: Path) -> None:
    """Rewrites a Parquet file without compression and dictionaries: the archive's compressor then sees the same values
    in several columns, in training and evaluation data, and in the peer's arrays.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    pq.write_table(table, file, compression="none", use_dictionary=False, row_group_size=8192)


def pack_libraries(programs: Iterable[Path], folder: Path) -> None:
    """What the examples' binaries are linked with, and those libraries in turn: as this machine has them.

    A machine's own C++ runtime is used where it will do: it has what other libraries there may need.
    """
    (folder / "fallback").mkdir(parents=True)
    waiting = list(programs)
    while waiting:
        program = waiting.pop()
        places = dict(re.findall(r"(\S+) => (/\S+)", output_of("ldd", program)))
        for name in needed(program):
            if name not in places:
                fail(f"{program.name} needs {name}, which is not here")
            to = folder / "fallback" / name if FALLBACK.match(name) else folder / name
            if not to.exists():
                shutil.copy2(Path(places[name]).resolve(), to)
                output_of("strip", "--strip-unneeded", to)
                waiting.append(to)


def binaries_of(folder: Path) -> list[Path]:
    """Those of a packed model."""
    return [path for path in (folder / "cpu", folder / "device") if path.exists()]


def check_example(folder: Path, libraries: Path) -> None:
    """Its binaries start with the packed libraries, and the one for a device says that there is none."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    spec = json.loads((folder / "example.json").read_text())
    for side in binaries_of(folder):
        output_of(side, "--help", env=environment)
    if Path("/dev/nvidiactl").exists():
        return
    command = [folder / "device", "train", "--data", folder / spec["train"], "--progress", "none"]
    command += [flag.replace("{folder}", str(folder)) for flag in spec["flags"]]
    ended = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False, env=environment)
    if ended.returncode != 1 or "there is no device" not in ended.stderr:
        fail(f"{folder.name} should say that there is no device, but ended with {ended.returncode}:\n{ended.stderr}")


#
# The folder
#


def write_archive(folder: Path, archive: Path, level: int) -> str:
    """Packs a folder; returns the archive's checksum. Nothing in it depends on who packs, or when."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
        return info

    filters = [{"id": lzma.FILTER_LZMA2, "preset": level, "dict_size": DICTIONARY_BYTES}]
    with lzma.open(archive, "wb", filters=filters) as stream, tarfile.open(fileobj=stream, mode="w") as packed:
        # Equal files lie side by side, where the compressor still sees the first.
        for path in sorted(folder.rglob("*"), key=lambda path: (path.suffix, path.name, path)):
            if path.is_file():
                packed.add(path, path.relative_to(folder), filter=plain)
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="packs what is run on a CUDA device, and runs it where there is one")
    parser.add_argument("--preset", default="release", help="the preset that is built (default: release)")
    parser.add_argument("--build", type=Path, help="the build folder (default: the preset's)")
    parser.add_argument("--out", type=Path, help="the packed folder (default: <build>/device)")
    parser.add_argument("--hkv", help="checkout of HierarchicalKV, to compare with")
    parser.add_argument(
        "--peer", type=Path, help="checkout of meta-recsys/generative-recommenders, to compare MovieLens-1M with"
    )
    parser.add_argument("--programs", help="only these tests and benchmarks, separated by commas (default: all)")
    parser.add_argument("--examples", help="only these, separated by commas; none: none (default: all)")
    parser.add_argument("--small", action="store_true", help="little data, for tests of this script")
    parser.add_argument("--level", type=int, default=9, help="of compression, 0 to 9 (default: 9)")
    parser.add_argument("--pack-only", action="store_true", help="build and pack, and run nothing")
    given = parser.parse_args()
    if given.peer and not (given.peer / PUBLIC_CODE / "research").is_dir():
        parser.error(f"{given.peer} is no checkout of generative-recommenders: it has no {PUBLIC_CODE}/research")
    return given


def chosen(names: str | None, every: Iterable[str], what: str) -> list[str]:
    """Those that were asked for; ends the script where there is none of a name."""
    known = list(every)
    if names is None:
        return known
    asked = [] if names == NONE else names.split(",")
    for name in asked:
        if name not in known:
            fail(f"there is no {what} {name}; there are {', '.join(known)}")
    return asked


def build(folder: Path, hkv: str | None, only: str | None) -> list[str]:
    """Builds the programs; returns their names."""
    if hkv:
        output_of("cmake", f"-DGENREC_HKV={Path(hkv).resolve()}", folder)
    every = find_programs(folder)
    if not every:
        fail("there is no nvcc: install the CUDA toolkit 13.0 and configure again (cmake build)")
    programs = chosen(only, every, "test or benchmark")
    say(f"building {', '.join(programs)}")
    output_of("ninja", "-C", folder, *programs, "genrec-compile", "genrec-datagen", "genrec_rt_cuda")
    check_registers(folder, programs)
    return programs


def has_drafts(folder: Path) -> bool:
    """Whether programs of this build are barely optimised (GENREC_CUDA_DRAFTS): for checks of this script only."""
    return "GENREC_CUDA_DRAFTS:BOOL=ON" in (folder / "CMakeCache.txt").read_text()


def check_registers(folder: Path, programs: list[str]) -> None:
    """Kernels as tests and benchmarks have them stay within what is stated, as those of the runtime do."""
    if has_drafts(folder):
        say("drafts: code is barely optimised and larger; what a device is to run is packed from the preset release")
        return
    allowances = read_allowances(ROOT / "test" / "Cuda" / "resources.allowance")
    inputs = output_of("ninja", "-C", folder, "-t", "inputs", *programs).splitlines()
    reports = [folder / f"{name}.ptxas" for name in inputs if name.startswith(PROGRAM_OBJECTS) and name.endswith(".o")]
    kernels = [kernel for report in reports for kernel in kernels_of(report)]
    if not kernels:
        fail(f"{folder} has no reports of {', '.join(programs)}: their registers cannot be checked")
    if wrong := [complaint for kernel in kernels if (complaint := excess(kernel, allowances))]:
        fail("\n".join(wrong))
    say(f"registers and spills of {len(kernels)} kernels are as test/Cuda/resources.allowance allows")


def pack_examples(folder: Path, staging: Path, given: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """The examples that have a CUDA form, by name, and of the others why not."""
    os.environ.setdefault("GENREC_BIN", str(folder / "bin"))
    import device_models

    sizes = device_models.SMALL if given.small else device_models.Sizes()
    packed, refused = {}, {}
    for name in chosen(given.examples, device_models.MODELS, "example"):
        spec, why = compile_example(name, staging / "examples" / name, folder / "bin", sizes)
        if spec:
            packed[name] = spec
            say(f"{name}: binaries and data")
        else:
            refused[name] = why
            say(f"SKIPPED: {name}: {why}")
    if packed:
        binaries = [binary for name in packed for binary in binaries_of(staging / "examples" / name)]
        pack_libraries(binaries, staging / "lib")
        for name in packed:
            check_example(staging / "examples" / name, staging / "lib")
    return packed, refused


def pack_peers(staging: Path, checkout: Path | None) -> None:
    """Scripts of the peers, and the public HSTU code with its license."""
    for name, path in PEERS.items():
        shutil.copy2(ROOT / path, staging / name)
    if not checkout:
        return
    package = checkout / PUBLIC_CODE
    for file in [checkout / "LICENSE", *(file for pattern in PUBLIC_FILES for file in package.glob(pattern))]:
        if file.exists():
            to = staging / PUBLIC_CODE / (file.relative_to(package) if package in file.parents else file.name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, to)


def pack(folder: Path, out: Path, given: argparse.Namespace) -> None:
    """Makes the packed folder."""
    staging = folder / "device-staging"
    for path in (staging, out):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    programs = {}
    for name in build(folder, given.hkv, given.programs):
        program = Path(shutil.copy2(folder / "bin" / "cuda" / name, staging))
        output_of("strip", program)
        programs[name] = check_program(program)
        names = programs[name]
        holds = f"{len(names)} tests" if name.startswith("check-") else f"measures {', '.join(names)}"
        say(f"{name}: {program.stat().st_size / 2**20:.1f} MiB, {holds}")
    packed, refused = pack_examples(folder, staging, given)
    pack_peers(staging, given.peer)
    libc = newest_libc(path for path in staging.rglob("*") if path.is_file() and path.parent.name != "fallback")
    digest = write_archive(staging, out / "programs.tar.xz", given.level)
    unpacked = sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())
    shutil.rmtree(staging)
    manifest = {
        "commit": output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip(),
        "sha256": digest,
        "programs": programs,
        "examples": packed,
        "refused": refused,
        "public_code": bool(given.peer),
        "cuda": toolkit_version(folder),
        "waits": find_waits(),
        "kernels": classify_kernels(),
        "glibc": libc,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    (out / "scripts").mkdir()
    for name in SCRIPTS:
        shutil.copy2(ROOT / "scripts" / "device" / name, out / "scripts")
    shutil.copy2(ROOT / "scripts" / "device" / "run.py", out / "run")
    (out / "run").chmod(0o755)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if size > MOST_BYTES and not has_drafts(folder):
        fail(f"{out} takes {size / 2**20:.1f} MiB: at most {MOST_BYTES >> 20} are allowed")
    say(f"{out}: {size / 2**20:.1f} MiB, {unpacked / 2**20:.0f} MiB unpacked")


def check_parts(out: Path, lack: str) -> None:
    """Every part says what it would run, and without a device why it runs nothing; `lack`: why there is none."""
    results = out.parent / f"{out.name}-unused"
    for part in (0, *PARTS):
        for words, status in (["--dry-run"], 0), ([], SKIPPED):
            if words or lack:
                command = [out / "run", str(part), results, *words]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode != status:
                    fail(f"./run {part} ended with {ended.returncode}, not {status}:\n{ended.stdout}{ended.stderr}")
    shutil.rmtree(results, ignore_errors=True)
    say(f"{len(PARTS) + 1} parts {'say that there is no device' if lack else 'are dry-run; a device is here'}")


def main() -> int:
    """Entry point; returns what running came to, 0 where there is no device."""
    given = parse_arguments()
    folder = (given.build or binary_folder(given.preset)).resolve()
    out = (given.out or folder / "device").resolve()
    pack(folder, out, given)
    sys.path.insert(0, str(ROOT / "scripts" / "device"))
    from environment import find_device

    lack = find_device()[0]
    check_parts(out, lack)
    if not given.hkv:
        say("SKIPPED: the comparison with HierarchicalKV: make device HKV=<checkout>")
    if not given.peer:
        say("SKIPPED: the comparison with the public HSTU code: make device PEER=<checkout of generative-recommenders>")
    if given.pack_only:
        return 0
    if lack:
        say(f"{lack}: carry {out} to a machine with a device and call ./run 1 OUT, ./run 2 OUT, ./run 3 OUT in it")
        return 0
    results = folder / "device-results"
    statuses = [subprocess.run([out / "run", str(part), results], check=False).returncode for part in PARTS]
    collect = [
        sys.executable,
        ROOT / "benchmarks" / "cuda" / "collect.py",
        results,
        "--out",
        ROOT / "benchmarks" / "results",
    ]
    statuses.append(subprocess.run(collect, check=False).returncode)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
