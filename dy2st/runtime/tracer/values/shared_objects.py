"""Abstract values of what leaves a Program as an object that is met at several places: it is made once a call.

`jit/tracing/output_sharing.py` finds them, and `jit/tracing/output_structure.py` makes the objects again.
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.types import ConstType, Type
from dy2st.records import record
from dy2st.runtime.tracer.values.abstract_value import AbstractValue


@record(frozen=True)
class MadeObject(AbstractValue):
    """What leaves a Program and is met again there: the object with this number."""

    number: int
    content: AbstractValue

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return (self.content,)


@record(frozen=True)
class SameObject(AbstractValue):
    """The object of this type that was made under this number."""

    number: int
    kind: str

    def packed(self) -> Type:
        return ConstType(f"<{self.kind}>")


@record(frozen=True)
class SameArgument(AbstractValue):
    """The list, dict or object of this type that is this container among the arguments of a call."""

    index: int
    kind: str

    def packed(self) -> Type:
        return ConstType(f"<{self.kind}>")


@record(frozen=True)
class AfterObjects(AbstractValue):
    """Something that may be one of these objects, which are made before it."""

    objects: tuple[Any, ...]
    items: tuple[AbstractValue, ...]
    then: AbstractValue

    @property
    def children(self) -> tuple[AbstractValue, ...]:
        return (*self.items, self.then)
