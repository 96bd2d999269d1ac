r"""Reads the wire format of Protocol Buffers by a schema: messages become dicts, in bounds that are checked first.

    >>> POINT = {1: ("x", "int"), 2: ("names", "text*")}
    >>> parse(b"\x08\x05\x12\x01a\x12\x01b", POINT)
    {'names': ['a', 'b'], 'x': 5}

A schema maps the number of a field to its name and its kind: `int`, `bool`, `float`, `double`, `text` (bytes that are
no UTF-8 are refused), or the schema of a message; in a tuple `("names", "text*")` the star is for a list of them.
Fields that the schema lacks are passed over. A schema that does not contain itself bounds how deep messages nest;
`MOST_FIELDS` bounds how many fields are read in all. What is absent is absent from the dict, but lists are always
there.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from dy2st.errors import FileFormatError

MOST_FIELDS = 8_000_000
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_WIRE = {"int": _VARINT, "bool": _VARINT, "float": _FOUR, "double": _EIGHT, "text": _BYTES}

Schema = Mapping[int, tuple[str, Any]]


def parse(data: bytes, schema: Schema) -> dict[str, Any]:
    """Return the message that bytes are; FileFormatError where they are none."""
    return _Reader(data).message(0, len(data), schema)


class _Reader:
    def __init__(self, data: bytes):
        self.data, self.left = data, MOST_FIELDS

    def message(self, at: int, end: int, schema: Schema) -> dict[str, Any]:
        made: dict[str, Any] = {name: [] for name, kind in schema.values() if _many(kind)}
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise FileFormatError(f"more than {MOST_FIELDS:,} fields")
            key, at = self.varint(at, end)
            number, wire = key >> 3, key & 7
            name, kind = schema.get(number, ("", None))
            if kind is None:
                at = self.passed(at, end, wire)
                continue
            one = kind[0] if isinstance(kind, tuple) else kind.removesuffix("*") if isinstance(kind, str) else kind
            if wire == _BYTES and _many(kind) and isinstance(one, str) and one != "text":
                length, at = self.length(at, end)
                at = self.packed(at, at + length, one, made[name])
                continue
            value, at = self.value(at, end, wire, one, name)
            if _many(kind):
                made[name].append(value)
            else:
                made[name] = value
        return made

    def packed(self, at: int, end: int, kind: str, into: list[Any]) -> int:
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise FileFormatError(f"more than {MOST_FIELDS:,} fields")
            value, at = self.value(at, end, _WIRE[kind], kind, "")
            into.append(value)
        return at

    def value(self, at: int, end: int, wire: int, kind: Any, name: str) -> tuple[Any, int]:
        if wire != (_WIRE[kind] if isinstance(kind, str) else _BYTES):
            raise FileFormatError(f"the field {name!r} has the wire type {wire}, which is not that of its kind")
        if wire == _VARINT:
            number, at = self.varint(at, end)
            signed = number - (1 << 64) if number >> 63 else number
            return bool(number) if kind == "bool" else signed, at
        if wire == _BYTES:
            length, at = self.length(at, end)
            if not isinstance(kind, str):
                return self.message(at, at + length, kind), at + length
            try:
                return self.data[at : at + length].decode(), at + length
            except UnicodeDecodeError:
                raise FileFormatError(f"the field {name!r} is no text") from None
        size = 4 if wire == _FOUR else 8
        if at + size > end:
            raise FileFormatError("it is cut short")
        return struct.unpack_from("<f" if wire == _FOUR else "<d", self.data, at)[0], at + size

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise FileFormatError("it is cut short")
            byte = self.data[at]
            value |= (byte & 127) << shift
            at += 1
            if byte < 128:
                return value & ((1 << 64) - 1), at
        raise FileFormatError("a number of more than 64 bits")

    def length(self, at: int, end: int) -> tuple[int, int]:
        length, at = self.varint(at, end)
        if length > end - at:
            raise FileFormatError("a part is longer than what it stands in")
        return length, at

    def passed(self, at: int, end: int, wire: int) -> int:
        """Return where the field ends that nobody reads."""
        if wire == _VARINT:
            return self.varint(at, end)[1]
        if wire == _BYTES:
            length, at = self.length(at, end)
            return at + length
        if wire not in (_FOUR, _EIGHT):
            raise FileFormatError(f"the wire type {wire} is not read")
        at += 4 if wire == _FOUR else 8
        if at > end:
            raise FileFormatError("it is cut short")
        return at


def _many(kind: Any) -> bool:
    return isinstance(kind, tuple) or (isinstance(kind, str) and kind.endswith("*"))
