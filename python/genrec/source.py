"""Places in the user's program: the file, line and columns of an expression, and the variable it is assigned to.

Every recorded op keeps a `Place`, so that errors of the front end, of the compiler and of the compiled binary point at
the user's own line. Frames of this package are skipped: an op that a module of `genrec.nn` records has the place of the
user's call.
"""

import ast
import itertools
import linecache
import os
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FrameType, TracebackType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

Part = str | int
"""Which operand of an expression: "left", "right", "self" (what a method is called on), "index" (what is in brackets),
the number of an argument, or the name of a keyword argument."""


@dataclass(frozen=True)
class Place:
    """An expression in the user's program.

    `line` counts from 1, `column` and `end_column` count characters from 1, the end is exclusive; 0 where unknown.
    `end_line` differs from `line` for an expression of several lines. `name` is the variable that the expression's
    value is assigned to, empty when it has none.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    end_column: int = 0
    end_line: int = 0
    name: str = ""

    def __str__(self) -> str:
        """`file:line`, as errors print it."""
        return f"{self.shown_file}:{self.line}" if self.line else self.shown_file

    @property
    def shown_file(self) -> str:
        """The file relative to the working folder where it lies in it, else as Python knows it."""
        return _shown(self.file)

    def named(self, name: str) -> "Place":
        """The same place with another name."""
        return replace(self, name=name)

    def part(self, *path: Part) -> "Place":
        """The operand at `path`, such as `part("left")` or `part(0, 1)`, the second element of the list that is the
        first argument. This place itself if the expression has no such operand.
        """
        node: ast.AST | None = _node_at(self)
        for step in path:
            node = _child(node, step)
        if not isinstance(node, ast.expr):
            return self
        return _place_of(self.file, node)

    def argument(self, position: int, name: str) -> "Place":
        """The argument of a call that is written `name=`, or is the one at `position`."""
        by_name = self.part(name)
        return by_name if by_name != self else self.part(position)

    @property
    def text(self) -> str:
        """The expression as written, on one line; empty when its source cannot be read."""
        node = _node_at(self)
        return ast.unparse(node) if node is not None else ""

    @property
    def called(self) -> str:
        """What the expression calls, as written: `gr.concat` of `gr.concat(a, b)`; empty where it is no call."""
        node = _node_at(self)
        return ast.unparse(node.func) if isinstance(node, ast.Call) else ""

    @property
    def operand(self) -> str:
        """`text` as what a method can be called on: in parentheses where it needs them."""
        node = _node_at(self)
        if isinstance(node, ast.AugAssign):
            return ast.unparse(node.target)
        bare = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | None)
        return self.text if bare else f"({self.text})"

    @property
    def source_line(self) -> str:
        """The whole first line of the expression; empty when the source cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n") if self.line else ""


def find_place() -> Place:
    """The place in the user's program that is being executed: the innermost frame outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame):
        frame = frame.f_back
    return Place() if frame is None else _place_in_frame(frame, frame.f_lasti, frame.f_lineno or 0)


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of this package's code."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def innermost(traceback: TracebackType | None) -> TracebackType | None:
    """The innermost entry of a traceback that is the user's, None if there is none. One after it is of this package."""
    found = None
    while traceback is not None:
        if not is_own(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return found


def place_of_failure(entry: TracebackType) -> Place:
    """What the frame of an entry of a traceback was executing."""
    return _place_in_frame(entry.tb_frame, entry.tb_lasti, entry.tb_lineno)


def _place_in_frame(frame: FrameType, instruction: int, line: int) -> Place:
    """What a frame is executing."""
    file = frame.f_code.co_filename
    # Fills the cache for sources without a file (notebook cells), whose loader only the frame has.
    linecache.lazycache(file, frame.f_globals)
    place = _place_in_code(file, frame.f_code, instruction)
    return place if place is not None else Place(file=file, line=line)


def refresh() -> None:
    """Drops cached source files, which may have been edited since."""
    linecache.checkcache()
    _place_in_code.cache_clear()
    _index.cache_clear()


@lru_cache(maxsize=1 << 16)
def _place_in_code(file: str, code: CodeType, instruction: int) -> Place | None:
    """The expression that byte code offset `instruction` of `code` evaluates. Code of two files may be equal."""
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if positions is None:
        return None
    line, end_line, begin, end = positions
    if line is None or end_line is None or begin is None or end is None:
        return None
    place = Place(file, line, _characters(file, line, begin) + 1, _characters(file, end_line, end) + 1, end_line)
    node = _node_at(place)
    return place.named(_index(file).names.get(node, "")) if node is not None else place


def _shown(file: str) -> str:
    if not os.path.isabs(file):
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


def _characters(file: str, line: int, column: int) -> int:
    """How many characters the first `column` UTF-8 bytes of a line are; the syntax tree counts bytes."""
    text = linecache.getline(file, line)
    if text.isascii():
        return column
    return len(text.encode()[:column].decode(errors="ignore"))


_Node = ast.expr | ast.AugAssign


class _Index:
    """The expressions of one source file by their extent, and the names their values are assigned to."""

    def __init__(self, source: str) -> None:
        self.nodes: dict[tuple[int, int, int, int], _Node] = {}
        self.calls: dict[tuple[int, int], ast.Call] = {}
        self.names: dict[_Node, str] = {}
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, _Node):
                self.nodes.setdefault(_extent(node), node)
            if isinstance(node, ast.Call):
                self.calls.setdefault(_extent(node)[2:], node)
            if isinstance(node, ast.AugAssign):
                self._name(node.target, node)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._name(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._name(node.target, node.value)

    def find(self, extent: tuple[int, int, int, int]) -> _Node | None:
        """The expression of this extent. A method call of several lines is found by its end alone: in byte code it
        begins at the method's name.
        """
        return self.nodes.get(extent) or self.calls.get(extent[2:])

    def _name(self, target: ast.expr, value: _Node) -> None:
        """Names `value` by the variable or attribute it goes to, element by element where both are tuples."""
        if isinstance(target, ast.Name):
            self.names[value] = target.id
        elif isinstance(target, ast.Attribute):
            self.names[value] = target.attr
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self._name(one, other)


@lru_cache(maxsize=256)
def _index(file: str) -> _Index:
    return _Index("".join(linecache.getlines(file)))


def _extent(node: _Node) -> tuple[int, int, int, int]:
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _node_at(place: Place) -> _Node | None:
    if not place.line or not place.column:
        return None
    begin = _bytes(place.file, place.line, place.column - 1)
    end = _bytes(place.file, place.end_line, place.end_column - 1)
    return _index(place.file).find((place.line, begin, place.end_line, end))


def _bytes(file: str, line: int, characters: int) -> int:
    text = linecache.getline(file, line)
    return characters if text.isascii() else len(text[:characters].encode())


def _place_of(file: str, node: ast.expr) -> Place:
    line, begin, end_line, end = _extent(node)
    return Place(
        file, line, _characters(file, line, begin) + 1, _characters(file, end_line, end) + 1, end_line,
        _index(file).names.get(node, ""),
    )  # fmt: skip


def _child(node: ast.AST | None, step: Part) -> ast.AST | None:
    """The operand `step` of an expression; None where it has no such operand."""
    if isinstance(node, ast.BinOp) and step in ("left", "right"):
        return node.left if step == "left" else node.right
    if isinstance(node, ast.AugAssign) and step == "right":
        return node.value
    if isinstance(node, ast.Compare) and step in ("left", "right"):
        return node.left if step == "left" else node.comparators[-1]
    if isinstance(node, ast.UnaryOp) and step == "self":
        return node.operand
    if isinstance(node, ast.Attribute | ast.Subscript) and step == "self":
        return node.value
    if isinstance(node, ast.Subscript) and step == "index":
        return node.slice
    if isinstance(node, ast.List | ast.Tuple) and isinstance(step, int) and step < len(node.elts):
        return node.elts[step]
    if not isinstance(node, ast.Call):
        return None
    if step == "self":
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(step, int):
        plain = not any(isinstance(argument, ast.Starred) for argument in node.args[: step + 1])
        return node.args[step] if plain and step < len(node.args) else None
    return next((keyword.value for keyword in node.keywords if keyword.arg == step), None)
