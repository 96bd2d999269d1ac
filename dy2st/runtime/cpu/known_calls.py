"""Machine code between the tensors of a call that was seen before and the native code of its Program.

    PyObject *dy2st.known(PyObject *plate, PyObject **given, Py_ssize_t count)

`given` is what to call, as `NativePlan.call`, and the inputs. It looks whether each is as its line of the table says,
calls with their arrays, and makes tensors of results: copies of a tensor that Python made, slot by slot, with another
array. It gives the tensor that is all there is to give, or the list of results in which those that are to be are
tensors; what the call gave, where that is no list; UNSEEN, before anything is done, where an input is not as it must be
or the call does not take it.

Three inputs in four of a call are looked at in the time of one line of Python. Where slots stand is found by looking
for objects that were put there, and a tensor made here is held against one that Python made before anything relies on
it: where something is different, Python does all of it.

The plate has, behind what other plates have (entry.py):

    UNSEEN   inputs   the first of them that are to differ   results that are made tensors, -1 for the only one
    where their numbers stand   how tensors are made   where a tensor has its array   and its `stop_gradient`
    a line for each input: its type, 0 for what goes on as it is, 1 for a tuple of what does; its `stop_gradient`
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.engine import load, named_product
from dy2st.runtime.cpu.entry_values import API, Values
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.slots import maker, places, slots_of
from dy2st.runtime.tensor import Tensor

Input = tuple[type[Tensor], bool] | bool
"""The type of a tensor and its `stop_gradient`; whether anything else is the only item of a tuple."""
MOST_INPUTS = 4_000
"""A row of so many arrays stands on the stack."""
ALONE = -1
_END = API + 8 * len(api.NAMES)
_UNSEEN, _INPUTS, _DISTINCT, _RESULTS, _NUMBERS, _MAKER, _ARRAY, _STOP, _LINES = range(_END, _END + 72, 8)
_NEW, _TYPE, _NOTHING, _SLOTS, _FILLED = range(0, 40, 8)
"""How tensors are made: `object.__new__`, what it takes, and how many slots are filled, each with what."""


def known_call(
    inputs: Sequence[Input], unseen: object, *, results: Sequence[int] | None = None, distinct: int = 0
) -> Callable[..., Any] | None:
    """Return the function for calls with such inputs; None where Python has to do it.

    `results` are the numbers of those that are made tensors, None for the only one; the first `distinct` inputs are to
    be different objects.
    """
    layout = _layout()
    return None if layout is None or len(inputs) > MOST_INPUTS else layout.call(inputs, unseen, results, distinct)


def is_loaded() -> bool:
    """Say whether this code runs already."""
    return _layout.cache_info().currsize > 0 and _layout() is not None


def product() -> Product:
    """Return this code, not yet loaded."""
    return named_product("known calls", _text, level=0)


class _Layout:
    """Where a tensor has its slots, and how one is made."""

    def __init__(self, at: dict[str, int]):
        self._array, self._stop = at["_payload"], at["stop_gradient"]
        pattern = Tensor(None)
        filled = {name: getattr(pattern, name) for name in at if name != "_payload" and hasattr(pattern, name)}
        slots = [word for name, value in filled.items() for word in (at[name], id(value))]
        self._kept = [*filled.values(), ()]
        self._maker = _words([maker(), id(Tensor), id(self._kept[-1]), len(filled), *slots])
        self._address = load(product().binary).address("dy2st.known")

    def call(
        self, inputs: Sequence[Input], unseen: object, results: Sequence[int] | None, distinct: int
    ) -> Callable[..., Any]:
        """Return the function for one kind of call."""
        numbers = _words(results or ())
        made = [id(unseen), len(inputs), distinct, ALONE if results is None else len(results), numbers.ctypes.data]
        lines = [word for one in inputs for word in (_line(one) if isinstance(one, tuple) else (int(one), 0))]
        where = [self._maker.ctypes.data, self._array, self._stop]
        plate = _words([0, 0, *api.addresses(), *made, *where, *lines])
        return api.builtin_function(self._address, "dy2st", plate, keeps=(inputs, unseen, numbers, self))

    def is_right(self) -> bool:
        """Say whether a call of this code does what Python does."""
        given, array, unseen = Tensor(np.zeros(1)), np.zeros(2), object()
        call = self.call([(Tensor, True)], unseen, None, 0)
        made, wanted = call(lambda _: [array], given), Tensor(array)
        return (
            type(made) is Tensor
            and all(getattr(made, name) is getattr(wanted, name) for name in slots_of(Tensor) if hasattr(wanted, name))
            and all(hasattr(made, name) == hasattr(wanted, name) for name in slots_of(Tensor))
            and made.__dict__ == {}
            and gc.is_tracked(made)
            and call(lambda x: x.size, given) == 1
            and call(lambda _: False, given) is unseen
            and call(lambda _: [array], Tensor(array, stop_gradient=False)) is unseen
        )


@functools.cache
def _layout() -> _Layout | None:
    """Return how tensors are laid out; None where that is not as this module has it."""
    at = places(Tensor) if api.available() else None
    if at is None:
        return None
    found = _Layout(at)
    return found if found.is_right() else None


def _line(tensor: tuple[type[Tensor], bool]) -> tuple[int, int]:
    kind, stop_gradient = tensor
    return id(kind), id(stop_gradient)


def _words(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array([*values] or [0], np.int64)


# ---- the code ------------------------------------------------------------------------------------------------------
def _text() -> str:
    parameters = [("ptr", "%plate"), ("ptr", "%given"), ("i64", "%count")]
    known = Function("dy2st.known", parameters, "ptr", also="nounwind")
    _Known(known, Module()).write()
    made = Function("dy2st.tensor", [("ptr", "%plate"), ("ptr", "%array")], "ptr", linkage="internal", also="nounwind")
    _Made(made, Module()).write()
    return f"{made.text()}\n\n{known.text()}\n"


class _Made(Values):
    """Writes the function that makes a tensor of an array; null where Python has set an error, as for no array."""

    def write(self) -> None:
        f = self.f
        self._sure("%array")
        maker = f.load("ptr", f.offset(self.table, _MAKER))
        new, *given = (f.load("ptr", f.offset(maker, at)) for at in (_NEW, _TYPE, _NOTHING))
        made = self._sure(f.call("ptr", new, *(f"ptr {x}" for x in given), "ptr null"))
        with f.loop(f.load("i64", f.offset(maker, _SLOTS)), hint="slot") as i:
            line = f.offset(f.offset(maker, _FILLED), i, "[2 x i64]")
            self._put(made, f.load("i64", line), f.load("ptr", f.offset(line, 8)))
        self._put(made, f.load("i64", f.offset(self.table, _ARRAY)), "%array")
        f.ret("ptr", made)
        f.start(self.failed)
        f.ret("ptr", "null")

    def _put(self, made: str, at: str, value: str) -> None:
        self._call("void", "Py_IncRef", f"ptr {value}")
        self.f.store("ptr", value, self.f.offset(made, at))


class _Known(Values):
    """Writes the function that Python calls."""

    def write(self) -> None:
        f, count = self.f, self._field(_INPUTS)
        self._only(compare(f, "eq", "%count", f.value(f"add i64 {count}, 1")))
        row, inputs = f.value(f"alloca ptr, i64 {count}"), f.offset("%given", 8)
        with f.loop(count, hint="input") as i:
            self._look(i, f.load("ptr", f.offset(inputs, i, "ptr")), f.offset(row, i, "ptr"))
        with f.loop(self._field(_DISTINCT), hint="one") as i, f.loop(i, hint="other") as j:
            one, other = (f.load("ptr", f.offset(inputs, k, "ptr")) for k in (i, j))
            self._only(f.value(f"icmp ne ptr {one}, {other}"))
        self._each(row, count, "Py_IncRef")
        rows = f"ptr {f.load('ptr', '%given')}", f"ptr {row}", f"i64 {count}", "ptr null"
        made = self._call("ptr", "PyObject_Vectorcall", *rows)
        self._each(row, count, "Py_DecRef")
        self._sure(made)
        listed, no = f.label("list"), f.label("no")
        f.branch(self._is(f.load("ptr", f.offset(made, api.TYPE)), "list"), listed, no)
        f.start(no)
        with f.when(self._is(made, "False"), "refused"):
            self._call("void", "Py_DecRef", f"ptr {made}")
            f.jump(self.other)
        f.ret("ptr", made)
        f.start(listed)
        self._wrap(made)
        f.start(self.other)
        unseen = f.load("ptr", f.offset(self.table, _UNSEEN))
        self._call("void", "Py_IncRef", f"ptr {unseen}")
        f.ret("ptr", unseen)
        f.start(self.failed)
        f.ret("ptr", "null")

    def _field(self, at: int) -> str:
        return self.f.load("i64", self.f.offset(self.table, at))

    def _look(self, i: str, given: str, place: str) -> None:
        """Write a look at one input; what goes on stands at `place` then."""
        f = self.f
        line = f.offset(f.offset(self.table, _LINES), i, "[2 x i64]")
        kind = f.load("i64", line)
        f.store("ptr", given, place)
        with f.when(compare(f, "eq", kind, 1), "held"):
            f.store("ptr", self._sure(self._call("ptr", "PyTuple_GetItem", f"ptr {given}", "i64 0")), place)
        with f.when(compare(f, "ugt", kind, 1), "tensor"):
            self._only(compare(f, "eq", f.load("i64", f.offset(given, api.TYPE)), kind))
            stop = f.load("ptr", f.offset(given, self._field(_STOP)))
            self._only(f.value(f"icmp eq ptr {stop}, {f.load('ptr', f.offset(line, 8))}"))
            array = f.load("ptr", f.offset(given, self._field(_ARRAY)))
            self._only(f.value(f"icmp ne ptr {array}, null"))
            f.store("ptr", array, place)

    def _each(self, row: str, count: str, function: str) -> None:
        with self.f.loop(count, hint="each") as i:
            self._call("void", function, f"ptr {self.f.load('ptr', self.f.offset(row, i, 'ptr'))}")

    def _wrap(self, made: str) -> None:
        """Write what makes tensors of results, and the return."""
        f, count = self.f, self._field(_RESULTS)
        alone, some, bad = f.label("alone"), f.label("some"), f.label("bad")
        f.branch(compare(f, "eq", count, ALONE), alone, some)
        f.start(alone)
        only = self._tensor(made, "0")
        self._call("void", "Py_DecRef", f"ptr {made}")
        f.ret("ptr", only)
        f.start(some)
        numbers = f.load("ptr", f.offset(self.table, _NUMBERS))
        with f.loop(count, hint="result") as i:
            number = f.load("i64", f.offset(numbers, i, "i64"))
            tensor, fine = self._tensor(made, number), f.label("fine")
            f.branch(f.value(f"icmp ne ptr {tensor}, null"), fine, bad)
            f.start(fine)
            self._call("i32", "PyList_SetItem", f"ptr {made}", f"i64 {number}", f"ptr {tensor}")
        f.ret("ptr", made)
        f.start(bad)
        self._call("void", "Py_DecRef", f"ptr {made}")
        f.jump(self.failed)

    def _tensor(self, results: str, number: str) -> str:
        array = self._call("ptr", "PyList_GetItem", f"ptr {results}", f"i64 {number}")
        return self.f.call("ptr", "@dy2st.tensor", "ptr %plate", f"ptr {array}")
