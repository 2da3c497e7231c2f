"""Modules: parts of a model that own parameters and tables."""

from typing import Any

from genrec.errors import FeatureError
from genrec.hints import OF_MODULES, close_to
from genrec.source import find_place


class Module:
    """Base of layers and models, which own parameters. Subclasses assign parameters, tables and other modules to
    attributes (also in lists, tuples and dicts) and define `forward`; calling a module calls its `forward`.

    Example:
        >>> class Tower(nn.Module):
        ...     def __init__(self, dim):
        ...         self.item = gr.Table("item", dim=dim)
        ...         self.layers = [nn.Linear(dim, dim) for _ in range(2)]
        ...
        ...     def forward(self, ids):
        ...         x = self.item(ids)
        ...         for layer in self.layers:
        ...             x = nn.relu(layer(x))
        ...         return x
        >>> Tower(16)(batch.history.item)
        <[16] float32, one per 'history'>
    """

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """What the module computes; to be defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or hasattr(type(self), name):
            return object.__getattribute__(self, name)  # a property of a subclass that failed says why itself
        help = OF_MODULES.get(name) or close_to(name, list(vars(self)))
        raise FeatureError(f"{type(self).__name__} has no attribute '{name}'", find_place(), "", help)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Calls `forward`."""
        return self.forward(*arguments, **options)
