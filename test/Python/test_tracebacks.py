"""Of an error in a model, tracebacks show the user's lines and none of this package's."""

import code
import os
import subprocess
import sys
import traceback
from pathlib import Path

import genrec as gr
import pytest

PACKAGE = str(Path(gr.__file__).parent)
MODEL = """\
import genrec as gr

class Ranker(gr.Model):
    def forward(self, batch):
        gr.output(age=batch.age)

def make():
    gr.record(Ranker(), gr.Schema({"user": gr.int64}))
"""
CAUSES = {
    "model": "make()",
    "unforeseen": "gr.record(type('M', (gr.Model,), {'forward': lambda self, b: gr.mod(b.user, [])})(),"
    " gr.Schema({'user': gr.int64}))",
    "data": "import genrec.data; genrec.data.read('missing.csv')",
    "run": "gr.CompiledModel('missing').info()",
}


def run(folder, *arguments, **environment):
    """What Python, given `arguments`, writes."""
    folder.joinpath("ranker.py").write_text(MODEL)
    result = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(PACKAGE).parent), "PYTEST_ADDOPTS": "", **environment},
    )  # fmt: skip
    return result.stdout + result.stderr


@pytest.mark.parametrize("cause", ["model", "unforeseen", "data"])
def test_a_script(cause, tmp_path):
    (tmp_path / "script.py").write_text(f"from ranker import *\n{CAUSES[cause]}\n")
    said = run(tmp_path, "script.py")
    assert PACKAGE not in said
    assert 'script.py", line 2, in <module>' in said and "Error: " in said
    assert PACKAGE in run(tmp_path, "script.py", GENREC_TRACEBACK="1")


def test_a_script_shows_every_frame_of_the_user(tmp_path):
    (tmp_path / "script.py").write_text("from ranker import make\nmake()\n")
    said = run(tmp_path, "script.py")
    assert [line.split(", ", 1)[1] for line in said.splitlines() if line.startswith("  File ")] == [
        "line 2, in <module>", "line 8, in make", "line 5, in forward",
    ]  # fmt: skip
    assert "ranker.py:5: error: 'request' has no feature 'age'" in said


def test_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text("from ranker import make\n\ndef test_it():\n    make()\n")
    said = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert PACKAGE not in said and "genrec/" not in said
    assert "ranker.py:5: " in said and "1 failed" in said
    assert "genrec/" in run(tmp_path, "-m", "pytest", "-q", "test_it.py", GENREC_TRACEBACK="1")


def test_an_interactive_shell(tmp_path, monkeypatch, capsys):
    """As `python -i` and what is built on the module `code`."""
    shell = code.InteractiveConsole()
    for line in ["import genrec as gr", "class M(gr.Model):", "    def forward(self, b): b.age", ""]:
        shell.push(line)
    shell.push("gr.record(M(), gr.Schema({'user': gr.int64}))")
    said = capsys.readouterr().err
    assert PACKAGE not in said and "in forward" in said and "'request' has no feature 'age'" in said


def test_ipython_is_given_lines():
    """IPython asks an exception for `_render_traceback_`, a list of lines."""
    with pytest.raises(gr.ModelError) as raised:
        gr.Table("user", dim=2)(1)
    lines = raised.value._render_traceback_()
    assert PACKAGE not in "".join(lines) and not any("\n" in line for line in lines)
    assert lines[0] == "Traceback (most recent call last):" and "outside of a model" in "".join(lines)


def test_formatting_a_caught_error(monkeypatch):
    with pytest.raises(gr.ModelError) as raised:
        gr.Table("user", dim=2)(1)
    assert PACKAGE not in "".join(traceback.format_exception(raised.value))
    monkeypatch.setenv("GENREC_TRACEBACK", "1")
    assert PACKAGE in "".join(traceback.format_exception(raised.value))


def test_an_error_can_be_raised_again():
    """contextlib and others set `__traceback__`."""
    error = gr.DataError("x")
    try:
        raise error
    except gr.DataError:
        whole = sys.exc_info()[2]
    error.__traceback__ = None
    assert error.__traceback__ is None
    error.__traceback__ = whole
    assert error.__traceback__.tb_frame is whole.tb_frame
