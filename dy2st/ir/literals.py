"""Attribute values as text, exactly: what a Program's text and files write after `name=`.

    none  true  false  3  0.5  -inf  nan  "text"  (1, none)  ()  (2,)
    float32                         a dtype
    !list<float32[N]>               a type
    float32[2, 2](1.0, 0.1, nan, 2.0)   an array; elements in the shortest form that reads back exactly
    float32[64, 64]($0)             an array that stands in the section of constants

Reading evaluates nothing: what is not of this form is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.reader import Reader
from dy2st.ir.type_text import DTYPES, MAX_DEPTH, read_shape, read_type
from dy2st.ir.types import Type

INLINE = 16
"""Arrays of at most so many elements are written in place."""
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}
_WORD = re.compile(r"[a-z]+[0-9]*")
_NUMBER = re.compile(r"[+-]?(?:inf\b|nan\b|[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?)")
_ELEMENT = re.compile(r"[^\s,()]+")
_REFERENCE = re.compile(r"\$[0-9]+")

Array = np.ndarray[Any, Any]
Store = Callable[[Array], str]
Constants = dict[str, Array]


def write_value(value: Any, store: Store) -> str:
    """Return the text of an attribute value; `store` keeps a large array and returns what refers to it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        parts = [write_value(v, store) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Type):
        return f"!{value}"
    if is_array(value):
        return write_inline(value) or f"{_head(value)}({store(value)})"
    return f"?{type(value).__name__}"


def is_array(value: Any) -> TypeGuard[Array]:
    """Return whether a value is a NumPy array, also to the type checker."""
    return isinstance(value, np.ndarray)


def write_inline(array: Array) -> str | None:
    """Return a small array with its elements in text, None for a large one or one that text does not hold exactly."""
    if array.size > INLINE or array.dtype.name not in DTYPES:
        return None
    elements = [_element(e) for e in array.reshape(-1)]
    try:
        same = _array(DTYPES[array.dtype.name], elements).tobytes() == array.tobytes()
    except ValueError:
        same = False
    return f"{_head(array)}({', '.join(elements)})" if same else None


def parse_inline(text: str) -> Array:
    """Read back what `write_inline` wrote; ProgramSyntaxError when it is something else."""
    reader = Reader(text)
    found = read_value(reader, {})
    if not is_array(found) or not reader.done:
        reader.fail("expected an array")
    return found


def read_value(reader: Reader, constants: Constants, depth: int = 0) -> Any:
    """Read one attribute value; `constants` holds the arrays of the section of constants."""
    if depth > MAX_DEPTH:
        reader.fail(f"tuples are nested more than {MAX_DEPTH} deep")
    if reader.accept("!"):
        return read_type(reader)
    if reader.accept("("):
        return _read_tuple(reader, constants, depth + 1)
    if reader.sees('"'):
        return reader.string()
    start = reader.at
    number = reader.match(_NUMBER)
    if number is not None:
        return _number(reader, number, start)
    word = reader.take(_WORD, "a value")
    if word in _WORDS:
        return _WORDS[word]
    if word not in DTYPES:
        reader.fail(f"{word!r} is not a value", start)
    return _read_array(reader, DTYPES[word], constants) if reader.accept("[") else DTYPES[word]


def _number(reader: Reader, found: re.Match[str], start: int) -> int | float:
    text = found.group()
    try:
        whole = found.group(1) is None and found.group(2) is None and text.lstrip("+-").isdigit()
        return int(text) if whole else float(text)
    except ValueError as error:
        reader.fail(str(error), start)


def _read_tuple(reader: Reader, constants: Constants, depth: int) -> tuple[Any, ...]:
    items: list[Any] = []
    while not reader.accept(")"):
        items.append(read_value(reader, constants, depth))
        if not reader.sees(")"):
            reader.expect(",")
    return tuple(items)


def _read_array(reader: Reader, dtype: DType, constants: Constants) -> Array:
    start = reader.at
    shape = read_shape(reader)
    reader.expect("(")
    reference = reader.match(_REFERENCE)
    if reference is not None:
        array = constants.get(reference.group())
        if array is None:
            reader.fail(f"no constant is named {reference.group()}", reference.start())
    else:
        array = _read_elements(reader, dtype)
    if not reader.sees(")"):
        reader.expect(",")
    reader.expect(")")
    sizes = [e for e in shape if isinstance(e, int) and e >= 0]
    if array.dtype != dtype.numpy or len(sizes) != len(shape) or array.size != math.prod(sizes):
        reader.fail("the elements of the array do not fit its type", start)
    return array.reshape(sizes)


def _read_elements(reader: Reader, dtype: DType) -> Array:
    elements: list[str] = []
    while not reader.sees(")"):
        elements.append(reader.take(_ELEMENT, "an element"))
        if not reader.sees(")"):
            reader.expect(",")
    try:
        return _array(dtype, elements)
    except (ValueError, OverflowError) as error:
        reader.fail(f"an element is not of type {dtype.name} ({error})")


def _array(dtype: DType, elements: Sequence[str]) -> Array:
    if dtype.is_bool:
        if not {"true", "false"}.issuperset(elements):
            raise ValueError("a bool is true or false")
        numbers: list[Any] = [e == "true" for e in elements]
    elif dtype.is_integer:
        numbers = [int(e) for e in elements]
    else:
        numbers = [complex(e) if dtype.is_complex else float(e) for e in elements]
    with np.errstate(over="ignore"):
        return np.array(numbers, dtype=dtype.numpy)


def _element(e: Any) -> str:
    """Return the text of one element (a NumPy scalar)."""
    kind: str = e.dtype.kind
    if kind == "b":
        return "true" if e else "false"
    if kind in "iu":
        return str(int(e))
    if kind == "c":
        imaginary = _element(e.imag)
        return f"{_element(e.real)}{'' if imaginary[0] == '-' else '+'}{imaginary}j"
    return float.__repr__(float(e) if kind == "V" else float(str(e)))


def _head(array: Array) -> str:
    return f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"
