"""The call of a row recorded into a Program whose extents are symbols, and the Program run."""

from __future__ import annotations

from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ir.verifier import verify
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.recording.recorder import Recorder
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.shapes import symbol
from tests.values.row import Row
from tests.values.running import call, mapped


def recorded(row: Row) -> Any:
    """Return what the Program of a call gives."""
    arrays: list[np.ndarray] = []
    b = Builder()

    def stand_in(array: np.ndarray) -> Tensor:
        arrays.append(array)
        named = tuple(symbol(f"E{e}") if e > 1 and not row.known_extents else e for e in array.shape)
        return Tensor(b.argument(TensorType(of_array(array), named)))

    args = mapped(row.args, stand_in)
    with replaced(trace=(recorder := Recorder(b))):
        results = call(row, args, paddle)
    if isinstance(results, (bool, int, float)):
        return results
    found = list(results) if isinstance(results, (list, tuple)) else [results]
    b.block.results = [b.use(r.value if isinstance(r, Scalar) else recorder.value_of(r)) for r in found]
    program = Program({"main": b.block})
    verify(program)
    got = [Tensor(v) for v in Compiled(program).run(arrays, np)]
    return tuple(got) if isinstance(results, (list, tuple)) else got[0]
