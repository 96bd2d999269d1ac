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
        self._numbers: dict[Value, str] = {}
        self._types: dict[int, str] = {}
        """The texts of types by identity: the Program keeps them alive, and many values share one."""

    def block(self, block: Block) -> None:
        words, number = self.words, self._numbers
        words.append(f"({self._made(block.arguments)}")
        for operation in block.operations:
            used = ",".join([number.get(v, "?") for v in operation.operands])
            said = _text(operation.attributes) if operation.attributes else ""
            words.append(f"{operation.op.name} {used} {said} {self._made(operation.results)}")
            for inner in operation.blocks:
                self.block(inner)
        words.append(",".join([number.get(v, "?") for v in block.results]) + ")")

    def _made(self, values: list[Value]) -> str:
        """Number values; return their types."""
        number, types = self._numbers, self._types
        made: list[str] = []
        for value in values:
            number[value] = str(len(number))
            kind = value.type
            found = types.get(id(kind))
            if found is None:
                found = types[id(kind)] = str(kind)
            made.append(found)
        return ";".join(made)


_PLAIN = frozenset((type(None), bool, int, float, complex, str))
_SHORT = 64
"""Arrays of so many bytes stand in the text themselves."""


def _text(value: Any) -> str:
    """Return a text that differs for attributes that differ."""
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    if kind is dict:
        pairs = cast("dict[str, Any]", value).items()
        return f"{{{','.join([f'{key!r}:{_text(item)}' for key, item in pairs])}}}"
    if kind is tuple or kind is list:
        return f"[{','.join([_text(item) for item in cast('list[Any]', value)])}]"
    return _rare_text(value)


def _rare_text(value: Any) -> str:
    if is_array(value) and not value.dtype.hasobject:
        content = value.tobytes()
        said = content.hex() if len(content) <= _SHORT else hashlib.sha256(content).hexdigest()
        return f"{value.dtype.str}{value.shape}{said}"
    if isinstance(value, (Type, Dim, DType)):
        return f"{type(value).__name__} {value}"
    if isinstance(value, (str, int, float, complex)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_text, cast('list[Any]', value)))}]"
    if isinstance(value, Mapping):
        return _text(dict(cast(Mapping[str, Any], value)))
    raise _NoText
