"""Random tensors, by the kernels of philox.py: the same bits as `eval`'s."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.cpu.representation import Components, in_register
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.rules.tensors import allocate, product
from dy2st.runtime.cpu.writer import Writer, host_rule

_KERNELS = {"random_uniform": "uniform", "random_normal": "normal"}
_FLOATS = {"float32": "f32", "float64": "f64"}


@rule("random_uniform", "random_normal")
def draw(w: Writer, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write a draw into memory."""
    f, made = w.f, tensor_type(operation.results[0])
    if made.dtype.name not in _FLOATS:
        return host_rule(w, operation, operands)
    seed, number, *dims = (c[0] for c in operands)
    rest = iter(dims)
    shape = [next(rest) if e is None else str(e) for e in operation.attributes["shape"]]
    for extent in shape:
        w.demand(f.value(f"icmp ult i64 {extent}, {2**40}"))
    room: Components = ("", f.slot("i64", 8)) if in_register(made) else allocate(w, made.dtype, shape)
    kernel = w.library(f"random.{_KERNELS[operation.op.name]}.{_FLOATS[made.dtype.name]}.fill")
    f.call("void", kernel, f"ptr {room[1]}", f"i64 {product(w, shape)}", f"i64 {seed}", f"i64 {number}")
    return [(f.load("float" if made.dtype.bits == 32 else "double", room[1]),)] if in_register(made) else [room]
