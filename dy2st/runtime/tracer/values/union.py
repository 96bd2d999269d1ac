"""A traced Python value that is one of several things, told apart when the Program runs.

`alternatives[k]` is the abstract value of what it is under tag k; number 0 is always "unset". A use of a variant is
traced once for each alternative that allows it, under its tag (`convert_if.switch`), and gives what that alternative
gives. Operators do so by themselves; where Python needs one thing (a truth, an index, a hash) there is none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dy2st.ir.context import current
from dy2st.ir.program import Value
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.values.sentinels import MISSING


class Variant:
    """Hold the `ir.Value` of a variant type and the abstract values of its alternatives."""

    __slots__ = ("_alternatives", "_of", "_value")

    def __init__(self, value: Value, alternatives: tuple[Any, ...], of: Variant | None = None):
        self._value, self._alternatives = value, alternatives
        self._of = self if of is None else of.whole

    @property
    def whole(self) -> Variant:
        """The variant that this one is another look at; itself mostly."""
        return self._of

    @property
    def value(self) -> Value:
        """The value as it stands in the trace: the tensor that it is may have been written in place."""
        trace = current().trace
        if id(self._of) in trace.borrows.parts:
            trace.borrows.read(self._of)
        found = trace.log.get(("data", id(self._of)))
        return self._value if found is MISSING else found._value

    @property
    def payload(self) -> Value:
        """The value that it was made with, as the payload of a tensor."""
        return self._value

    def as_made(self) -> Variant:
        """Return it as it was made, whatever was written to it."""
        return Variant(self._value, self._alternatives)

    @property
    def alternatives(self) -> tuple[Any, ...]:
        """The abstract values, number 0 is "unset"."""
        found = current().trace.log.get(("data", id(self._of)))
        return self._alternatives if found is MISSING else (self._alternatives[0], *found._alternatives[1:])

    def __repr__(self) -> str:
        return f"Variant({self._value.type})"

    def __hash__(self) -> int:
        raise self._needed("its hash was needed (a key, or an item of a set)")

    def __eq__(self, other: object) -> Any:
        return _each(self, lambda x: x == other)

    def __ne__(self, other: object) -> Any:
        return _each(self, lambda x: x != other)

    def __bool__(self) -> bool:
        raise self._needed("its truth was needed as a Python bool")

    def __index__(self) -> int:
        raise self._needed("it was needed as a Python int (an index or a count)")

    def __iter__(self) -> Any:
        raise self._needed("Python was to run through it")

    def __len__(self) -> int:
        raise self._needed("its length was needed as a Python int")

    def __str__(self) -> str:
        raise self._needed("it was needed as text")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return current().trace.attribute_of(self, name)

    def __getitem__(self, key: Any) -> Any:
        return current().trace.item_of(self, key)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return current().trace.callable(self)(*args, **keywords)

    def _needed(self, why: str) -> Exception:
        what = "a value is one of several things, told apart when the Program runs"
        return current().trace.needs_python(f"{what}, but {why}")


def _each(variant: Variant, use: Callable[[Any], Any]) -> Any:
    return current().trace.each(variant, use)


def _forward(meaning: Callable[[Any, Any], Any]) -> Callable[[Variant, Any], Any]:
    return lambda self, other: _each(self, lambda x: meaning(x, other))


def _reflected(meaning: Callable[[Any, Any], Any]) -> Callable[[Variant, Any], Any]:
    return lambda self, other: _each(self, lambda x: meaning(other, x))


def _unary(meaning: Callable[[Any], Any]) -> Callable[[Variant], Any]:
    return lambda self: _each(self, meaning)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
              "rshift"):  # fmt: skip
    _meaning = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    setattr(Variant, f"__{_name}__", _forward(_meaning))
    setattr(Variant, f"__r{_name}__", _reflected(_meaning))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Variant, f"__{_name}__", _forward(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Variant, f"__{_name}__", _unary(getattr(operator, _name)))


class SymbolicList:
    """The content of a Python list whose length is known only at run time: the `ir.Value` of a list type."""

    __slots__ = ("element", "value")

    def __init__(self, value: Value, element: Any):
        self.value, self.element = value, element

    def __iter__(self) -> Any:
        raise needs_value("only the run will tell how long this list is, so Python cannot run through it")

    def __len__(self) -> int:
        raise needs_value("only the run will tell how long this list is, and Python needed its length")

    def __repr__(self) -> str:
        return f"SymbolicList({self.value.type})"
