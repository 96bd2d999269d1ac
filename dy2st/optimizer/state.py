"""An optimizer's state: the tensors that its rule keeps for each parameter, and how they are saved and restored.

A piece of state is saved as `PARAMETER_SLOT_0`, for example `linear_0.w_0_moment1_0`; the float32 twins of float16
and bfloat16 parameters stand by the names of these in a dict of their own, `master_weights`, as Paddle has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.context import current, replaced
from dy2st.optimizer.lr import LRScheduler
from dy2st.runtime.eager.device import move, namespace, place_of
from dy2st.runtime.eager.tensor import Tensor

if TYPE_CHECKING:
    from dy2st.optimizer.optimizer import Optimizer, Slot

_MASTER, _MASTERS = "_fp32_master_0", "master_weights"


def create(optimizer: Optimizer, p: Tensor, slots: dict[str, Slot]) -> dict[str, Tensor]:
    """Return the state of one parameter: filled as its slots say, or as a state dict given before said."""
    master = optimizer._multi_precision and p.dtype in (dtypes.float16, dtypes.bfloat16)
    dtype = dtypes.float32 if master else p.dtype
    made: dict[str, Tensor] = {}
    create_in_program = getattr(current().trace, "create_state", None)
    with replaced(trace=None, grad=False):
        for name, slot in slots.items():
            shape = () if slot.scalar else tuple(p.shape) if slot.extent is None else (slot.extent, *p.shape)
            kind = dtypes.float64 if slot.scalar else dtype
            made[name] = _slot(create_in_program, f"{p.name}_{name}_0", shape, kind, slot.fill, p)
        if master:
            made["fp32_master"] = Tensor(p.array("a master weight").astype(np.float32))
            made["fp32_master"].name = p.name + _MASTER
    for t in made.values():
        t.persistable = t.fixed_shape = True
        if p.part is not None and t.ndim >= p.ndim:
            t.part = (p.part[0] + t.ndim - p.ndim, *p.part[1:])
        if t.name in optimizer._loaded:
            _fill(t, optimizer._loaded.pop(t.name))
    return made


def _slot(
    create: Callable[..., Tensor] | None, name: str, shape: tuple[int, ...], dtype: dtypes.DType, fill: float, p: Tensor
) -> Tensor:
    if create is not None:
        return create(name, shape, dtype, fill)
    xp = namespace(p.place)
    made = Tensor(xp.full(shape, fill, dtype.numpy) if fill else xp.zeros(shape, dtype.numpy))
    made.name = name
    return made


def state_dict(optimizer: Optimizer) -> dict[str, Any]:
    """Return the state of all parameters by name, and the scheduler's."""
    found: dict[str, Any] = {t.name: t for state in optimizer._accumulators.values() for t in state.values()}
    found.update(optimizer._loaded)
    masters = {name: found.pop(name) for name in list(found) if name.endswith(_MASTER)}
    if masters:
        found[_MASTERS] = {name.removesuffix(_MASTER): t for name, t in masters.items()}
    if isinstance(optimizer._learning_rate, LRScheduler):
        found["LR_Scheduler"] = optimizer._learning_rate.state_dict()
    return found


def set_state_dict(optimizer: Optimizer, given: dict[str, Any]) -> None:
    """Restore state by name; what belongs to a parameter that was not updated yet is kept until it is."""
    given = dict(given)
    given.update({name + _MASTER: t for name, t in given.pop(_MASTERS, {}).items()})
    schedule = given.pop("LR_Scheduler", None)
    if schedule is not None and isinstance(optimizer._learning_rate, LRScheduler):
        optimizer._learning_rate.set_state_dict(schedule)
    for state in optimizer._accumulators.values():
        for t in state.values():
            if t.name in given:
                _fill(t, given.pop(t.name))
    optimizer._loaded = given


def _fill(t: Tensor, value: Any) -> None:
    array = value.array("a state") if isinstance(value, Tensor) else np.asarray(value)
    if array.size != t.size or (t.ndim and list(array.shape) != t.shape):
        raise ValueError(f"the state {t.name} has shape {t.shape}, the value given for it {list(array.shape)}")
    mine = t.array("a state")
    t.payload = move(array, place_of(mine)).astype(mine.dtype).reshape(mine.shape)
