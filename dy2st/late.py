"""What loads on first use, or not at all: names, modules under Paddle's paths, types without an instance yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from dy2st.forks import handlers_wait
from dy2st.missing import no_attribute
from dy2st.paths import PATHS, ROOT, submodule


def late_names(package: str, by_module: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` that imports what a name stands for, and keeps it in the package.

    `by_module` lists names, separated by blanks, by the module of the package that has them: none of them is the name
    of a module of the package itself. For type checkers the package imports the same names under TYPE_CHECKING.

    >>> get = late_names("dy2st.files", {"strict_json": "loads"})
    >>> get("loads")("[1]", "a list")
    [1]
    """
    where = {name: module for module, names in by_module.items() for name in names.split()}

    def __getattr__(name: str) -> Any:  # noqa: N807
        module = where.get(name)
        if module is None and (found := submodule(package, name)) is not None:
            return found
        if module is None:
            raise no_attribute(package, name, (*_names_in(package), *where))
        with handlers_wait():  # an error in the middle would leave Python's locks of imports taken
            value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


class PathFinder:
    """Makes the modules of `paths.py`, whose names are looked up elsewhere: a finder, and the loader of what it finds.

    It has no base of `importlib.abc`, which loads twenty modules.

    >>> from dy2st.nn.layer.rnn import LSTM
    >>> LSTM.__module__
    'dy2st.nn.layers.rnn'
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return how a module of the table is made, None for others."""
        listed = fullname.startswith(f"{ROOT}.") and fullname.removeprefix(f"{ROOT}.") in PATHS
        return ModuleSpec(fullname, self, is_package=True) if listed else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let a new module find its names."""
        path = module.__name__.removeprefix(f"{ROOT}.")

        def names() -> list[str]:
            return sorted({n for source in _sources(path) for n in dir(source) if not n.startswith("_")})

        def look_up(name: str) -> Any:
            if name == "__all__":
                return names()
            if (found := submodule(module.__name__, name)) is not None:
                return found
            if not name.startswith("__"):
                for source in _sources(path):
                    if hasattr(source, name):
                        return getattr(source, name)
            raise no_attribute(module.__name__, name, names())

        module.__doc__ = f"`paddle.{path}`: names that stand in {', '.join(s.__name__ for s in _sources(path))}."
        module.__dict__.update(__getattr__=look_up, __dir__=names)
        if path.startswith("nn.layer."):  # projects look through `vars` of these for the classes there are
            for source in reversed(_sources(path)):
                module.__dict__.update({n: x for n, x in vars(source).items() if isinstance(x, type)})


def _sources(path: str) -> list[ModuleType]:
    return [import_module(ROOT if source == "." else f"{ROOT}.{source}") for source in PATHS[path]]


sys.meta_path.append(PathFinder())  # type: ignore[arg-type]


def types_of(*names: str) -> tuple[type, ...]:
    """Return the types ("module:Type") whose modules are imported: of the others there is no instance to recognise.

    >>> import fractions
    >>> types_of("fractions:Fraction", "no_such_module:Type")
    (<class 'fractions.Fraction'>,)
    """
    found: list[type] = []
    for name in names:
        module, _, kind = name.partition(":")
        if (made := getattr(sys.modules.get(module), kind, None)) is not None:
            found.append(made)
    return tuple(found)


def _names_in(package: str) -> Iterable[str]:
    return (name for name in vars(sys.modules[package]) if not name.startswith("_"))
