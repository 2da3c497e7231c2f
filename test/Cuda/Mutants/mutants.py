"""Mutants of CUDA code: small changes that nobody chose, all in one program, of which one is chosen when it starts.

They are found in the syntax tree (libclang), so that what is changed is an operand, a condition or a statement, and
written around the text that is there: `simt::chosen` (Simt/mutants.h) notes where the change made a difference.
"""

from __future__ import annotations

import bisect
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clang.cindex import Cursor, TranslationUnit


@dataclass(frozen=True, order=True)
class Mutant:
    """`before` and `after` are written around the bytes of `file` from `begin` to `end`; `{}` in them is its number."""

    file: str
    begin: int
    end: int
    kind: str
    before: str
    after: str


# An operand that is read twice does the same twice, unless it changes something or lanes meet in it.
_MEETS_OR_CHANGES = re.compile(
    r"\+\+|--|[^=!<>]=[^=]|\[&|\[=|"
    r"\b(atomic\w*|__\w+|cuda\w+|\w*([Ss]huffle|[Bb]allot|[Vv]ote|[Rr]educe|[Ee]xchange|[Ss]can|[Aa]ny|[Aa]ll|Warp|Block)\w*)\("
)
_LITERAL = re.compile(r"\d[\d']*([uUlL]*|\.\d*(e[-+]?\d+)?f?)$|0[xX][0-9a-fA-F']+[uUlL]*$")
_LOST = {"|": ("left", "right"), "%": ("right",), "&": ("right",), "^": ("right",)}
_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def _literally(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


class Finder:
    """All mutants in one file, as one translation unit has it."""

    def __init__(self, file: str, text: bytes) -> None:
        self.file, self.text, self.mutants = file, text, []

    def of(self, cursor: Cursor) -> tuple[int, int]:
        return cursor.extent.start.offset, cursor.extent.end.offset

    def read(self, at: tuple[int, int]) -> str:
        return self.text[at[0] : at[1]].decode()

    def add(self, at: tuple[int, int], kind: str, before: str, after: str) -> None:
        self.mutants.append(Mutant(self.file, *at, kind, before, after))

    def operands(self, cursor: Cursor) -> tuple[tuple[int, int], str, tuple[int, int]] | None:
        """Of a binary operator: where its operands are, and what is between; none where a macro hides them."""
        children = list(cursor.get_children())
        if len(children) != 2:
            return None
        left, right = map(self.of, children)
        whole = self.of(cursor)
        if not (whole[0] == left[0] < left[1] < right[0] < right[1] == whole[1]):
            return None
        return left, self.read((left[1], right[0])).strip(), right

    def binary(self, cursor: Cursor) -> None:
        if (found := self.operands(cursor)) is None:
            return
        left, op, right = found
        whole, a, b = self.of(cursor), self.read(left), self.read(right)
        if op in _BOUNDARY and not _MEETS_OR_CHANGES.search(a + " " + b):
            equal = f"(({_literally(a)}) == ({_literally(b)}) && ::simt::chosen({{}}))"
            self.add(whole, f"{op} is {_BOUNDARY[op]}", "(", f" || {equal})" if len(op) == 1 else f" && !{equal})")
        for side, at in ((left, "left"), (right, "right")) if op in ("&&", "||") else ():
            tail = " || ::simt::chosen({}))" if op == "&&" else " && !::simt::chosen({}))"
            self.add(side, f"no {at} of {op}", "(", tail)
        if op in ("+", "-", "<<", ">>"):
            self.add(right, f"no term of {op}", "::simt::dropped({}, ", ")")
        if op == "+":
            self.add(left, "no left of +", "::simt::dropped({}, ", ")")
        if op in ("*", "/"):
            self.add(right, f"no factor of {op}", "::simt::one({}, ", ")")
        if op == "*":
            self.add(left, "no left of *", "::simt::one({}, ", ")")
        for lost in _LOST.get(op, ()):
            rest = b if lost == "left" else a
            if not _MEETS_OR_CHANGES.search(rest):
                self.add(whole, f"no {lost} of {op}", "::simt::side({}, ", f", {_literally(rest)})")

    def condition(self, cursor: Cursor) -> None:
        first = next(iter(cursor.get_children()), None)
        if first is None or not first.kind.is_expression():
            return
        at = self.of(first)
        if at[0] < at[1] and at != self.of(cursor):
            if cursor.kind.name != "WHILE_STMT":
                self.add(at, "always", "(", " || ::simt::chosen({}))")
            self.add(at, "never", "(", " && !::simt::chosen({}))")

    def statement(self, cursor: Cursor) -> None:
        begin, end = self.of(cursor)
        after = re.match(rb"\s*;", self.text[end : end + 40])
        before = self.text[:begin].rstrip()[-1:]
        if begin < end and after and before in b";{}):e":
            self.add((begin, end + after.end()), "no statement", "{{ if (!::simt::chosen({})) {{ ", " }} }}")
            if cursor.kind.name == "COMPOUND_ASSIGNMENT_OPERATOR":
                self.assignment(cursor)

    def assignment(self, cursor: Cursor) -> None:
        if (found := self.operands(cursor)) is None:
            return
        left, op, right = found
        to, value = _literally(self.read(left)), _literally(self.read(right))
        other = f"(::simt::chosen({{}}) ? void({to} = {value}) : void("
        self.add(self.of(cursor), f"{op} is =", other, "))")

    def literal(self, cursor: Cursor) -> None:
        at = self.of(cursor)
        if _LITERAL.match(self.read(at)):
            self.add(at, "one more", "::simt::moved({}, ", ", 1)")
            self.add(at, "one less", "::simt::moved({}, ", ", -1)")

    def call(self, cursor: Cursor) -> None:
        whole = self.of(cursor)
        arguments = [self.of(argument) for argument in cursor.get_arguments()]
        if len(arguments) != 2 or not re.match(r"(std::)?(min|max)\b", self.read(whole)):
            return
        for at in arguments:
            text = self.read(at)
            if whole[0] < at[0] < at[1] < whole[1] and not _MEETS_OR_CHANGES.search(text):
                self.add(whole, f"{text} alone", "::simt::side({}, ", f", {_literally(text)})")

    def visit(self, cursor: Cursor) -> None:
        kind = cursor.kind.name
        if kind in ("STATIC_ASSERT", "ENUM_DECL", "CONCEPT_DECL", "TYPE_ALIAS_DECL", "FRIEND_DECL"):
            return
        if kind == "VAR_DECL" and re.match(r"(static |inline )*constexpr\b", self.read(self.of(cursor))):
            return
        if kind == "BINARY_OPERATOR":
            self.binary(cursor)
        elif kind in ("INTEGER_LITERAL", "FLOATING_LITERAL"):
            self.literal(cursor)
        elif kind == "CALL_EXPR":
            self.call(cursor)
        constant = kind == "IF_STMT" and re.match(r"if\s+constexpr\b", self.read(self.of(cursor)))
        if kind in ("IF_STMT", "WHILE_STMT", "CONDITIONAL_OPERATOR") and not constant:
            self.condition(cursor)
        children = list(cursor.get_children())
        if constant:
            children = children[1:]
        bodies = {
            "COMPOUND_STMT": children,
            "IF_STMT": children if constant else children[1:],
            "FOR_STMT": children[-1:],
            "WHILE_STMT": children[-1:],
            "CXX_FOR_RANGE_STMT": children[-1:],
        }.get(kind, [])
        for child in children:
            # A macro that checks a call of CUDA, or launches a kernel, is a loop of one turn.
            if any(child is body for body in bodies) and (child.kind.is_expression() or child.kind.name == "DO_STMT"):
                self.statement(child)
            self.visit(child)


def found_in(unit: TranslationUnit, root: Path, files: set[str]) -> Iterator[Mutant]:
    """What may be changed in those of `files` (below `root`) that the unit reads; they leave the set."""
    finders: dict[str, Finder | None] = {}
    for cursor in unit.cursor.get_children():
        if (file := cursor.location.file) is None:
            continue
        if file.name not in finders:
            path = Path(file.name)
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
            finders[file.name] = Finder(name, path.read_bytes()) if name in files else None
        if finder := finders[file.name]:
            finder.visit(cursor)
    for finder in filter(None, finders.values()):
        files.discard(finder.file)
        yield from finder.mutants


def sampled(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    every = sorted(set(mutants))
    return sorted(random.Random(seed).sample(every, min(count, len(every))))  # noqa: S311 -- no secret


def planted(text: bytes, mutants: list[tuple[int, Mutant]]) -> str:
    """A file's text with the mutants of these numbers; those that lie in each other are written inside out."""
    inserted: list[tuple[int, int, str]] = []
    open_ends: list[int] = []
    for number, m in sorted(mutants, key=lambda each: (each[1].begin, -each[1].end)):
        while open_ends and open_ends[-1] <= m.begin:
            open_ends.pop()
        if open_ends and m.end > open_ends[-1]:
            continue  # they cross
        open_ends.append(m.end)
        length = m.end - m.begin
        bisect.insort(inserted, (m.begin, -length * 10000 + number % 10000, m.before.format(number)))
        bisect.insort(inserted, (m.end, -(10**12) + length * 10000 - number % 10000, m.after.format(number)))
    out, at = [], 0
    for place, _, what in inserted:
        out += [text[at:place].decode(), what]
        at = place
    return "".join([*out, text[at:].decode()])
