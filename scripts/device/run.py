#!/usr/bin/env python3
"""A part of what is to be known of this machine's CUDA device, within 9 minutes.

    ./run PART OUT [--dry-run] [--only JOB,…] [--steps N]

PART 1: the environment, probes of single instructions, every test, what failed again under a watchdog and memcheck,
the sanitizers, the bits of the Hopper kernels over 1,000 runs. 2: figures, of ours and of peers; then the examples
beside their binaries for the CPU and beside PyTorch. 3: Nsight Compute, of the ten kernels with the most time.
0: a first look, where a machine is there for 8 minutes only: of all parts what takes little time and shows most.

OUT gets part-PART.json, written anew after every step, part-PART.log with what programs printed, and of part 3 a .csv:
at most 8 files of 16 MiB each for parts 1 to 3. Needs Python 3.10 and a driver; what else is not there (torch, ncu,
compute-sanitizer, a device) is SKIPPED with the reason. PYTHON names the Python with torch, COMPUTE_SANITIZER and NCU
those programs, GENERATIVE_RECOMMENDERS a checkout of the public HSTU code for its attention.

--dry-run says what would run, and needs no device. Ends with 0, with 1 where something failed, with 77 where everything
was skipped for want of a device, with 2 where the arguments are wrong or the folder is not as it was packed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "scripts"))

import device_examples  # noqa: E402
from device_figures import Figures  # noqa: E402
from device_tests import TOOLS, Tests  # noqa: E402
from environment import (  # noqa: E402
    describe_host,
    find_device,
    find_python,
    find_tool,
    older_driver,
    older_libc,
    query_device,
    wheel_libraries,
)
from jobs import Job, Part  # noqa: E402
from kernel_profile import Profile, runs_of  # noqa: E402

FIRST_LOOK = 0
PART_SECONDS = {FIRST_LOOK: 390, 1: 540, 2: 540, 3: 360}
WRONG, SKIPPED = 2, 77  # exit statuses; 77 is what test harnesses take for skipped
PROFILED_EXAMPLES, PROFILED_PROGRAMS = ("hstu_large", "criteo_dlrm"), ("bench-cuda-attention", "bench-cuda-step")
ASKED_EXAMPLES = ("hstu_large", "hstu_large_shared", "hstu_movielens", "search_ranking")
FIRST_LOOK_SECONDS, FIRST_LOOK_LAUNCHES = 25, 600  # of Nsight Compute, for each of these
LEFT_OUT = (*TOOLS, "bits", "store", "hkv", "peers")  # of a first look
DAMAGED = "pack it again: make device"


class PackError(Exception):
    """The packed folder is not as it was packed."""


def read_manifest() -> dict[str, Any]:
    """What was packed."""
    try:
        return json.loads((HERE / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise PackError(f"{HERE / 'manifest.json'}: {error}; {DAMAGED}") from error


def unpack(manifest: dict[str, Any]) -> Path:
    """The folder of the programs: unpacked by the first part that runs on a machine, and kept for the next."""
    archive, digest = HERE / "programs.tar.xz", manifest["sha256"]
    data = archive.read_bytes() if archive.exists() else b""
    if hashlib.sha256(data).hexdigest() != digest:
        raise PackError(f"{archive} is not what was packed; {DAMAGED}")
    folder = Path(tempfile.gettempdir()) / f"genrec-device-{os.getuid()}-{digest[:16]}"
    if not (folder / "unpacked").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            if hasattr(tarfile, "data_filter"):
                packed.extractall(folder, filter="data")
            else:
                packed.extractall(folder)
        (folder / "unpacked").touch()
    return folder


def find_lacks(manifest: dict[str, Any], device: str) -> tuple[dict[str, str], dict[str, str]]:
    """Why something is not there, by what jobs need; the tools that are, by name."""
    sanitizer, no_sanitizer = find_tool("COMPUTE_SANITIZER", "compute-sanitizer")
    ncu, no_ncu = find_tool("NCU", "ncu")
    python, no_torch = find_python()
    lacks = {"device": device, "compute-sanitizer": no_sanitizer, "ncu": no_ncu, "torch": no_torch}
    lacks |= {"hkv": "it was packed without a checkout of HierarchicalKV: make device HKV=<checkout>"}
    lacks |= {f"example {name}": f"no binary for a device: {why}" for name, why in manifest["refused"].items()}
    if "bench-cuda-hkv" in manifest["programs"]:
        lacks.pop("hkv")
    return lacks, {"compute-sanitizer": sanitizer, "ncu": ncu, "python": python}


def jobs_of(
    number: int, folder: Path, manifest: dict[str, Any], python: str, steps: int = device_examples.STEPS
) -> list[Job]:
    """The jobs of a part, in order."""
    programs: dict[str, list[str]] = manifest["programs"]
    if number == FIRST_LOOK:
        return first_look(folder, manifest, python, steps)
    if number == 1:
        tests = {name: tests for name, tests in programs.items() if name.startswith("check-")}
        return Tests(folder, tests, manifest["waits"]).jobs()
    if number == 2:
        return figures_and_examples(folder, manifest, python, steps)
    return profile(folder, manifest, PROFILED_EXAMPLES, PROFILED_PROGRAMS).jobs()


def profile(folder: Path, manifest: dict[str, Any], examples: tuple[str, ...], programs: tuple[str, ...]) -> Profile:
    """Of the examples and programs that were packed."""
    packed = {name: given for name, given in manifest["examples"].items() if name in examples}
    named = [name for name in programs if name in manifest["programs"]]
    return Profile(runs_of(folder, named, packed), manifest["kernels"])


def first_look(folder: Path, manifest: dict[str, Any], python: str, steps: int) -> list[Job]:
    """Is it right, how fast is it, and where does the time go; what is left of the time shows the other examples."""
    tests, second = (jobs_of(part, folder, manifest, python, steps) for part in (1, 2))
    ours = [job for job in [*tests, *second] if job.name not in LEFT_OUT and "torch" not in job.needs]
    asked = {f"example {name}" for name in ASKED_EXAMPLES}
    others = [job for job in ours if job.name.startswith("example ") and job.name not in asked]
    times = profile(folder, manifest, ASKED_EXAMPLES, ()).times_of_kernels(FIRST_LOOK_SECONDS, FIRST_LOOK_LAUNCHES)
    return [*(job for job in ours if job not in others), *times, *others]


def figures_and_examples(folder: Path, manifest: dict[str, Any], python: str, steps: int) -> list[Job]:
    """Part 2. What something is asked of comes first of the examples, so that what is slow cuts off the others."""
    figures = Figures(folder, list(manifest["programs"]), python, os.environ.get("GENERATIVE_RECOMMENDERS", ""))
    examples = device_examples.jobs(folder / "examples", list(manifest["examples"]), manifest["refused"], steps)
    asked = [job for name in ASKED_EXAMPLES for job in examples if job.name == f"example {name}"]

    def peers(name: str, seconds: float, *words: str) -> Job:
        runner = figures.runner([python, folder / "torch_examples.py", *words])
        return Job(name, seconds, runner, ("device", "torch"), "figures")

    asked += [
        peers("PyTorch: hstu_movielens", 40, "--only", "hstu_movielens"),
        peers("PyTorch: search_ranking", 60, "--only", "search_ranking"),
    ]
    others = [job for job in examples if job not in asked]
    last = [
        peers("PyTorch's examples", 45, "--only", "criteo_dlrm,criteo_dcnv2,news_request_ranking"),
        peers("PyTorch: hstu_movielens, torch.compile", 90, "--only", "hstu_movielens", "--compile"),
    ]
    if manifest["public_code"]:  # Triton compiles for a long time
        command = [python, folder / "peers.py", "--only", "attention", "--generative-recommenders", folder]
        last.append(Job("Triton attention", 120, figures.runner(command), ("device", "torch"), "figures"))
    return [*figures.jobs(), *asked, *others, *last]


def set_environment(
    part: Part, folder: Path, tools: dict[str, str], manifest: dict[str, Any], driver_folder: str
) -> None:
    """Where programs find each other and libraries.

    What they load (cuBLAS, NCCL) is of torch's wheels; what the examples' binaries are linked with is packed, with a
    C++ runtime for machines whose own is too old. `driver_folder`: the driver's, where the loader does not know it.
    """
    wheels = wheel_libraries(tools["python"])
    paths = [driver_folder, *wheels, os.environ.get("LD_LIBRARY_PATH", "")]
    examples = [name for name, given in manifest["examples"].items() if not given.get("step_flops")]
    folders = dict.fromkeys(str(Path(tool).parent) for tool in tools.values() if tool)
    part.environment["PATH"] = ":".join([*folders, os.environ.get("PATH", "")])
    part.environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    part.environment["PYTHONUNBUFFERED"] = "1"
    part.result["libraries"] = wheels
    for packed in (["lib"], ["lib", "lib/fallback"]):
        part.library_path = ":".join(
            [*(str(folder / path) for path in packed), part.environment["LD_LIBRARY_PATH"]]
        ).strip(":")
        if not examples:
            return
        starts = part.call([folder / "examples" / examples[0] / "cpu", "--help"], 20, LD_LIBRARY_PATH=part.library_path)
        if not starts.failure:
            return


def dry_run(number: int, jobs: list[Job], lacks: dict[str, str]) -> int:
    """Says what a run here would do."""
    for job in jobs:
        why = "; ".join(lacks[need] for need in job.needs if lacks.get(need))
        would = f"would run: {job.name} (at most {job.seconds:g} s): {job.shown}"
        print(f"SKIPPED: {job.name}: {why}" if why else would)
    total = sum(job.seconds for job in jobs)
    print(f"part {number}: {len(jobs)} jobs, at most {total:g} s; the part ends after {PART_SECONDS[number]} s")
    return 0


@contextmanager
def written_when_ended(part: Part) -> Iterator[None]:
    """While it is entered, SIGTERM and SIGINT end the program behind writing what there is."""

    def ended(signum: int, frame: object) -> None:
        part.stop()
        part.result["ended_by_signal"] = signum
        part.write()
        os._exit(128 + signum)

    before = {number: signal.signal(number, ended) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(number: int, out: Path, manifest: dict[str, Any], only: list[str], is_dry: bool, steps: int) -> int:
    """Runs a part; returns the exit status."""
    device, found = find_device()
    device = device or older_libc(manifest["glibc"]) or older_driver(found, manifest["cuda"])
    lacks, tools = find_lacks(manifest, device)
    folder = HERE if is_dry or device else unpack(manifest)  # nothing is run where there is no device
    jobs = jobs_of(number, folder, manifest, tools["python"], steps)
    names = [job.name for job in jobs]
    if unknown := [name for name in only if name not in names]:
        print(f"error: part {number} has no job '{unknown[0]}'; it has {', '.join(names)}", file=sys.stderr)
        return WRONG
    jobs = [job for job in jobs if not only or job.name in only]
    if is_dry:
        return dry_run(number, jobs, lacks)
    head = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": manifest["commit"],
        "device": found,
        "host": describe_host(),
        "nvidia_smi": query_device(),
        "lacks": {need: why for need, why in lacks.items() if why},
    }
    part = Part(number, out, PART_SECONDS[number], lacks, head)
    part.keep(json.dumps(head, indent=1) + "\n")
    if not device:
        set_environment(part, folder, tools, manifest, found.get("driver_folder", ""))

    with written_when_ended(part):
        for job in jobs:
            part.do(job)
    counts = part.counts()
    part.say(", ".join(f"{count} {status}" for status, count in counts.items()) + f" in {part.result['seconds']:.0f} s")
    if counts["failed"]:
        return 1
    return SKIPPED if device else 0


def main(words: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", type=int, choices=list(PART_SECONDS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--only", default="", help="jobs of the part, separated by commas")
    parser.add_argument("--steps", type=int, default=device_examples.STEPS, help="of every example")
    given = parser.parse_args(words)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        only = [name for name in given.only.split(",") if name]
        return run(given.part, given.out, read_manifest(), only, given.dry_run, given.steps)
    except PackError as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename or given.out}: {error.strerror}", file=sys.stderr)
    return WRONG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
