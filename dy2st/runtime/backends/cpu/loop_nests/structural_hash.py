"""What a loop nest looks like, whatever its values are called: nests that look alike have the same text.

Writing a nest takes a millisecond, and a model has the same ones in each of its layers, and for each of its parameters.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dy2st.dtypes import DType
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout

_PLAIN = (int, float, str, bytes, bool, type(None), DType)


def structural_hash(made: NestLayout) -> Hashable | None:
    """Return what decides the text of a nest; None where an attribute is no plain value, such as an array.

    Extents known only at run time are alike; numbers are told apart by type and sign, as `repr` shows them.
    """
    group = made.group
    numbers: dict[Value, int] = {}
    for v in (*group.operands, *(v for o in group.members for v in (*o.operands, *o.results))):
        numbers.setdefault(v, len(numbers))
    if not all(_is_plain(x) for o in group.members for x in o.attributes.values()):
        return None
    return (
        tuple(e if isinstance(e, int) else None for e in group.space),
        made.outer,
        tuple(
            (o.op.name, repr(o.attributes), *(numbers[v] for v in o.operands), *(numbers[v] for v in o.results))
            for o in group.members
        ),
        tuple((_kind(v), group.maps.get(v)) for v in numbers),
        *(tuple(numbers[v] for v in some) for some in (group.operands, group.results, group.columns)),
        tuple((numbers[v], strides) for v, strides in made.strides.items()),
        tuple((numbers[v], apart.strides, apart.extents) for v, apart in made.tables.items()),
    )


def _kind(value: Value) -> Hashable:
    t = value.type
    return (t.dtype.name, in_register(t)) if isinstance(t, TensorType) else str(t)


def _is_plain(x: Any) -> bool:
    return all(map(_is_plain, x)) if isinstance(x, (tuple, list)) else isinstance(x, _PLAIN)
