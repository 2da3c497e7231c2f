"""What tests of the front end share: a model around the lines of a forward, and the tools that read model files."""

import importlib.util
import os
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import genrec as gr
import pytest
from genrec.recording import Recording

ROOT = Path(__file__).resolve().parents[2]

HEADER = """\
import genrec as gr
from genrec import nn
columns = {"item": gr.int64, "price": gr.float32.nullable(), "image": gr.float32.vector(2), "tags": [gr.int64]}
schema = gr.Schema({
    "user": gr.int64, "name": gr.string, "held_out": gr.int64.nullable(),
    "history": [{"item": gr.int64, "time": gr.timestamp("s")}],
    "impression": [{"item": gr.int64, "label": gr.float32, "tags": [gr.int64]}],
})


class Ranker(gr.Model):
    def __init__(self):
        self.user = gr.Table("user", dim=2)
        self.item = gr.Table("item", dim=2)
        self.wide, self.attend = gr.Table("wide", dim=6), nn.CrossAttention(2, heads=2)
        self.dense, self.score, self.cross = nn.Linear(2, 4), nn.Linear(2, 1), nn.CrossNetwork(2, 2, rank=1)
        self.block, self.masked = nn.HSTUBlock(2, bias=nn.RelativePosition(4)), nn.HSTUBlock(2, contextual=1)
        self.items = gr.catalogue("items.parquet", schema=gr.Schema(columns, root="items"))

    def forward(self, batch):
"""


_HISTORY = {"item": gr.int64, "next": gr.int64, "time": gr.timestamp("s")}
_EVENTS = {"user": gr.int64, "history": [_HISTORY], "held_out": gr.int64}
_REQUESTS = {
    "user": gr.int64,
    "interest": [gr.int64],
    "impression": [{"item": gr.int64, "position": gr.int64, "label": gr.float32, "tags": [gr.int64]}],
}
# The model class of each folder of examples/, and the fields of its data.
EXAMPLES = {
    "hstu_retrieval": ("Retrieval", _EVENTS),
    "sasrec": ("SASRec", _EVENTS),
    "request_ranking": ("Ranker", _REQUESTS),
}


def write_example(example: str, folder: Path) -> Path:
    """The model file of an example, written into `folder`."""
    name, fields = EXAMPLES[example]
    make = getattr(load(ROOT / "examples" / example / "model.py"), name)
    items = gr.catalogue("items.parquet", id="item", schema=gr.Schema({"item": gr.int64}, root="items"))
    path = folder / f"{example}.genrec"
    gr.write_model(gr.record(make() if name == "Ranker" else make(items), gr.Schema(fields)), path)
    return path


def load(path: Path) -> ModuleType:
    """The Python file at `path` as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_ranker(folder: Path, body: str) -> ModuleType:
    """`ranker.py` in `folder`: a model whose forward is `body`, which begins at line 21."""
    path = folder / "ranker.py"
    path.write_text(HEADER + textwrap.indent(body, " " * 8) + "\n")
    return load(path)


def find_tool(name: str) -> str:
    """The path of a tool; the test is skipped where it is not built."""
    folder = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build")) / "bin"
    found = shutil.which(name, path=os.environ.get("GENREC_BIN", str(folder)))
    if found is None:
        pytest.skip(f"{name} is not built")
    return found


def translate() -> str:
    """The path of genrec-translate."""
    return find_tool("genrec-translate")


def import_model(path: Path, *options: str) -> str:
    """The MLIR of a model file, which must import without a diagnostic."""
    result = subprocess.run(
        [translate(), "--import-model", *options, str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0 and not result.stderr, result.stderr
    return result.stdout


def record_with(forward: Callable[[gr.Batch], None], schema: gr.Schema) -> Recording:
    """What recording a model with that `forward` leaves behind."""

    class Model(gr.Model):
        def forward(self, batch: gr.Batch) -> None:
            forward(batch)

    return gr.record(Model(), schema)
