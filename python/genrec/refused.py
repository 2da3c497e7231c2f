"""Calls of this package that Python itself refuses, for their arguments: an unknown keyword, too many of them."""

import inspect
import re
from types import FrameType, ModuleType
from typing import Any

from genrec.domain import Domain
from genrec.hints import help_for_argument
from genrec.parameter import Parameter
from genrec.source import Place
from genrec.table import Table
from genrec.value import Value

_REFUSAL = re.compile(r"([\w.<>]+)\(\) (got an unexpected keyword argument|missing|takes|got multiple values)(.*)")
_CLASSES = {one.__name__: one for one in (Domain, Parameter, Table, Value)}
_SHOWN = {"Domain": "rows", "Parameter": "p", "Table": "table", "Value": "x"}


def told_of_refused_call(error: TypeError, place: Place, frame: FrameType) -> tuple[str, str] | None:
    """What is wrong with the arguments of the user's innermost call, at `place` in `frame`, and how the function is
    called; None for another error, or a function of somebody else.
    """
    found = _REFUSAL.match(str(error))
    if found is None:
        return None
    name, kind, rest = found.groups()
    called = place.called
    function = _function(called, name, frame)
    if function is None or not str(function.__module__).startswith("genrec"):
        return None
    owner, _, method = name.rpartition(".")
    shown = called if called and len(called) <= _MOST_SHOWN else f"{_SHOWN.get(owner, owner)}.{method}"
    arguments = re.findall(r"'(\w+)'", rest)
    if kind == "missing":
        said = f"{shown} lacks {' and '.join(map(repr, arguments))}"
    elif kind == "takes":
        said = f"{shown} is given too many arguments"
    elif kind == "got multiple values":
        said = f"{shown} is given '{arguments[0]}' twice"
    else:
        said = f"{shown} takes no '{arguments[0]}'"
    hint = help_for_argument(method, arguments[0]) if kind.startswith("got an") else ""
    call = f"write {shown}{_signature(function)}"
    return said, f"{hint}; {call}" if hint else call


_MOST_SHOWN = 40


def _function(called: str, name: str, frame: FrameType) -> Any:
    """The function called as `called` in `frame`, `name` in Python's message; None where it is not found."""
    thing = _thing(called, frame) if re.fullmatch(r"[\w.]+", called) else None
    owner, _, method = name.rpartition(".")
    if thing is not None and not inspect.isroutine(thing):
        thing = getattr(thing if isinstance(thing, type) else type(thing), method, None)
    if thing is None and owner in _CLASSES:
        thing = getattr(_CLASSES[owner], method, None)
    return thing if getattr(thing, "__qualname__", "") == name else None


def _thing(called: str, frame: FrameType) -> Any:
    """What a dotted name stands for; no property is read for it."""
    first, *rest = called.split(".")
    thing = frame.f_locals.get(first, frame.f_globals.get(first))
    for part in rest:
        if isinstance(thing, ModuleType):
            thing = vars(thing).get(part)
        else:
            thing = (
                vars(thing).get(part) if part in getattr(thing, "__dict__", ()) else getattr(type(thing), part, None)
            )
    return thing


def _signature(function: Any) -> str:
    """How a function is called, without types."""
    signature = inspect.signature(function)
    given = [one.replace(annotation=one.empty) for one in signature.parameters.values() if one.name != "self"]
    return str(signature.replace(parameters=given, return_annotation=signature.empty))
