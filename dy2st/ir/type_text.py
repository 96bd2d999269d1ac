"""Types from their text form, which `str` of a type prints (`types.py` shows it).

>>> str(parse_type("list<variant<unset | float32[2*N, 4]>>"))
'list<variant<unset | float32[2*N, 4]>>'
"""

from __future__ import annotations

import re

from dy2st import dtypes
from dy2st.errors import ProgramSyntaxError
from dy2st.ir.reader import Reader
from dy2st.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    VariantType,
)
from dy2st.shapes import Dim, Extent, Shape, parse_extent

DTYPES = {t.name: t for t in dtypes.ALL}
MAX_DEPTH = 64
_WORD = re.compile(r"[a-z]+[0-9]*")
_ONE_VALUED = {"unset": UNSET, "none": NONE, "float": FLOAT, "bool": BOOL}


def parse_type(text: str) -> Type:
    """Return the type that `text` writes; ProgramSyntaxError when it writes none."""
    reader = Reader(text)
    found = read_type(reader)
    if not reader.done:
        reader.fail("expected the end of the type")
    return found


def read_type(reader: Reader, depth: int = 0) -> Type:
    """Read one type."""
    if depth > MAX_DEPTH:
        reader.fail(f"types are nested more than {MAX_DEPTH} deep")
    reader.space()
    start = reader.at
    word = reader.take(_WORD, "a type")
    if word in DTYPES and reader.accept("["):
        return TensorType(DTYPES[word], read_shape(reader))
    if word in _ONE_VALUED:
        return _ONE_VALUED[word]
    if word == "int":
        return _read_int(reader)
    if word == "const":
        return _read_const(reader)
    if word not in ("list", "tuple", "variant"):
        reader.fail(f"{word!r} is not a type", start)
    reader.expect("<")
    if word == "list":
        element = read_type(reader, depth + 1)
        reader.expect(">")
        return ListType(element)
    items = _read_items(reader, "," if word == "tuple" else "|", depth + 1)
    return TupleType(items) if word == "tuple" else VariantType(items)


def read_shape(reader: Reader) -> Shape:
    """Read extents up to the closing bracket; `None` is an extent that is not known."""
    extents: list[Extent] = []
    if reader.accept("]"):
        return ()
    while True:
        extents.append(_read_extent(reader, ",]", unknown=True))
        if reader.accept("]"):
            return tuple(extents)
        reader.expect(",")


def _read_int(reader: Reader) -> Type:
    if not reader.accept("("):
        return INT
    extent = _read_extent(reader, ")", unknown=False)
    reader.expect(")")
    return ScalarType("int", extent)


def _read_const(reader: Reader) -> Type:
    reader.expect("(")
    value = reader.json()
    reader.expect(")")
    return ConstType(value)


def _read_items(reader: Reader, separator: str, depth: int) -> tuple[Type, ...]:
    items: list[Type] = []
    if reader.accept(">"):
        return ()
    while True:
        items.append(read_type(reader, depth))
        if reader.accept(">"):
            return tuple(items)
        reader.expect(separator)


def _read_extent(reader: Reader, closing: str, *, unknown: bool) -> Extent:
    """Read up to one of the `closing` characters outside parentheses."""
    reader.space()
    text, start, depth = reader.text, reader.at, 0
    while reader.at < len(text) and (depth or text[reader.at] not in closing) and text[reader.at] != "\n":
        depth += (text[reader.at] == "(") - (text[reader.at] == ")")
        reader.at += 1
    written = text[start : reader.at].strip()
    if unknown and written == "None":
        return None  # pyright: ignore[reportReturnType]
    try:
        return parse_extent(written)
    except ValueError:
        reader.fail(f"{written!r} is not an extent", start)


def check_type(t: Type, *, inside: bool = False) -> None:
    """Raise ValueError when `t` is no whole type: a negative extent, an unknown one, a wrong part.

    Inside a list, a tuple or a variant an extent may be unknown (None).
    """
    if isinstance(t, TensorType):
        for extent in t.shape:
            if extent is None and inside:  # pyright: ignore[reportUnnecessaryComparison]
                continue
            if not isinstance(extent, Dim) and (type(extent) is not int or extent < 0):
                raise ValueError(f"{t} has the extent {extent!r}")
    elif isinstance(t, ListType):
        check_type(t.element, inside=True)
    elif isinstance(t, TupleType):
        for item in t.items:
            check_type(item, inside=True)
    elif isinstance(t, VariantType):
        for alternative in t.alternatives:
            check_type(alternative, inside=True)
    elif isinstance(t, ScalarType):
        if t.kind not in ("int", "float", "bool") or (t.extent is not None and t.kind != "int"):
            raise ValueError(f"{t} is not a scalar type")
    elif t != UNSET and not isinstance(t, ConstType):
        raise ValueError(f"{t!r} is not a type")


def print_type(t: Type) -> str:
    """Return the text of a type; ValueError when it would not read back as the same type."""
    text = str(t)
    try:
        same = str(parse_type(text)) == text
    except ProgramSyntaxError:
        same = False
    if not same:
        raise ValueError(f"type {text} has an extent or a constant that cannot be written")
    return text
