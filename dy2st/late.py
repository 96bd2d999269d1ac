"""What loads on first use, or not at all: names of a package, and types of which there can be no instance yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from dy2st.missing import no_attribute


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
        if module is None:
            raise no_attribute(package, name, (*_names_in(package), *where))
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


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
