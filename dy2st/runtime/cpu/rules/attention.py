"""Attention, by the kernel of `attention/`."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.cpu.attention.row import FIELDS
from dy2st.runtime.cpu.representation import Components, Strided
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.rules.tensors import allocate, allocate_bytes, extents
from dy2st.runtime.cpu.rules.views import strides
from dy2st.runtime.cpu.rules.weights import FLOATS
from dy2st.runtime.cpu.writer import Writer, host_rule

_MOST_RANK = 4


@rule("attention")
def attention(w: Writer, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write softmax(q k^T + mask) v; heads that are views are read as they lie."""
    t = tensor_type(operation.operands[0])
    known = t.dtype.name in FLOATS and t.rank <= _MOST_RANK
    copies: list[tuple[Value, Components]] = []
    given: list[Components] = []
    for value, components in zip(operation.operands, operands, strict=True):
        if isinstance(components, Strided) and not (known and _has_rows(value, components)):
            components = w.copied(value, components)
            copies.append((value, components))
        given.append(components)
    made = _run(w, operation, given) if known else host_rule(w, operation, given)
    for value, copy in copies:
        w.release(value.type, copy)
    return made


def _has_rows(value: Value, components: Strided) -> bool:
    """Say whether the elements of a row lie together."""
    return components.strides[-1] == "1" or tensor_type(value).shape[-1] == 1


def _run(w: Writer, operation: Operation, given: list[Components]) -> Sequence[Components]:
    """Write the row of extents and the call; where extents do not fit the interpreter takes over."""
    f, values = w.f, operation.operands
    q, k, v, *mask = (extents(value, c) for value, c in zip(values, given, strict=True))
    scores = [*q[:-1], k[-2]]
    pairs = [(q[-1], k[-1]), (k[-2], v[-2]), *zip(q[:-2] * 2, [*k[:-2], *v[:-2]], strict=True)]
    for m in mask:
        spread = zip(tensor_type(values[3]).shape, m, scores, strict=True)
        pairs += [(own, wanted) for known, own, wanted in spread if known != 1]
    for one, other in dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]):
        w.demand(f.value(f"icmp eq i64 {one}, {other}"))
    numbers: dict[str, str] = dict(zip(("outer", "inner"), ["1", "1", *q[:-2]][-2:], strict=True))
    numbers |= {"queries": q[-2], "keys": k[-2], "features": q[-1], "values": v[-1]}
    for name, value, components in zip(("q", "k", "v", "mask"), values, given, strict=False):
        shape = tensor_type(value).shape
        apart = ["0" if e == 1 else s for e, s in zip(shape, strides(w, value, components), strict=True)]
        numbers |= dict(zip((f"{name}_outer", f"{name}_inner"), ["0", "0", *apart[:-2]][-2:], strict=True))
        numbers |= {f"{name}_row": apart[-2], f"{name}_column": apart[-1]}
    row = f.slot("i64", len(FIELDS))
    for at, name in enumerate(FIELDS):
        f.store("i64", numbers.get(name, "0"), f.offset(row, 8 * at))
    t = tensor_type(values[0])
    made = allocate(w, t.dtype, [*q[:-1], v[-1]])
    name = f"attention.{FLOATS[t.dtype.name]}"
    block, scratch = allocate_bytes(w, f.call("i64", w.library(f"{name}.scratch"), f"ptr {row}"))
    data = [c[1] for c in given]
    places = [*data, *["null"] * (4 - len(data)), made[1], row, scratch]
    f.call("void", w.library(name), *(f"ptr {p}" for p in places))
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return [made]
