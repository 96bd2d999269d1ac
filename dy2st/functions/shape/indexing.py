"""Index expressions: every index that NumPy takes, read (`x[...]`) and written (`x[...] = v`).

What stands in the index expression becomes the attribute `spec` of the op `index` (index_spec.py) and its operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.functions.core.lists import list_of_numbers
from dy2st.functions.core.operands import NUMBERS, cast_to, constant, number, op, tensor, together
from dy2st.ir.context import current
from dy2st.ops.core.index_spec import Spec
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.copy_on_write import leave_kept
from dy2st.runtime.eager.device import move, namespace_of, place_of
from dy2st.runtime.eager.dispatch import apply, view
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList

_INDEX, _INDEX_SET, _STACK, _SQUEEZE = op("index"), op("index_set"), op("stack"), op("squeeze")
_INTS = (int, np.integer)
_FAR = 1 << 62
"""What no extent reaches."""
_ONE_INT, _ONE_TENSOR = (("int", "?"),), (("tensor",),)


def getitem(x: Tensor, key: Any) -> Tensor:
    """Return x[key], by NumPy's rules; memory is shared where key has ints, slices, None and `...` only.

    Raises IndexError where an index is out of range or of no use.
    """
    context = current()
    if context.trace is None and context.amp is None:
        array, parts = x.payload, key if key.__class__ is tuple else (key,)
        if array.__class__ is np.ndarray and (basic := _basic(parts)) is not None:
            try:
                out = array[(*parts, ...)]
            except IndexError:
                pass  # said below in words of its own
            else:
                return view(_INDEX, (x, *basic[1]), {"spec": basic[0]}, out)
    spec, operands = parse(x, key)
    return apply(_INDEX, x, *operands, spec=spec)


def _basic(parts: tuple[Any, ...]) -> tuple[Spec, list[Any]] | None:
    """Return what `parse` gives for Python ints and slices of them in eager mode; None for other indices."""
    for part in parts:
        if part.__class__ is not int:
            break
    else:
        return _ONE_INT * len(parts), [*parts]
    spec: list[tuple[Any, ...]] = []
    operands: list[Any] = []
    for part in parts:
        if part.__class__ is int:
            spec.append(("int", "?"))
            operands.append(part)
        elif part.__class__ is slice:
            bounds = part.start, part.stop, part.step
            item: list[str | None] = ["slice"]
            for bound in bounds:
                if bound.__class__ is int:
                    operands.append(bound)
                    item.append("?")
                elif bound is None:
                    item.append(None)
                else:
                    return None
            if part.step == 0:
                return None
            spec.append(tuple(item))
        else:
            return None
    return tuple(spec), operands


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """Write a value, broadcast and cast to the dtype of x, at x[key]."""
    spec, operands = parse(x, key)
    context = current()
    new = _fitted(_value(x, value), _rank(x, spec, operands))
    if context.trace is None and (not context.grad or (x.stop_gradient and new.stop_gradient)):
        _set_at_once(x, new, spec, operands)
        return
    if context.trace is None and context.grad:
        inplace.refuse_leaf(x)
    inplace.write(x, apply(_INDEX_SET, x, new, *operands, spec=spec), apart=True)


def _set_at_once(x: Tensor, new: Tensor, spec: Spec, operands: list[Any]) -> None:
    """Write where no history is kept: straight into memory."""
    leave_kept(x)
    target = x.payload
    array = move(new.array("its elements"), place_of(target))
    if isinstance(array, np.ndarray) and np.may_share_memory(array, target):
        array = array.copy()
    raw = [t.array("an index") if isinstance(t, Tensor) else t for t in operands]
    with np.errstate(all="ignore"):
        _INDEX_SET.eval_in_place(namespace_of(target), target, array, *raw, spec=spec)  # type: ignore[attr-defined]
    inplace.bump(x)
    inplace.note_overwritten(x)


def _value(x: Tensor, value: Any) -> Tensor:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, NUMBERS):
        if isinstance(value, (bool, int, float)) and current().trace is None:
            return number(_narrowed(value, x), x.dtype, x)
        return number(value, x.dtype, x)
    if isinstance(value, (list, tuple)):
        value = sequence(value)
    return cast_to(tensor(value, "setitem"), x.dtype)


def _fitted(value: Tensor, rank: int) -> Tensor:
    """Return a value without leading axes of extent 1 that the region has not, as NumPy does.

    Where only the run tells an extent, it raises ValueError unless that is 1.
    """
    extra = value.ndim - rank
    if extra <= 0 or any(isinstance(e, int) and e != 1 for e in value.shape[:extra]):
        return value
    return apply(_SQUEEZE, value, axes=tuple(range(extra)))


def _rank(x: Tensor, spec: Spec, operands: list[Any]) -> int:
    """Return the rank of x[spec]."""
    given = [t for t in operands if isinstance(t, Tensor)]
    advanced = [1 if t.dtype.is_bool else t.ndim for t in given]
    spanned = sum(t.ndim if t.dtype.is_bool else 1 for t in given)
    plain = sum(item[0] in ("slice", "int") for item in spec)
    kept = sum(item[0] in ("slice", "new") for item in spec)
    return kept + max(advanced, default=0) + x.ndim - plain - spanned


def _narrowed(value: Any, x: Tensor) -> Any:
    return int(value) if x.dtype.is_integer and isinstance(value, float) else value


def parse(x: Tensor, key: Any) -> tuple[Spec, list[Any]]:
    """Return the spec of an index and its operands: tensors, ints and symbolic ints."""
    if key.__class__ is int:
        if current().trace is None:
            _refuse_rank(x.ndim, 1)
            return _ONE_INT, [key]
        key = (key,)
    elif isinstance(key, Tensor) and key.dtype.is_integer:
        _refuse_rank(x.ndim, 1)
        return _ONE_TENSOR, [key]
    parts = [_prepared(part) for part in (key if isinstance(key, tuple) else (key,))]
    spec: list[tuple[Any, ...]] = []
    operands: list[Any] = []
    for part in _without_ellipsis(parts, x.ndim):
        item, given = _item(part)
        spec.append(item)
        operands += given
    return tuple(spec), operands


def _without_ellipsis(parts: list[Any], rank: int) -> Iterator[Any]:
    used = sum(_span(p) for p in parts)
    _refuse_rank(rank, used)
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    for part in parts:
        if part is Ellipsis:
            yield from [slice(None)] * (rank - used)
        else:
            yield part


def _refuse_rank(rank: int, used: int) -> None:
    if used > rank:
        raise IndexError(f"too many indices: the tensor has {rank} axes, but {used} were indexed")


def _span(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype.is_bool else 1


def _prepared(part: Any) -> Any:
    """Turn lists, ranges, arrays and booleans into tensors; leave ints, slices, None and `...`."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Scalar, Tensor)):
        return _checked(part) if isinstance(part, Tensor) else part
    if isinstance(part, (bool, np.bool_)):
        return constant(np.asarray(bool(part)))
    if isinstance(part, _INTS):
        return int(part)
    if isinstance(part, (list, tuple, range)):
        return _checked(sequence(list(part)))
    if isinstance(part, SymbolicList):
        return _checked(list_of_numbers(part, None))
    if isinstance(part, np.ndarray):
        return _checked(constant(part))
    if hasattr(part, "__index__"):
        return part.__index__()
    raise IndexError(
        f"an index must be an int, a slice, None, '...', or an integer or bool tensor, not {type(part).__name__}"
    )


def _checked(t: Tensor) -> Tensor:
    if t.dtype.kind not in "biu":
        raise IndexError(f"an index tensor must be of an integer dtype or bool, not {t.dtype.name}")
    return t


def sequence(values: Any) -> Tensor:
    """Return a list of numbers, tensors, or lists of them as a tensor."""
    if not _symbolic(values):
        array = np.asarray(values)
        return constant(array.astype(np.int64) if not array.size else array)
    parts = [sequence(v) if isinstance(v, (list, tuple)) else tensor(v, "an index") for v in values]
    return apply(_STACK, *together(parts, "an index"), axis=0)


def _symbolic(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(_symbolic(v) for v in values)
    return isinstance(values, (Tensor, Scalar))


def _item(part: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the item of a spec, and the operands that it takes.

    Eagerly an int is an operand, so that one VJP serves `x[i]` for every i.
    """
    if part is None:
        return ("new",), []
    if isinstance(part, slice):
        bounds = [_bound(b) for b in (part.start, part.stop, part.step)]
        if isinstance(bounds[2], int) and bounds[2] == 0:
            raise ValueError("slice step cannot be zero")
        given = [b for b in bounds if _is_operand(b)]
        return ("slice", *("?" if _is_operand(b) else b for b in bounds)), given
    if isinstance(part, Tensor):
        return ("mask" if part.dtype.is_bool else "tensor",), [part]
    return (("int", "?"), [part]) if _is_operand(part) else (("int", part), [])


def _is_operand(part: Any) -> bool:
    return isinstance(part, Scalar) or (isinstance(part, int) and current().trace is None)


def _bound(bound: Any) -> Any:
    if bound is None or isinstance(bound, Scalar):
        return bound
    if isinstance(bound, int):
        return max(-_FAR, min(int(bound), _FAR))  # as Python cuts them off, which in machine code are other numbers
    if isinstance(bound, Tensor):
        if not bound.dtype.is_integer:
            raise TypeError(f"a bound of a slice must be an integer, not a tensor of {bound.dtype.name}")
        return bound.item()
    if hasattr(bound, "__index__"):
        return bound.__index__()
    raise TypeError(f"a bound of a slice must be an int, None or an integer tensor, not {type(bound).__name__}")
