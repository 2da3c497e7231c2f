"""What the jobs of a packed folder make of programs that work, fail, hang or lie."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from made_programs import ROOT, SPEC, WAITS, make_part, program, results

import device_examples  # isort: skip -- made_programs says where these are
import device_figures  # isort: skip
import device_pack  # isort: skip
import device_tests  # isort: skip
import jobs  # isort: skip
import kernel_profile  # isort: skip
import run  # isort: skip
import torch_examples  # isort: skip

# As the driver prints assertions of the device.
STUCK = (
    "/src/hopper_forward.h:87: produceForward: block: [5,0,0], thread: [3,0,0] Assertion `phase 1 ends` failed.\n"
    "/src/hopper_forward.h:87: produceForward: block: [5,0,0], thread: [4,0,0] Assertion `phase 1 ends` failed.\n"
    "/src/hopper_forward.h:140: consumeForward: block: [5,0,0], thread: [128,0,0] Assertion `phase 0 ends` failed.\n"
)


# ---- tests on the device ----

NO_TOOLS = {"compute-sanitizer": "there is no compute-sanitizer"}

TESTS = """
tests = next(word for word in WORDS if word.startswith('--gtest_filter=')).partition('=')[2].split(':')
if NAME == 'check-cuda-watched':
    sys.exit(print(STUCK) or 1)
for test in tests:
    if 'Hangs' in test:
        time.sleep(30)
    if 'Broken' in test or 'InCompany' in test and len(tests) > 1:
        print('[ RUN      ] ' + test + '\\na_test.cpp:12: Failure\\nis not equal')
        sys.exit(1)
    if 'Absent' in test:
        continue
    how = '  SKIPPED' if 'Skips' in test else '       OK'
    print('runs', os.environ.get('GENREC_RUNS'), f'\\n[{how} ] {test} (1 ms)')
    print('[  PASSED  ] 1 test.', flush=True)
"""


def run_tests(tmp_path: Path, programs: dict[str, list[str]], **lacks: str) -> tuple[jobs.Part, device_tests.Tests]:
    for name in programs:
        program(tmp_path / name, f"STUCK = {STUCK!r}\n{TESTS}")
    part = make_part(tmp_path / "out", **lacks)
    tests = device_tests.Tests(tmp_path, programs, WAITS)
    for job in tests.jobs():
        part.do(job)
    return part, tests


def test_tests_run_alone_and_what_fails_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hang is named by the program whose waits give up; a failure is run under memcheck."""
    monkeypatch.setattr(device_tests, "TEST_SECONDS", 1)
    program(
        tmp_path / "compute-sanitizer",
        "print('========= Invalid __global__ read of size 4 bytes', WORDS[1])\nexit(9)\n",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    programs = {
        "check-cuda-runtime": ["Store.Works", "Store.Broken", "Store.Absent", "Store.Skips"],
        "check-cuda-attention": ["AttentionHopper.SameBits", "AttentionHopper.Hangs"],
        "check-cuda-watched": ["AttentionHopper.Hangs"],
    }
    part, _ = run_tests(tmp_path, programs)
    found = results(part.out, 1)["jobs"]
    store = found["stores and rows"]
    assert store["details"] == {"passed": 1, "skipped": ["Store.Skips"]}
    assert store["failures"][0].startswith("Store.Broken: status 1: is not equal (a_test.cpp:12: Failure)")
    assert store["failures"][1].startswith("Store.Absent: it did not run")
    assert found["AttentionHopper"]["failures"][0].startswith("AttentionHopper.Hangs: ended after 1 s, its limit")
    again = found["failures again"]["details"]
    assert again["AttentionHopper.Hangs, watched"] == [
        "warp 4 of block 5 in consumeForward waits at hopper_forward.h:140: phase 0 ends (1 threads)",
        "warp 0 of block 5 in produceForward waits at hopper_forward.h:87: "
        "waitForPhase(&shared.empty[stage], ring.parity ^ 1); (2 threads)",
    ]
    assert again["Store.Broken, memcheck"] == ["========= Invalid __global__ read of size 4 bytes memcheck"]
    assert found["racecheck"]["status"] == "failed"
    assert found["bits"]["details"]["AttentionHopper.SameBits"].startswith("1000 runs in ")
    assert "runs 1000 \n" in part.log.read_text()


def test_tests_share_processes_until_one_fails(tmp_path: Path) -> None:
    """What stands behind a failure is run alone; a test that passes alone only is one that fails."""
    names = ["Store.Works", "Store.Skips", "Store.Broken", "Store.Behind", "Store.More", "Rows.InCompany", "Rows.More"]
    part, tests = run_tests(tmp_path, {"check-cuda-runtime": names[:5], "check-cuda-lists": names[5:]}, **NO_TOOLS)
    found = results(part.out, 1)["jobs"]["stores and rows"]
    assert found["details"] == {"passed": 5, "skipped": ["Store.Skips"]}
    assert found["failures"][0].startswith("Store.Broken: status 1")
    assert found["failures"][1:] == ["Rows.InCompany: passes alone, and not in one process with others"]
    assert [test for _, test, _ in tests.failed] == ["Store.Broken"]
    commands = [line for line in part.log.read_text().splitlines() if line.startswith("$ ")]
    assert sum("--gtest_filter=Store" in line and "sanitizer" not in line for line in commands) == 4


def test_the_simplest_tests_come_first() -> None:
    programs = {"a": ["AttentionHopper.X", "Seeds/Store.X/0", "AttentionMma.X"], "b": ["AttentionPlain.X", "Probes.X"]}
    order = [test for _, test in device_tests.Tests(Path(), programs, {}).every]
    assert order == ["Probes.X", "Seeds/Store.X/0", "AttentionPlain.X", "AttentionMma.X", "AttentionHopper.X"]


def test_sanitizers_pass_over_what_is_slow_and_fail_on_what_they_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_tests, "SANITIZER_SECONDS", 2)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program(
        tmp_path / "compute-sanitizer",
        "if WORDS[1] == 'synccheck': time.sleep(20)\n"
        "if WORDS[1] == 'racecheck': sys.exit(print('========= Error: Race reported between Read') or 9)\n",
    )
    programs = {"check-cuda-runtime": ["Store.Works"], "check-cuda-watched": ["AttentionHopper.Hangs"]}
    part, _ = run_tests(tmp_path, programs)
    found = results(part.out, 1)["jobs"]
    commands = [line for line in part.log.read_text().splitlines() if line.startswith("$ compute-sanitizer")]
    ends = {(words[3], Path(words[6]).name): words[-1].partition(":-")[2] for words in map(str.split, commands)}
    assert ends.pop(("racecheck", "check-cuda-watched")) == "Probes.*"  # where all lanes release a barrier
    assert ends.pop(("racecheck", "check-cuda-runtime")) == "AttentionHopper.*"
    assert set(ends.values()) == {""}
    assert [found[tool]["status"] for tool in device_tests.TOOLS] == ["failed", "passed", "passed"]
    assert "Race reported" in found["racecheck"]["failures"][0]
    assert "not at its end" in found["synccheck"]["details"]["check-cuda-runtime"]
    assert found["initcheck"]["details"]["check-cuda-runtime"] == "nothing found"


def test_places_that_wait_are_found_in_the_sources() -> None:
    waits = device_pack.find_waits()
    said = {line for place, line in waits.items() if place.startswith("hopper_forward.h:")}
    assert "waitForPhase(&keys.empty, keyRing.parity ^ 1);" in said
    assert len({place.partition(":")[0] for place in waits}) >= 3


# ---- figures ----


def test_figures_are_kept_where_a_program_fails_behind_them(tmp_path: Path) -> None:
    """Of programs that fail, that take too long, that leave no report."""
    figures = {"device": {"name": "card"}, "figures": [{"what": "copy", "value": 3000.0, "unit": "GB/s"}]}
    write = f"open(WORDS[0], 'w').write({json.dumps(figures)!r})\n"
    program(tmp_path / "bench-cuda-ceilings", write + "sys.exit('error: out of memory')\n")
    program(tmp_path / "bench-cuda-step", write + "time.sleep(20)\n")
    program(tmp_path / "bench-cuda-unique", "open(WORDS[0], 'w').write('{')\n")
    part = make_part(tmp_path / "out", number=2, hkv="packed without", torch="no torch")
    programs = ["bench-cuda-ceilings", "bench-cuda-step", "bench-cuda-unique"]
    made = device_figures.Figures(tmp_path, programs, sys.executable).jobs()
    for job in made:
        if job.name in ("ceilings", "step", "unique", "hkv", "peers"):
            job.seconds = 1 if job.name == "step" else 5
            part.do(job)
    found = results(part.out, 2)["jobs"]
    assert [found[n]["status"] for n in ("ceilings", "step", "unique", "hkv", "peers")] == [
        "failed", "failed", "passed", "skipped", "skipped",
    ]  # fmt: skip
    assert found["step"]["details"]["report"] == figures
    assert found["ceilings"]["failures"] == ["status 1: error: out of memory"]
    assert sorted(path.name for path in part.out.iterdir()) == ["part-2.json", "part-2.log"]


def test_every_benchmark_has_its_time_and_all_fit_into_the_part() -> None:
    """With the examples and PyTorch's, as far as they take their time; the limits of a carrier of such machines."""
    programs = {path.name.split(".")[0] for path in (ROOT / "benchmarks" / "cuda").glob("*.cu")}
    assert programs | {"peers"} == set(device_figures.SECONDS)
    assert sum(device_figures.SECONDS.values()) <= 300
    tests = device_tests.Tests(Path(), {f"check-{i}": [f"{s}X"] for i, s in enumerate(device_tests.ORDER)}, {})
    assert sum(job.seconds for job in tests.jobs()) <= run.PART_SECONDS[1]
    assert max(run.PART_SECONDS.values()) <= 9 * 60
    others = set(run.PART_SECONDS) - {run.FIRST_LOOK}  # which has a folder of its own
    assert 2 * len(others) + 1 <= jobs.FILES


# ---- examples ----

BINARY = """
def flag(name): return WORDS[WORDS.index(name) + 1] if name in WORDS else None
moved = (flag('--checkpoint') or '').endswith('rate-2')  # one of the CPU's runs with moved rates
part = MOVED if moved else 0
loss = {'device': DEVICE, 'cpu': 0.5}[NAME]
if part is None:
    sys.exit('error: no such rate')
if WORDS == ['info', '--json']:
    rates = [{'optimizer': {'learning_rate': rate}} for rate in (0.01, 0.001)]
    print(json.dumps({'tables': rates[:1], 'parameters': rates[1:]}))
elif WORDS[0] == 'train':
    assert (flag('--lr') == repr(0.01 * (1 - 2 * 2**-23))) == moved
    for step in range(1, STEPS[NAME] + 1):
        now = loss if step > 6 or NAME == 'device' and EARLY else 0.5
        print(json.dumps({'event': 'step', 'step': step, 'loss': now + part * (step > 6), 'seconds': step * 0.01}))
    os.mkdir(flag('--checkpoint'))
    host = {'device': {'device': {'host': {'steps': 8, 'data_ms': 0.5, 'wait_ms': 0.25}}}}.get(NAME, {})
    open(flag('--metrics-json'), 'w').write(json.dumps(host))
else:
    assert os.path.isdir(flag('--checkpoint')) and flag('--catalogue').startswith('items=/')
    metrics = {'auc': {'device': AUC, 'cpu': 0.7 + part}[NAME]}
    open(flag('--metrics-json'), 'w').write(json.dumps({'evaluation': {'loss': loss, 'metrics': metrics}}))
"""


def compare(
    folder: Path,
    device: float = 0.5,
    auc: float = 0.7,
    steps: int = 12,
    body: str = BINARY,
    moved: float | None = 0,
    early: bool = True,
) -> dict[str, Any]:
    """Compares an example whose binaries are made up.

    A run of the CPU with another learning rate parts by `moved` from step 7 on, and so does the device unless `early`.
    """
    given = f"DEVICE, AUC, STEPS = float('{device}'), {auc}, {{'device': {steps}, 'cpu': 12}}\n"
    given += f"MOVED, EARLY = {moved}, {early}\n"
    for side in ("device", "cpu"):
        program(folder / "clicks" / side, given + body)
    (folder / "clicks" / "example.json").write_text(json.dumps(SPEC))
    device_examples.main([str(folder), str(folder / "out"), "--steps", "12"])
    return results(folder / "out", 2)["jobs"]["example clicks"]


def test_examples_agree_within_their_bounds(tmp_path: Path) -> None:
    found = compare(tmp_path, device=0.5 + 4e-6, auc=0.7015)
    assert found["status"] == "passed"
    details = found["details"]
    assert details["losses_apart"] == pytest.approx(8e-6) and details["steps"] == 12
    assert details["device_step_seconds"] == pytest.approx(0.01)
    assert details["metrics"]["device"]["auc"] == 0.7015
    assert device_examples.line("clicks", details).endswith("ms; the host: data 0.500, wait 0.250")


def test_an_example_may_amplify_rounding_as_the_cpu_does(tmp_path: Path) -> None:
    found = compare(tmp_path, device=0.501, auc=0.703, moved=0.0016, early=False)
    assert found["status"] == "passed", found
    assert found["details"]["losses_apart"] == pytest.approx(0.002)
    assert found["details"]["cpu_apart"] == pytest.approx(0.0032)
    assert found["details"]["cpu_runs"] == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": 0.50001}, "losses part by 2.0e-05; first in step 1, more than 1.0e-05: 0.50001, on the CPU 0.5"),
        (
            {"device": 0.501, "moved": 0.0004, "early": False},
            "first in step 7, more than 1.6e-03: 0.501, on the CPU 0.5",
        ),
        ({"device": 0.501, "moved": 0.001}, "first in step 1, more than 1.0e-05"),
        ({"device": 0.501, "moved": None}, "losses part by 2.0e-03; first in step 1"),
        ({"auc": 0.703, "moved": 0.001}, "auc is 0.703, on the CPU 0.7: more than 2.0e-03 apart"),
        ({"device": float("nan")}, "losses part by nan"),
        ({"auc": 0.703}, "auc is 0.703, on the CPU 0.7: more than 2.0e-03 apart"),
        ({"steps": 11}, "device train: 11 steps, asked for 12"),
        ({"body": "sys.exit('error: there is no device')"}, "device train: status 1: error: there is no device"),
    ],
    ids=["loss", "rounding", "early", "refused", "moved", "nan", "metric", "steps", "failure"],
)
def test_examples_that_disagree_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    found = compare(tmp_path, **change)
    assert found["status"] == "failed" and message in found["failures"][0]


def measure_large(folder: Path, loss: str) -> dict[str, Any]:
    """The job of a model that is there for its speed; it has no binary for the CPU."""
    given = f"DEVICE, AUC, STEPS = float('{loss}'), 0.7, {{'device': 16}}\nMOVED, EARLY = 0, True\n"
    program(folder / "large" / "device", given + BINARY)
    (folder / "large" / "example.json").write_text(json.dumps({**SPEC, "step_flops": 2e10}))
    device_examples.main([str(folder), str(folder / "out")])
    return results(folder / "out", 2)["jobs"]["example large"]


def test_a_model_that_is_there_for_its_speed_has_a_rate(tmp_path: Path) -> None:
    found = measure_large(tmp_path, "0.5")
    assert found["status"] == "passed" and found["details"]["steps"] == 16
    assert found["details"]["tflops_per_second"] == pytest.approx(2)  # 2e10 in 10 ms
    assert device_examples.line("large", found["details"]).endswith("2.0 TFLOP/s; the host: data 0.500, wait 0.250")


def test_a_rate_of_losses_that_are_not_finite_is_a_failure(tmp_path: Path) -> None:
    found = measure_large(tmp_path, "nan")
    assert found["status"] == "failed" and "losses are not finite" in found["failures"][0]


def test_peers_of_examples_are_named_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As peers.py: skipped and written down."""
    monkeypatch.setattr(torch_examples, "find_torch", lambda *_: (None, "torch finds no CUDA device"))
    assert torch_examples.main(["--dry-run"]) == 0
    assert torch_examples.main([str(tmp_path / "a.json")]) == 0
    content = json.loads((tmp_path / "a.json").read_text())
    assert [entry["what"] for entry in content["skipped"]] == list(torch_examples.MODELS)


# ---- the slowest kernels ----

NCU = """
print('==PROF== Connected to process 12, libraries of ncu:', os.environ.get('LD_LIBRARY_PATH'))
kernels = {'void ns::slow<int, (bool)1>(int *)': '2,000,000', 'fast(float *)': '10', 'middle(int)': '500'}
names = [n for n in kernels if '--kernel-name' not in WORDS or WORDS[WORDS.index('--kernel-name') + 1] in n]
print('"ID","Kernel Name","gpu__time_duration.sum"\\n"","","ns"')
for number, name in enumerate(names):
    print(f'"{number}","{name}","{kernels[name]}"')
print('==PROF== Disconnected')
"""


def test_the_slowest_kernels_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(kernel_profile, "MOST", 2)
    monkeypatch.setenv("LD_LIBRARY_PATH", "mine")
    program(tmp_path / "ncu", NCU)
    program(
        tmp_path / "device",
        "limits = os.environ['GENREC_MACHINE']\n"
        "if WORDS[0] == 'calibrate':\n"
        "    json.dump({'threads': 0}, open(limits, 'w'))\n"
        "else:\n"
        "    profile = {'ops': [os.environ['LD_LIBRARY_PATH']], 'by': json.load(open(limits))}\n"
        "    json.dump(profile, open(WORDS[WORDS.index('--profile') + 1] + '/profile.json', 'w'))\n",
    )
    part = make_part(tmp_path / "out", number=3)
    part.environment["LD_LIBRARY_PATH"], part.library_path = "/wheels", "/packed/lib"
    runs = [
        kernel_profile.Run("bench", ("bench-cuda-step",)),
        kernel_profile.Run("clicks", (tmp_path / "device",), True),
    ]
    for job in kernel_profile.Profile(runs).jobs():
        part.do(job)
    found = results(part.out, 3)["jobs"]
    assert [record["status"] for record in found.values()] == ["passed"] * 4
    details = found["ops of clicks"]["details"]
    assert details["profile"] == {"ops": ["/packed/lib"], "by": details["limits"]}
    assert "libraries of ncu: mine" in part.log.read_text() and "env LD_LIBRARY_PATH=/wheels" in part.log.read_text()
    times = found["times of bench"]["details"]
    assert times["launches"] == 3 and times["kernels"][0]["ms"] == pytest.approx(2.0)
    assert list(found["slowest kernels"]["details"]) == [
        "1. bench, void ns::slow<int, (bool)1>(int *)", "2. clicks, void ns::slow<int, (bool)1>(int *)",
    ]  # fmt: skip
    assert (part.out / "part-3.csv").read_text().count("slow") == 2


def test_a_profile_of_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program(tmp_path / "ncu", "sys.exit('==ERROR== The user does not have permission')\n")
    part = make_part(tmp_path / "out", number=3)
    for job in kernel_profile.Profile([kernel_profile.Run("bench", ("x",))]).jobs():
        part.do(job)
    found = results(part.out, 3)["jobs"]
    assert "does not have permission" in found["times of bench"]["failures"][0]
    assert found["slowest kernels"]["failures"] == ["no kernel was timed"]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("void genrec::rt::cuda::gatherRows<float>(const float *)", "gatherRows"),
        ("row_norm(int)", "row_norm"),
        ("void genrec::rt::cuda::(anonymous namespace)::copy<int>(const int *)", "copy"),
        ("genrec::rt::cuda::<unnamed>::addParts(float *)", "addParts"),
        ("(anonymous namespace)::", "(anonymous namespace)::"),
        ("unnamed", "unnamed"),
    ],
)
def test_kernels_are_found_by_their_own_names(kernel: str, name: str) -> None:
    assert kernel_profile.base_name(kernel) == name


# As ncu names kernels of a training step; times in ns.
STEP = {
    "void genrec::rt::cuda::attentionForwardHopper<genrec::rt::cuda::AttentionConfig<Bf16, 128, 128>>(Args)": 400,
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT": 300,
    "void genrec::rt::cuda::<unnamed>::multiplyTiles<float, 64>(Tiles)": 100,
    "row_history_mul_2": 60,
    "void genrec::rt::cuda::(anonymous namespace)::copy<genrec::rt::cuda::Bf16>(Copies)": 15,
    "row_touched_item_update_item": 50,
    "void genrec::rt::cuda::findRows<genrec::rt::cuda::KeyTable>(Find)": 70,
    "void at::native::<unnamed>::unknown(int)": 5,
}


def test_times_of_kernels_are_summed_by_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runtime's kernels by the files that they are in, of generated and of the library's by their names."""
    lines = ['"ID","Kernel Name","gpu__time_duration.sum"', '"","","ns"']
    lines += [f'"{number}","{kernel}","{time}"' for number, (kernel, time) in enumerate(STEP.items())]
    program(tmp_path / "ncu", f"print({chr(10).join(lines)!r})\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    part = make_part(tmp_path / "out", number=3)
    profile = kernel_profile.Profile([kernel_profile.Run("clicks", ("x",))], device_pack.classify_kernels())
    part.do(profile.jobs()[0])
    shares = results(part.out, 3)["jobs"]["times of clicks"]["details"]["classes"]
    assert shares == pytest.approx(
        {"attention": 0.4, "products": 0.4, "elementwise": 0.075, "tables": 0.12, "other": 0.005}
    )
    assert "by class: attention 40.0%, products 40.0%, tables 12.0%, elementwise 7.5%" in part.log.read_text()


def test_models_are_packed_with_what_their_runs_need(tmp_path: Path) -> None:
    """The large ones with their work, the compared one with the peer's arrays and in the peer's order."""
    import device_models

    large = device_models.MODELS["hstu_large"](tmp_path / "large", device_models.SMALL)[2].spec()
    assert large["step_flops"] == device_models.large_flops(device_models.SMALL, shared=False)
    assert large["train_flags"] == []
    shared = device_models.MODELS["hstu_large_shared"](tmp_path / "shared", device_models.SMALL)[2].spec()
    assert shared["step_flops"] == device_models.large_flops(device_models.SMALL, shared=True) > large["step_flops"]
    compared = device_models.MODELS["hstu_movielens"](tmp_path / "movielens", device_models.SMALL)[2].spec()
    assert compared["train_flags"] == ["--no-shuffle"] and compared["data"] == "drawn, of the shape of MovieLens-1M"
    assert (tmp_path / "movielens" / "peer.npz").exists() and compared["step_flops"] == 0
    before = device_models.pq.read_table(tmp_path / "movielens" / "train.parquet")
    device_pack.write_plainly(tmp_path / "movielens" / "train.parquet")
    assert device_models.pq.read_table(tmp_path / "movielens" / "train.parquet").equals(before)


def test_every_kernel_of_the_runtime_has_a_class() -> None:
    """As many as the sources declare, in each class some."""
    classes = device_pack.classify_kernels()
    sources = [path for path in (ROOT / "runtime").rglob("*") if path.suffix in (".h", ".cu")]
    declared = sum(path.read_text().count("__global__") for path in sources)
    named = sum(len(device_pack.KERNEL.findall(path.read_text())) for path in sources)
    assert declared == named and set(classes.values()) == {"attention", "products", "elementwise", "tables"}
    by_place: dict[str, set[str]] = {}
    for path in sources:
        place = path.relative_to(ROOT).as_posix()
        kind = next(
            (kind for files, kind in device_pack.CLASSES.items() if device_pack.re.search(files, place)), "tables"
        )
        for name in device_pack.KERNEL.findall(path.read_text()):
            by_place.setdefault(name, set()).add(kind)
    assert {name for name, kinds in by_place.items() if len(kinds) > 1} == set(), "one name, two classes"
