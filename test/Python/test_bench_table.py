"""The table of benchmarks keeps the figures of every kind of processor."""

import json
import subprocess
import sys

import pytest
from model_writing import ROOT, load

table = load(ROOT / "benchmarks" / "common" / "table.py")
report = load(ROOT / "benchmarks" / "hstu_train" / "report.py")


def results(processor, date, ratio, model=""):
    row = {
        "what": "insert",
        "unit": "ns",
        "ours": 10.0,
        "peer": "TBB",
        "theirs": 10.0 * ratio,
        "ratio": ratio,
        "asked": 6.0,
    }
    hardware = {"processor": processor, "model": model, "cores": 2, "instructions": ["avx2", model]}
    return {"benchmark": "hash_store", "date": date, "hardware": hardware, "summary": [row]}


def test_processors_have_a_row_each(tmp_path):
    files = [results("AMD EPYC", "2026-11-20", 9.0, "17"), results("AMD EPYC", "2026-11-21", 10.0, "17")]
    files += [results("Intel(R) Xeon(R) Processor", "2026-11-21", 3.7, model) for model in ("106", "143")]
    for i, one in enumerate(files):
        (tmp_path / f"{i}.json").write_text(json.dumps(one))
    lines = table.table(table.newest(tmp_path)).splitlines()[2:]
    assert [line.split("|")[4].strip() for line in lines] == ["10.00x", "**3.70x**", "**3.70x**"]
    assert "AMD EPYC (model 17), 2 threads, 2026-11-21" in lines[0]
    assert "model 106" in lines[1] and "model 143" in lines[2]


@pytest.mark.parametrize(
    ("processor", "model", "slug"),
    [
        ("AMD EPYC", "17", "amd-epyc-17"),
        ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "106", "intel-xeon-platinum-8375c-106"),
    ],
)
def test_files_of_processors_have_names_of_their_own(processor, model, slug):
    assert report.processor_slug({"processor": processor, "model": model}) == slug


def test_the_table_is_what_the_results_say():
    subprocess.run([sys.executable, ROOT / "benchmarks" / "common" / "table.py", "--check"], check=True)
