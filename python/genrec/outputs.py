"""The columns that `predict` writes."""

from genrec.emit import emit_effect
from genrec.errors import ModelError
from genrec.operands import as_value
from genrec.ranking import Found
from genrec.source import Place, find_place
from genrec.value import Value, ValueLike


def output(**columns: ValueLike | Found) -> None:
    """Columns of what `predict` writes: a row per row of their domain. Columns of several domains make a table each.
    The result of `gr.top_k` becomes two columns: `name` with the items' ids, and `name_score`. Nulls are written as
    nulls.

    Shape:
        any, of rows.

    Example:
        >>> gr.output(user=batch.user, latest=batch.history.item.last())
        >>> gr.output(shown=batch.impression.item)  # a table of its own
    """
    place = find_place()
    if not columns:
        raise ModelError("gr.output names no column", place, "", "gr.output(user=batch.user, score=score)")
    for name, given in columns.items():
        part = place.part(name)
        if isinstance(given, Found):
            _output(name, given.ids, name, place)
            _output(f"{name}_score", given.scores, name, place)
        else:
            _output(name, as_value(given, part, what=f"output '{name}'"), name, place)


def _output(name: str, value: Value, keyword: str, place: Place) -> None:
    recording = value._recording
    if value.domain is None:
        raise ModelError(f"output '{name}' must have rows, but is shared", place.part(keyword), value._label())
    unique = recording.effect_name("output", name, False, place)
    valid = value.elements_valid if value.elements_valid is not None else value.valid
    emit_effect("output", [value, *([valid] if valid is not None else [])], place.named(unique), name=unique)
