"""What of the benchmarks for a CUDA device needs none: the peers' command line and results, and what is made of them."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "cuda"))

import collect  # noqa: E402
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


def write_results(folder: Path, programs: dict[str, dict[str, tuple[float | None, str]]], **devices: str) -> None:
    """What part 2 leaves, with figures made up, by job. `devices`: names by job, of the others "card"."""
    jobs: dict[str, dict] = {"hkv": {"status": "skipped", "why": "packed without"}}
    for program, figures in programs.items():
        listed = [{"what": what, "value": value, "unit": unit} for what, (value, unit) in figures.items()]
        report = {
            "program": program,
            "device": {"name": devices.get(program, "card")},
            "figures": listed,
            "skipped": [],
        }
        jobs[program] = {"status": "passed", "details": {"report": report}}
    jobs["example search_ranking"] = {"status": "passed", "details": {"device_step_seconds": 2e-3}}
    jobs["example criteo_dlrm"] = {
        "status": "passed",
        "details": {"device_step_seconds": 1e-3, "cpu_step_seconds": 8e-3},
    }
    (folder / "part-2.json").write_text(json.dumps({"date": "2026-11-21", "commit": "abc123", "jobs": jobs}))


def test_ours_and_the_peers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Rates and times each in their direction, limits by number and by another figure; what misses is said."""
    rates = {"copy": (4000.0, "GB/s"), "gatherRows, rows of 64 B": (3600.0, "GB/s"), "random gather": (None, "GB/s")}
    times = {"segment-unique, 1 Mi ids in 10": (50.0, "us"), "CUB sort, 1 Mi ids in 10": (200.0, "us")}
    write_results(
        tmp_path,
        {
            "ceilings": rates,
            "unique": times,
            "store": {"cache, find, pointers, dim 8, load 1.00": (1.5, "G ids/s")},
            "hkv": {"HierarchicalKV find, pointers, dim 8, load 1.00": (1.0, "G ids/s")},
            "PyTorch's examples": {"PyTorch, a step of criteo_dlrm": (5.0, "ms")},
            "PyTorch: search_ranking": {"PyTorch, a step of search_ranking, a table per width": (5.0, "ms")},
        },
    )
    assert collect.main([str(tmp_path)]) == 0
    said = {line[:66].strip(): line[66:] for line in capsys.readouterr().out.splitlines()}
    assert (
        "1.50x of HierarchicalKV find, pointers, dim 8, load 1.00, asked 1.6x: MISSED"
        in (said["cache, find, pointers, dim 8, load 1.00"])
    )
    assert said["gatherRows, rows of 64 B"].endswith("90% of copy")
    assert said["criteo_dlrm, a step"].endswith("5.00x of PyTorch, a step of criteo_dlrm")
    assert said["search_ranking, a step"].endswith(
        "2.50x of PyTorch, a step of search_ranking, a table per width, asked 3x: MISSED"
    )
    content = json.loads((tmp_path / "cuda-2026-11-21-card.json").read_text())
    assert content["commit"] == "abc123" and content["hardware"]["processor"] == "card"
    rows = [row for row in content["summary"] if row["what"] == "segment-unique, 1 Mi ids in 10"]
    assert rows[0]["limit_share"] == pytest.approx(0.8) and rows[0]["limit"] == "40 us asked"
    assert rows[1]["ratio"] == pytest.approx(4.0) and rows[1]["asked"] == 3.0
    assert len(content["figures"]) == 12
    assert "table step forward, 10 tables, 1 Mi ids, D 128" in content["not_compared"]


def test_shares_of_a_step_are_taken_from_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Of part 3; a share is asked to be at most its limit."""
    write_results(tmp_path, {"ceilings": {"copy": (4000.0, "GB/s")}})
    classes = {"products": 0.7, "elementwise": 0.1}
    jobs = {"times of hstu_large": {"details": {"classes": classes}}, "slowest kernels": {"status": "skipped"}}
    (tmp_path / "part-3.json").write_text(json.dumps({"jobs": jobs}))
    assert collect.main([str(tmp_path)]) == 0
    said = {line[:66].strip(): line[66:] for line in capsys.readouterr().out.splitlines()}
    assert said["hstu_large, elementwise kernels of a step"].endswith("80% of 8 % asked: MISSED")
    (tmp_path / "part-3.json").write_text("{")
    assert collect.main([str(tmp_path)]) == 1


def test_results_of_two_devices_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Ratios between machines would mean nothing."""
    write_results(tmp_path, {"ceilings": {"copy": (4000.0, "GB/s")}, "unique": {}}, unique="other")
    assert collect.main([str(tmp_path)]) == 1
    assert "have one device, found ceilings 'card', unique 'other'" in capsys.readouterr().err


def test_files_that_are_no_results_are_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """An empty folder, no JSON, figures without a unit."""
    assert collect.main([str(tmp_path)]) == 1
    assert f"has no part-2.json: ./run 2 {tmp_path} makes it" in capsys.readouterr().err
    lacking = '{"date": "", "commit": "a", "jobs": {"a": {"details": {"report": {"figures": [{"what": "x"}]}}}}}'
    for text in ("{", "[]", lacking):
        (tmp_path / "part-2.json").write_text(text)
        assert collect.main([str(tmp_path)]) == 1
        assert "part-2.json' is not what a run writes" in capsys.readouterr().err


def test_figures_that_are_compared_are_those_of_the_programs() -> None:
    """Names are made up of parts in the programs: a word that none of them has would never be found."""
    folder = ROOT / "benchmarks" / "cuda"
    sources = [*folder.glob("*.cu"), *folder.glob("*.h"), folder / "peers.py"]
    sources += [ROOT / "scripts" / "device" / "kernel_profile.py"]
    sources += [ROOT / "scripts" / "device" / "torch_examples.py", ROOT / "scripts" / "device_models.py"]
    known = " ".join(path.read_text() for path in sources)
    words = set(re.findall(r"[A-Za-z_]+", known)) | {"criteo_dlrm", "criteo_dcnv2"}
    for asked in collect.ASKED:
        named = [asked.ours, asked.peer, asked.limit if isinstance(asked.limit, str) else ""]
        assert set(re.findall(r"[A-Za-z_]+", " ".join(named))) <= words, asked
