"""The columns that `predict` writes."""

from genrec.emit import emit_effect
from genrec.errors import ModelError
from genrec.ranking import Found
from genrec.source import Place, find_place
from genrec.value import Value, ValueLike, as_value


def output(**columns: ValueLike | Found) -> None:
    """Columns of what `predict` writes, all of one domain. What `gr.top_k` found becomes two: `name` with the items'
    ids, and `name_score`.

    Shape:
        any, of the rows of one domain.

    Example:
        >>> gr.output(user=batch.user, latest=batch.history.item.last())
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
    first = recording.cache.setdefault("first output", (name, value))
    if first[1].domain is not value.domain:
        raise ModelError(
            f"outputs belong to one domain, but '{first[0]}' has rows of '{first[1].domain._name}' and '{name}' of "
            f"'{value.domain._name}'",
            place.part(keyword), value._label(),
        )  # fmt: skip
    unique = recording.effect_name("output", name, False, place)
    emit_effect("output", [value], place.named(unique), name=unique)
