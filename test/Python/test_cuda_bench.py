"""What of the benchmarks for a CUDA device needs none: the peers' command line and results, and the packed script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "benchmarks" / "cuda"))

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
    report = peers.Report()
    report.device = {"name": "card"}
    report.add("copy", 1.5, "GB/s")
    report.write(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "program": "peers",
        "device": {"name": "card"},
        "figures": [{"what": "copy", "value": 1.5, "unit": "GB/s"}],
        "skipped": [],
    }


def test_every_benchmark_has_its_time_and_all_take_8_minutes() -> None:
    """A program that cuda_pack does not know could not be packed."""
    programs = {path.name.split(".")[0] for path in (ROOT / "benchmarks" / "cuda").glob("*.cu")}
    assert programs | {"peers.py"} == set(cuda_pack.BENCH_SECONDS)
    assert sum(cuda_pack.BENCH_SECONDS.values()) <= 8 * 60


def test_the_packed_script_collects_results_and_counts_failures(tmp_path: Path) -> None:
    """With programs made up: one that writes figures, one that fails; peers without torch."""
    (tmp_path / "bench-cuda-ceilings").write_text('#!/bin/sh\necho \'{"figures": []}\' >"$1"\n')
    (tmp_path / "bench-cuda-step").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "peers.py").write_text("import sys; open(sys.argv[1], 'w').write('{}')\n")
    run = tmp_path / "run"
    run.write_text(cuda_pack.run_script("bench", ["bench-cuda-ceilings", "bench-cuda-step"], "abc123"))
    for path in (run, tmp_path / "bench-cuda-ceilings", tmp_path / "bench-cuda-step"):
        path.chmod(0o755)
    ended = subprocess.run(
        [run], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    )
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1] == "1 failed"
    (ceilings,) = tmp_path.glob("results/bench-cuda-ceilings-*.json")
    content = json.loads(ceilings.read_text())
    assert content["commit"] == "abc123" and content["report"] == {"figures": []}
    assert len(list(tmp_path.glob("results/*.json"))) == 2
