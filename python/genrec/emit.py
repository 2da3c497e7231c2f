"""Records one op of values, whatever it is."""

from collections.abc import Sequence
from typing import Any

from genrec.domain import Domain
from genrec.recording import Op, Recording, Result, ValueType
from genrec.source import Place
from genrec.types import ElementType
from genrec.value import Value


def emit(
    name: str,
    /,
    operands: Sequence["Value | Domain"],
    domain: Domain | None,
    shape: tuple[int, ...],
    dtype: ElementType,
    place: Place,
    valid: Value | None = None,
    segments: tuple[int, ...] = (),
    **attributes: Any,
) -> Value:
    """Records op `name` with one result; `attributes` are of the kinds that `recording.Attribute` lists."""
    recording = _recording_of(operands)
    results: list[Result] = [one._result for one in operands]
    type_ = ValueType(domain._symbol if domain is not None else "", shape, dtype.name)
    op = recording.emit(name, results, [type_], attributes, place, segments)
    return Value(recording, op.results[0], domain, place, valid)


def emit_effect(
    name: str,
    /,
    operands: Sequence["Value | Domain"],
    place: Place,
    segments: tuple[int, ...] = (),
    **attributes: Any,
) -> Op:
    """Records op `name`, which has no result."""
    return _recording_of(operands).emit(name, [one._result for one in operands], [], attributes, place, segments)


def _recording_of(operands: Sequence["Value | Domain"]) -> Recording:
    return operands[0]._recording
