"""Calls from native code back into Python: an operation that has no native form runs its `eval` on the same memory.

Native code hands over a number, which says what to run, and two rows of eight-byte components (value_layout.py). An
exception stays with the run; native code only learns that there is one and returns.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from dy2st.ir.location import Location
from dy2st.ir.program import Operation
from dy2st.ir.types import ConstType, ListType, ScalarType, TensorType, TupleType, Type, UnsetType, VariantType
from dy2st.ops.core.bundle import Bundle
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import ELSEWHERE, HEAD, OK, RAISED
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import as_part, in_register, in_registers, kinds, known_extents
from dy2st.runtime.backends.cpu.python_abi.deoptimize import EffectOutcome
from dy2st.runtime.interpreter.error_locations import located

_FORMAT = {"i64": "q", "double": "d", "float": "f", "i1": "?", "i8": "b", "i16": "h", "i32": "i", "ptr": "Q"}


@record
class HostCallback:
    """What a number in native code stands for: a function of Python values, and the types of both sides."""

    function: Callable[..., Sequence[Any]]
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    location: Location | None
    name: str = ""
    """The op whose `eval` it is; empty for what is no operation."""
    rare: bool = False
    """It runs only where something is wrong or out of the ordinary."""
    in_loop: bool = False
    effect: bool = False
    """Something outside sees its operands, and may keep them longer than the run keeps their memory."""
    calling: bool = False
    """It stands for the line of a call: the error of the run is to get its frame."""
    catching: bool = False
    """Its operand is the error of the run, which from now on is the one that is being handled."""
    handled: bool = False
    """It stands for the end of a handler."""
    operation: Operation | None = None
    """The operation whose `eval` it is."""


class NoNativeForm(Exception):
    """A value has no place in native code (an int of more than 64 bits): the interpreter has to do it."""


class HostCallbacks(Protocol):
    """The host callbacks of a Program by their numbers."""

    def __getitem__(self, number: int, /) -> HostCallback: ...


class CallbackRun:
    """What native code calls back into: the host callbacks of a Program, and what went wrong in a run of it."""

    def __init__(self, calls: HostCallbacks, allocate: Callable[[int], int], turns: ctypes.c_uint64):
        self.calls, self.allocate, self._turns = calls, allocate, turns
        self.number = next(_ids)
        self.clear()

    def clear(self) -> None:
        """Forget what a run left behind."""
        self.error: BaseException | None = None
        self.handled: list[BaseException] = []
        """The errors that `try` is handling, as `sys.exception()` has them in Python."""
        self._turn, self._done = self._turns.value, list[EffectOutcome]()

    def done(self) -> list[EffectOutcome]:
        """Return what the effects of this run gave so far; the list takes more of them."""
        if self._turn != self._turns.value:
            self._turn, self._done = self._turns.value, []
        return self._done

    def call(self, number: int, operands: int, results: int) -> int:
        """Run host callback `number` on the row at `operands`, and write its results to the row at `results`."""
        call = self.calls[number]
        try:
            if call.calling and self.error is not None:
                raise self.error
            if call.catching and self.error is not None:
                made = call.function(self.error)
                self.handled.append(self.error)
                self.error = None
            else:
                given = read_row(call.operands, operands)
                made = call.function(*(map(unshared, call.operands, given) if call.effect else given))
            if call.effect:
                self.done().append(EffectOutcome.of(made))
            if call.handled:
                self.handled.pop()
            self._write(call.results, made, results)
        except NoNativeForm:
            return ELSEWHERE
        except BaseException as error:
            if call.effect and isinstance(error, Exception):
                self.done().append(EffectOutcome(error=error))
            if self.handled and error is not self.handled[-1] and hasattr(error, "raised"):
                error.__context__ = self.handled[-1]  # what Python itself set there is what the caller is handling
            self.error = located(error, call.location, call.calling)
            return RAISED
        return OK

    def _write(self, types: Sequence[Type], values: Sequence[Any], address: int) -> None:
        row: list[tuple[str, Any]] = []
        for t, value in zip(types, values, strict=True):
            row += encode(t, value, self.copied)
        write_row(row, address)

    def copied(self, content: bytes | np.ndarray[Any, Any], size: int) -> tuple[int, int]:
        """Copy bytes into a new block; return the addresses of the block and of its content."""
        block = self.allocate(size)
        if size:
            source = content if isinstance(content, bytes) else content.ctypes.data
            ctypes.memmove(block + HEAD, source, size)
        return block, block + HEAD


_ids = itertools.count(1)

# ---- rows of components --------------------------------------------------------------------------------------------
Row = list[tuple[str, Any]]
Copy = Callable[[Any, int], tuple[int, int]]


def write_row(row: Row, address: int) -> None:
    """Write components to memory, eight bytes each."""
    data = b"".join(struct.pack(f"<{_FORMAT[kind]}", value).ljust(8, b"\0") for kind, value in row)
    ctypes.memmove(address, data, len(data))


def encode(t: Type, value: Any, copied: Copy) -> Row:
    """Return the components of a value. `copied` gives memory a new owner; NoNativeForm when an int is too large."""
    if isinstance(t, ScalarType):
        return [(kinds(t)[0], _number(t.kind, value))]
    if isinstance(t, TensorType):
        return _encode_tensor(t, value, copied)
    if isinstance(t, ListType):
        rows = [_bytes(encode(as_part(t.element), item, copied)) for item in value]
        content = b"".join(rows)
        storage, _ = copied(content, len(content))
        block, _ = copied(struct.pack("<qqQ", len(rows), len(rows), storage), 24)
        return [("ptr", block)]
    if isinstance(t, TupleType):
        items = zip(map(as_part, t.items), value.items, strict=True)
        return [part for item, v in items for part in encode(item, v, copied)]
    if isinstance(t, VariantType):
        row: Row = [("i64", value[0])]
        for tag, alternative in enumerate(map(as_part, t.alternatives)):
            if tag == value[0]:
                row += encode(alternative, value[1], copied)
            else:
                row += [(kind, 0) for kind in kinds(alternative)]
        return row
    return []


def _number(kind: str, value: Any) -> Any:
    if kind == "int" and not -(2**63) <= value < 2**63:
        raise NoNativeForm
    return {"int": int, "float": float, "bool": bool}[kind](value)


def _encode_tensor(t: TensorType, value: Any, copied: Copy) -> Row:
    if in_register(t):
        return [(kinds(t)[0], _element(t, np.asarray(value).astype(t.dtype.numpy, copy=False).item()))]
    array = np.ascontiguousarray(value, dtype=t.dtype.numpy).reshape(np.shape(value))
    _check(t, array)
    if in_registers(t):
        return [(kinds(t)[0], _element(t, number)) for number in array.ravel().tolist()]
    block, data = copied(array, array.nbytes)
    return [("ptr", block), ("ptr", data), *(("i64", e) for e in array.shape)]


def _element(t: TensorType, number: Any) -> Any:
    return number - 256 if t.dtype.name == "uint8" and number > 127 else number


def _check(t: TensorType, array: Any) -> None:
    """Refuse an array that is not what its type says: native code would go outside of its memory."""
    if array.ndim != t.rank or any(
        isinstance(e, int) and e != found for e, found in zip(t.shape, array.shape, strict=True)
    ):
        raise NoNativeForm


def _bytes(row: Row) -> bytes:
    return b"".join(struct.pack(f"<{_FORMAT[kind]}", value).ljust(8, b"\0") for kind, value in row)


def read_row(types: Sequence[Type], address: int) -> list[Any]:
    """Return the Python values of a row; arrays are views, which hold as long as the memory does."""
    values: list[Any] = []
    for t in types:
        value, address = decode(t, address)
        values.append(value)
    return values


def unshared(t: Type, value: Any) -> Any:
    """Return a value that shares no memory with the run."""
    if isinstance(t, TensorType):
        return value.copy()
    if isinstance(t, ListType):
        return [unshared(t.element, item) for item in value]
    if isinstance(t, TupleType):
        return Bundle([unshared(u, item) for u, item in zip(t.items, value.items, strict=True)])
    if isinstance(t, VariantType):
        return (value[0], unshared(t.alternatives[value[0]], value[1]))
    return value


def decode(t: Type, address: int) -> tuple[Any, int]:
    """Return the Python value whose components stand at an address, and the address behind them."""
    width = 8 * len(kinds(t))
    if isinstance(t, ScalarType):
        return _read(kinds(t)[0], address), address + width
    if isinstance(t, TensorType):
        if in_register(t):
            return np.frombuffer(ctypes.string_at(address, 8), t.dtype.numpy, 1).reshape(()).copy(), address + width
        if in_registers(t):
            return _decode_elements(t, ctypes.string_at(address, width)), address + width
        shape = struct.unpack(f"<{t.rank}q", ctypes.string_at(address + 16, 8 * t.rank))
        return _array(_read("ptr", address + 8), t, shape), address + width
    if isinstance(t, ListType):
        return _decode_list(t, _read("ptr", address)), address + width
    if isinstance(t, TupleType):
        return Bundle(read_row([as_part(item) for item in t.items], address)), address + width
    if isinstance(t, VariantType):
        return _decode_variant(t, address), address + width
    if isinstance(t, ConstType):
        return t.value, address
    return None, address


def _decode_elements(t: TensorType, row: bytes) -> Any:
    """Return a tensor whose elements stand in the first bytes of words."""
    size = t.dtype.itemsize
    data = b"".join(row[at : at + size] for at in range(0, len(row), 8))
    return np.frombuffer(data, t.dtype.numpy).reshape(known_extents(t)).copy()


def _decode_list(t: ListType, block: int) -> list[Any]:
    length, _, storage = struct.unpack("<qqQ", ctypes.string_at(block + HEAD, 24))
    element = as_part(t.element)
    step = 8 * len(kinds(element))
    return [decode(element, storage + HEAD + i * step)[0] for i in range(length)]


def _decode_variant(t: VariantType, address: int) -> tuple[int, Any]:
    tag = _read("i64", address)
    at = address + 8 + sum(8 * len(kinds(as_part(a))) for a in t.alternatives[:tag])
    chosen = as_part(t.alternatives[tag])
    if isinstance(chosen, (UnsetType, ConstType)):
        return tag, None
    return tag, decode(chosen, at)[0]


def _read(kind: str, address: int) -> Any:
    form = struct.Struct(f"<{_FORMAT[kind]}")
    return form.unpack(ctypes.string_at(address, form.size))[0]


def _array(address: int, t: TensorType, shape: Sequence[int]) -> Any:
    size = int(np.prod(shape, dtype=np.int64)) * t.dtype.itemsize
    if size == 0:
        return np.zeros(shape, t.dtype.numpy)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, t.dtype.numpy).reshape(shape)
