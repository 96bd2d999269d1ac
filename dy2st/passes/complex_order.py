"""The order of complex numbers: by their real parts, then by their imaginary ones, those with a NaN behind all others.

Numbers without NaN come first, then those whose imaginary part is NaN, then those whose real part is, then those of
which both are; among each of these kinds a part that is a number counts. So there are three stable orders, the one that
counts least first.
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type


def places_in_order(b: Builder, operation: Operation, real: Value, imaginary: Value) -> Value:
    """Emit where the elements of `sort`, `argsort` or `topk` are taken from along its axis."""
    name, rank = operation.op.name, tensor_type(real).rank
    axis = operation.attributes["axis"] % rank
    downward = operation.attributes["largest" if name == "topk" else "descending"]
    ordered: dict[str, Any] = {"axis": axis, "descending": downward}
    kind = _kind(b, real, imaginary)
    places = b.argsort(imaginary, **ordered)
    by_real = b.argsort(b.take_along_axis(real, places, axis=axis), **ordered)
    places = b.take_along_axis(places, by_real, axis=axis)
    kinds = b.take_along_axis(kind, places, axis=axis)
    if name == "topk":  # which refuses to take more than there are
        _, last = b.emit("topk", [kinds], dict(operation.attributes))
    else:
        last = b.argsort(kinds, **ordered)
    return b.take_along_axis(places, last, axis=axis)


def _kind(b: Builder, real: Value, imaginary: Value) -> Value:
    """Emit 0 for numbers without a NaN, 1, 2 and 3 for the others."""
    dtype = tensor_type(real).dtype
    of_real, of_imaginary = (b.cast(b.isnan(part), dtype=dtype) for part in (real, imaginary))
    return b.add(b.add(of_real, of_real), of_imaginary)
