"""Where the tensors of a Layer stand in the state dict of torch's module of the same kind, and how they lie there.

    layer                      here                        in torch
    Linear                     weight [in, out]            weight [out, in]
    BatchNorm, SyncBatchNorm   _mean, _variance            running_mean, running_var; num_batches_tracked is unused
    InstanceNorm               scale                       weight
    PReLU                      _weight                     weight
    Bilinear                   bias [1, out]               bias [out]
    MultiHeadAttention         q_proj, k_proj, v_proj      in_proj_weight, in_proj_bias: the three on each other;
                                                           q_proj_weight, ... where the key has another width
    TransformerDecoderLayer    cross_attn                  multihead_attn
    LSTM with `proj_size`      0.cell.weight_ho            weight_hr_l0, transposed

All else has torch's names and layout: convolutions and their transposes, Embedding, LayerNorm, GroupNorm, and also
LSTM, GRU and SimpleRNN. Their gates lie in the same order (LSTM: input, forget, cell, output; GRU: reset, update,
new) and mean the same: GRU's new gate takes `reset * (W h + b)`, and its update gate is the share of the old state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import PReLU
from dy2st.nn.layers.attention import MultiHeadAttention
from dy2st.nn.layers.linear import Bilinear, Linear
from dy2st.nn.layers.norm import (
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    SyncBatchNorm,
)
from dy2st.nn.layers.rnn import GRU, LSTM, SimpleRNN
from dy2st.nn.layers.transformer import TransformerDecoderLayer
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor

UNUSED = "num_batches_tracked"
"""The last part of names that no Layer has a use for."""

_BATCH_NORMS = (BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, SyncBatchNorm)
_INSTANCE_NORMS = (InstanceNorm1D, InstanceNorm2D, InstanceNorm3D)


@record(frozen=True)
class Source:
    """The name of a tensor in torch's state, and what is made of it; ValueError where that cannot be."""

    name: str
    convert: Callable[[np.ndarray], np.ndarray]


def same(array: np.ndarray) -> np.ndarray:
    """Return what lies here as there."""
    return array


def transposed(array: np.ndarray) -> np.ndarray:
    """Return a matrix transposed, anything else as it is."""
    return array.T if array.ndim == 2 else array


def _third(which: int, array: np.ndarray) -> np.ndarray:
    """Return one of three parts that lie on each other."""
    if not array.ndim or len(array) % 3:
        raise ValueError(f"its shape {list(array.shape)} is not that of three parts")
    return transposed(array.reshape(3, len(array) // 3, *array.shape[1:])[which])


def _row(array: np.ndarray) -> np.ndarray:
    return array.reshape(1, -1) if array.ndim == 1 else array


def sources(root: Layer, has: Callable[[str], bool]) -> Iterator[tuple[str, Tensor, Source]]:
    """Yield the parameters and persistable buffers of a layer with their names and their sources, each tensor once.

    `has` says whether torch's state has a name, or names that begin so and go on after a dot.
    """
    seen: set[int] = set()
    for name, tensor, source in _below(root, "", "", has, {}):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor, source


def _below(
    layer: Layer, here: str, there: str, has: Callable[[str], bool], said: dict[str, Source]
) -> Iterator[tuple[str, Tensor, Source]]:
    """Yield what a layer has; `said` gains what it says of the layers below it."""
    for name, (other, convert) in _special(layer, lambda name: has(there + name)).items():
        said.setdefault(here + name, Source(there + other, convert))
    unsaved = layer._non_persistable_buffer_names_set
    for registry in (layer._parameters, {n: t for n, t in layer._buffers.items() if n not in unsaved}):
        for name, tensor in registry.items():
            if tensor is not None:
                yield here + name, tensor, said.get(here + name) or Source(there + name, same)
    for name, child in layer._sub_layers.items():
        if child is not None:
            other = _child(layer, name, there, has)
            yield from _below(child, f"{here}{name}.", f"{there}{other}.", has, said)


def _child(layer: Layer, name: str, there: str, has: Callable[[str], bool]) -> str:
    """Return what torch calls a sublayer."""
    renamed = isinstance(layer, TransformerDecoderLayer) and name == "cross_attn" and has(f"{there}multihead_attn")
    return "multihead_attn" if renamed else name


_Special = dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]]


def _special(layer: Layer, has: Callable[[str], bool]) -> _Special:
    """Return the names below a layer that differ in torch, or lie otherwise: its name, and what is made of it."""
    if isinstance(layer, Linear):
        return {"weight": ("weight", transposed)}
    if isinstance(layer, _BATCH_NORMS):
        return {"_mean": ("running_mean", same), "_variance": ("running_var", same)}
    if isinstance(layer, _INSTANCE_NORMS):
        return {"scale": ("weight", same)}
    if isinstance(layer, PReLU):
        return {"_weight": ("weight", same)}
    if isinstance(layer, Bilinear):
        return {"bias": ("bias", _row)}
    if isinstance(layer, MultiHeadAttention):
        return _attention(has)
    return _projections(layer) if isinstance(layer, (LSTM, GRU, SimpleRNN)) else {}


def _attention(has: Callable[[str], bool]) -> _Special:
    """Return where queries, keys and values are, unless the state has them as layers of their own."""
    found: _Special = {}
    for which, letter in enumerate("qkv"):
        if has("in_proj_weight"):
            found[f"{letter}_proj.weight"] = "in_proj_weight", partial(_third, which)
        elif has("q_proj_weight"):
            found[f"{letter}_proj.weight"] = f"{letter}_proj_weight", transposed
        if has("in_proj_bias"):
            found[f"{letter}_proj.bias"] = "in_proj_bias", partial(_third, which)
    return found


def _projections(layer: Any) -> _Special:
    """Return where the projections of an LSTM's outputs are."""
    cells = {"cell": ""} if layer.num_directions == 1 else {"cell_fw": "", "cell_bw": "_reverse"}
    return {
        f"{number}.{cell}.weight_ho": (f"weight_hr_l{number}{end}", transposed)
        for number in range(layer.num_layers)
        for cell, end in cells.items()
    }
