"""A short text that stands for what a Program computes: equal for equal Programs, in any process.

Source locations and names of values are left out, so a comment above a function changes nothing. A Program that holds
Python objects (a callback, say) has no fingerprint.
"""

from __future__ import annotations

import hashlib
from array import array
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
            writer.said.append(writer.text(name))
            writer.block(block)
    except _NoText:
        return None
    marks = f" {program.renewed}" * bool(program.renewed) + f" kept {program.kept}" * (program.kept is not None)
    writer.said.append(writer.text(program.entry + marks))
    texts = [f"{len(text)} {text}" for text in writer.texts]
    made = hashlib.sha256(array("q", writer.said).tobytes())
    made.update("\n".join(texts).encode("utf-8", "surrogatepass"))
    return made.hexdigest()


class _Numbers(dict[Value, int]):
    """The numbers of values; one that is used before it is made has none."""

    def __missing__(self, value: Value) -> int:
        return -1


class _Writer:
    """Says what a Program is in numbers, each list of them behind its length: of values, and of texts.

    Types and attributes are known by their identity: the Program keeps them alive, and many places share one.
    """

    def __init__(self) -> None:
        self.said: list[int] = []
        self.texts: dict[str, int] = {}
        self._numbers = _Numbers()
        self._types: dict[int, int] = {}
        self._attributes: dict[int, int] = {}

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def block(self, block: Block) -> None:
        said, number, texts = self.said, self._numbers.__getitem__, self.texts
        self._made(block.arguments)
        said.append(len(block.operations))
        for operation in block.operations:
            operands, attributes, blocks = operation.operands, operation.attributes, operation.blocks
            name = operation.op.name
            said += (texts.setdefault(name, len(texts)), len(operands), len(attributes), len(blocks))
            said += map(number, operands)
            if attributes:
                self._say(attributes)
            self._made(operation.results)
            for inner in blocks:
                self.block(inner)
        said.append(len(block.results))
        said += map(number, block.results)

    def _made(self, values: list[Value]) -> None:
        """Number values, and say their types."""
        said, number, types = self.said, self._numbers, self._types
        said.append(len(values))
        for value in values:
            number[value] = len(number)
            kind = value.type
            found = types.get(id(kind))
            if found is None:
                found = types[id(kind)] = self.text(str(kind))
            said.append(found)

    def _say(self, attributes: Mapping[str, Any]) -> None:
        known, texts = self._attributes, self.texts
        for name, value in attributes.items():
            found = known.get(id(value))
            if found is None:
                found = known[id(value)] = self.text(_text(value))
            self.said += (texts.setdefault(name, len(texts)), found)


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
