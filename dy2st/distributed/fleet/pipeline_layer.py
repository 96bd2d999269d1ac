"""A model as a list of layers, cut into the stages of a pipeline: each process has the layers of its stage.

All processes build the layers in order, and keep their own: so weights are drawn as in one process, and parameters and
sublayers have the same names in any number of stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dy2st.autograd.rules import callable_here
from dy2st.distributed.collective import broadcast
from dy2st.distributed.fleet.topology import ways
from dy2st.distributed.groups import Group, new_group
from dy2st.ir.context import replaced
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class LayerDesc:
    """A layer that its stage builds: its class, and what it is made of."""

    def __init__(self, layer_func: Callable[..., Any], *inputs: Any, **kwargs: Any):
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise TypeError(f"LayerDesc takes a class of layers, not {layer_func!r}")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self) -> Layer:
        """Return a new layer."""
        return self.layer_func(*self.inputs, **self.kwargs)

    def __repr__(self) -> str:
        return f"LayerDesc({self.layer_func.__name__})"


class SharedLayerDesc(LayerDesc):
    """A layer that stands at several places of a pipeline: all of one `key` have the weight of the first.

    `forward_func(layer, x)` is what it does at this place, its own `forward` where there is none.
    """

    def __init__(
        self, key: str, layer_func: Callable[..., Any], forward_func: Callable[..., Any] | None = None,
        shared_weight_attr: str = "weight", *inputs: Any, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func, self.shared_weight_attr = key, forward_func, shared_weight_attr


class PipelineLayer(Layer):
    """Layers (or LayerDescs, or functions of a tensor) that run one after the other, cut into stages.

    Parameters
    ----------
    layers
        What runs, in order.
    num_stages
        How many stages there are: as many as the job's `pp_degree`, which is the default.
    loss_fn
        The loss of outputs and labels, which the last stage takes.
    seg_method
        "uniform": stages have as many layers, later ones more; "layer:NAME": as many of the class NAME.

    >>> import dy2st as paddle
    >>> from dy2st.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer
    >>> model = PipelineLayer([LayerDesc(paddle.nn.Linear, 2, 3), paddle.nn.functional.relu], num_stages=1)
    >>> model(paddle.ones([1, 2])).shape
    [1, 3]
    """

    def __init__(
        self, layers: Iterable[Any], num_stages: int | None = None, topology: Any = None,
        loss_fn: Callable[..., Any] | None = None, seg_method: str = "uniform", recompute_interval: int = 0,
        recompute_ctx: Any = None, num_virtual_pipeline_stages: int | None = None,
    ):  # fmt: skip
        super().__init__()
        if num_virtual_pipeline_stages not in (None, 1) or recompute_interval:
            raise NotImplementedError("PipelineLayer: virtual stages and recompute_interval are not here")
        self._ways = ways()
        stages = self._ways.degrees["pp"] if num_stages is None else num_stages
        if stages != self._ways.degrees["pp"]:
            raise ValueError(f"PipelineLayer: num_stages is {stages}, the job's pp_degree {self._ways.degrees['pp']}")
        self._loss_fn = loss_fn
        listed = list(layers)
        self.bounds = bounds_of(listed, stages, seg_method)
        """Where each stage begins, and the end."""
        stage = self._ways.get_stage_id()
        self._own = range(self.bounds[stage], self.bounds[stage + 1])
        self._functions: list[Callable[..., Any]] = []
        self._shared: dict[str, Layer] = {}
        self.tied: list[tuple[Tensor, Group]] = []
        """Weights that stages share, each with the processes that have it."""
        wanted = {d.layer_name for i, d in enumerate(listed) if i in self._own and isinstance(d, SharedLayerDesc)}
        for i, item in enumerate(listed):
            self._build(i, item, wanted)
        self._tie(listed)

    def _build(self, i: int, item: Any, wanted: set[str]) -> None:
        """Build an item, and keep it where it is of the own stage."""
        own = i in self._own
        if isinstance(item, SharedLayerDesc):
            found = self._shared.get(item.layer_name) or item.build_layer()
            self._shared.setdefault(item.layer_name, found)
            if own:
                forward = item.forward_func
                self._functions.append(found if forward is None else lambda x: callable_here(forward)(found, x))
                self.add_sublayer(f"shared_layers_{item.layer_name}", found)
            return
        if isinstance(item, LayerDesc):
            item = item.build_layer()
        elif not callable(item):
            raise TypeError(f"PipelineLayer: number {i} is a layer, a LayerDesc or a function, not {item!r:.60}")
        if own:
            if isinstance(item, Layer):
                self.add_sublayer(str(i), item)
            self._functions.append(item)

    def _tie(self, listed: list[Any]) -> None:
        """Give stages that share a weight the same one."""
        places: dict[str, list[int]] = {}
        for i, item in enumerate(listed):
            if isinstance(item, SharedLayerDesc):
                stage = next(s for s in range(len(self.bounds) - 1) if i < self.bounds[s + 1])
                places.setdefault(item.layer_name, []).append(stage)
        for key, stages in places.items():
            group = new_group([self._ways.get_rank_from_stage(stage) for stage in stages])
            name = next(d.shared_weight_attr for d in listed if isinstance(d, SharedLayerDesc) and d.layer_name == key)
            if group.is_member() and group.nranks > 1:
                weight = getattr(self._shared[key], name)
                with replaced(grad=False):
                    broadcast(weight, group.ranks[0], group)
                weight.counted_by = group.ranks[0]
                self.tied.append((weight, group))
        self._shared = {key: layer for key, layer in self._shared.items() if layer in self._sub_layers.values()}

    def forward(self, input: Any) -> Any:
        """Run the layers of this stage; several results go to the next layer as its arguments."""
        for function in self._functions:
            run = callable_here(function)
            input = run(*input) if isinstance(input, (tuple, list)) else run(input)
        return input


def bounds_of(items: list[Any], stages: int, method: str) -> list[int]:
    """Return where each stage begins, and the end; ValueError where there are fewer items than stages.

    >>> bounds_of([0] * 5, 2, "uniform")
    [0, 2, 5]
    """
    if method == "uniform":
        marks = list(range(len(items)))
    elif method.startswith("layer:"):
        marks = [i for i, item in enumerate(items) if _class_name(item) == method[6:]]
    else:
        raise ValueError(f'PipelineLayer: seg_method is "uniform" or "layer:NAME", not {method!r}')
    if len(marks) < stages:
        raise ValueError(f"PipelineLayer: {len(marks)} layers ({method}) are not enough for {stages} stages")
    size, extra = divmod(len(marks), stages)
    starts = [stage * size + max(0, stage - (stages - extra)) for stage in range(1, stages)]
    return [0, *(marks[at] for at in starts), len(items)]


def _class_name(item: Any) -> str:
    return (item.layer_func if isinstance(item, LayerDesc) else type(item)).__name__
