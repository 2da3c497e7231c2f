"""What the compiler says of a model of many columns stays short: kinds are counted, and long lists cut."""

import re
import subprocess
from pathlib import Path

import genrec as gr
import pytest
from genrec import nn
from model_writing import find_tool

NUMBERS, IDS = 12, 20


class ManyColumns(gr.Model):
    """Numbers that are scaled, and a table of its own for each column of ids, all concatenated."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(1e-3))
        self.tables = [gr.Table(f"t{i}", dim=16) for i in range(IDS)]
        self.layer = nn.Linear(NUMBERS + 17 * IDS, 32)

    def forward(self, batch: gr.Batch) -> None:
        """The sum of a layer over everything is the label."""
        numbers = [gr.log1p(gr.clip(batch[f"x{i}"], low=0.0)) for i in range(NUMBERS)]
        looked_up = [table(batch[f"c{i}"]) for i, table in enumerate(self.tables)]
        sums = [batch[f"l{i}"].value.sum() for i in range(IDS)]
        gr.loss.mse(self.layer(gr.concat(*numbers, *looked_up, *sums)).row_sum(), batch.label)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    columns = {f"x{i}": gr.float32 for i in range(NUMBERS)} | {f"c{i}": gr.int64 for i in range(IDS)}
    columns |= {f"l{i}": [gr.float32] for i in range(IDS)}
    path = tmp_path_factory.mktemp("many") / "many.genrec"
    gr.write_model(gr.record(ManyColumns(), gr.Schema({**columns, "label": gr.float32})), path)
    return path


def compile_model(model: Path, *flags: str) -> str:
    command = [find_tool("genrec-compile"), str(model), "--cache=none", "-o", "-", *flags]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_kernel_of_many_columns_counts_its_ops(model):
    counted = r"12 maximum, 12 log1p\b"
    assert re.search(counted, compile_model(model, "--explain"))
    assert re.search(counted, compile_model(model, "--emit=cpp"))


def test_what_is_alike_shares_a_line(model):
    """Tables, columns, kernels and their costs; what is not alike has a line of its own."""
    text = compile_model(model, "--explain")
    first = ", ".join(f"t{i}" for i in range(8))
    assert re.search(rf"^  {first}, and 12 more: dim 16, adam, 192 bytes per row, in 'merged_16'$", text, re.MULTILINE)
    assert re.search(
        r"^  c0, .*c7, and 12 more: of @request, i64, ids of a table each; read by train", text, re.MULTILINE
    )
    assert re.search(r"^  l0, .*l7, and 12 more: of a list each, f32; read by train", text, re.MULTILINE)
    assert re.search(r"^    l0_pool over @l0, .*, and 12 more, compute: ", text, re.MULTILINE)
    assert re.search(r"^    layer.bias_rows_update_layer.bias over @layer.bias_rows, update: ", text, re.MULTILINE)
    assert len(re.findall(r"^    20 like row_l0_pool  +\d", text, re.MULTILINE)) == 2
    assert len(re.findall(r"^    row_request_concat_columns  +\d", text, re.MULTILINE)) == 2
    assert max(text.count(name) for name in ("t19", "c19", "l19")) <= 2  # in the decisions


def test_tables_without_a_size_share_a_line(model):
    text = compile_model(model, "--explain", "--ids=t3=1000")
    memory = text[text.index("memory of a run") : text.index("program evaluate")]
    assert re.search(r"table 't3' +0\.2 MB +1000 distinct ids", memory)
    assert re.search(
        r" 19 tables +0\.0 MB +of unknown numbers of distinct ids \(told by --ids\): "
        r"'t0', 't1', 't2', 't4', 't5', 't6', 't7', 't8', and 11 more\n",
        memory,
    )
    assert memory.count("(told by --ids") == 1
    assert re.search(r"told by --dataset.*row of 'l6', and 13 more\n", memory)


def test_domains_of_one_name_are_numbered(model):
    made = compile_model(model, "--emit=mlir", "--merge-tables=false")
    domains = re.findall(r"genrec\.domain @(\w+) kind +step", made)
    assert {"touched_t0", "distinct_request_16", "distinct_request_16_2", "distinct_request_16_20"} <= set(domains)
    assert not [name for name in domains if name.endswith("_")]
