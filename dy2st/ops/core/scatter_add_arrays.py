"""Addition at positions that may repeat, and the check of positions, on NumPy and CuPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_rows(xp: Any, out: Any, positions: Any, rows: Any) -> None:
    """Do `out[positions[i]] += rows[i]` in place for every i, also where positions repeat.

    Positions are int64 of rank 1, in range, negative ones counted from the end.
    """
    if positions.size == 0 or rows.size == 0:
        return
    positions = xp.where(positions < 0, positions + out.shape[0], positions).astype(np.int64)
    if xp is not np:
        if out.dtype == np.int64:  # CuPy adds no signed 64-bit numbers; unsigned ones have the same bits
            out, rows = out.view(np.uint64), xp.ascontiguousarray(rows).view(np.uint64)
        xp.add.at(out, positions, rows)
        return
    if out.ndim == 1:
        np.add.at(out, positions, rows)
        return
    order = positions.argsort(kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if starts.size == positions.size:
        out[positions] += rows
        return
    out[ordered[starts]] += np.add.reduceat(rows[order], starts, axis=0, dtype=out.dtype)


def refuse_outside(xp: Any, name: str, positions: Any, axis: int, extent: int) -> None:
    """Raise IndexError naming the first position outside [-extent, extent), the axis and its extent."""
    outside = (positions < -extent) | (positions >= extent)
    if bool(xp.any(outside)):
        raise IndexError(outside_message(name, int(positions[outside][0]), axis, extent))


def outside_message(name: str, position: int, axis: int, extent: int) -> str:
    """Say which index is out of range where."""
    return f"{name}: index {position} is out of range for axis {axis} of extent {extent}"
