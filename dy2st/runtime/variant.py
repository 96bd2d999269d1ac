"""A traced Python value that is one of several things, told apart when the Program runs.

`alternatives[k]` is the template of what it is under tag k; number 0 is always "unset". A use of a variant is traced
once for each alternative that allows it, under its tag (`convert_if.switch`), and gives what that alternative gives.
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.program import Value


class Variant:
    """Hold the `ir.Value` of a variant type and the templates of its alternatives."""

    __slots__ = ("alternatives", "value")

    def __init__(self, value: Value, alternatives: tuple[Any, ...]):
        self.value, self.alternatives = value, alternatives

    def __repr__(self) -> str:
        return f"Variant({self.value.type})"


class SymbolicList:
    """The content of a Python list whose length only the run will tell: the `ir.Value` of a list type."""

    __slots__ = ("element", "value")

    def __init__(self, value: Value, element: Any):
        self.value, self.element = value, element

    def __repr__(self) -> str:
        return f"SymbolicList({self.value.type})"
