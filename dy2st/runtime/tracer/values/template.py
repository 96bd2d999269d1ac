"""What every template has (`abstract.py`): what it is made of, its types, and how it meets another one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.ir.types import Type
from dy2st.runtime.tracer.values.trace import ValueTrace

Meet = Callable[["Template", "Template"], "Template"]
"""What gives the template that fits what either of two fits (`join.meet`)."""


class Template:
    """Base of the templates; they are immutable and compared by value."""

    @property
    def number_kind(self) -> str | None:
        """What kind of number every object of this template is: "bool", "int" or "float"; None for others."""
        return None

    @property
    def children(self) -> tuple[Template, ...]:
        """The templates that this one is made of."""
        return ()

    def of(self, children: tuple[Template, ...]) -> Template:
        """Return the same template, made of other ones."""
        return self

    def mapped(self, change: Callable[[Template], Template]) -> Template:
        """Return the same template, made of what `change` gives for those that it is made of."""
        return self.of(tuple(map(change, self.children)))

    def types(self) -> list[Type]:
        """Return the types of the values that an object of this template is made of."""
        return [kind for child in self.children for kind in child.types()]

    def is_like(self, other: Template) -> bool:
        """Say whether this template and another one meet without a variant."""
        return False

    def joined(self, other: Template, trace: ValueTrace, meet: Meet) -> Template | None:
        """Return the template that fits what either fits; None where only a variant does, or `other` knows."""
        return None


def same_constant(a: Any, b: Any) -> bool:
    """Say whether two Python objects are the same constant: identical, or equal immutables of one type."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, FunctionType):
        return _same_function(a, b)
    if isinstance(a, float):
        return a == b and str(a) == str(b)
    if isinstance(a, (bool, int, str, bytes, complex, range, frozenset)):
        return a == b
    return type(a).__module__.startswith("dy2st.dtypes") and a is b


def _same_function(a: FunctionType, b: FunctionType) -> bool:
    """Say whether a `def` that was run twice made two functions: one code, the same variables, no attributes."""
    mine, theirs = (
        (f.__code__, f.__globals__, *(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())
        for f in (a, b)
    )
    same = len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))
    return same and not (a.__dict__ or b.__dict__)
