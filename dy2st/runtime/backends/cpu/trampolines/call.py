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
    a line for each input: its type, 0 for what goes on as it is, 1 for a tuple of what does; its `stop_gradient`, or 0
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.compile_link.code_loader import load, named_product
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.trampolines.object_layout import maker, places, slots_of
from dy2st.runtime.backends.llvm_availability import NoLlvm
from dy2st.runtime.eager.tensor import Tensor

Input = tuple[type[Tensor], bool | None] | bool
"""The type of a tensor and its `stop_gradient` (None: any); whether anything else is the only item of a tuple."""
MOST_INPUTS = 4_000
"""A row of so many arrays stands on the stack."""
ALONE = -1
UNSEEN, INPUTS, DISTINCT, RESULTS, NUMBERS, MAKER, ARRAY, STOP, LINES = range(api.BEHIND, api.BEHIND + 72, 8)
NEW, TYPE, NOTHING, SLOTS, FILLED = range(0, 40, 8)
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
    """Return whether this code runs already."""
    return _layout.cache_info().currsize > 0 and _layout() is not None


def bring_in() -> None:
    """Load this code; not where an LLVM is missing and no earlier process has left it."""
    with contextlib.suppress(NoLlvm):
        _layout()


def unchanged_address() -> int | None:
    """Return where the code of watched_words.py stands; None where it does not run yet."""
    layout = _layout() if _layout.cache_info().currsize > 0 else None
    return None if layout is None else layout.unchanged


def product() -> Artifact:
    """Return this code, not yet loaded; that of watched_words.py is with it."""

    def write() -> str:
        from dy2st.runtime.backends.cpu.trampolines.call_ir import known_text

        return known_text()

    return named_product("known calls", write, level=0)


class _Layout:
    """Where a tensor has its slots, and how one is made."""

    def __init__(self, at: dict[str, int]):
        self._array, self._stop = at["payload"], at["stop_gradient"]
        pattern = Tensor(None)
        filled = {name: getattr(pattern, name) for name in at if name != "payload" and hasattr(pattern, name)}
        slots = [word for name, value in filled.items() for word in (at[name], id(value))]
        self._kept = [*filled.values(), ()]
        self._maker = _words([maker(), id(Tensor), id(self._kept[-1]), len(filled), *slots])
        code = load(product().binary)
        self._address, self.unchanged = code.address("dy2st.known"), code.address("dy2st.unchanged")

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
        """Return whether a call of this code does what Python does."""
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
            and self.call([(Tensor, None)], unseen, None, 0)(lambda x: x.size, Tensor(array, stop_gradient=False)) == 2
        )


@functools.cache
def _layout() -> _Layout | None:
    """Return how tensors are laid out; None where that is not as this module has it."""
    at = places(Tensor) if api.available() else None
    if at is None:
        return None
    found = _Layout(at)
    return found if found.is_right() else None


def _line(tensor: tuple[type[Tensor], bool | None]) -> tuple[int, int]:
    kind, stop_gradient = tensor
    return id(kind), 0 if stop_gradient is None else id(stop_gradient)


def _words(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array([*values] or [0], np.int64)
