"""Values with a gradient of their own: what a PyLayer is inside of a Program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.parser import parse
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import Type, matches
from dy2st.ir.verifier import verify
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.transpose_helpers import dense


class WithGradient(Op):
    """The first `values` operands, whose derivatives are what `pullback` and `pushforward` say.

    The `inputs` operands after them are those to which a gradient flows; what is behind these, the captures, both use.
    `pullback` is the text of a Program that takes the cotangents of the results, the results, and the captures; it
    gives the cotangents of the `inputs`. `pushforward` takes the tangents of the `inputs`, the results, and the
    captures; it gives the tangents of the results. It is empty where there is none.

    `whose` names the op in errors. Reverse mode puts the operations of `pullback` in place (`autodiff/custom.py`).
    """

    name = "with_gradient"
    attributes = ("inputs", "pullback", "pushforward", "values", "whose")

    def infer(self, *types: Type, inputs: int, pullback: str, pushforward: str, values: int,
              whose: str) -> tuple[Type, ...]:  # fmt: skip
        if not 0 < values <= values + inputs <= len(types):
            raise ValueError(f"with_gradient: {len(types)} operands are not {values} values and {inputs} inputs")
        return types[:values]

    def eval(self, xp: Any, *operands: Any, inputs: int, pullback: str, pushforward: str, values: int,
             whose: str) -> Any:  # fmt: skip
        return operands[0] if values == 1 else operands[:values]

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *_: Any, inputs: int, pushforward: str, values: int, whose: str, **attributes: Any) -> Any:  # fmt: skip
        if not pushforward:
            raise AutodiffError(f"'{whose}' has a backward of its own and no forward derivative")
        places = slice(values, values + inputs)
        if all(t is None for t in tangents[places]):
            return [None] * values
        given = [*dense(b, primals[places], tangents[places]), *outs, *primals[values + inputs :]]
        return in_place(b, pushforward, given, values, f"forward derivative of '{whose}'")

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        attributes = {"inputs": 1, "pullback": "", "pushforward": "", "values": 1, "whose": "Sample"}
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))), attributes, differentiate=False)


def in_place(b: Builder, text: str, given: Sequence[Value], results: int, what: str) -> list[Value]:
    """Emit the operations of a Program that stands in an attribute; `what` names it in errors.

    They are emitted anew, one by one, so that every type is inferred from what the operands are here.
    """
    block = program_of(text).block
    if len(given) != len(block.arguments) or results != len(block.results):
        raise AutodiffError(f"the {what} does not fit the values that it is for")
    known: dict[Value, Value] = {}
    for argument, value in zip(block.arguments, given, strict=True):
        if not matches(argument.type, value.type):
            raise AutodiffError(f"the {what} takes {argument.type}, not {value.type}")
        known[argument] = value
    for inner in block.operations:
        if not is_arithmetic(inner):
            raise AutodiffError(f"the {what} is more than arithmetic: it has '{inner.name}'")
        made = b.operation(inner.op, [known[v] for v in inner.operands], dict(inner.attributes))
        known.update(zip(inner.results, made.results, strict=True))
    return [known[v] for v in block.results]


def is_arithmetic(operation: Operation) -> bool:
    """Return whether an operation may stand in such a Program: no control flow, nothing that is seen outside."""
    return not (operation.blocks or operation.name == "call" or operation.op.effect) and operation.op.saveable


@lru_cache(maxsize=256)
def program_of(text: str) -> Program:
    """Return the Program that an attribute is; it is shared, so nobody may change it."""
    program = parse(text)
    verify(program)
    return program
