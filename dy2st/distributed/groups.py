"""Groups: which processes exchange data with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.context import current
from dy2st.ops.collective.world import world


class Group:
    """Processes that exchange data with each other: their ranks, ascending."""

    def __init__(self, ranks: Sequence[int], id: int = 0):
        self.ranks, self.id = tuple(ranks), id
        self.name = f"_default_pg{id or ''}"

    @property
    def nranks(self) -> int:
        """How many processes there are in the group."""
        return len(self.ranks)

    world_size = nranks

    @property
    def rank(self) -> int:
        """The number of this process in the group; -1 where it is not in it."""
        return self.get_group_rank(world().rank)

    def is_member(self) -> bool:
        """Return whether this process is in the group."""
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        """Return the number in the group of a process; -1 where it is not in it."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def __repr__(self) -> str:
        return f"Group(ranks={list(self.ranks)})"


def get_group(id: int = 0) -> Group:
    """Return a group by its number: 0 is that of all processes. ValueError for a number that no group has."""
    if id == 0:
        return all_processes()
    listed = world().listed
    if id not in listed:
        raise ValueError(f"there is no group {id}: new_group(ranks) makes one")
    return listed[id]


def all_processes() -> Group:
    """Return the group of all processes."""
    found = world()
    return found.listed.setdefault(0, Group(range(found.size)))


def new_group(ranks: Sequence[int] | None = None, backend: str | None = None, timeout: Any = None) -> Group:
    """Return the group of some processes, of all with None; all processes call this, whether they are in it or not.

    ValueError for a rank that there is not.
    """
    found = world()
    wanted = sorted(set(ranks)) if ranks else list(range(found.size))
    if not set(wanted) <= set(range(found.size)):
        there = "there is one process, 0" if found.size == 1 else f"there are {found.size} processes"
        raise ValueError(f"new_group: {there}, not {wanted}")
    if len(wanted) == found.size:
        return all_processes()
    made = Group(wanted, max(found.listed, default=0) + 1)
    found.listed[made.id] = made
    return made


def destroy_process_group(group: Any = None) -> None:
    """Forget a group; with None, work as one process alone from now on."""
    if group is None:
        current().process.parallel = None
    else:
        world().listed.pop(group.id, None)


def ranks_of(group: Any) -> tuple[int, ...]:
    """Return the ranks of a group, which may be None (all processes) or a Group; TypeError for anything else."""
    if group is None:
        return all_processes().ranks
    if not isinstance(group, Group):
        raise TypeError(f"a group is what new_group() gives, or None, not {type(group).__name__}")
    return group.ranks


def rank_in(group: Any, rank: int, name: str) -> int:
    """Return a rank; ValueError, naming what it is for, where it is not in the group."""
    ranks = ranks_of(group)
    if rank not in ranks:
        there = "there is one process, 0" if world().size == 1 else f"the group has the ranks {list(ranks)}"
        raise ValueError(f"{name}={rank}, and {there}")
    return rank
