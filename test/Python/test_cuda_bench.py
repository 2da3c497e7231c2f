"""What of the benchmarks for a CUDA device needs none: the peers' command line and results, and the packed script."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "benchmarks" / "cuda"))

import collect  # noqa: E402
import cuda_pack  # noqa: E402
import peers  # noqa: E402


def test_a_dry_run_of_the_peers_names_the_groups(capsys: pytest.CaptureFixture) -> None:
    """In the order in which they are measured, and whether a device is here."""
    assert peers.main(["--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [f"would measure: {group}" for group in peers.GROUPS]
    assert "torch" in lines[-1]
    assert peers.main(["--dry-run", "--only", "gather"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "would measure: gather"


def test_arguments_of_the_peers_are_checked(capsys: pytest.CaptureFixture) -> None:
    """argparse's status 2, with the name of what is wrong."""
    with pytest.raises(SystemExit) as ended:
        peers.main(["--only", "speed"])
    assert ended.value.code == 2
    assert "'speed'" in capsys.readouterr().err


def test_peers_that_cannot_run_are_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch everything is skipped, said and recorded; that is no failure."""
    monkeypatch.setattr(peers, "find_torch", lambda: (None, "torch is not installed for this Python"))
    file = tmp_path / "peers.json"
    assert peers.main([str(file)]) == 0
    content = json.loads(file.read_text())
    assert content["figures"] == []
    assert [entry["what"] for entry in content["skipped"]] == list(peers.GROUPS)
    assert peers.main([str(tmp_path / "none" / "peers.json")]) == 1


def test_figures_are_written_with_their_units(tmp_path: Path) -> None:
    """The form that report.h writes."""
    report = peers.Report(tmp_path / "a.json")
    report.device = {"name": "card"}
    report.add("copy", 1.5, "GB/s")
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "program": "peers",
        "device": {"name": "card"},
        "figures": [{"what": "copy", "value": 1.5, "unit": "GB/s"}],
        "skipped": [],
    }


def test_every_program_has_its_time_and_all_take_8_minutes() -> None:
    """A program that cuda_pack does not know could not be packed; there are two of tests."""
    assert 2 * sum(cuda_pack.CHECK_SECONDS.values()) <= 8 * 60
    programs = {path.name.split(".")[0] for path in (ROOT / "benchmarks" / "cuda").glob("*.cu")}
    assert programs | {"peers.py"} == set(cuda_pack.BENCH_SECONDS)
    assert sum(cuda_pack.BENCH_SECONDS.values()) <= 8 * 60


def make_executable(folder: Path, scripts: dict[str, str]) -> None:
    """Writes programs made up."""
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def test_the_packed_script_collects_results_and_counts_failures(tmp_path: Path) -> None:
    """With one program that writes figures, one that fails, one that had written some; peers without torch."""
    figures = """{"device": {"name": "card"}, "figures": [{"what": "copy", "value": 3000, "unit": "GB/s"}]}"""
    programs = ["bench-cuda-ceilings", "bench-cuda-step", "bench-cuda-unique"]
    make_executable(
        tmp_path,
        {
            "run": cuda_pack.run_script("bench", programs, "abc123"),
            "bench-cuda-ceilings": f"#!/bin/sh\necho '{figures}' >\"$1\"\n",
            "bench-cuda-step": "#!/bin/sh\nexit 1\n",
            "bench-cuda-unique": f"#!/bin/sh\necho '{figures}' >\"$1\"\nexit 1\n",
        },
    )
    (tmp_path / "peers.py").write_text("import sys; open(sys.argv[1], 'w').write('{\"figures\": []}')\n")
    (tmp_path / "collect.py").write_text((ROOT / "benchmarks" / "cuda" / "collect.py").read_text())
    ended = subprocess.run(
        [tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
    )
    assert ended.returncode == 2
    assert ended.stdout.splitlines()[-1] == "2 failed"
    (ceilings,) = tmp_path.glob("results/bench-cuda-ceilings-*.json")
    content = json.loads(ceilings.read_text())
    assert content["commit"] == "abc123" and content["report"]["figures"][0]["value"] == 3000
    assert len(list(tmp_path.glob("results/*-*.json"))) == 4, "of three programs and all of them together"
    (together,) = tmp_path.glob("results/cuda-*-card.json")
    assert json.loads(together.read_text())["hardware"]["processor"] == "card"


def test_the_packed_tests_are_run_and_counted(tmp_path: Path) -> None:
    """A program that fails counts; the sanitizer runs them all once more, on a part of the tests."""
    make_executable(
        tmp_path,
        {
            "run": cuda_pack.run_script("check", ["good", "bad"], "abc123"),
            "good": "#!/bin/sh\nexit 0\n",
            "bad": "#!/bin/sh\nexit 1\n",
            "sanitizer": '#!/bin/sh\necho "checked $3 $5"\n',
        },
    )
    environment = {"PATH": "/usr/bin:/bin", "COMPUTE_SANITIZER": "./sanitizer"}
    ended = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 1
    assert f"checked ./bad --gtest_filter={cuda_pack.SANITIZED}" in ended.stdout
    ended = subprocess.run(
        [tmp_path / "run"], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert ended.stdout.splitlines()[-2:] == ["SKIPPED: compute-sanitizer, which is not here", "1 failed"]


def write_results(folder: Path, program: str, figures: dict[str, tuple[float | None, str]], **changes: str) -> None:
    """What a program leaves, with figures made up."""
    listed = [{"what": what, "value": value, "unit": unit} for what, (value, unit) in figures.items()]
    report = {"program": program, "device": {"name": changes.get("device", "card")}, "figures": listed, "skipped": []}
    date = changes.get("date", "2026-11-21")
    content = {"date": date, "commit": changes.get("commit", "abc123"), "report": report}
    (folder / f"{program}-{date}.json").write_text(json.dumps(content))


def test_ours_and_the_peers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Rates and times each in their direction, limits by number and by another figure; what misses is said."""
    write_results(tmp_path, "bench-cuda-ceilings", {"copy": (1.0, "GB/s")}, date="2026-11-20")
    write_results(
        tmp_path,
        "bench-cuda-ceilings",
        {"copy": (4000.0, "GB/s"), "gatherRows, rows of 64 B": (3600.0, "GB/s"), "random gather": (None, "GB/s")},
    )
    write_results(
        tmp_path,
        "bench-cuda-unique",
        {"segment-unique, 1 Mi ids in 10": (50.0, "us"), "CUB sort, 1 Mi ids in 10": (200.0, "us")},
    )
    write_results(tmp_path, "bench-cuda-store", {"cache, find, pointers, dim 8, load 1.00": (1.5, "G ids/s")})
    write_results(tmp_path, "bench-cuda-hkv", {"HierarchicalKV find, pointers, dim 8, load 1.00": (1.0, "G ids/s")})
    assert collect.main([str(tmp_path)]) == 0
    said = {line[:66].strip(): line[66:] for line in capsys.readouterr().out.splitlines()}
    assert (
        "1.50x of HierarchicalKV find, pointers, dim 8, load 1.00, asked 1.6x: MISSED"
        in (said["cache, find, pointers, dim 8, load 1.00"])
    )
    assert said["gatherRows, rows of 64 B"].endswith("90% of copy")
    content = json.loads((tmp_path / "cuda-2026-11-21-card.json").read_text())
    rows = [row for row in content["summary"] if row["what"] == "segment-unique, 1 Mi ids in 10"]
    assert rows[0]["limit_share"] == pytest.approx(0.8) and rows[0]["limit"] == "40 us asked"
    assert rows[1]["ratio"] == pytest.approx(4.0) and rows[1]["asked"] == 3.0
    assert len(content["figures"]) == 7
    assert "table step forward, 10 tables, 1 Mi ids, D 128" in content["not_compared"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "other"}, "have one device, found bench-cuda-ceilings 'card', bench-cuda-unique 'other'"),
        ({"commit": "def456"}, "have one commit, found bench-cuda-ceilings 'abc123', bench-cuda-unique 'def456'"),
    ],
    ids=["device", "commit"],
)
def test_results_of_two_runs_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture, changes: dict[str, str], message: str
) -> None:
    """Ratios between machines or versions would mean nothing."""
    write_results(tmp_path, "bench-cuda-ceilings", {"copy": (4000.0, "GB/s")})
    write_results(tmp_path, "bench-cuda-unique", {}, **changes)
    assert collect.main([str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_files_that_are_no_results_are_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """An empty folder, no JSON, figures without a unit."""
    assert collect.main([str(tmp_path)]) == 1
    assert "has no bench-cuda-<name>-<date>.json" in capsys.readouterr().err
    for text in ("{", "[]", '{"date": "2026-11-21", "commit": "a", "report": {"figures": [{"what": "x"}]}}'):
        (tmp_path / "peers-2026-11-21.json").write_text(text)
        assert collect.main([str(tmp_path)]) == 1
        assert "peers-2026-11-21.json' is not what a benchmark writes" in capsys.readouterr().err


def test_figures_that_are_compared_are_those_of_the_programs() -> None:
    """Names are made up of parts in the programs: a word that none of them has would never be found."""
    folder = ROOT / "benchmarks" / "cuda"
    known = " ".join(path.read_text() for path in [*folder.glob("*.cu"), *folder.glob("*.h"), folder / "peers.py"])
    words = set(re.findall(r"[A-Za-z_]+", known))
    for asked in collect.ASKED:
        named = [asked.ours, asked.peer, asked.limit if isinstance(asked.limit, str) else ""]
        assert set(re.findall(r"[A-Za-z_]+", " ".join(named))) <= words, asked
