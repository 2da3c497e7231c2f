"""Hides the frames of this package in tracebacks of its errors.

A mistake in a model is at the user's line, and the frames in which this package detects it do not help. They are
hidden in what Python prints for an uncaught error, in IPython and notebooks, in pytest, and in the error's
`__traceback__`. `GENREC_TRACEBACK=1` in the environment shows them.
"""

import os
import sys
import traceback
from types import TracebackType
from typing import Any

from genrec.source import is_own

VARIABLE = "GENREC_TRACEBACK"


def are_own_frames_shown() -> bool:
    """Whether the environment asks for the frames of this package."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def without_own_frames(first: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package, and of IPython around a cell; a new one, if any is left out."""
    if are_own_frames_shown():
        return first
    kept, entry = [], first
    while entry is not None:
        if not is_own(entry.tb_frame) and not _is_of_ipython(entry):
            kept.append(entry)
        entry = entry.tb_next
    result = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def _is_of_ipython(entry: TracebackType) -> bool:
    return str(entry.tb_frame.f_globals.get("__name__", "")).split(".")[0] == "IPython"


class ShortTraceback(BaseException):
    """An exception whose traceback has the user's frames only."""

    @property
    def __traceback__(self) -> TracebackType | None:  # type: ignore[override]
        """The traceback without frames of this package. (Python itself raises with the whole one.)"""
        return without_own_frames(_whole.__get__(self))

    @__traceback__.setter
    def __traceback__(self, value: TracebackType | None) -> None:
        _whole.__set__(self, value)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows."""
        chained = not _was_caused_here(self)
        text = "".join(traceback.format_exception(type(self), self, self.__traceback__, chain=chained))
        return text.rstrip("\n").split("\n")


_whole: Any = BaseException.__dict__["__traceback__"]


def _was_caused_here(error: BaseException) -> bool:
    """Whether this package raised an error in place of one that it caught, and whose message it repeats."""
    cause = error.__cause__ or error.__context__
    first = _whole.__get__(cause) if cause is not None else None
    return first is not None and is_own(first.tb_frame) and not are_own_frames_shown()


def install() -> None:
    """Has Python print uncaught errors of this package without its frames, and pytest hide them. Called again after
    more modules of this package were imported.
    """
    if not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == __package__:
            module.__dict__["__tracebackhide__"] = _is_hidden


class _Hook:
    """`sys.excepthook` with short tracebacks, which the hook before it prints."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(self, kind: type[BaseException], error: BaseException, first: TracebackType | None) -> None:
        if isinstance(error, ShortTraceback):
            first = without_own_frames(first)
            error = error.with_traceback(first)
            if _was_caused_here(error):
                error.__cause__, error.__suppress_context__ = None, True
        self.before(kind, error, first)


def _is_hidden(info: Any) -> bool:
    """Asked by pytest for each frame of this package."""
    return info is not None and isinstance(info.value, ShortTraceback) and not are_own_frames_shown()
