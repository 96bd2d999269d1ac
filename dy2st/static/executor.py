"""The Executor runs hand-built Programs: arrays in by name, fetched variables out, states kept in a scope.

>>> import numpy as np
>>> import dy2st as paddle
>>> paddle.enable_static()
>>> with paddle.static.program_guard(paddle.static.Program()):
...     x = paddle.static.data("x", [None], "float32")
...     y = x * 2
...     out, = paddle.static.Executor().run(feed={"x": np.array([1, 2], "float32")}, fetch_list=[y])
>>> paddle.disable_static()
>>> out
array([2., 4.], dtype=float32)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.runtime.eager import device
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.compiled_program import CompiledProgram
from dy2st.static.feeding import check_names, fetched_values
from dy2st.static.prepared import Prepared
from dy2st.static.program import Program, default_main_program
from dy2st.static.scope import Scope, global_scope

MOST_PREPARED = 64
"""Lists of fetches for which a Program keeps its plans."""


class Executor:
    """Run Programs on a place, the current one where none is given."""

    def __init__(self, place: Any = None):
        self.place = None if place is None else device.parse(place)
        self._closed = False

    def run(
        self,
        program: Any = None,
        feed: Any = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = True,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run a Program once; return the fetched values in order, nested lists flattened.

        Parameters
        ----------
        program
            A Program, default: `default_main_program()`. All that it writes (updates, statistics, initial values) goes
            to the scope.
        feed
            Arrays, tensors or numbers by the names of `static.data`. What nothing depends on may be left out.
        fetch_list
            Variables or their names.
        scope
            Where states are read and written, default: `global_scope()`.
        return_numpy
            Whether to return NumPy arrays (else Tensors).

        Raises
        ------
        ValueError
            For an unknown feed or fetch name, a missing feed, a wrong dtype or shape. Nothing was written then.
        RuntimeError
            For a state without a value: the startup program was not run.
        """
        if self._closed:
            raise RuntimeError("this Executor was closed")
        program = default_main_program() if program is None else program
        if isinstance(program, CompiledProgram):
            program = program.program
        if not isinstance(program, Program):
            raise TypeError(f"Executor.run needs a paddle.static.Program, not {type(program).__name__}")
        if scope is not None and not isinstance(scope, Scope):
            raise TypeError(f"scope must be a paddle.static.Scope, not {type(scope).__name__}")
        prepared = prepare(program, fetch_list)
        feed = check_names(program.recorder, feed, prepared.needed)
        place = self.place or device.current_place()
        found = prepared.run(feed, scope or global_scope(), program.generator, place)
        return [_numpy(v) if return_numpy else _tensor(v) for v in found]

    def close(self) -> None:
        """End the use of this Executor."""
        self._closed = True


def prepare(program: Program, fetch_list: Any) -> Prepared:
    """Return the plan for these fetches, made at the first use and kept until the Program changes."""
    recorder = program.recorder
    version = recorder.version
    known = _known(program, version, fetch_list)
    if known is not None:
        return known
    fetches = fetched_values(recorder, fetch_list)
    key = (version, tuple(fetches))
    found = program.prepared.get(key)
    if found is None:
        stale = [k for k in list(program.prepared) if k[0] != key[0]] or list(program.prepared)[:-MOST_PREPARED]
        for k in stale:
            program.prepared.pop(k, None)
        found = program.prepared[key] = Prepared(recorder, fetches)
    if isinstance(fetch_list, (list, tuple)) and not any(isinstance(one, (list, tuple)) for one in fetch_list):
        found.asked_for = (version, tuple(fetch_list))
        program.last = found
    return found


def _known(program: Program, version: Any, fetch_list: Any) -> Prepared | None:
    """Return the last plan where it was made for these very variables."""
    last = program.last
    if last is None or not isinstance(fetch_list, (list, tuple)):
        return None
    made_for, asked = last.asked_for
    if made_for != version or len(asked) != len(fetch_list):
        return None
    for one, other in zip(asked, fetch_list, strict=True):
        if one is not other:
            return None
    return last


def _numpy(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    return value.get() if hasattr(value, "get") else np.asarray(value)


def _tensor(value: Any) -> Tensor:
    return Tensor(value if hasattr(value, "dtype") else np.asarray(value))
