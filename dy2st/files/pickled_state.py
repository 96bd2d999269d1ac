"""State that Paddle pickled (`.pdparams`, `.pdopt`), read without unpickling: nothing that a file names is looked up.

Of the functions that such a file may call there are the few in `_CALLS`: how NumPy pickles arrays and scalars, and how
Paddle wraps a tensor, `tuple((name, array))` or, of a static Program, `eval("data", {"data": array})`. Functions of
this file stand for them (`pickle_machine.py`), so that nothing of NumPy or Python is called on a file's behalf. Sizes
are checked against the bytes that are there before anything is made of them.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import regular
from dy2st.files.pickle_machine import Global, Machine
from dy2st.records import record

MAX_DEPTH = 100
MAX_AXES = 64
NAME_TABLE = "StructuredToParameterName@@"
_SPLIT = "UnpackBigParamInfor@@"
_DTYPES = ("b1", "i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")
"""u2 is how Paddle stores bfloat16."""


@record
class Named:
    """A tensor that was pickled with its name."""

    name: str
    array: np.ndarray


@record
class _Array:
    """An array under construction: its state is its shape and its bytes."""

    value: np.ndarray | None = None


@record
class _DType:
    code: str
    order: str = "="


def load(path: str | os.PathLike[str]) -> Any:
    """Return the dicts, lists, tuples, numbers, texts, arrays and `Named` arrays that Paddle pickled to `path`.

    FileFormatError says in one line what is wrong with a file that is damaged, or that holds anything else.
    """
    with regular.errors_of(path), regular.opened(path) as (file, size):
        if not size:
            raise FileFormatError("the file is empty or cut short")
        found = Reader(size).read(file)
        return _rejoined(found) if type(found) is dict else found


class Reader:
    """Makes what a pickle of `size` bytes holds; a file that says the same bytes over and over is refused.

    Raw bytes are refused too, or texts of latin1: Python 2 pickled its texts as bytes, and some of its files hold both.
    """

    def __init__(self, size: int, bytes_are_texts: bool = False):
        self.size, self.bytes_are_texts = size, bytes_are_texts
        self.left = 2 * size  # protocol 2 has bytes first as text
        self.calls = {**_CALLS, Global("_codecs", "encode"): self.encoded}

    def read(self, file: BinaryIO) -> Any:
        return self.finished(Machine(self.calls, (NDARRAY,), self.build).run(file, self.size), 0, {})

    def encoded(self, text: Any, encoding: Any) -> bytes:
        _require(type(text) is str and encoding == "latin1")
        self.spend(len(text))
        return text.encode("latin1")

    def build(self, made: Any, state: Any) -> None:
        """Give a dtype its byte order, an array its shape and elements."""
        if isinstance(made, _DType):
            made.order = _byte_order(state)
        elif isinstance(made, _Array):
            made.value = _array(state)
            self.spend(made.value.nbytes)
        else:
            raise FileFormatError(f"the pickle holds more than data: it sets the state of a {type(made).__name__}")

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise FileFormatError("the arrays would be larger than the file")

    def finished(self, value: Any, depth: int, done: dict[int, Any]) -> Any:
        """Return a value with its arrays in place; what stands in several places is one object."""
        if depth > MAX_DEPTH:
            raise FileFormatError(f"the data are nested more than {MAX_DEPTH} deep")
        if id(value) in done:
            return done[id(value)]
        if type(value) is dict:
            made: Any = {self.leaf(key): self.finished(item, depth + 1, done) for key, item in value.items()}
        elif type(value) in (list, tuple):
            made = type(value)(self.finished(item, depth + 1, done) for item in value)
        else:
            return self.leaf(value)
        done[id(value)] = made = self.pair(made) if type(made) is tuple and len(made) == 2 else made
        return made

    def leaf(self, value: Any) -> Any:
        """Return what a value is that holds no others."""
        if isinstance(value, _Array):
            _require(value.value is not None)
            return value.value
        if self.bytes_are_texts and isinstance(value, bytes):
            return value.decode("latin1")
        if isinstance(value, (_DType, Global, bytes)):
            raise FileFormatError(
                "the pickle holds more than data: a dtype, a function or raw bytes stand among its values"
            )
        return value

    def pair(self, made: tuple[Any, Any]) -> Any:
        """Return what a tuple of two stands for: Paddle pickles a tensor as its name and its array."""
        return Named(*made) if type(made[0]) is str and isinstance(made[1], np.ndarray) else made


# ---- what a pickle may call --------------------------------------------------------------------------------------
def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    _require(kind == NDARRAY and shape == (0,) and code in (b"b", "b"))
    return _Array()


def _dtype(code: Any, align: Any = False, copy: Any = True) -> _DType:
    if code not in _DTYPES:
        raise FileFormatError(f"an array has the dtype {_short(code)}, which is not read")
    return _DType(code)


def _scalar(dtype: Any, data: Any) -> Any:
    _require(isinstance(dtype, _DType))
    return _filled(dtype, (), data, "C")[()]


def _named(pair: Any) -> Any:
    _require(type(pair) is tuple)
    return pair


def _data(expression: Any, names: Any) -> _Array:
    _require(expression == "data" and isinstance(names, dict) and list(names) == ["data"])
    array: Any = names["data"]
    _require(isinstance(array, _Array))
    return array


def _empty_dict() -> dict[Any, Any]:
    return {}


def _empty_bytes() -> bytes:
    return b""


NDARRAY = Global("numpy", "ndarray")
_CALLS: dict[Global, Callable[..., Any]] = {
    Global("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    Global("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    Global("numpy.core.multiarray", "scalar"): _scalar,
    Global("numpy._core.multiarray", "scalar"): _scalar,
    Global("numpy", "dtype"): _dtype,
    Global("collections", "OrderedDict"): _empty_dict,
    Global("builtins", "tuple"): _named,
    Global("builtins", "eval"): _data,
    Global("__builtin__", "bytes"): _empty_bytes,
    Global("__builtin__", "tuple"): _named,
    Global("__builtin__", "eval"): _data,
}


def _short(value: Any) -> str:
    """Return the beginning of what a file says; all of it may be endless, where lists hold the same list often."""
    return reprlib.repr(value)[:100]


def _require(holds: bool) -> None:
    if not holds:
        raise FileFormatError("the pickle holds more than data: it makes an array otherwise than NumPy and Paddle do")


def _is_tuple(value: Any) -> bool:
    return type(value) is tuple


def _byte_order(state: Any) -> str:
    _require(_is_tuple(state) and len(state) == 8 and state[0] == 3 and state[2:5] == (None, None, None))
    _require(type(state[1]) is str and state[1] in ("<", ">", "|", "="))
    return state[1]


def _array(state: Any) -> np.ndarray:
    _require(_is_tuple(state) and len(state) == 5)
    _, shape, dtype, fortran, data = state
    _require(_is_tuple(shape) and isinstance(dtype, _DType))
    if len(shape) > MAX_AXES or not all(type(e) is int and e >= 0 for e in shape):
        raise FileFormatError(f"an array has no possible shape: {_short(shape)}")
    return _filled(dtype, shape, data, "F" if fortran is True else "C")


def _filled(dtype: _DType, shape: tuple[int, ...], data: Any, order: Any) -> np.ndarray:
    """Return an array of these bytes, in the machine's byte order."""
    data = data.encode("latin1") if type(data) is str else data  # as Python 2 pickled bytes
    _require(type(data) is bytes)
    stored = np.dtype(dtype.code).newbyteorder(dtype.order)  # pyright: ignore[reportArgumentType]  _byte_order checked it
    if math.prod(shape) * stored.itemsize != len(data) or math.prod(e or 1 for e in shape) >= 1 << 60:
        raise FileFormatError(f"an array of shape {shape!r:.100} and dtype {stored} cannot have {len(data)} bytes")
    if stored.kind == "b" and data.strip(b"\0\1"):
        raise FileFormatError("an array is bool and has a byte that is neither 0 nor 1")
    return np.frombuffer(data, stored).astype(stored.newbyteorder("=")).reshape(shape, order=order)


# ---- what stands at the end --------------------------------------------------------------------------------------
def _rejoined(found: dict[Any, Any]) -> dict[Any, Any]:
    """Put together the arrays that Paddle cut because protocols 2 and 3 hold no more than 4 GiB in one piece."""
    cut = found.pop(_SPLIT, {})
    if type(cut) is not dict:
        raise FileFormatError("the table of the arrays that were cut is none")
    for name, how in cut.items():
        names, shape = (how.get("slices"), how.get("OriginShape")) if isinstance(how, dict) else (None, None)
        given = [found.pop(n, None) if isinstance(n, str) else None for n in names] if isinstance(names, list) else []
        parts: list[np.ndarray] = [p for p in given if isinstance(p, np.ndarray) and p.ndim == 1]
        if not parts or len(parts) != len(given) or not isinstance(shape, tuple):
            raise FileFormatError(f"the parts of the array {name!r:.60} are not there")
        whole = np.concatenate(parts)
        if not all(type(e) is int and e >= 0 for e in shape) or math.prod(shape) != whole.size:
            raise FileFormatError(f"the parts of the array {name!r:.60} do not make the shape {_short(shape)}")
        found[name] = whole.reshape(shape)
    return found
