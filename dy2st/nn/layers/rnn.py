"""Recurrent layers: a cell run over a sequence, in one or both directions, in one or several layers.

The sequence is run through by an ordinary Python loop, so under `to_static` it becomes one loop of the Program, for
every length.
"""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, zeros_like
from dy2st.functions.shape.manipulation import flip, transpose
from dy2st.ir.context import current
from dy2st.nn.composite_layer import composite_layer
from dy2st.nn.functional.dropping import dropout as drop
from dy2st.nn.layer import Layer
from dy2st.nn.layers.rnn_cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from dy2st.runtime.eager.tensor import Tensor


class RNN(Layer):
    """Run a cell over a sequence [batch, time, features] ([time, batch, features] with `time_major`).

    Called with (inputs, initial_states=None, sequence_length=None), returns (outputs, final states). Where a sequence
    is over, by its length, its state stays as it is. With `is_reverse` the last step is the first.

    >>> import dy2st as paddle
    >>> rnn = paddle.nn.RNN(paddle.nn.GRUCell(3, 5))
    >>> outputs, state = rnn(paddle.ones([2, 7, 3]))
    >>> outputs.shape, state.shape
    ([2, 7, 5], [2, 5])
    """

    def __init__(self, cell: RNNCellBase, is_reverse: bool = False, time_major: bool = False):
        super().__init__(dtype=None)
        self.cell, self.is_reverse, self.time_major = _checked_cell(cell), is_reverse, time_major

    @composite_layer
    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None, **keywords: Any
    ) -> tuple[Tensor, Any]:
        steps = _by_time(inputs, self.time_major, "RNN")
        outputs, states = run_cell(self.cell, steps, initial_states, sequence_length, self.is_reverse, keywords)
        return _by_batch(outputs, self.time_major), states


class BiRNN(Layer):
    """Run one cell forwards and another backwards over a sequence; their outputs stand beside each other.

    States, initial and final, are the pair (forwards, backwards).
    """

    def __init__(self, cell_fw: RNNCellBase, cell_bw: RNNCellBase, time_major: bool = False):
        super().__init__(dtype=None)
        self.cell_fw, self.cell_bw, self.time_major = _checked_cell(cell_fw), _checked_cell(cell_bw), time_major

    @composite_layer
    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None, **keywords: Any
    ) -> tuple[Tensor, Any]:
        steps = _by_time(inputs, self.time_major, "BiRNN")
        first, second = (None, None) if initial_states is None else initial_states
        there, state_fw = run_cell(self.cell_fw, steps, first, sequence_length, False, keywords)
        back, state_bw = run_cell(self.cell_bw, steps, second, sequence_length, True, keywords)
        return _by_batch(concat([there, back], -1), self.time_major), (state_fw, state_bw)


def run_cell(
    cell: Any, steps: Tensor, states: Any, lengths: Any, reverse: bool, keywords: dict[str, Any]
) -> tuple[Tensor, Any]:
    """Return the outputs [time, batch, ...] of a cell over `steps` [time, batch, features], and its last states."""
    if isinstance(steps.shape[0], int) and steps.shape[0] == 0:
        raise ValueError(f"{type(cell).__name__}: a sequence needs at least one step, not the shape {steps.shape}")
    states = cell.get_initial_states(steps, batch_dim_idx=1) if states is None else _as_tuples(states)
    lengths = None if lengths is None else tensor(lengths, "sequence_length")
    trace = current().trace
    run = scan if trace is None else trace.convert(scan)
    return run(cell, steps, states, lengths, reverse, keywords)


def scan(
    cell: Any, steps: Any, states: Any, lengths: Any, reverse: bool, keywords: dict[str, Any]
) -> tuple[Tensor, Any]:
    """Run through the steps, first to last or last to first; converted with the code that calls it."""
    count = steps.shape[0]
    outputs = []
    for turn in range(count):
        at = count - 1 - turn if reverse else turn
        out, after = cell(steps[at], states, **keywords)
        states = after if lengths is None else _unless_over(lengths > at, after, states)
        outputs.append(out)
    made = stack(outputs)
    return flip(made, 0) if reverse else made, states


scan.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _unless_over(runs: Tensor, after: Any, before: Any) -> Any:
    """Return the states after a step where the sequence still runs, those before it where it is over."""
    if isinstance(before, tuple):
        return tuple(_unless_over(runs, a, b) for a, b in zip(after, before, strict=True))
    return where(runs.reshape([-1, *[1] * (before.ndim - 1)]), after, before)


def _as_tuples(states: Any) -> Any:
    return tuple(map(_as_tuples, states)) if isinstance(states, (list, tuple)) else states


def _checked_cell(cell: Any) -> Any:
    if not isinstance(cell, Layer) or not hasattr(cell, "get_initial_states"):
        raise TypeError(f"a recurrent layer needs a cell such as GRUCell, not {type(cell).__name__}")
    return cell


def _by_time(inputs: Any, time_major: bool, name: str) -> Tensor:
    inputs = tensor(inputs, name)
    if inputs.ndim < 3:
        raise ValueError(f"{name} needs a batch of sequences of vectors (3 axes), not the shape {inputs.shape}")
    return inputs if time_major else transpose(inputs, [1, 0, *range(2, inputs.ndim)])


def _by_batch(outputs: Tensor, time_major: bool) -> Tensor:
    return outputs if time_major else transpose(outputs, [1, 0, *range(2, outputs.ndim)])


class _Stacked(Layer):
    """Several recurrent layers, each over the outputs of the one below it."""

    cell: Any

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int, direction: str, time_major: bool, dropout: float,
        width: int | None = None, **options: Any,
    ):  # fmt: skip
        super().__init__(dtype=None)
        name = type(self).__name__
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(f"{name}: direction must be 'forward' or 'bidirect', not {direction!r}")
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(f"{name}: num_layers must be a positive int, not {num_layers!r}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, float(dropout)
        self.num_directions = 1 if direction == "forward" else 2
        for layer in range(num_layers):
            size = input_size if layer == 0 else self.num_directions * (width or hidden_size)
            cells = [type(self).cell(size, hidden_size, **options) for _ in range(self.num_directions)]
            run = RNN(cells[0], time_major=True) if len(cells) == 1 else BiRNN(cells[0], cells[1], True)
            self.add_sublayer(str(layer), run)
            self._name_parameters(layer, cells)

    def _name_parameters(self, layer: int, cells: list[Any]) -> None:
        """Give the parameters of a layer their second names, such as weight_ih_l0_reverse; a projection has none."""
        for cell, end in zip(cells, ("", "_reverse"), strict=False):
            for name, parameter in cell._parameters.items():
                if parameter is not None and name != "weight_ho":
                    self.add_parameter(f"{name}_l{layer}{end}", parameter)

    @composite_layer
    def forward(self, inputs: Tensor, initial_states: Any = None, sequence_length: Any = None) -> tuple[Tensor, Any]:
        x = _by_time(inputs, self.time_major, type(self).__name__)
        runs = None if sequence_length is None else _running(x, tensor(sequence_length, "sequence_length"))
        finals: list[Any] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = drop(x, self.dropout, training=self.training)
            states = None if initial_states is None else self._states_of(layer, initial_states)
            x, final = self._sub_layers[str(layer)](x, states, sequence_length)
            if runs is not None:
                x = where(runs, x, zeros_like(x))
            finals += [final] if self.num_directions == 1 else list(final)
        if isinstance(finals[0], tuple):
            return _by_batch(x, self.time_major), tuple(stack(list(parts)) for parts in zip(*finals, strict=True))
        return _by_batch(x, self.time_major), stack(finals)

    def _states_of(self, layer: int, initial: Any) -> Any:
        """Return the states of one layer from tensors whose first axis counts layers and directions."""
        wanted = self.num_layers * self.num_directions
        several = isinstance(initial, (list, tuple))
        if several != isinstance(self._first_cell().state_shape[0], tuple):
            raise TypeError(f"{type(self).__name__}: the initial states are a {'tensor' if several else 'pair (h, c)'}")
        for t in initial if several else [initial]:
            if isinstance(t.shape[0], int) and t.shape[0] != wanted:
                raise ValueError(f"{type(self).__name__}: initial states have {wanted} rows, not shape {t.shape}")
        at = [layer * self.num_directions + d for d in range(self.num_directions)]
        found = [tuple(t[i] for t in initial) if several else initial[i] for i in at]
        return found[0] if self.num_directions == 1 else tuple(found)

    def _first_cell(self) -> Any:
        first: Any = self._sub_layers["0"]
        return first.cell if self.num_directions == 1 else first.cell_fw

    def extra_repr(self) -> str:
        more = f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        return f"{self.input_size}, {self.hidden_size}{more}{', time_major=True' if self.time_major else ''}"


def _running(steps: Tensor, lengths: Tensor) -> Tensor:
    """Return bools [time, batch, 1] that say which steps of which sequence are not yet over."""
    turns = cast_to(arange(steps.shape[0]), lengths.dtype).reshape([-1, 1, 1])
    return turns < lengths.reshape([1, -1, 1])


class SimpleRNN(_Stacked):
    """Layers of `SimpleRNNCell`; states are [num_layers * num_directions, batch, hidden].

    Outputs are zero where a sequence is over.
    """

    cell = SimpleRNNCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, activation: str = "tanh", weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            input_size, hidden_size, num_layers, direction, time_major, dropout, activation=activation,
            weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
            bias_hh_attr=bias_hh_attr,
        )  # fmt: skip


class LSTM(_Stacked):
    """Layers of `LSTMCell`; states are the pair (h, c), each [num_layers * num_directions, batch, hidden].

    >>> import dy2st as paddle
    >>> lstm = paddle.nn.LSTM(3, 5, num_layers=2, direction="bidirect")
    >>> outputs, (h, c) = lstm(paddle.ones([2, 7, 3]))
    >>> outputs.shape, h.shape, c.shape
    ([2, 7, 10], [4, 2, 5], [4, 2, 5])
    """

    cell = LSTMCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: int = 0, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            input_size, hidden_size, num_layers, direction, time_major, dropout, width=proj_size or None,
            weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
            bias_hh_attr=bias_hh_attr, proj_size=proj_size,
        )  # fmt: skip


class GRU(_Stacked):
    """Layers of `GRUCell`; states are [num_layers * num_directions, batch, hidden]."""

    cell = GRUCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr=weight_ih_attr,
            weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr, bias_hh_attr=bias_hh_attr,
        )  # fmt: skip
