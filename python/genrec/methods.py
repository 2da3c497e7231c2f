"""The functions that methods of values and domains call.

`x + y` calls `ops.binary`, which itself takes and makes values. So that the modules have an order, values and domains
come first and call `methods.binary`, and the module that has the function, which comes later, registers it:

    @methods.define
    def binary(...): ...

JAX and TensorFlow give their arrays operators in the same way.
"""

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_defined: dict[str, Callable[..., Any]] = {}


def define(function: _Function) -> _Function:
    """Registers `function`: from now on it is `methods.<its name>`."""
    name = function.__name__
    assert name not in _defined, name
    _defined[name] = function
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    try:
        return _defined[name]
    except KeyError:
        raise AttributeError(f"no module has registered a function '{name}' for methods to call") from None
