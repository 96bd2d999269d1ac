"""Tensors that leave their memory when they are written, because the tape needs what stands there.

After `z = y * y` the VJP needs y as it is. `y[0] = 1.0` gives y other memory, where its views (`row = y[1]`) go
with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.version_counter import VersionCounter


def can_move(chain: Sequence[Tensor], new: Tensor) -> bool:
    """Return whether a tensor that is written and its bases (the last owns the memory) may leave the memory.

    They stay where a view without history shows it (`detach`), and in memory that another library lent.
    """
    array = chain[-1].payload
    if not isinstance(array, np.ndarray) or not isinstance(new.payload, np.ndarray) or not array.flags.writeable:
        return False
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is None and all(t.view_of.keeps_history for t in chain[:-1])


def leave_kept(x: Tensor, least: int = 1) -> None:
    """Let a tensor that is about to be written, and what shares its memory, leave memory that the tape keeps.

    `least` is how it must be kept: `BY_PROGRAM` leaves out what a single op keeps.
    """
    base = x
    while base.view_of is not None:
        base = base.view_of.base
    kept = base.kept if base.storage_version is None else max(base.kept, base.storage_version.kept)
    if kept >= least and can_move([base], base):
        move_to(base, base.payload.copy())


def move_to(base: Tensor, array: np.ndarray) -> None:
    """Make `array` the memory of a tensor and of its views."""
    before = base.storage_version or VersionCounter()
    base.payload, base.kept = array, False
    base.storage_version = version = VersionCounter(before.number + 1, before.spoiled)
    for one in before.views:
        view = one()
        if view is not None and view.storage_version is before:
            made = view.view_of
            operands = [x.payload if isinstance(x, Tensor) else x for x in made.operands]
            view.payload = made.op.eval(np, made.base.payload, *operands, **made.attributes)
            view.storage_version = version
            version.views.append(one)
