"""A view of one tensor that two branches took in different ways: `row = m[0] if c else m[1]`, then `row[0] = 5`.

What joins the branches is a value; to write through it, or to read it again after `m` was written, the test is asked
again: a `cond` repeats the view of the branch that ran, or its write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.autodiff.cotangents import close_cond
from dy2st.ir.program import Value
from dy2st.runtime.eager.dispatch import View
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.trace import Recording


class ChosenView(View):
    """A view that is one of two of the same base, by a bool of the Program."""

    __slots__ = ("pred", "was_written", "ways")

    def __init__(self, pred: Value, one: View, other: View):
        super().__init__(one.base, one.op, (), {})
        self.pred, self.ways, self.was_written = pred, (one, other), False

    @property
    def keeps_history(self) -> bool:
        return all(view.keeps_history for view in self.ways)

    @property
    def repeatable(self) -> bool:
        return False

    def again(self, recorder: Recording, base: Value) -> Tensor:
        made = self._either(recorder, lambda view: view.again(recorder, base).payload)
        return recorder.wrap(made, not self.keeps_history or recorder.stops(self.base))

    def put(self, recorder: Recording, base: Value, value: Value) -> Value:
        self.was_written = True
        return self._either(recorder, lambda view: view.put(recorder, base, value))

    def _either(self, recorder: Recording, make: Callable[[View], Value]) -> Value:
        b = recorder.builder
        blocks = b.child(), b.child()
        for child, view in zip(blocks, self.ways, strict=True):
            with recorder.inside(child, {}):
                child.block.results = [child.use(make(view))]
        return close_cond(b, b.use(self.pred), *blocks)[0]


def choose_view(trace: Trace, pred: Value, made: Any, one: Any, other: Any) -> None:
    """Let what joins two tensors be a view, where both are views of one tensor that can be taken again."""
    if not all(isinstance(t, Tensor) for t in (made, one, other)) or made is one or made is other:
        return
    views = one.view_of, other.view_of
    if (
        any(view is None or not _is_seen(trace, view) for view in views)
        or views[0].base is not views[1].base
        or not isinstance(views[0].base, Tensor)
    ):
        return
    if trace.value_of(one).type != trace.value_of(other).type:
        return
    made.view_of = ChosenView(pred, *views)
    made.seen_base = trace.value_of(made.view_of.base)


def _is_seen(trace: Trace, view: View) -> bool:
    """Return whether a view that a branch took can be taken where the trace stands."""
    open_ = [x for x in view.operands if isinstance(x, (Tensor, Scalar))]
    values = [x.payload if isinstance(x, Tensor) else x.value for x in open_]
    known = all(isinstance(v, Value) and trace.builder.sees(v) for v in values)
    return known and view.repeatable
