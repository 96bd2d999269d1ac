"""Values with a gradient of their own: what a PyLayer is inside of a Program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import Type
from dy2st.ops.base import Op, Sample


class WithGradient(Op):
    """The first `values` operands, whose gradient is what `pullback` says.

    The `inputs` operands after them are those to which a gradient flows. `pullback` is the text of a Program that takes
    the cotangents of the results, then the operands behind those, and gives the cotangents of the `inputs`. `whose`
    names the op in errors. Reverse mode puts the operations of the Program in place (`autodiff/custom.py`).
    """

    name = "with_gradient"
    attributes = ("inputs", "pullback", "values", "whose")

    def infer(self, *types: Type, inputs: int, pullback: str, values: int, whose: str) -> tuple[Type, ...]:
        if not 0 < values <= values + inputs <= len(types):
            raise ValueError(f"with_gradient: {len(types)} operands are not {values} values and {inputs} inputs")
        return types[:values]

    def eval(self, xp: Any, *operands: Any, inputs: int, pullback: str, values: int, whose: str) -> Any:
        return operands[0] if values == 1 else operands[:values]

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *_: Any, whose: str, **attributes: Any) -> Any:  # fmt: skip
        raise AutodiffError(f"'{whose}' has a backward of its own and no forward derivative")

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        attributes = {"inputs": 1, "pullback": "", "values": 1, "whose": "Sample"}
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), attributes, differentiate=False)
