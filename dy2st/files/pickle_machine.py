"""The stack machine of pickles, less all that is not data: no opcode imports, looks up or calls what a file names.

A pickle is a program whose opcodes push data, gather them into containers, name functions, and call them. Here a name
is only recognised: it must be a key of the `calls` that the machine is given, whose function then stands for it, or of
the `classes`, which are arguments at most. Everything else is refused.

    opcodes          what they leave on the stack
    _PUSH            their argument: a number, a text, bytes
    _CONSTANTS       a constant
    _EMPTY           an empty container
    _COUNTED         a tuple of the last few
    _GATHER          a container of all that stands above the mark
    others           `op_<name>`: PROTO, MARK, MEMOIZE, BINGET, SETITEMS, STACK_GLOBAL, REDUCE, BUILD, ...
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Collection, Mapping
from typing import Any, BinaryIO

from dy2st.errors import FileFormatError
from dy2st.records import record

MAX_PROTOCOL = 4
MAX_OPCODES = 2_000_000
"""A tensor takes some 40 of them, a number in a list one; a million take Python two seconds and up to 100 MB."""
_MAX_LINE = 1 << 20
_MAX_NUMBER = 1 << 128
_MAX_KEY = 1 << 64
_MAX_PLACES = 1 << 32
_MAX_FLOAT_KEYS = 1000
"""Floats too can be chosen so that the hashes of many are one, and a dict takes the square of their time."""


@record(frozen=True)
class Global:
    """A function or class that a pickle names."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class _Bounded:
    """A file that is asked for no more bytes than it has: a pickle may say that a text has 2 ** 60."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.size, self.left = file, size, size

    def tell(self) -> int:
        return self.size - self.left

    def read(self, count: int) -> bytes:
        data = self.file.read(min(count, self.left))
        self.left -= len(data)
        return data

    def readline(self) -> bytes:
        data = self.file.readline(min(_MAX_LINE, self.left))
        self.left -= len(data)
        if b"\\" in data:
            raise ValueError("a line has a backslash, which protocols from 2 on never write")
        return data


class Machine:
    """Runs one pickle.

    Parameters
    ----------
    calls
        What stands for the functions that may be called.
    classes
        What may be named beside them.
    build
        Gives an object that a call made its state.
    """

    def __init__(
        self,
        calls: Mapping[Global, Callable[..., Any]],
        classes: Collection[Global],
        build: Callable[[Any, Any], None],
    ):
        self.calls, self.classes, self.build = calls, classes, build
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, file: BinaryIO, size: int, goes_on: bool = False) -> Any:
        """Return what a pickle of `size` bytes makes; FileFormatError when it is damaged, or more than data.

        Where the file `goes_on`, the pickle may be shorter, and the file is left where it ends.
        """
        bounded, count = _Bounded(file, size), 0
        try:
            for opcode, argument, _ in pickletools.genops(bounded):  # type: ignore[arg-type]
                self.step(opcode.name, argument)
                count += 1
                if count > MAX_OPCODES:
                    raise FileFormatError(f"the pickle has more than {MAX_OPCODES} opcodes")
        except FileFormatError:
            raise
        except (ValueError, OverflowError) as error:
            raise FileFormatError(f"the pickle is damaged or cut short: {error!s:.200}") from error
        if bounded.left and not goes_on:
            raise FileFormatError("there are bytes behind the end of the pickle")
        if self.marks or len(self.stack) != 1:
            raise FileFormatError("the pickle is damaged: it ends with something left over")
        return self.stack[0]

    def step(self, name: str, argument: Any) -> None:
        """Do what one opcode says."""
        if name in _PUSH:
            if type(argument) is int and not -_MAX_NUMBER < argument < _MAX_NUMBER:
                raise FileFormatError("the pickle has a number of more than 128 bits")
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in _COUNTED:
            taken = [self.pop() for _ in range(_COUNTED[name])]
            self.stack.append(tuple(reversed(taken)))
        elif name in _GATHER:
            gathered = _GATHER[name](self.above_mark())
            self.stack.append(gathered)
        else:
            method = getattr(self, f"op_{name.lower()}", None)
            if method is None:
                raise FileFormatError(f"the pickle holds more than data: it has the opcode {name}")
            method(argument)

    def pop(self, kind: type = object) -> Any:
        self.peek(kind)
        return self.stack.pop()

    def peek(self, kind: type = object) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise _damaged()
        return self.stack[-1]

    def above_mark(self) -> list[Any]:
        if not self.marks:
            raise _damaged()
        taken, self.stack = self.stack, self.marks.pop()
        return taken

    # ---- opcodes -----------------------------------------------------------------------------------------------------
    def op_proto(self, argument: int) -> None:
        if argument > MAX_PROTOCOL:
            raise FileFormatError(f"pickles up to protocol {MAX_PROTOCOL} are read, this one has protocol {argument}")

    def op_frame(self, _: int) -> None:
        """Do nothing: frames help who reads from a pipe."""

    op_stop = op_frame

    def op_mark(self, _: None) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def op_memoize(self, _: None) -> None:
        self.memo[len(self.memo)] = self.peek()

    def op_binput(self, index: int) -> None:
        if not 0 <= index < _MAX_PLACES:
            raise _damaged()
        self.memo[index] = self.peek()

    op_long_binput = op_put = op_binput

    def op_binget(self, index: int) -> None:
        if index not in self.memo:
            raise _damaged()
        self.stack.append(self.memo[index])

    op_long_binget = op_get = op_binget

    def op_setitem(self, _: None) -> None:
        value, key = self.pop(), self.pop()
        _set_items(self.peek(dict), [key, value])

    def op_setitems(self, _: None) -> None:
        given = self.above_mark()
        _set_items(self.peek(dict), given)

    def op_append(self, _: None) -> None:
        value = self.pop()
        self.peek(list).append(value)

    def op_appends(self, _: None) -> None:
        given = self.above_mark()
        self.peek(list).extend(given)

    def op_global(self, names: str) -> None:
        self.push_global(*names.split(" ", 1))

    def op_stack_global(self, _: None) -> None:
        name, module = self.pop(str), self.pop(str)
        self.push_global(module, name)

    def push_global(self, module: str, name: str) -> None:
        named = Global(module, name)
        if named not in self.calls and named not in self.classes:
            raise FileFormatError(
                f"the pickle holds more than data: it names {str(named)!r:.80}, which is not looked up"
            )
        self.stack.append(named)

    def op_reduce(self, _: None) -> None:
        arguments, called = self.pop(tuple), self.pop(Global)
        if called not in self.calls:
            raise FileFormatError(f"the pickle holds more than data: it calls {called}")
        try:
            made = self.calls[called](*arguments)
        except TypeError as error:
            raise FileFormatError(f"the pickle calls {called} with what it does not take") from error
        self.stack.append(made)

    def op_build(self, _: None) -> None:
        state = self.pop()
        self.build(self.peek(), state)


def _damaged() -> FileFormatError:
    return FileFormatError("the pickle is damaged: it takes from its stack what is not there")


def _set_items(target: dict[Any, Any], given: list[Any]) -> None:
    if len(given) % 2 or not all(isinstance(key, (str, bytes, int, float)) for key in given[::2]):
        raise FileFormatError("the pickle has a dict whose keys are neither texts nor numbers")
    if any(type(key) is int and not -_MAX_KEY < key < _MAX_KEY for key in given[::2]):
        raise FileFormatError("the pickle has a dict with a number of more than 64 bits as a key")
    target.update(zip(given[::2], given[1::2], strict=True))
    if any(type(key) is float for key in given[::2]) and sum(type(key) is float for key in target) > _MAX_FLOAT_KEYS:
        raise FileFormatError(f"the pickle has a dict with more than {_MAX_FLOAT_KEYS} floats as keys")


def _dict(given: list[Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    _set_items(made, given)
    return made


_PUSH = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
        *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
    }
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list}
_COUNTED = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_GATHER: dict[str, Callable[[list[Any]], Any]] = {"TUPLE": tuple, "LIST": list, "DICT": _dict}
