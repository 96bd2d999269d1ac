"""Which parts of a tensor are copied at once, and not views of it: those that are still needed when it is written.

    %a = index(%x, %i)                      %a holds the memory of %x, so that the first write would have to copy all
    %b = index(%x, %j)                      of %x: a loop that swaps rows would copy a table in every iteration
    %y = index_set(%x, %b, %i)
    %z = index_set(%y, %a, %j)

1. A later step of the block writes the tensor, or what it is a view of, in its place.
2. That step, or one behind it, reads the part.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value
from dy2st.ops.indexing.getitem import Index
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step, read_by
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers


def copied_views(steps: Sequence[Step], results: Sequence[Value]) -> set[Value]:
    """Return the results of `index` that are to be copies."""
    last = {v: at for at, step in enumerate(steps) for v in read_by(step)}
    last.update((v, len(steps)) for v in results)
    views: dict[Value, list[Value]] = {}
    base: dict[Value, Value] = {}
    found: set[Value] = set()
    for at, step in enumerate(steps):
        if not isinstance(step, Operation):
            continue
        if isinstance(step.op, Index) and not in_registers(step.results[0].type):
            first = base[step.results[0]] = base.get(step.operands[0], step.operands[0])
            views.setdefault(first, []).append(step.results[0])
        elif step.op.writes is not None:
            found.update(v for v in views.get(step.operands[0], ()) if last.get(v, -1) >= at)
    return found
