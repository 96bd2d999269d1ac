"""A recorder in which a tensor may be what a variant is under a tag: both are written and read as one."""

from __future__ import annotations

from typing import Any

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Value
from dy2st.runtime.eager.dispatch import View
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.recording.recorder import Recorder
from dy2st.runtime.tracer.values.abstract import TensorLike
from dy2st.runtime.tracer.values.union import Variant


class VariantRecorder(Recorder):
    """Record what happens to tensors and to variants that are tensors."""

    def write(self, t: Any, new: Tensor) -> None:
        """Write the elements of a tensor, or the tensor that a variant is, in place."""
        if not isinstance(t, Variant):
            super().write(t, new)
            return
        self.before_write(t)
        found = t.alternatives
        if not new.stop_gradient:
            found = tuple(TensorLike(a.type, False) if isinstance(a, TensorLike) else a for a in found)
        assert isinstance(new.payload, Value)
        self.log.set(("data", id(t)), t, Variant(new.payload, found))

    def make_view(self, t: Any, variant: Variant, attributes: dict[str, Any]) -> None:
        """Let a tensor be what a variant is under a tag: what is written into it goes to the variant."""
        base: Any = variant.whole
        op: Any = lookup("variant_get")
        t.view_of, t.seen_base = View(base, op, (), attributes), variant.value

    def own_value(self, t: Any) -> Value | None:
        return t.value if isinstance(t, Variant) else super().own_value(t)

    def stops(self, t: Any) -> bool:
        if isinstance(t, Variant):
            return all(a.stop_gradient for a in t.alternatives if isinstance(a, TensorLike))
        return super().stops(t)

    def _view_value(self, t: Tensor, base: Value) -> Value:
        if not isinstance(t.view_of.base, Variant):
            return super()._view_value(t, base)
        if t.seen_base is base:
            assert isinstance(t.payload, Value)
            return t.payload
        return self.emit("variant_get", [base], t.view_of.attributes)
