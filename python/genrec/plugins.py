"""Ops from outside: plugins of the compiler, and their ops in a model."""

import os
from collections.abc import Sequence
from os import PathLike

from genrec.emit import emit
from genrec.errors import CompileError, ModelError
from genrec.operands import as_value
from genrec.ops import both_valid
from genrec.recording import Attribute
from genrec.rules import common_domain
from genrec.source import find_place
from genrec.types import ElementType, element_type
from genrec.value import Value, ValueLike

loaded: list[str] = []
"""The files of the plugins that every compilation loads."""


def load_plugin(path: str | PathLike[str]) -> None:
    """Lets models have the ops of a plugin, a shared object: `gr.compile` gives it to the compiler.

    docs/adding-an-op.md says how one is made. Raises `CompileError` where there is no such file.

    Example:
        >>> gr.load_plugin("own_op.so")
    """
    file = os.path.abspath(path)
    if not os.path.isfile(file):
        raise CompileError(f"there is no plugin {os.fspath(path)!r}")
    if file not in loaded:
        loaded.append(file)


def plugin_op(
    name: str,
    operands: Sequence[ValueLike],
    shape: tuple[int, ...] | None = None,
    dtype: ElementType | str | None = None,
    **attributes: Attribute,
) -> Value:
    """Records an op of a plugin, which has one result: rows of the operands' domain.

    Args:
        name: of the op in MLIR, its dialect first.
        operands: in the order of the op's definition.
        shape: of a result row; that of the first operand unless given.
        dtype: of the result; that of the first operand unless given.
        attributes: of the op, by name.

    Shape:
        as the op has it.

    Example:
        >>> x = gr.Table("item", dim=16)(batch.impression.item)
        >>> square = gr.Parameter((16, 16), gr.init.xavier_uniform())
        >>> gr.plugin_op("own.gated_cross", [x, x, square, gr.Parameter((16,), gr.init.zeros()), square])
        <[16] float32, one per 'impression'>
    """
    place = find_place()
    if "." not in name:
        raise ModelError(f"the op of a plugin is named with its dialect, as in 'own.op', got {name!r}", place.part(0))
    values = [as_value(one, place.part(1, i), what=f"operand {i} of '{name}'") for i, one in enumerate(operands)]
    if not values:
        raise ModelError(f"'{name}' needs at least one operand", place.part(1))
    parts = [(1, i) for i in range(len(values))]
    domain = common_domain(name, values, place, parts)
    first = values[0]
    kind = element_type(dtype) if dtype is not None else first.dtype
    wanted = first.shape if shape is None else shape
    return emit(name, values, domain, wanted, kind, place, both_valid(*values), **attributes)
