"""`paddle.distributed.sharding`: optimizer state, and gradients, each kept by one of the processes.

>>> import dy2st as paddle
>>> from dy2st.distributed.sharding import group_sharded_parallel
>>> model = paddle.nn.Linear(2, 1)
>>> adam = paddle.optimizer.Adam(0.1, parameters=model.parameters())
>>> model, adam, scaler = group_sharded_parallel(model, adam, level="os_g")
>>> loss = model(paddle.ones([3, 2])).sum()
>>> loss.backward()
>>> adam.step()
"""

from __future__ import annotations

import os
from typing import Any

from dy2st.distributed.collective import barrier
from dy2st.distributed.data_parallel import DataParallel
from dy2st.distributed.groups import all_processes, ranks_of
from dy2st.distributed.objects import all_gather_object
from dy2st.distributed.spread_steps import spread
from dy2st.files import state_files
from dy2st.missing import missing_in
from dy2st.ops.collective.world import world
from dy2st.runtime.eager.tensor import Tensor

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)

__all__ = ["group_sharded_parallel", "save_group_sharded_model"]

LEVELS = ("os", "os_g")


def group_sharded_parallel(
    model: Any, optimizer: Any, level: str, scaler: Any = None, group: Any = None, offload: bool = False,
    sync_buffers: bool = False, buffer_max_size: int = 2**23, segment_size: int = 2**20, sync_comm: bool = False,
    dp_group: Any = None, exclude_layer: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return model, optimizer and scaler whose state is spread over the processes of a group.

    Level "os": each process keeps the optimizer state of some parameters, and updates these. "os_g": it alone has
    their gradients too, as sums over the processes, which the step divides. Steps, and their results, are those of one
    process with the whole batch. Buffers are those of each process, unless `sync_buffers`: then of the first, once.

    Raises ValueError for another level; NotImplementedError for parameters in parts ("p_g_os"), and where `offload`,
    `dp_group` or `exclude_layer` is given.
    """
    if level == "p_g_os":
        raise NotImplementedError('group_sharded_parallel: parameters stay whole; the levels are "os" and "os_g"')
    if level not in LEVELS:
        raise ValueError(f'group_sharded_parallel: the level is "os" or "os_g", not {level!r}')
    for name, given in (("offload", offload), ("dp_group", dp_group), ("exclude_layer", exclude_layer)):
        if given:
            raise NotImplementedError(f"group_sharded_parallel: {name} is not here")
    keepers = group or all_processes()
    ranks_of(keepers)
    if not isinstance(model, DataParallel):
        model = DataParallel(model, group=keepers, comm_buffer_size=max(1, buffer_max_size >> 18))
    return model, spread(optimizer, keepers, keepers, gradients=level == "os_g"), scaler


def save_group_sharded_model(model: Any, output: str, optimizer: Any = None) -> None:
    """Save a model below a folder as `model.pdmodel`, and the state of its optimizer, of all ranks, as `model.pdopt`.

    All processes call this, the first one writes; `paddle.load` reads both files, in any number of processes.
    Raises ValueError where `output` is a file.
    """
    if os.path.isfile(output):
        raise ValueError(f"save_group_sharded_model: {output} is a file, and a folder is needed")
    state = None if optimizer is None else gathered_state(optimizer)
    if world().rank == 0:
        os.makedirs(output, exist_ok=True)
        state_files.save(model.state_dict(), os.path.join(output, "model.pdmodel"), _array)
        if state is not None:
            state_files.save(state, os.path.join(output, "model.pdopt"), _array)
    barrier()


def gathered_state(optimizer: Any) -> dict[str, Any]:
    """Return the state that all processes keep of an optimizer; all of them ask for it."""
    found: list[dict[str, Any]] = []
    all_gather_object(found, {name: _plain(value) for name, value in optimizer.state_dict().items()})
    made: dict[str, Any] = {}
    for state in found:
        for name, value in state.items():
            made[name] = {**made[name], **value} if name in made and isinstance(value, dict) else value
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(x) for name, x in value.items()}
    return value.numpy() if isinstance(value, Tensor) else value


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else state_files.as_array(value)
