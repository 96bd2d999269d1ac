"""`keep_at` in a loop nest: the element of a row that stands at its place, 0 elsewhere, from the row's counter."""

from __future__ import annotations

from dy2st.dtypes import DType, int32
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


def kept_at(lanes: VectorType, dtype: DType, x: str, places: str, first: str) -> str:
    """Write elements of a row from number `first` (an i64) on, those whose number is not in `places` as 0."""
    f, kind = lanes.f, lanes.of(int32)
    number = lanes.spread(f.value(f"trunc i64 {first} to i32"), int32)
    if lanes.count > 1:
        number = f.value(f"add {kind} {number}, <{', '.join(f'i32 {k}' for k in range(lanes.count))}>")
    here = f.value(f"icmp eq {kind} {number}, {places}")
    return lanes.select(here, x, lanes.constant(0, dtype), dtype)
