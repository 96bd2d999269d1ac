"""Sorting: `TopK` of all elements, of which equal ones come in their order."""

from __future__ import annotations

from dy2st.dtypes import int32, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.onnx.writing.writer import Names, Writer, rule


def _top(g: Writer, o: Operation, count: str, largest: bool) -> Names:
    x, t, axis = g.one(o.operands[0]), tensor_type(o.operands[0]), o.attributes["axis"]
    if t.dtype.is_bool:
        x = g.cast(x, int32)
    values, at = g.several("TopK", [x, count], 2, axis=axis, largest=int(largest), sorted=1)
    return (g.cast(values, t.dtype) if t.dtype.is_bool else values), at


def _all(g: Writer, o: Operation) -> Names:
    return _top(g, o, g.extent(g.one(o.operands[0]), o.attributes["axis"]), o.attributes["descending"])


@rule("sort")
def _sort(g: Writer, o: Operation) -> str:
    return _all(g, o)[0] if tensor_type(o.operands[0]).rank else g.one(o.operands[0])


@rule("argsort")
def _argsort(g: Writer, o: Operation) -> str:
    return _all(g, o)[1] if tensor_type(o.operands[0]).rank else g.constant(0, int64)


@rule("topk")
def _topk(g: Writer, o: Operation) -> Names:
    return _top(g, o, g.ints(o.attributes["k"]), o.attributes["largest"])
