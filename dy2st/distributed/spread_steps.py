"""Steps of an optimizer that several processes share: each keeps the state of some parameters and updates these.

    gradients are there           rank 0: all, or those of a and c      rank 1: all, or those of b
    own: clip, update             a, c                                  b
    give_out: broadcast           a, b, c                               a, b, c

1. A parameter is kept whole by one rank, so every rule does what it does in one process, norms of a parameter too.
2. The norm that clips all gradients is one number over all ranks that have a part of the model: of a parameter that
   several of them have, it counts once.
3. With `gradients` (stage 2), a gradient is at the rank that keeps the parameter alone, as the sum over the ranks:
   sums add up, whichever backwards they come from, and the step divides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.distributed.collective import collective
from dy2st.distributed.data_parallel import buckets
from dy2st.distributed.groups import Group
from dy2st.distributed.model_parts import counted_here
from dy2st.dtypes import int32
from dy2st.functions.core.assigning import write
from dy2st.functions.core.operands import cast_to
from dy2st.functions.shape.concat_split import concat, split
from dy2st.functions.shape.creation import full, zeros
from dy2st.ir.context import current, replaced
from dy2st.nn.clip import ClipGradBase, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from dy2st.nn.maths import TENSORS
from dy2st.ops.collective.world import world
from dy2st.optimizer.groups import Alone
from dy2st.optimizer.lbfgs import LBFGS
from dy2st.optimizer.native_step import NativeSteps
from dy2st.optimizer.optimizer import Optimizer
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.recording.leaf_gradients import gradient_parts

Pairs = Sequence[tuple[Tensor, Any]]
_MESSAGE = 25 << 18
"""The most elements that are given out at once."""


def spread(optimizer: Any, keepers: Group, model: Group, gradients: bool = False) -> Any:
    """Have the processes `keepers` share the steps of an optimizer; those of `model` have parts of one model.

    TypeError for what is no optimizer, or one whose steps are not of each parameter (LBFGS).
    """
    if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
        raise TypeError(f"the steps of a {type(optimizer).__name__} cannot be spread over processes")
    optimizer._spread = SpreadSteps(keepers, model, gradients)
    optimizer._native = NativeSteps(optimizer)
    if gradients:
        for p, owner in optimizer._spread.owners(optimizer).items():
            p.gradient_owner = owner
    return optimizer


class SpreadSteps(Alone):
    """How an optimizer's steps are spread over processes."""

    def __init__(self, keepers: Group, model: Group, gradients: bool):
        self.keepers, self.model, self.gradients = keepers, model, gradients
        self._owners: dict[Tensor, int] = {}

    def owners(self, optimizer: Any) -> dict[Tensor, int]:
        """Return the rank that keeps each parameter: the largest first, each by who has least so far."""
        parameters = optimizer._parameter_list
        if len(parameters) != len(self._owners):
            load = dict.fromkeys(self.keepers.ranks, 0)
            found = {id(p): 0 for p in parameters}
            for p in sorted(parameters, key=lambda p: -p.size):
                found[id(p)] = min(load, key=lambda rank: load[rank])
                load[found[id(p)]] += p.size
            self._owners = {p: found[id(p)] for p in parameters}
        return self._owners

    def own_parameters(self, optimizer: Any, parameters: list[Tensor]) -> list[Tensor]:
        owners = self.owners(optimizer)
        return [p for p in parameters if owners[p] == world().rank]

    # ---- a step ------------------------------------------------------------------------------------------------------
    def own(self, optimizer: Any, pairs: Pairs, clip: ClipGradBase | None) -> tuple[Pairs, Any]:
        if self.keepers.nranks == self.model.nranks == 1:
            return pairs, clip
        trace, owners = current().trace, self.owners(optimizer)
        if hasattr(trace, "update"):
            raise NotImplementedError("the steps of a hand-built Program are not spread over processes")
        alone = next((p for p, _ in pairs if p.averaged_by is None and p in owners), None)
        if self.keepers.nranks > 1 and alone is not None:
            raise RuntimeError(
                f"step: the gradient of {alone.name} is that of this process alone: train the model that "
                "fleet.distributed_model or group_sharded_parallel returns"
            )
        mine = [(p, g) for p, g in pairs if owners.get(p, world().rank) == world().rank]
        with replaced(grad=False):
            if trace is not None and (clip is not None or self.gradients):
                mine = [(p, gradient_parts(trace, g, p)[0]) for p, g in mine]
            if self.gradients:
                mine = [(p, g / self.keepers.nranks) for p, g in mine]
            return (mine, None) if clip is None else (self._clipped(mine, clip), None)

    def _clipped(self, pairs: Pairs, clip: ClipGradBase) -> Pairs:
        if isinstance(clip, (ClipGradByValue, ClipGradByNorm)):
            return clip(pairs)
        if not isinstance(clip, ClipGradByGlobalNorm):
            raise TypeError(f"{type(clip).__name__} cannot clip gradients that are spread over processes")
        taken = [i for i, (p, _) in enumerate(pairs) if getattr(p, "need_clip", True)]
        total: Any = zeros([], "float64")
        total = clip.total([pairs[i][1] for i in taken if counted_here(pairs[i][0])], total, TENSORS)
        total = collective("all_reduce", total, group=self.model, reduction="sum")
        scaled = dict(zip(taken, clip.scaled([pairs[i][1] for i in taken], total, TENSORS), strict=True))
        return [(p, scaled.get(i, g)) for i, (p, g) in enumerate(pairs)]

    def give_out(self, optimizer: Any) -> None:
        if self.keepers.nranks == 1:
            return
        owners, here = self.owners(optimizer), world().rank
        with replaced(grad=False):
            for rank in self.keepers.ranks:
                theirs = [(p, p) for p, owner in owners.items() if owner == rank and not p.stop_gradient]
                for bucket in buckets(theirs, _MESSAGE):
                    flat = concat([p.flatten() for p, _ in bucket])
                    flat = collective("broadcast_from", flat, group=self.keepers, root=rank)
                    parts = split(flat, [p.size for p, _ in bucket]) if len(bucket) > 1 else [flat]
                    for (p, _), part in zip(bucket if here != rank else [], parts, strict=False):
                        write(p, part.reshape(p.shape))

    def agreed(self, finite: Any) -> Any:
        if self.model.nranks == 1:
            return finite
        flag = cast_to(finite, int32) if isinstance(finite, Tensor) else full([], finite, "int32")
        return collective("all_reduce", flag, group=self.model, reduction="min") > 0

    # ---- state -------------------------------------------------------------------------------------------------------
    def whole(self, optimizer: Any, state_dict: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        if current().trace is None:
            optimizer.make_state()
        return state_dict(optimizer)

    def own_state(self, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
        owners = self.owners(optimizer)
        for p in self.own_parameters(optimizer, list(owners)):
            options = optimizer.options_of({})
            if not p.stop_gradient and not all(f"{p.name}_{slot}_0" in state for slot in optimizer.slots(options)):
                raise ValueError(
                    f"set_state_dict: there is no state of {p.name}, which rank {world().rank} keeps; "
                    "save_state_dict and save_group_sharded_model save that of all ranks"
                )
        foreign = tuple(f"{p.name}_" for p, owner in owners.items() if owner != world().rank)
        return {name: value for name, value in state.items() if not name.startswith(foreign or ("\0",))}
