"""Running sums, products and extrema; but for the sum, which ONNX has, they are a `Scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.onnx.writing.control_flow import graph_of
from dy2st.onnx.writing.leaves import Leaf
from dy2st.onnx.writing.writer import Names, Writer, rule

Step = Callable[[Sequence[str], Sequence[str]], tuple[Sequence[str], Sequence[str]]]
"""From the state and one slice of each input, the next state and one slice of each output."""


def _scan(g: Writer, xs: Sequence[str], slices: Sequence[Leaf], start: Sequence[str], state: Sequence[Leaf], axis: int,
          reverse: bool, step: Step, gives: Sequence[Leaf]) -> Names:  # fmt: skip
    """Write a scan along an axis; return its outputs."""
    inputs = [(g.fresh("state"), leaf) for leaf in state] + [(g.fresh("slice"), leaf) for leaf in slices]
    names = [name for name, _ in inputs]

    def body() -> list[tuple[str, Leaf]]:
        after, made = step(names[: len(state)], names[len(state) :])
        return list(zip([*after, *made], [*state, *gives], strict=True))

    graph, reads = graph_of(g, "step", inputs, body)
    n, m = len(slices), len(gives)
    made = g.node("Scan", [*start, *xs], len(state) + m, reads, body=graph, num_scan_inputs=n,
                  scan_input_axes=[axis] * n, scan_output_axes=[axis] * m,
                  scan_input_directions=[int(reverse)] * n, scan_output_directions=[int(reverse)] * m)  # fmt: skip
    return made[len(state) :]


def _filled(g: Writer, x: str, axis: int, value: float, t: DType) -> str:
    """Write a slice of a tensor across an axis, filled with a number."""
    shape = g.joined([g.emit("Shape", x, end=axis), g.emit("Shape", x, start=axis + 1)])
    return g.emit("Expand", g.constant(value, t), shape)


def _slice(o: Operation, number: int = 0) -> Leaf:
    t, axis = tensor_type(o.results[number]), o.attributes["axis"]
    return Leaf(t.dtype, (*t.shape[:axis], *t.shape[axis + 1 :]))


def _operand(g: Writer, o: Operation) -> str:
    x, wanted = g.one(o.operands[0]), tensor_type(o.results[0]).dtype
    return x if tensor_type(o.operands[0]).dtype is wanted else g.cast(x, wanted)


@rule("cumsum")
def _cumsum(g: Writer, o: Operation) -> str:
    axis = g.constant(o.attributes["axis"], int64)
    return g.emit("CumSum", _operand(g, o), axis, reverse=int(o.attributes["reverse"]))


@rule("cumprod")
def _cumprod(g: Writer, o: Operation) -> Names:
    x, axis, leaf = _operand(g, o), o.attributes["axis"], _slice(o)

    def step(state: Sequence[str], slices: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        product = g.emit("Mul", state[0], slices[0])
        return [product], [state[0] if o.attributes["exclusive"] else product]

    start = _filled(g, x, axis, 1, leaf.dtype)
    return _scan(g, [x], [leaf], [start], [leaf], axis, o.attributes["reverse"], step, [leaf])


@rule("linear_scan")
def _linear_scan(g: Writer, o: Operation) -> Names:
    a, c = g.inputs(o)
    axis, leaf = o.attributes["axis"], _slice(o)

    def step(state: Sequence[str], slices: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        return [g.emit("Add", g.emit("Mul", slices[0], state[0]), slices[1])], [state[0]]

    start = _filled(g, a, axis, 0, leaf.dtype)
    return _scan(g, [a, c], [leaf, leaf], [start], [leaf], axis, o.attributes["reverse"], step, [leaf])


@rule("cummax", "cummin")
def _cumulative_extreme(g: Writer, o: Operation) -> Names:
    x, axis = g.one(o.operands[0]), o.attributes["axis"]
    leaf, places = _slice(o), _slice(o, 1)
    test = "GreaterOrEqual" if o.op.name.endswith("x") else "LessOrEqual"
    zero, one = g.constant(0, int64), g.constant(1, int64)

    def step(state: Sequence[str], slices: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        best, at, number = state
        better = g.emit("Or", g.emit(test, slices[0], best), g.emit("Equal", number, zero))
        if leaf.dtype.is_floating:
            better = g.emit("Or", better, g.emit("IsNaN", slices[0]))
        kept = [g.emit("Where", better, slices[0], best), g.emit("Where", better, number, at)]
        return [*kept, g.emit("Add", number, one)], kept

    start = [_filled(g, x, axis, 0, leaf.dtype), _filled(g, x, axis, 0, int64), zero]
    state = [leaf, places, Leaf(int64, ())]
    return _scan(g, [x], [leaf], start, state, axis, False, step, [leaf, places])
