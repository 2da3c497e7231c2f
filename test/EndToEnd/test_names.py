"""Names that mean something in C++, and names that differ but become one identifier."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import pytest
from compiled import draft, require_emulator
from genrec import nn

# Keywords and macros, of the host's headers and of CUDA's.
RESERVED = [
    *(
        "concept",
        "noexcept",
        "constexpr",
        "decltype",
        "compl",
        "bitor",
        "xor_eq",
        "char8_t",
        "wchar_t",
        "static_assert",
    ),
    *("thread_local", "co_await", "reinterpret_cast", "NULL", "INT64_MAX", "errno", "NAN", "INFINITY", "M_PI", "EOF"),
    *("stdin", "__global__", "__host__", "_Complex", "_Float16", "M_E", "P_tmpdir", "math_errhandling"),
    *("cudaEventDefault", "kernels", "genrec", "int64_t"),
]


def compile_for(target: str, model: gr.Model, columns: list[str], folder: Path) -> None:
    require_emulator(target)
    schema = gr.Schema({name: gr.float32 for name in columns} | {"id": gr.int64, "label": gr.float32})
    gr.compile(model, schema, target=target, output=folder / "model", flags=[*draft(), "--merge-tables=false"])


class Reserved(gr.Model):
    """Columns and values with such names."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gr.Parameter((), gr.init.ones())

    def forward(self, batch: gr.Batch) -> None:
        concept = gr.concat(*[batch[name] for name in RESERVED])
        noexcept = concept.row_sum()
        gr.loss.mse(noexcept * self.scale, batch.label)


class Alike(gr.Model):
    """Tables, parameters and a value of `forward` whose names differ in what no identifier has."""

    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Linear(4, 4)
        self.user_weight = gr.Parameter((4,), gr.init.ones())
        self.tables = [gr.Table(name, dim=4 + i) for i, name in enumerate(["user.item", "user_item", "用户", "商品"])]

    def forward(self, batch: gr.Batch) -> None:
        x = gr.concat(batch.a, batch.b, batch.a, batch.b) * self.user_weight
        user_bias = self.user(x)
        found = [table(batch.id).row_sum() for table in self.tables]
        gr.loss.mse(user_bias.row_sum() + gr.concat(*found).row_sum(), batch.label)


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_names_that_cpp_reserves(target: str, tmp_path: Path) -> None:
    compile_for(target, Reserved(), RESERVED, tmp_path)


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_names_that_become_one_identifier(target: str, tmp_path: Path) -> None:
    compile_for(target, Alike(), ["a", "b"], tmp_path)


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_a_line_break_in_a_name_ends_no_comment(target: str, tmp_path: Path) -> None:
    class Broken(gr.Model):
        def __init__(self) -> None:
            super().__init__()
            self.weights = {"a\nint broken": gr.Parameter((), gr.init.ones()), "b\\": gr.Parameter((), gr.init.ones())}

        def forward(self, batch: gr.Batch) -> None:
            scale = self.weights["a\nint broken"] * self.weights["b\\"].value()
            gr.loss.mse(batch.a * scale, batch.label, name="x\nint broken\\")

    compile_for(target, Broken(), ["a"], tmp_path)
