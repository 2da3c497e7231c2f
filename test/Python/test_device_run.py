"""What `make device` packs, without a device: dry runs, runs that skip everything, and runs of programs made up."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from made_programs import SCRIPTS, SPEC, WAITS, make_part, program, results

import device_pack  # isort: skip -- made_programs says where these are
import device_tests  # isort: skip
import environment  # isort: skip
import jobs  # isort: skip
import run  # isort: skip

HAS_DEVICE = environment.find_device()[0] == ""
PROGRAMS = {
    "check-cuda-probes": ["Probes.ABox"],
    "check-cuda-runtime": ["CudaStore.Works", "Seeds/Orders.Agree/0"],
    "check-cuda-attention": ["AttentionHopper.SameBits", "AttentionHopper.Hangs", "AttentionPlain.Works"],
    "check-cuda-watched": ["AttentionHopper.Hangs"],
    "bench-cuda-ceilings": ["memory"],
    "bench-cuda-step": ["table"],
}
PASSES = """
tests = ''.join(WORDS).partition('--gtest_filter=')[2].split('--')[0].split(':')
print('\\n'.join(f'[       OK ] {test} (0 ms)' for test in tests), '[  PASSED  ] 1 test.', sep='\\n')
"""


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as it is packed, with programs that do nothing; its archive is unpacked below tmp_path."""
    staging, folder = tmp_path / "staging", tmp_path / "device"
    for name in PROGRAMS:
        program(staging / name, PASSES)
    (folder / "scripts").mkdir(parents=True)
    with tarfile.open(folder / "programs.tar.xz", "w:xz") as archive:
        archive.add(staging, ".")
    manifest = {
        "commit": "abc123",
        "sha256": hashlib.sha256((folder / "programs.tar.xz").read_bytes()).hexdigest(),
        "programs": PROGRAMS,
        "examples": {"clicks": SPEC},
        "refused": {"search": "'query' makes strings, which have no CUDA form yet"},
        "waits": WAITS,
        "kernels": {},
        "public_code": True,
        "cuda": 13000,
        "glibc": "2.17",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for name in device_pack.SCRIPTS:
        shutil.copy(SCRIPTS / name, folder / "scripts")
    shutil.copy(SCRIPTS / "run.py", folder / "run")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return folder


def call(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, folder / "run", *map(str, words)], capture_output=True, text=True, check=False
    )


# ---- the folder ----


def test_scripts_of_the_folder_are_all_packed() -> None:
    """Those that run imports, and nothing of the project's Python package."""
    loaded = {path.name for path in SCRIPTS.glob("*.py")} - {"run.py", "torch_examples.py"}
    assert loaded == set(device_pack.SCRIPTS)
    for path in SCRIPTS.glob("*.py"):
        assert "import genrec" not in path.read_text(), path


def test_a_dry_run_names_every_job(packed: Path, tmp_path: Path) -> None:
    for number, names in {
        0: ["Probes", "AttentionHopper", "attention", "example clicks"],
        1: ["Probes", "stores and rows", "AttentionPlain", "AttentionHopper", "failures again", "bits", "racecheck"],
        2: ["ceilings", "hkv", "peers", "example clicks", "example search", "PyTorch's examples"],
        3: ["times of bench-cuda-step", "slowest kernels"],
    }.items():
        ended = call(packed, number, tmp_path / "out", "--dry-run")
        assert ended.returncode == 0, ended.stderr
        said = {line.split(": ")[1].split(" (at most")[0]: line for line in ended.stdout.splitlines()[:-1]}
        assert set(names) <= said.keys()
        reason = "no CUDA" if not HAS_DEVICE else ""
        assert all(
            line.startswith("would run" if HAS_DEVICE else "SKIPPED") or reason in line for line in said.values()
        )
        assert f"the part ends after {run.PART_SECONDS[number]} s" in ended.stdout


def test_models_with_an_asked_ratio_come_before_the_others(packed: Path) -> None:
    """With their peers: what is slow cuts off what is only shown."""
    manifest = json.loads((packed / "manifest.json").read_text())
    manifest["examples"] = {name: SPEC for name in ("criteo_dlrm", "search_ranking", "hstu_movielens")}
    names = [job.name for job in run.jobs_of(2, packed, manifest, sys.executable)]
    assert names[names.index("peers") + 1 :] == [
        "example hstu_movielens", "example search_ranking", "PyTorch: hstu_movielens", "PyTorch: search_ranking",
        "example criteo_dlrm", "example search", "PyTorch's examples", "PyTorch: hstu_movielens, torch.compile",
        "Triton attention",
    ]  # fmt: skip


def test_a_first_look_is_right_then_fast_then_why(packed: Path) -> None:
    """What takes long, sanitizers and peers, is left to the other parts; other examples come last."""
    manifest = json.loads((packed / "manifest.json").read_text())
    manifest["examples"] = {name: SPEC for name in ("criteo_dlrm", "hstu_movielens")}
    names = [job.name for job in run.jobs_of(0, packed, manifest, sys.executable)]
    assert not set(names) & {"racecheck", "bits", "hkv", "peers", "PyTorch: hstu_movielens", "Triton attention"}
    assert names[names.index("failures again") + 1 :] == [
        "ceilings", "attention", "step", "unique", "columns", "example hstu_movielens", "times of hstu_movielens",
        "example criteo_dlrm", "example search",
    ]  # fmt: skip


@pytest.mark.skipif(HAS_DEVICE, reason="a device is here")
def test_without_a_device_all_is_skipped_with_the_reason(packed: Path, tmp_path: Path) -> None:
    """Nothing is unpacked; the results say why."""
    for number in run.PART_SECONDS:
        ended = call(packed, number, tmp_path / "out")
        assert ended.returncode == run.SKIPPED, ended.stderr
        lines = ended.stdout.splitlines()
        assert all(line.startswith("SKIPPED: ") and "no CUDA d" in line for line in lines[:-1])
        assert lines[-1].startswith("0 passed, 0 failed, 0 cut, ")
        found = results(tmp_path / "out", number)
        assert {job["status"] for job in found["jobs"].values()} == {"skipped"}
        assert "no CUDA d" in found["lacks"]["device"] and found["commit"] == "abc123"
    assert (
        "no binary for a device: 'query' makes strings" in results(tmp_path / "out", 2)["jobs"]["example search"]["why"]
    )
    assert not list(tmp_path.glob("genrec-device-*"))


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["4", "out"], 2, "invalid choice: 4"),
        (["1", "out", "--only", "speed"], 2, "part 1 has no job 'speed'; it has Probes, stores and rows,"),
        (["1", "manifest.json"], 2, "File exists"),
    ],
    ids=["part", "job", "out"],
)
def test_wrong_arguments_are_named(packed: Path, words: list[str], status: int, message: str) -> None:
    ended = subprocess.run([sys.executable, packed / "run", *words], capture_output=True, text=True, cwd=packed)
    assert ended.returncode == status and message in ended.stderr, ended.stderr


def test_a_damaged_folder_is_said_to_be_one(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(run, "find_device", lambda: ("", {"name": "card"}))
    monkeypatch.setattr(run, "HERE", packed)
    with (packed / "programs.tar.xz").open("r+b") as archive:
        archive.write(b"x")
    assert run.main(["1", str(tmp_path / "out")]) == run.WRONG
    assert "programs.tar.xz is not what was packed; pack it again: make device" in capsys.readouterr().err
    (packed / "manifest.json").unlink()
    assert run.main(["1", str(tmp_path / "out")]) == run.WRONG


def test_a_system_that_is_too_old_is_named(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs would not start there."""
    monkeypatch.setattr(run, "find_device", lambda: ("", {"name": "card"}))
    monkeypatch.setattr(run, "HERE", packed)
    manifest = json.loads((packed / "manifest.json").read_text())
    (packed / "manifest.json").write_text(json.dumps(manifest | {"glibc": "9.100"}))
    assert run.main(["1", str(tmp_path / "out")]) == run.SKIPPED
    assert results(tmp_path / "out", 1)["lacks"]["device"].startswith("programs were packed for glibc 9.100")


@pytest.mark.parametrize(("driver", "runs"), [(12080, False), (13000, True), (13020, True), (14000, True)])
def test_a_driver_that_is_too_old_is_named(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: int, runs: bool
) -> None:
    """Each program would say so by itself, as the failure of a test."""
    monkeypatch.setattr(run, "find_device", lambda: ("", {"name": "card", "driver_cuda": driver}))
    monkeypatch.setattr(run, "HERE", packed)
    monkeypatch.setattr(run.tempfile, "tempdir", str(tmp_path))
    assert run.main(["1", str(tmp_path / "out"), "--only", "Probes"]) == (0 if runs else run.SKIPPED)
    lacks = results(tmp_path / "out", 1)["lacks"]
    if not runs:
        assert lacks["device"].startswith("the driver has CUDA 12.8, and programs were compiled with 13.0: install")
        assert "cuda-compat-13-0" in lacks["device"]
    assert ("device" in lacks) != runs


def test_a_driver_is_found_where_the_loader_does_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is kept: programs need it in LD_LIBRARY_PATH."""
    loaded = []

    def load(name: str) -> str:
        loaded.append(name)
        if not name.startswith("/usr/lib/wsl"):
            raise OSError(name)
        return "driver"

    monkeypatch.setattr(environment.ctypes, "CDLL", load)
    assert environment.load_driver() == ("driver", "/usr/lib/wsl/lib")
    assert loaded[0] == "libcuda.so.1"


def test_a_part_runs_what_was_packed(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs are unpacked once; the results say where from."""
    monkeypatch.setattr(run, "find_device", lambda: ("", {"name": "card"}))
    monkeypatch.setattr(run, "HERE", packed)
    monkeypatch.setattr(run.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("COMPUTE_SANITIZER", "no-such-sanitizer")
    out = tmp_path / "out"
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run.main(["1", str(out)]) == 0
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found = results(out, 1)
    assert found["device"] == {"name": "card"}
    assert {name: job["status"] for name, job in found["jobs"].items() if job["status"] != "passed"} == {
        tool: "skipped" for tool in device_tests.TOOLS
    }
    assert found["jobs"]["stores and rows"]["details"]["passed"] == 2
    assert "there is no no-such-sanitizer" in found["jobs"]["racecheck"]["why"]
    (unpacked,) = tmp_path.glob("genrec-device-*")
    assert (unpacked / "check-cuda-probes").exists()
    assert run.main(["1", str(out), "--only", "Probes"]) == 0
    assert list(results(out, 1)["jobs"]) == ["Probes"]


# ---- parts and jobs ----


def test_results_are_written_as_they_come(tmp_path: Path) -> None:
    """A job sees those before it on disk, with its own record; a failure of a job's own code is one of the job."""
    part = make_part(tmp_path / "out", device="")
    seen = []

    def first(part: jobs.Part, job: jobs.Job) -> list[str]:
        job.details["count"] = 3
        part.write()
        seen.append(results(part.out, 1)["jobs"])
        return []

    def second(part: jobs.Part, job: jobs.Job) -> list[str]:
        seen.append(results(part.out, 1)["jobs"])
        raise ValueError("wrong")

    for name, work in (("first", first), ("second", second)):
        part.do(jobs.Job(name, 5, work))
    assert seen[0]["first"] == {"status": "running", "details": {"count": 3}}
    assert seen[1]["first"]["status"] == "passed"
    assert results(part.out, 1)["jobs"]["second"]["failures"] == ["ValueError: wrong"]
    assert part.counts() == {"passed": 1, "failed": 1, "cut": 0, "skipped": 0}


def test_a_program_is_ended_at_the_limit_of_its_job_and_of_the_part(tmp_path: Path) -> None:
    """With what it started; jobs behind the part's end are cut."""
    mark = tmp_path / "mark"
    program(tmp_path / "sleeper", f"os.system('sleep 3; touch {mark}')\n")
    part = make_part(tmp_path / "out", seconds=3.5)
    outcomes: list[jobs.Outcome] = []
    work = lambda part, job: outcomes.append(part.call([tmp_path / "sleeper"], 100)) or []  # noqa: E731
    for name in ("first", "second", "third"):
        part.do(jobs.Job(name, 1, work))
    assert [outcome.status for outcome in outcomes] == [None, None]
    assert results(part.out, 1)["jobs"]["third"] == {"status": "cut", "why": "the part's time was over"}
    assert outcomes[0].failure == "ended after 1 s, its limit: it printed nothing"
    time.sleep(3)
    assert not mark.exists(), "what a program started is ended, too"
    assert part.call([tmp_path / "none"], 5).failure == f"status 127: {tmp_path}/none: No such file or directory"


def test_files_stay_within_their_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PROGRAM_BYTES", 1000)
    monkeypatch.setattr(jobs, "LOG_BYTES", 5000)
    program(tmp_path / "talker", "print('begin', 'x' * 9000, 'end')\n")
    part = make_part(tmp_path / "out")
    for _ in range(9):
        part.call([tmp_path / "talker"], 5)
    text = part.log.read_text()
    assert len(text) <= 5000 and "begin" in text and "end" in text and "bytes are left out" in text
    assert sorted(path.name for path in part.out.iterdir()) == ["part-1.json", "part-1.log"]


def test_a_part_that_is_ended_leaves_its_results(packed: Path, tmp_path: Path) -> None:
    """On SIGTERM, with the signal; nothing that it started goes on."""
    for name in PROGRAMS:
        program(tmp_path / name, "time.sleep(20)\n")
    text = (packed / "run").read_text().replace("device, found = find_device()", "device, found = '', {}")
    text = text.replace("unpack(manifest)", f"Path({str(tmp_path)!r})")
    (packed / "run").write_text(text)
    process = subprocess.Popen([sys.executable, packed / "run", "1", tmp_path / "out"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (tmp_path / "out" / "part-1.json").exists() and results(tmp_path / "out", 1)["jobs"]:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    found = results(tmp_path / "out", 1)
    assert found["ended_by_signal"] == signal.SIGTERM and found["jobs"]["Probes"]["status"] == "running"


# ---- the environment ----


def test_tools_are_looked_for_where_variables_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "tool", "")
    monkeypatch.setenv("NCU", str(tmp_path / "tool"))
    assert environment.find_tool("NCU", "ncu") == (str(tmp_path / "tool"), "")
    monkeypatch.setenv("NCU", "no-such-ncu")
    assert environment.find_tool("NCU", "ncu") == ("", "there is no no-such-ncu on PATH; NCU names one")
    monkeypatch.setenv("PYTHON", "no-such-python")
    assert environment.find_python()[1] == "there is no no-such-python (PYTHON)"


@pytest.mark.skipif(HAS_DEVICE, reason="a device is here")
def test_what_is_missing_is_said() -> None:
    """Of a machine without a driver, or with one and no device."""
    lack, found = environment.find_device()
    assert lack.startswith(("there is no CUDA driver (libcuda.so.1)", "there is no CUDA device (cuInit: "))
    assert found == {}
    host = environment.describe_host()
    assert host["processors"] >= 1 and host["system"].startswith("Linux")
