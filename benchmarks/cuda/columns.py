"""Writes the kernels that columns.cu times: columns.py <genrec-compile> <folder> writes columns_kernels.h there.

They are what becomes of naive models: a table per column, whose ids are hashed or put into buckets. Those with lists
keep the last entries of each. A model's kernels are in a namespace of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

KEPT = 15  # entries of a list
LISTS = 100  # that are pooled
TRANSFORMS = {
    "hashed": lambda c: [
        f"%h{c} = genrec.hash xxh3 %x{c} {{bits = 63 : i64, seed = 0 : i64}} : (!rows) -> !rows",
        f"%i{c} = genrec.mod %h{c} {{divisor = {100_000 + c} : i64}} : (!rows) -> !rows",
    ],
    "bucketed": lambda c: [
        f"%i{c} = genrec.bucketize %x{c} "
        f"{{edges = array<f64: {', '.join(f'{edge}.0e7' for edge in range(100))}>}} : (!rows) -> !rows"
    ],
}


def declare_tables(count: int, dim: int) -> list[str]:
    """As many tables of one spec."""
    options = "init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>"
    return [f"genrec.table @t{k} dim {dim} {{{options}}}" for k in range(count)]


def write_model(columns: int, transform: str, has_lists: bool) -> str:
    """The model of `columns` columns, as MLIR."""
    entries, rows = ("event", "recent") if has_lists else ("user", "user")
    lists = ['genrec.domain @event parent @user {column = "event"}', "genrec.domain @recent parent @user kind derived"]
    batch = [
        "%user, %event = genrec.batch : !genrec.domain<@user>, !genrec.domain<@event>",
        f"%recent = genrec.truncate %event {{count = {KEPT}}} : (!genrec.domain<@event>) -> !genrec.domain<@recent>",
    ]
    lines = [
        f"!entries = tensor<?xi64, #genrec.rows<@{entries}>>",
        f"!rows = tensor<?xi64, #genrec.rows<@{rows}>>",
        f"!vectors = tensor<?x4xf32, #genrec.rows<@{rows}>>",
        "genrec.model @columns {",
        "genrec.domain @user",
        *(lists if has_lists else []),
        *declare_tables(columns, dim=4),
        "genrec.program @main {",
        *(batch if has_lists else ["%user = genrec.batch : !genrec.domain<@user>"]),
    ]
    for c in range(columns):
        read = f"%e{c}" if has_lists else f"%x{c}"
        name = f"event.c{c}" if has_lists else f"c{c}"
        lines.append(f'{read} = genrec.feature %{entries} "{name}" : (!genrec.domain<@{entries}>) -> !entries')
        if has_lists:
            lines.append(f"%x{c} = genrec.derive %e{c} into %recent : (!entries, !genrec.domain<@recent>) -> !rows")
        lines += TRANSFORMS[transform](c)
        lines.append(f"%v{c} = genrec.lookup %i{c} in @t{c} : (!rows) -> !vectors")
        lines.append(f'genrec.output "v{c}" %v{c} : !vectors')
    return "\n".join([*lines, "}", "}", ""])


def write_lists(lists: int) -> str:
    """A model of as many lists of ids, each with a table of its own and the mean of its rows of 16."""
    names = [f"l{k}" for k in range(lists)]
    vectors = "tensor<?x16xf32, #genrec.rows<@{}>>"
    lines = [
        "genrec.model @lists {",
        "genrec.domain @user",
        *(f'genrec.domain @{name} parent @user {{column = "{name}"}}' for name in names),
        *declare_tables(lists, dim=16),
        "genrec.program @main {",
        f"%user, {', '.join(f'%{name}' for name in names)} = genrec.batch : "
        + ", ".join(f"!genrec.domain<@{name}>" for name in ["user", *names]),
    ]
    for k, name in enumerate(names):
        ids, rows, means = f"tensor<?xi64, #genrec.rows<@{name}>>", vectors.format(name), vectors.format("user")
        lines += [
            f'%x{k} = genrec.feature %{name} "{name}.id" : (!genrec.domain<@{name}>) -> {ids}',
            f"%v{k} = genrec.lookup %x{k} in @t{k} : ({ids}) -> {rows}",
            f"%p{k} = genrec.pool mean %v{k} to %user : ({rows}, !genrec.domain<@user>) -> {means}",
        ]
    lines += [f'genrec.output "p{k}" %p{k} : {vectors.format("user")}' for k in range(lists)]
    return "\n".join([*lines, "}", "}", ""])


def main() -> None:
    """Compiles the models and joins their kernels."""
    compiler, folder = sys.argv[1], Path(sys.argv[2])
    models = {
        f"{group}_{transform}": write_model(columns, transform, has_lists=group == "ragged")
        for group, columns in (("small", 100), ("ragged", 600))
        for transform in TRANSFORMS
    } | {"pooled_lists": write_lists(LISTS)}
    includes, units = {'#include "genrec_rt/kernels/cuda/launch.h"'}, []
    for name, model in models.items():
        command = [compiler, "-", "--emit=cuda-kernels", "--cache=none", "-o", "-"]
        unit = subprocess.run(command, input=model, text=True, check=True, stdout=subprocess.PIPE).stdout
        includes.update(re.findall(r"^#include .*", unit, re.MULTILINE))
        body = re.sub(r"^#include .*\n", "", unit, flags=re.MULTILINE).replace('extern "C" ', "")
        units.append(f"namespace {name} {{\n{body}}}\n")
    text = "\n".join(["// Made by columns.py.", *sorted(includes), "", *units])
    (folder / "columns_kernels.h").write_text(text)


if __name__ == "__main__":
    main()
