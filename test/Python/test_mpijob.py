"""docs/mpijob.yaml: it is YAML, has what the MPI operator asks for, and its script does what it says."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "docs" / "mpijob.yaml"


def parse(text):
    """The part of YAML that the manifest is written in: mappings, lists and literal blocks by indentation."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    value, rest = _block(lines, 0)
    assert not rest, f"line {rest[0][0]}: wrong indentation"
    return value


def _indent(line):
    assert "\t" not in line
    return len(line) - len(line.lstrip(" "))


def _block(lines, indent):
    """The value whose lines are indented by `indent`, and the lines behind it."""
    lines = [entry for entry in lines if not entry[1].lstrip().startswith("#")]
    result = [] if lines[0][1].lstrip().startswith("- ") else {}
    while lines and _indent(lines[0][1]) == indent:
        number, line = lines[0]
        text = line.strip()
        if isinstance(result, list):
            assert text.startswith("- "), f"line {number}: no list entry"
            text = text[2:]
            if ": " not in text and not text.endswith(":"):
                if text == "|":
                    value, lines = _literal(lines[1:], indent)
                else:
                    value, lines = text, lines[1:]
                result.append(value)
                continue
            # A mapping that begins behind the dash.
            value, lines = _block([(number, " " * (indent + 2) + text), *lines[1:]], indent + 2)
            result.append(value)
            continue
        match = re.fullmatch(r"([A-Za-z]\w*):(?: ([^#]*?))?(?:\s+#.*)?", text)
        assert match, f"line {number}: no mapping: {text}"
        key, scalar = match[1], (match[2] or "").strip()
        assert key not in result, f"line {number}: {key} twice"
        if scalar:
            result[key], lines = scalar, lines[1:]
            continue
        assert len(lines) > 1 and _indent(lines[1][1]) > indent, f"line {number}: {key} has no value"
        result[key], lines = _block(lines[1:], _indent(lines[1][1]))
    assert not lines or _indent(lines[0][1]) < indent, f"line {lines[0][0]}: wrong indentation"
    return result, lines


def _literal(lines, indent):
    inside = []
    while lines and _indent(lines[0][1]) > indent:
        inside.append(lines.pop(0)[1])
    depth = _indent(inside[0])
    return "\n".join(line[depth:] for line in inside) + "\n", lines


@pytest.fixture
def job():
    return parse(MANIFEST.read_text())


def container(job, role):
    (only,) = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
    return only


def test_the_parser_sees_mistakes():
    assert parse("a: 1\nb:\n  - c: 2 # why\n    d: 3\n  - e") == {"a": "1", "b": [{"c": "2", "d": "3"}, "e"]}
    for text in ("a: 1\n  b: 2", "a:\nb: 2", "a: 1\na: 2", "a:\n  - 1\n  b: 2", "a:\n    b: 1\n  c: 2", "nothing"):
        with pytest.raises(AssertionError):
            parse(text)


def test_the_manifest_is_a_job_of_the_operator(job):
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    spec = job["spec"]
    launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
    assert launcher["replicas"] == "1"
    script = container(job, "Launcher")["command"][-1]
    ranks = int(re.search(r"mpirun -n (\d+)", script)[1])
    assert ranks == int(worker["replicas"]) * int(spec["slotsPerWorker"])
    assert int(re.search(r"--portions (\d+)", script)[1]) % ranks == 0
    volumes = {volume["name"] for volume in worker["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in container(job, "Worker")["volumeMounts"]} == volumes == {"data", "checkpoints"}


def test_its_flags_are_those_of_a_binary(job):
    flags = (ROOT / "runtime" / "trainer" / "flags.cpp").read_text()
    script = container(job, "Launcher")["command"][-1]
    used = set(re.findall(r"--[\w-]+", script)) - {"--bind-to"}  # of mpirun
    assert {"--checkpoint", "--resume"} <= used
    for flag in used:
        assert re.search(rf'"{flag}[",]', flags), flag


@pytest.mark.parametrize("is_stopped", [True, False])
def test_its_script_hands_signals_on(job, tmp_path, is_stopped):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(
        f"#!{sys.executable}\n"
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    time.sleep(0.2)\n"
        "    print('saved', flush=True)\n"
        "    sys.exit(138)\n"
        "signal.signal(signal.SIGUSR1, stop)\n"
        "print(*sys.argv[1:], flush=True)\n"
        f"time.sleep(60 if {is_stopped} else 0)\n"
        "sys.exit(7)\n"
    )
    mpirun.chmod(0o755)
    process = subprocess.Popen(
        container(job, "Launcher")["command"], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PATH": f"{tmp_path}:/usr/bin"},
    )  # fmt: skip
    assert process.stdout.readline().startswith("-n 8 ")
    if is_stopped:
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == (("saved\n", 138) if is_stopped else ("", 7))
