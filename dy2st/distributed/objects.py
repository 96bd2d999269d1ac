"""Collective operations on Python objects, which travel pickled: in eager mode alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.distributed.groups import rank_in, ranks_of
from dy2st.ir.context import current
from dy2st.ir.location import line_here
from dy2st.ops.collective.world import group_of, world
from dy2st.runtime.eager.side_effect_check import refusal


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Append what all processes give to the list."""
    object_list.extend(_exchanged("all_gather_object", group, [obj], lambda comm: comm.allgather(obj)))


def broadcast_object_list(object_list: list[Any], src: int, group: Any = None) -> None:
    """Give all processes the list of process `src`."""
    root = ranks_of(group).index(rank_in(group, src, "broadcast_object_list: src"))
    given = list(object_list)
    object_list[:] = _exchanged("broadcast_object_list", group, given, lambda comm: comm.bcast(given, root))


def scatter_object_list(
    out_object_list: list[Any], in_object_list: Sequence[Any] | None = None, src: int = 0, group: Any = None
) -> None:
    """Make the list that of the one object that the list of process `src` has for this process."""
    root = ranks_of(group).index(rank_in(group, src, "scatter_object_list: src"))
    given = list(in_object_list or ()) if world().rank == src else None
    if given is not None and len(given) != len(ranks_of(group)):
        raise ValueError(f"scatter_object_list: {len(given)} objects for {len(ranks_of(group))} processes")
    out_object_list[:] = _exchanged("scatter_object_list", group, given, lambda comm: [comm.scatter(given, root)])


def _exchanged(name: str, group: Any, alone: Any, together: Callable[[Any], Any]) -> Any:
    if current().trace is not None:
        raise refusal(f"{name}() gives objects that only the run will tell", "call it outside of the static function")
    found = group_of(ranks_of(group))
    if found is None:
        return alone
    return found.run(name, line_here(), together)
