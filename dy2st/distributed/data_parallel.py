"""`DataParallel`: a layer whose gradients are averaged over all processes.

When a backward has added to the gradients of its parameters, these are averaged, many in one message: in eager mode and
as steps of a Program alike. That is right for what was summed up under `no_sync` before, too. Where a process keeps a
parameter for the others (spread_steps.py, stage 2), it gets the sum of their gradients, and they keep none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dy2st.distributed.collective import ReduceOp, broadcast, collective, reduced
from dy2st.distributed.groups import ranks_of
from dy2st.functions.shape.concat_split import concat, split
from dy2st.functions.shape.creation import zeros_like
from dy2st.ir.context import current, replaced
from dy2st.nn.layer import Layer
from dy2st.ops.collective.world import world
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.recording.leaf_gradients import gradient_parts


def sync_params_buffers(model: Any, comm_group: Any = None, src_rank: int = 0, *args: Any, **keywords: Any) -> None:
    """Give all processes the parameters and buffers of process `src_rank`."""
    if len(ranks_of(comm_group)) > 1:
        with replaced(grad=False):
            for t in (*model.parameters(), *model.buffers()):
                broadcast(t, src_rank, comm_group)


class DataParallel(Layer):
    """A layer whose gradients are averaged over all processes; of one process, they are its own.

    All processes begin with the parameters of the first. With `find_unused_parameters`, a parameter that no output
    depends on has a gradient of zeros, so that processes may take different ways. A message has `comm_buffer_size` MB;
    `strategy` changes nothing. Names in `state_dict` are those of the layer itself.
    """

    def __init__(
        self,
        layers: Layer,
        strategy: Any = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False,
        group: Any = None,
    ):
        super().__init__()
        if not isinstance(layers, Layer):
            raise TypeError(f"DataParallel takes a Layer, not {type(layers).__name__}")
        self._layers, self._group = layers, group
        self._syncs, self._finds_unused = True, find_unused_parameters
        self._elements = comm_buffer_size << 18
        """Of float32, in one message."""
        if len(ranks_of(group)) > 1:
            sync_params_buffers(layers, group, ranks_of(group)[0])
            for p in layers.parameters():
                p.averaged_by = self

    def average_gradients(self) -> None:
        """Average what gradients the parameters have over the processes."""
        trace = current().trace
        if not (self._syncs if trace is None else trace.read_attribute(self, "_syncs", self._syncs)):
            return
        with replaced(grad=False):
            found = [(p, g) for p in self._layers.parameters() if (g := self._gradient(p)) is not None]
            for bucket in buckets(found, self._elements):
                flat, owner = concat([g.flatten() for _, g in bucket]), bucket[0][0].gradient_owner
                if owner is None:
                    made = reduced(flat, ReduceOp.AVG, self._group)
                else:
                    made = collective("reduce_to", flat, group=self._group, root=owner)
                parts = split(made, [g.size for _, g in bucket]) if len(bucket) > 1 else [made]
                for (p, g), part in zip(bucket, parts, strict=True):
                    p.grad = _no_view(part.reshape(g.shape)) if owner in (None, world().rank) else None

    def _gradient(self, p: Tensor) -> Tensor | None:
        if p.stop_gradient:
            return None
        if p.grad is None:
            return zeros_like(p) if self._finds_unused else None
        trace = current().trace
        return p.grad if trace is None else gradient_parts(trace, p.grad, p)[0]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the layer."""
        return self._layers(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients as they are for the length of a `with`: the backward after it averages their sums."""
        before, self._syncs = self._syncs, False
        try:
            yield
        finally:
            self._syncs = before

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss: gradients are averages."""
        return loss

    def apply_collective_grads(self) -> None:
        """Average the gradients over the processes: the backward has done that."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the layer's state."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Restore the layer's state."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict


def _no_view(t: Tensor) -> Tensor:
    """Return a gradient as a tensor of its own, which is recorded by itself where gradients are scaled natively."""
    return t if current().trace is not None else Tensor(t.payload)


def buckets(found: Sequence[tuple[Tensor, Tensor]], most: int) -> list[list[tuple[Tensor, Tensor]]]:
    """Return parameters with their gradients in lists of one dtype and of so many elements, or of one parameter.

    Those of a list are of one owner, too.
    """
    made: list[list[tuple[Tensor, Tensor]]] = []
    room: dict[Any, int] = {}
    last: dict[Any, list[tuple[Tensor, Tensor]]] = {}
    for p, g in found:
        kind = g.dtype, p.gradient_owner
        if room.get(kind, 0) < p.size:
            last[kind], room[kind] = [], most
            made.append(last[kind])
        last[kind].append((p, g))
        room[kind] -= p.size
    return made
