"""What every abstract value has (`abstract.py`): what it is made of, its types, and how it joins with another one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.ir.types import TupleType, Type
from dy2st.runtime.tracer.values.trace import ValueTrace

Join = Callable[["AbstractValue", "AbstractValue"], "AbstractValue"]
"""What gives the abstract value that fits what either of two fits (`join.meet`)."""


class AbstractValue:
    """Base of the abstract values; they are immutable and compared by value."""

    @property
    def number_kind(self) -> str | None:
        """What kind of number every object of this abstract value is: "bool", "int" or "float"; None for others."""
        return None

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        """The abstract values that this one is made of."""
        return ()

    def of(self, children: tuple[AbstractValue, ...]) -> AbstractValue:
        """Return the same abstract value, made of other ones."""
        return self

    def mapped(self, change: Callable[[AbstractValue], AbstractValue]) -> AbstractValue:
        """Return the same abstract value, made of what `change` gives for those that it is made of."""
        return self.of(tuple(map(change, self.children)))

    def types(self) -> list[Type]:
        """Return the types of the values that an object of this abstract value is made of."""
        return [kind for child in self.children for kind in child.types()]

    def is_like(self, other: AbstractValue) -> bool:
        """Return whether this abstract value and another one join without a variant."""
        return False

    @property
    def is_taken_apart(self) -> bool:
        """Whether an object of this abstract value is a tuple value inside of a variant or list, even if it has one
        part.
        """
        return False

    @property
    def holds_objects(self) -> bool:
        """Whether an object of this abstract value is, or holds, a container or object that is made anew."""
        return False

    def packed(self) -> Type:
        """Return the one type of an alternative or a list element."""
        types = self.types()
        return types[0] if len(types) == 1 and not self.is_taken_apart else TupleType(tuple(types))

    def general(self) -> AbstractValue:
        """Return an abstract value for elements of a list: constants that are numbers become numbers."""
        return self

    def joined(self, other: AbstractValue, trace: ValueTrace, join_inside: Join) -> AbstractValue | None:
        """Return the abstract value that fits what either fits; None where only a variant does, or `other` knows."""
        return None


def same_constant(a: Any, b: Any) -> bool:
    """Return whether two Python objects are the same constant: identical, or equal immutables of one type."""
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
    """Return whether a `def` that was run twice made two functions: one code, the same variables, no attributes."""
    mine, theirs = (
        (f.__code__, f.__globals__, *(f.__closure__ or ()), *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())
        for f in (a, b)
    )
    same = len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))
    return same and not (a.__dict__ or b.__dict__)
