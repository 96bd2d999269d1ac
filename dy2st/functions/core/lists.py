"""What functions do with a Python list whose length is known only at run time: in a trace it is one value of list
type.
"""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import DType
from dy2st.functions.core.operands import cast_to, dtype_of_kind, one_axis
from dy2st.ir.context import current
from dy2st.ir.types import ListType, ScalarType, TensorType
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.values.abstract import TensorLike
from dy2st.runtime.tracer.values.union import SymbolicList


def list_stacked(items: SymbolicList, axis: Any, name: str) -> Tensor:
    """Return the tensors (or numbers) of a list side by side along a new axis."""
    if isinstance(_element(items), ScalarType):
        return list_of_numbers(items, None)
    rank = _tensors(items, name).rank
    at = one_axis(axis, rank + 1, name)
    stacked = _wrapped(items, "list_stack", {})
    return stacked if at == 0 else stacked.transpose([*range(1, at + 1), 0, *range(at + 1, rank + 1)])


def list_joined(items: SymbolicList, axis: Any, name: str) -> Tensor:
    """Return the tensors of a list one after the other along an axis."""
    element = _tensors(items, name)
    if element.rank == 0:
        raise ValueError("concat: 0-D tensors have no axis to be joined along; use stack")
    return _wrapped(items, "list_concat", {"axis": one_axis(axis, element.rank, name)})


def list_of_numbers(items: SymbolicList, dtype: DType | None) -> Tensor:
    """Return the numbers of a list as a vector; a list of tensors is stacked."""
    element = _element(items)
    if not isinstance(element, ScalarType):
        stacked = list_stacked(items, 0, "to_tensor")
        return stacked if dtype is None else cast_to(stacked, dtype)
    return _wrapped(items, "list_to_tensor", {"dtype": dtype or dtype_of_kind(element.kind)})


def list_rank(items: SymbolicList, name: str) -> int:
    """Return how many axes the tensors of a list have; numbers have none."""
    return 0 if isinstance(_element(items), ScalarType) else _tensors(items, name).rank


def _element(items: SymbolicList) -> Any:
    assert isinstance(items.value.type, ListType)
    return items.value.type.element


def _tensors(items: SymbolicList, name: str) -> TensorType:
    element = _element(items)
    if not isinstance(element, TensorType):
        raise needs_value(f"{name}() of a list whose elements are not all tensors of one dtype and rank")
    return element


def _wrapped(items: SymbolicList, op: str, attributes: dict[str, Any]) -> Tensor:
    """Emit an op on a list; a gradient flows where one flows into an element."""
    context = current()
    trace = context.trace
    value = trace.emit(op, [items.value], attributes)
    flows = isinstance(items.element, TensorLike) and not items.element.stop_gradient
    made = trace.wrap(value, not flows)
    return made if context.grad or not flows else made.detach()
