"""A defect, and the text of a file with defects in it, of which one is chosen when a program starts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    """In `file` (of runtime/ or test/) the place that reads `old` reads `new`; statements end with ; or }.

    `old` occurs once, or the place is the first one behind `behind`, which occurs once: a place that is counted would
    be another one as soon as somebody writes the same line above it.
    """

    name: str
    file: str
    tests: str  # unit tests that show it, as --gtest_filter has them; empty: none
    old: str
    new: str = ""
    behind: str = ""
    runs: str = ""  # else the runs of whole models that show it (../EndToEnd/test_planted_sessions.py)


def seen(runs: str, name: str, file: str, old: str, new: str = ";", behind: str = "") -> Defect:
    """A defect that whole models show, in these runs."""
    return Defect(name, file, "", old, new, behind, runs)


def only_index(text: str, part: str) -> int:
    if (count := text.count(part)) != 1:
        raise ValueError(f"'{part}' occurs {count} times, not once")
    return text.index(part)


def index_of(text: str, defect: Defect) -> int:
    if not defect.behind:
        return only_index(text, defect.old)
    return text.index(defect.old, only_index(text, defect.behind) + len(defect.behind))


def chosen(body: str, alternatives: list[tuple[int, str]]) -> str:
    """`body`, or another text where the defect of that number is chosen."""
    if not body.rstrip().endswith((";", "}")) and "\n" not in body:
        for number, new in alternatives:
            body = f"(::simt::defect == {number} ? {new} : {body})"
        return body
    tail = ""
    if body.endswith("\n  return"):
        tail = "\n  return"
        body, alternatives = body.removesuffix(tail), [(n, new.removesuffix(tail)) for n, new in alternatives]
    text = "".join(f"if (::simt::defect == {number}) {{ {new} }} else " for number, new in alternatives)
    text += f"{{ {body} }}"
    return text + tail if tail else f"{{ {text} }}"


def planted(original: str, defects: list[tuple[int, Defect]]) -> str:
    """A file's text with the defects of these numbers."""
    places: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for number, d in defects:
        place = (index_of(original, d), d.old)
        places.setdefault(place, []).append((number, d.new.split(" // ")[0]))
    text, end = original, len(original)
    for (at, old), alternatives in sorted(places.items(), reverse=True):
        if at + len(old) > end:
            raise ValueError(f"'{old}' overlaps another defect")
        body, comment = old, ""
        if "// " in old and "\n" not in old:  # a comment tells places apart
            body, comment = old.split(" // ")[0], " // " + old.split(" // ")[1]
        text = text[:at] + chosen(body, alternatives) + comment + text[at + len(old) :]
        end = at
    return text
