"""Which operations a Program for testing leaves out: what only training needs.

These are the operations of `append_backward` and `minimize`, what a test form replaces (the noise of dropout, the
batch's statistics), and what lies between such a value and a write that belongs to training. Of them all that something
else uses stay.
"""

from __future__ import annotations

from dy2st.ir.program import Operation, Value
from dy2st.static.recorder import ForTest, ProgramRecorder


def training_only(source: ProgramRecorder, forms: dict[Value, ForTest], skipped: set[int]) -> set[Operation]:
    """Return the operations of the outermost block that a copy for testing does not have."""
    kept = {value for state, value in source.writes() if id(state.tensor) not in skipped}
    used = kept | set(source.stores.values()) | {form.value for form in forms.values()}
    removable = source.training_operations | _replaced(source, forms)
    dead: set[Operation] = set()
    for operation in reversed(source.root.block.operations):
        replaced = [forms[v] for v in operation.results if v in forms]
        used.update(v for form in replaced for o in form.operations for v in o.operands)
        if operation in removable and not any(v in used and v not in forms for v in operation.results):
            dead.add(operation)
        else:
            used.update(operation.operands)
    return dead


def _replaced(source: ProgramRecorder, forms: dict[Value, ForTest]) -> set[Operation]:
    """Return the operations that define replaced values, and those from there to the writes that are left out."""
    operations = source.root.block.operations
    owners = {i for form in forms.values() for i in form.skipped}
    leading = {value for state, value in source.writes() if id(state.tensor) in owners}
    for operation in reversed(operations):
        if not leading.isdisjoint(operation.results):
            leading.update(operation.operands)
    behind: set[Value] = set()
    found: set[Operation] = set()
    for operation in operations:
        defines = any(v in forms for v in operation.results)
        if defines or (not behind.isdisjoint(operation.operands) and not leading.isdisjoint(operation.results)):
            found.add(operation)
            behind.update(operation.results)
    return found
