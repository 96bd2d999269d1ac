"""`RNN`, `GRU` and `LSTM`, one step after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.onnx.reading.runner import Node, operator

Turn = Callable[[Any, list[Any], int], list[Any]]
"""The next state from the input of a turn, the state, and the direction."""


def _over_time(node: Node, x: Any, starts: list[Any], turn: Turn) -> tuple[Any, ...]:
    """Run turns forward, backward or both; return all states, and the last ones."""
    if node.ints(4) is not None:
        raise node.fail("sequences of different lengths")
    batch_first = node.get("layout", 0)
    x = T.transpose(x, [1, 0, 2]) if batch_first else x
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[node.get("direction", "forward")]
    columns, last = [], []
    for d, backward in enumerate(ways):
        state, made = [start[d] for start in starts], []
        for i in range(x.shape[0]):
            state = turn(x[x.shape[0] - 1 - i if backward else i], state, d)
            made.append(state[0])
        columns.append(T.stack(made[::-1] if backward else made))
        last.append(state)
    outputs = T.stack(columns, 1)
    ends = [T.stack([state[k] for state in last]) for k in range(len(starts))]
    if batch_first:
        outputs, ends = T.transpose(outputs, [2, 0, 1, 3]), [T.transpose(e, [1, 0, 2]) for e in ends]
    return (outputs, *ends)


def _starts(node: Node, x: Any, r: Any, *given: Any) -> list[Any]:
    """Return the first state of each direction: what is given, or zeros."""
    shape = [r.shape[0], x.shape[0 if node.get("layout", 0) else 1], r.shape[2]]
    made = [T.zeros(shape, x.dtype) if g is None else g for g in given]
    layout = node.get("layout", 0)
    return [T.transpose(g, [1, 0, 2]) if layout and o is not None else g for g, o in zip(made, given, strict=True)]


def _refuse_functions(node: Node) -> None:
    if node.get("clip") or node.get("activations") or node.get("input_forget"):
        raise node.fail("other activations than the usual ones, or a clip")


def _halves(b: Any, d: int, w: Any) -> tuple[Any, Any]:
    """Return the biases of the input and of the state."""
    if b is None:
        zero = T.zeros([w.shape[1]], w.dtype)
        return zero, zero
    n = w.shape[1]
    return b[d][:n], b[d][n:]


@operator("RNN")
def _rnn(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    _refuse_functions(node)

    def turn(now: Any, state: list[Any], d: int) -> list[Any]:
        wb, rb = _halves(b, d, w)
        return [T.tanh(T.matmul(now, w[d], False, True) + wb + T.matmul(state[0], r[d], False, True) + rb)]

    return _over_time(node, x, _starts(node, x, r, h), turn)


@operator("GRU")
def _gru(node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    _refuse_functions(node)
    after = node.get("linear_before_reset", 0)

    def turn(now: Any, state: list[Any], d: int) -> list[Any]:
        wb, rb = _halves(b, d, w)
        n = r.shape[2]
        given = T.matmul(now, w[d], False, True) + wb
        kept = T.matmul(state[0], r[d][: 2 * n], False, True) + rb[: 2 * n]
        update = F.sigmoid(given[:, :n] + kept[:, :n])
        reset = F.sigmoid(given[:, n : 2 * n] + kept[:, n:])
        if after:
            new = reset * (T.matmul(state[0], r[d][2 * n :], False, True) + rb[2 * n :])
        else:
            new = T.matmul(reset * state[0], r[d][2 * n :], False, True) + rb[2 * n :]
        return [(1 - update) * T.tanh(given[:, 2 * n :] + new) + update * state[0]]

    return _over_time(node, x, _starts(node, x, r, h), turn)


@operator("LSTM")
def _lstm(
    node: Node, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None, p: Any = None
) -> Any:
    _refuse_functions(node)

    def turn(now: Any, state: list[Any], d: int) -> list[Any]:
        wb, rb = _halves(b, d, w)
        n, (hidden, cell) = r.shape[2], state
        gates = T.matmul(now, w[d], False, True) + wb + T.matmul(hidden, r[d], False, True) + rb
        i, o, f, new = (gates[:, k * n : (k + 1) * n] for k in range(4))
        if p is not None:
            i, f = i + p[d][:n] * cell, f + p[d][2 * n :] * cell
        cell = F.sigmoid(f) * cell + F.sigmoid(i) * T.tanh(new)
        o = o if p is None else o + p[d][n : 2 * n] * cell
        return [F.sigmoid(o) * T.tanh(cell), cell]

    return _over_time(node, x, _starts(node, x, r, h, c), turn)
