"""A short text that stands for what a Program computes: equal for equal Programs, in any process.

Source locations and names of values are left out, so a comment above a function changes nothing. A Program that holds
Python objects (a callback, say) has no fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from dy2st.dtypes import DType
from dy2st.ir.literals import is_array
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import Type
from dy2st.shapes import Dim


class _NoText(Exception):
    """An attribute is an object that no text stands for."""


def fingerprint(program: Program) -> str | None:
    """Return the fingerprint of a Program, 64 hexadecimal digits; None where it has none.

    >>> from dy2st.ir.program import Program
    >>> len(fingerprint(Program()) or "")
    64
    """
    writer = _Writer()
    try:
        for name, block in program.functions.items():
            writer.words.append(f"func {name!r}")
            writer.block(block)
    except _NoText:
        return None
    writer.words.append(f"{program.entry} {program.renewed}" if program.renewed else program.entry)
    return hashlib.sha256("\n".join(writer.words).encode("utf-8", "surrogatepass")).hexdigest()


class _Writer:
    def __init__(self) -> None:
        self.words: list[str] = []
        self._numbers: dict[Value, int] = {}
        self._types: dict[int, str] = {}
        """The texts of types by identity: the Program keeps them alive, and many values share one."""

    def block(self, block: Block) -> None:
        self.words.append(f"({self._made(block.arguments)}")
        number = self._numbers
        for operation in block.operations:
            used = ",".join([str(number.get(v, "?")) for v in operation.operands])
            said = _text(operation.attributes) if operation.attributes else ""
            self.words.append(f"{operation.op.name} {used} {said} {self._made(operation.results)}")
            for inner in operation.blocks:
                self.block(inner)
        self.words.append(",".join([str(number.get(v, "?")) for v in block.results]) + ")")

    def _made(self, values: list[Value]) -> str:
        """Number values; return their types."""
        types: list[str] = []
        for value in values:
            self._numbers[value] = len(self._numbers)
            found = self._types.get(id(value.type))
            if found is None:
                found = self._types[id(value.type)] = str(value.type)
            types.append(found)
        return ";".join(types)


def _text(value: Any) -> str:
    """Return a text that differs for attributes that differ."""
    if value is None or isinstance(value, (str, int, float, complex)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_text, cast(list[Any], value)))}]"
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        return f"{{{','.join([f'{key!r}:{_text(item)}' for key, item in pairs])}}}"
    if is_array(value) and not value.dtype.hasobject:
        return f"{value.dtype.str}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, (Type, Dim, DType)):
        return f"{type(value).__name__} {value}"
    raise _NoText
