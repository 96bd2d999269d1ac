"""State that Paddle pickled (`.pdparams`, `.pdopt`), read without unpickling: nothing that a file names is looked up.

A pickle is a program for a small stack machine. The machine here knows only the opcodes that build plain data, and of
the functions that a pickle may name only those in `_CALLS`, as shapes to recognise: `numpy` arrays and scalars, and how
Paddle wraps a tensor, `tuple((name, array))` or, of a static Program, `eval("data", {"data": array})`. None of them is
imported or called. Sizes are checked against the bytes that are there before anything is made of them.

    opcodes          what they leave on the stack
    _PUSH            their argument: numbers, text, bytes
    _EMPTY, _FRESH   an empty container, a constant
    _GATHER          a container of all that stands above the mark
    others           one method each: PROTO, MEMOIZE, GLOBAL, REDUCE, BUILD, ...
"""

from __future__ import annotations

import math
import mmap
import os
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError

MAX_DEPTH = 100
MAX_PROTOCOL = 4
NAME_TABLE = "StructuredToParameterName@@"
_SPLIT = "UnpackBigParamInfor@@"

_DTYPES = ("b1", "i1", "u1", "i2", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")
"""u2 is how Paddle stores bfloat16."""


@dataclass
class Named:
    """A tensor that was pickled with its name."""

    name: str
    array: np.ndarray


@dataclass(frozen=True)
class _Global:
    """A function or class that the file names; it is not looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class _Array:
    """An array under construction: BUILD gives it its shape and bytes."""

    value: np.ndarray | None = None


@dataclass
class _DType:
    code: str
    order: str = "="


def load(path: str | os.PathLike[str]) -> Any:
    """Return the dicts, lists, tuples, numbers, texts, arrays and `Named` arrays that Paddle pickled to `path`.

    FileFormatError says in one line what is wrong with a file that is damaged, or that holds anything else.
    """
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise FileFormatError(f"{path}: the file is empty or cut short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            try:
                found = _finished(_Machine().run(mapped), 0, {})
            except FileFormatError as error:
                raise FileFormatError(f"{path}: {error}") from error
    return _rejoined(found, path) if type(found) is dict else found


class _Machine:
    """The stack machine of pickles, less everything that is not data."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, mapped: mmap.mmap) -> Any:
        try:
            for opcode, argument, _ in pickletools.genops(mapped):  # type: ignore[arg-type]
                self.step(opcode.name, argument)
        except FileFormatError:
            raise
        except (ValueError, OverflowError) as error:
            raise FileFormatError(f"the pickle is damaged or cut short: {error!s:.200}") from error
        if mapped.tell() != len(mapped):
            raise FileFormatError("there are bytes behind the end of the pickle (a PyTorch file?)")
        if self.marks or len(self.stack) != 1:
            raise FileFormatError("the pickle is damaged: it ends with something left over")
        return self.stack[0]

    def step(self, name: str, argument: Any) -> None:
        """Do what one opcode says."""
        if name in _PUSH:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in _GATHER:
            self.stack.append(_GATHER[name](self.above_mark()))
        elif name in _COUNTED:
            taken = [self.pop() for _ in range(_COUNTED[name])]
            self.stack.append(tuple(reversed(taken)))
        else:
            method = getattr(self, f"op_{name.lower()}", None)
            if method is None:
                raise FileFormatError(f"the pickle holds more than data: it has the opcode {name}")
            method(argument)

    def pop(self, kind: type | tuple[type, ...] = object) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise FileFormatError("the pickle is damaged: it takes what is not there")
        return self.stack.pop()

    def above_mark(self) -> list[Any]:
        if not self.marks:
            raise FileFormatError("the pickle is damaged: it takes what is not there")
        taken, self.stack = self.stack, self.marks.pop()
        return taken

    # ---- opcodes -----------------------------------------------------------------------------------------------------
    def op_proto(self, argument: int) -> None:
        if argument > MAX_PROTOCOL:
            raise FileFormatError(f"pickles up to protocol {MAX_PROTOCOL} are read, this one has protocol {argument}")

    def op_frame(self, _: int) -> None:
        """Frames help who reads from a pipe."""

    op_stop = op_frame

    def op_mark(self, _: None) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def op_memoize(self, _: None) -> None:
        self.memo[len(self.memo)] = self.peek()

    def op_binput(self, index: int) -> None:
        self.memo[index] = self.peek()

    op_long_binput = op_put = op_binput

    def op_binget(self, index: int) -> None:
        if index not in self.memo:
            raise FileFormatError("the pickle is damaged: it takes what is not there")
        self.stack.append(self.memo[index])

    op_long_binget = op_get = op_binget

    def peek(self) -> Any:
        self.stack.append(top := self.pop())
        return top

    def op_setitem(self, _: None) -> None:
        value, key = self.pop(), self.pop()
        _set_items(self.last(dict), [key, value])

    def op_setitems(self, _: None) -> None:
        given = self.above_mark()
        _set_items(self.last(dict), given)

    def op_append(self, _: None) -> None:
        value = self.pop()
        self.last(list).append(value)

    def op_appends(self, _: None) -> None:
        given = self.above_mark()
        self.last(list).extend(given)

    def last(self, kind: type) -> Any:
        if type(self.peek()) is not kind:
            raise FileFormatError(
                f"the pickle is damaged: it fills a {type(self.peek()).__name__} as a {kind.__name__}"
            )
        return self.stack[-1]

    def op_global(self, names: str) -> None:
        self.push_global(*names.split(" ", 1))

    def op_stack_global(self, _: None) -> None:
        name, module = self.pop(str), self.pop(str)
        self.push_global(module, name)

    def push_global(self, module: str, name: str) -> None:
        named = _Global(module, name)
        if named not in _CALLS and named not in _CLASSES:
            raise FileFormatError(
                f"the pickle holds more than data: it names {str(named)!r:.80}, which was not looked up"
            )
        self.stack.append(named)

    def op_reduce(self, _: None) -> None:
        arguments, called = self.pop(tuple), self.pop(_Global)
        if called not in _CALLS:
            raise FileFormatError(f"the pickle holds more than data: it calls {called}")
        self.stack.append(_CALLS[called](*_checked(arguments, called)))

    def op_build(self, _: None) -> None:
        state, built = self.pop(), self.pop()
        if isinstance(built, _DType):
            built.order = _byte_order(state)
        elif isinstance(built, _Array):
            built.value = _array(state)
        else:
            raise FileFormatError(f"the pickle holds more than data: it sets the state of a {type(built).__name__}")
        self.stack.append(built)


def _set_items(target: dict[Any, Any], given: list[Any]) -> None:
    if len(given) % 2 or not all(isinstance(key, (str, int, float, bool)) for key in given[::2]):
        raise FileFormatError("the pickle has a dict whose keys are neither texts nor numbers")
    target.update(zip(given[::2], given[1::2], strict=True))


def _dict(given: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _set_items(made, given)
    return made


_PUSH = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES "
    "BINBYTES8 UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list}
_GATHER: dict[str, Callable[[list[Any]], Any]] = {"TUPLE": tuple, "LIST": list, "DICT": _dict}
_COUNTED = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


# ---- what a pickle may name --------------------------------------------------------------------------------------
def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    _require(kind == _NDARRAY and shape == (0,) and code in (b"b", "b"))
    return _Array()


def _dtype(code: Any, align: Any = False, copy: Any = True) -> _DType:
    if code not in _DTYPES:
        raise FileFormatError(f"an array has the dtype {code!r:.40}, which is not read")
    return _DType(code)


def _scalar(dtype: Any, data: Any) -> Any:
    _require(isinstance(dtype, _DType))
    return _filled(dtype, (), data, "C").item()


def _encoded(text: Any, encoding: Any) -> bytes:
    _require(isinstance(text, str) and encoding == "latin1")
    return text.encode("latin1")


def _named(pair: Any) -> Any:
    _require(type(pair) is tuple)
    return pair


def _data(expression: Any, names: Any) -> _Array:
    _require(expression == "data" and type(names) is dict and list(names) == ["data"])
    _require(isinstance(names["data"], _Array))
    return names["data"]


_NDARRAY = _Global("numpy", "ndarray")
_CLASSES = (_NDARRAY,)
_CALLS: dict[_Global, Callable[..., Any]] = {
    **{_Global(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{_Global(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    _Global("numpy", "dtype"): _dtype,
    _Global("_codecs", "encode"): _encoded,
    _Global("collections", "OrderedDict"): dict,
    **{_Global(builtins, "tuple"): _named for builtins in ("builtins", "__builtin__")},
    **{_Global(builtins, "eval"): _data for builtins in ("builtins", "__builtin__")},
}
_TAKES = {_reconstruct: (3,), _scalar: (2,), _dtype: (1, 2, 3), _encoded: (2,), dict: (0,), _named: (1,), _data: (2,)}


def _checked(arguments: tuple[Any, ...], called: _Global) -> tuple[Any, ...]:
    if len(arguments) not in _TAKES[_CALLS[called]]:
        raise FileFormatError(f"the pickle calls {called} with {len(arguments)} arguments")
    return arguments


def _require(holds: bool) -> None:
    if not holds:
        raise FileFormatError(
            "the pickle holds more than data: an array or a tensor is not made as NumPy and Paddle do"
        )


def _byte_order(state: Any) -> str:
    _require(type(state) is tuple and len(state) == 8 and state[0] == 3 and state[2:5] == (None, None, None))
    _require(isinstance(state[1], str) and state[1] in ("<", ">", "|", "="))
    return state[1]


def _array(state: Any) -> np.ndarray:
    _require(type(state) is tuple and len(state) == 5 and type(state[1]) is tuple and isinstance(state[2], _DType))
    _, shape, dtype, fortran, data = state
    if len(shape) > 64 or not all(type(e) is int and e >= 0 for e in shape):
        raise FileFormatError(f"an array has no possible shape: {shape!r:.100}")
    return _filled(dtype, shape, data, "F" if fortran else "C")


def _filled(dtype: _DType, shape: tuple[int, ...], data: Any, order: Any) -> np.ndarray:
    """Return an array of these bytes, in the machine's byte order."""
    data = data.encode("latin1") if isinstance(data, str) else data  # as Python 2 pickled bytes
    _require(isinstance(data, bytes))
    stored = np.dtype(dtype.code).newbyteorder(dtype.order)  # type: ignore[arg-type]
    if math.prod(shape) * stored.itemsize != len(data):
        raise FileFormatError(f"an array of shape {shape!r:.100} and dtype {stored} cannot have {len(data)} bytes")
    if stored.kind == "b" and data.strip(b"\0\1"):
        raise FileFormatError("an array is bool and has a byte that is neither 0 nor 1")
    return np.frombuffer(data, stored).astype(stored.newbyteorder("=")).reshape(shape, order=order)


# ---- what stands at the end --------------------------------------------------------------------------------------
def _finished(value: Any, depth: int, done: dict[int, Any]) -> Any:
    """Return a value with its arrays and named arrays in place; what stands in several places is one object."""
    if depth > MAX_DEPTH:
        raise FileFormatError(f"the data are nested more than {MAX_DEPTH} deep")
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, _Array):
        _require(value.value is not None)
        return value.value
    if isinstance(value, (_DType, _Global)):
        raise FileFormatError("the pickle holds more than data: a dtype or a function stands among its values")
    if type(value) is dict:
        made: Any = {key: _finished(item, depth + 1, done) for key, item in value.items()}
    elif type(value) in (list, tuple):
        made = type(value)(_finished(item, depth + 1, done) for item in value)
    else:
        return value
    if type(made) is tuple and len(made) == 2 and isinstance(made[0], str) and isinstance(made[1], np.ndarray):
        made = Named(*made)
    done[id(value)] = made
    return made


def _rejoined(found: dict[Any, Any], path: Any) -> dict[Any, Any]:
    """Put together the arrays that Paddle cut because protocols 2 and 3 hold no more than 4 GiB in one piece."""
    cut = found.pop(_SPLIT, {})
    for name, how in cut.items() if type(cut) is dict else [(None, None)]:
        parts = how.get("slices") if type(how) is dict else None
        shape = how.get("OriginShape") if type(how) is dict else None
        if (
            type(parts) is not list
            or type(shape) is not tuple
            or not all(type(found.get(p)) is np.ndarray for p in parts)
        ):
            raise FileFormatError(f"{path}: the parts of the array {name!r:.60} are not there")
        whole = np.concatenate([found.pop(part) for part in parts]) if parts else np.zeros(0)
        if math.prod(shape) != whole.size:
            raise FileFormatError(f"{path}: the parts of the array {name!r:.60} do not make the shape {shape!r:.100}")
        found[name] = whole.reshape(shape)
    return found
