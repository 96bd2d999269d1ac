"""`rnn`: layers of LSTM, GRU and plain recurrent cells, forward or in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.nn.layers.rnn import run_cell
from dy2st.paddle_files.runner import Node, operator

Weights = tuple[Any, Any, Any, Any]
"""Of the input, of the state, and their biases."""


def _lstm(weights: Weights) -> Callable[[Any, Any], Any]:
    def cell(x: Any, state: Any) -> Any:
        h, c = state
        i, f, g, o = T.split(_affine(x, h, weights), 4, -1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * T.tanh(g)
        h = F.sigmoid(o) * T.tanh(c)
        return h, (h, c)

    return cell


def _gru(weights: Weights) -> Callable[[Any, Any], Any]:
    def cell(x: Any, h: Any) -> Any:
        x_r, x_z, x_c = T.split(_product(x, weights[0], weights[2]), 3, -1)
        h_r, h_z, h_c = T.split(_product(h, weights[1], weights[3]), 3, -1)
        r, z = F.sigmoid(x_r + h_r), F.sigmoid(x_z + h_z)
        c = T.tanh(x_c + r * h_c)
        h = (h - c) * z + c
        return h, h

    return cell


def _plain(activation: Callable[[Any], Any]) -> Callable[[Weights], Callable[[Any, Any], Any]]:
    def made(weights: Weights) -> Callable[[Any, Any], Any]:
        def cell(x: Any, h: Any) -> Any:
            h = activation(_affine(x, h, weights))
            return h, h

        return cell

    return made


_CELLS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _plain(T.tanh), "RNN_RELU": _plain(F.relu)}


def _product(x: Any, w: Any, b: Any) -> Any:
    return T.matmul(x, w, transpose_y=True) + b


def _affine(x: Any, h: Any, weights: Weights) -> Any:
    return _product(x, weights[0], weights[2]) + _product(h, weights[1], weights[3])


@operator("rnn")
def _rnn(node: Node, x: Any, before: Any, weights: Any, lengths: Any = None, dropped: Any = None) -> Any:
    """Return all outputs [time, batch, features] and the last states; weights stand before all biases."""
    cell, ways = _CELLS.get(node.get("mode")), 2 if node.get("is_bidirec") else 1
    if cell is None:
        raise node.fail(f"cells of the mode {node.get('mode')!r:.40}")
    if node.get("dropout_prob") and not node.get("is_test"):
        raise node.fail("dropout between layers, in training")
    count = node.get("num_layers", default=1) * ways
    if len(weights) != 4 * count:
        raise node.fail(f"{len(weights)} weights for {count} layers; there are four for each")
    last: list[Any] = []
    for layer in range(0, count, ways):
        made = []
        for way in range(ways):
            at = layer + way
            four = (*weights[2 * at : 2 * at + 2], *weights[2 * (count + at) : 2 * (count + at) + 2])
            start = tuple(s[at] for s in before)
            state = start if len(start) == 2 else start[0]
            out, end = run_cell(cell(four), x, state, lengths, way == 1, {})
            made.append(out)
            last.append(end if isinstance(end, tuple) else (end,))
        x = T.concat(made, -1) if ways == 2 else made[0]
        if lengths is not None:
            turns = T.reshape(T.cast(T.arange(x.shape[0]), lengths.dtype), [-1, 1, 1])
            x = T.where(turns < T.reshape(lengths, [1, -1, 1]), x, T.zeros_like(x))
    return x, None, [T.stack([state[k] for state in last]) for k in range(len(before))], None
