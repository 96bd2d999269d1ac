"""How operations become native code, a file a family. An op without a rule is a call of its `eval`."""

from dy2st.runtime.cpu.rules import (
    along_axis,
    attention,
    brackets,
    broadcasts,
    classes,
    control,
    creation,
    draws,
    extremes,
    joins,
    linear_algebra,
    list_joins,
    list_tensors,
    lists,
    number_functions,
    numbers,
    optionals,
    places,
    products,
    rearranged,
    reductions,
    scans,
    selected,
    slots,
    sorting,
    tensors,
    tuples,
    variants,
    views,
    windows,
    writes,
    zero_rank,
)
from dy2st.runtime.cpu.rules.registry import AS_THEY_ARE, RULES, STRIDED

__all__ = ["AS_THEY_ARE", "RULES", "STRIDED"]
