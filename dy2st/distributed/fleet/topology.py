"""How the processes of a job are laid out: along each way to spread a model, which of them work together.

The ranks of a job are the cells of a grid whose axes are the ways, the last one fastest:

    dp_degree 2, mp_degree 2        rank 0: (dp 0, mp 0)    rank 1: (dp 0, mp 1)
                                    rank 2: (dp 1, mp 0)    rank 3: (dp 1, mp 1)

A group along some axes has the ranks whose other coordinates are those of this process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from dy2st.distributed.groups import Group, new_group
from dy2st.ops.collective.world import world

AXES: tuple[str, ...] = ("dp", "pp", "sharding", "sep", "mp")
_NAMES = {"data": "dp", "pipe": "pp", "sharding": "sharding", "sep": "sep", "model": "mp"}
"""What Paddle's methods call the axes."""


def degrees_of(configs: Mapping[str, Any], size: int) -> dict[str, int]:
    """Return how many processes there are along each axis; where none is said, all are for data.

    ValueError where they are not as many as the job has, NotImplementedError for parts of a sequence.
    """
    said = {axis: int(configs.get(f"{axis}_degree", 1)) for axis in AXES}
    if said["sep"] != 1:
        raise NotImplementedError("sep_degree: sequences are not spread over processes here")
    if list(said.values()).count(-1) > 1 or any(degree < 1 and degree != -1 for degree in said.values()):
        raise ValueError(f"hybrid_configs: degrees are at least 1, one of them may be -1 (what is left), not {said}")
    given = math.prod(degree for degree in said.values() if degree != -1)
    if -1 in said.values() and size % given == 0:
        return {axis: size // given if degree == -1 else degree for axis, degree in said.items()}
    if given == 1:
        return {**said, "dp": size}
    if given != size:
        shown = ", ".join(f"{axis}_degree {degree}" for axis, degree in said.items() if degree != 1)
        there = "1 process" if size == 1 else f"{size} processes"
        raise ValueError(f"hybrid_configs: {shown} needs {given} processes, and the job has {there}")
    return said


class HybridCommunicateGroup:
    """Ranks, sizes and groups along each way to spread a model.

    `get_X_parallel_rank()`, `get_X_parallel_world_size()`, `get_X_parallel_group()` and
    `get_X_parallel_group_src_rank()` are there for X = data, model, pipe, sharding and sep.

    >>> group = HybridCommunicateGroup()
    >>> group.get_model_parallel_rank(), group.get_data_parallel_world_size(), group.get_stage_id()
    (0, 1, 0)
    """

    def __init__(self, configs: Mapping[str, Any] | None = None) -> None:
        self.nranks, self.global_rank = world().size, world().rank
        self.degrees = degrees_of(configs or {}, self.nranks)
        cells = list(product(*(range(self.degrees[axis]) for axis in AXES)))
        self._cells = [dict(zip(AXES, cell, strict=True)) for cell in cells]
        self._here = self._cells[self.global_rank]

    def group(self, *axes: str) -> Group:
        """Return the group of the processes that differ from this one along some axes alone."""
        others = [axis for axis in AXES if axis not in axes]
        same = [r for r, cell in enumerate(self._cells) if all(cell[a] == self._here[a] for a in others)]
        return new_group(same)

    def place(self, axis: str) -> int:
        """Return the number of this process along an axis."""
        return self._here[axis]

    # ---- Paddle's names ---------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        kind, _, what = name.removeprefix("get_").partition("_parallel_")
        axis = _NAMES.get(kind)
        if name.startswith("get_") and axis is not None:
            if what == "rank":
                return lambda: self.place(axis)
            if what == "world_size":
                return lambda: self.degrees[axis]
            if what == "group":
                return lambda: self.group(axis)
            if what == "group_src_rank":
                return lambda: self.group(axis).ranks[0]
        raise AttributeError(f"a HybridCommunicateGroup has no {name!r}", name=name)

    def get_global_rank(self) -> int:
        """Return the number of this process in the job."""
        return self.global_rank

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        """Return the group of the processes that have one copy of the model between them."""
        return self.group("pp", "sharding", "mp")

    def get_stage_id(self) -> int:
        """Return which stage of a pipeline this process runs."""
        return self.place("pp")

    @property
    def is_first_stage(self) -> bool:
        """Whether this process runs the first stage."""
        return self.place("pp") == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this process runs the last stage."""
        return self.place("pp") == self.degrees["pp"] - 1

    def get_rank_from_stage(self, stage_id: int) -> int:
        """Return the process that runs a stage of this one's pipeline."""
        return self.group("pp").ranks[stage_id]


def ways() -> HybridCommunicateGroup:
    """Return how the processes of the job are laid out: as `fleet.init` was told, else all of them for data."""
    here = world()
    if here.ways is None:
        here.ways = HybridCommunicateGroup()
    return here.ways
