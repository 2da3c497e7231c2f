"""compile, against a stand-in for the compiler."""

import json
import os

import genrec as gr
import pytest
from genrec import compiler
from model_writing import write_ranker
from stand_ins import write_program


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder of tools whose genrec-compile copies the model file and keeps its flags."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("GENREC_BIN", str(folder))
    write_program(
        folder / "genrec-compile",
        f"""
        import shutil
        json.dump(sys.argv[1:], open({str(tmp_path / "flags.json")!r}, "w"))
        output = sys.argv[sys.argv.index("-o") + 1]
        shutil.copy(sys.argv[1], output)
        if "--save-temps" in sys.argv:
            open(output + ".cpp", "w").write("// C++")
        """,
    )
    return folder


def test_compile_writes_the_model_file_and_calls_the_compiler(tools, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = write_ranker(tmp_path, "gr.output(x=self.user(batch.user))")
    model = gr.compile(module.Ranker(), module.schema)
    assert model.binary == tmp_path / "ranker" and model.binary.read_bytes()[4:8] == b"GNRC"
    flags = json.loads((tmp_path / "flags.json").read_text())
    assert flags == [f"{model.binary}.genrec", "--target=cpu", "-O2", "-o", str(model.binary)]
    out = tmp_path / "deep" / "model"
    gr.compile(module.Ranker(), module.schema, output=out, opt=0, keep_cpp=tmp_path / "m.cpp", flags=["--march=x"])
    flags = json.loads((tmp_path / "flags.json").read_text())
    assert flags[1:] == ["--target=cpu", "-O0", "-o", str(out), "--march=x", "--save-temps"]
    gr.compile(module.Ranker(), module.schema, output=tmp_path / "mixed", mixed_precision=True)
    assert "--mixed-precision" in json.loads((tmp_path / "flags.json").read_text())
    assert (tmp_path / "m.cpp").read_text() == "// C++" and not (tmp_path / "deep" / "model.cpp").exists()


def test_compile_says_what_the_compiler_says(tools, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = write_ranker(tmp_path, "gr.output(x=self.user(batch.user))")
    write_program(tools / "genrec-compile", "sys.exit('ranker.py:21: error: no')")
    with pytest.raises(gr.CompileError) as raised:
        gr.compile(module.Ranker(), module.schema)
    assert str(raised.value) == "ranker.py:21: error: no"
    with pytest.raises(gr.ModelError):
        gr.compile(module.Ranker(), gr.Schema({"nobody": gr.int64}))


def test_a_missing_tool_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GENREC_BIN", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "_CHECKOUT", tmp_path)
    with pytest.raises(gr.CompileError, match="genrec-compile was not found in .*, PATH\n  help: run `make build`"):
        compiler.find_tool("genrec-compile")
    assert os.environ["PATH"] == str(tmp_path)
