"""Recurrent cells: one step from an input and a state to an output and the next state."""

from __future__ import annotations

import math
from typing import Any

from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.shape.concat_split import split
from dy2st.functions.shape.creation import full
from dy2st.nn.composite_layer import composite_layer
from dy2st.nn.functional.activation import relu, sigmoid, tanh
from dy2st.nn.initializer.distributions import Uniform
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class RNNCellBase(Layer):
    """Base of the cells: `forward(inputs, states)` returns (outputs, new states), of the shape `state_shape`."""

    @property
    def state_shape(self) -> Any:
        """The shape of one state without the batch axis; a tuple of them where there are several."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state: define the property `state_shape`")

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """Return states filled with a number, as many rows as axis `batch_dim_idx` of the first of `batch_ref` has."""
        ref = batch_ref
        while isinstance(ref, (list, tuple)):
            ref = ref[0]
        shape = self.state_shape if shape is None else shape
        if shape and isinstance(shape[0], (list, tuple)):
            return tuple(self.get_initial_states(ref, one, dtype, init_value, batch_dim_idx) for one in shape)
        return full([ref.shape[batch_dim_idx], *shape], init_value, ref.dtype if dtype is None else dtype)


class _GatedCell(RNNCellBase):
    """Weights for `gates` blocks of rows: weight_ih [gates * hidden, input], weight_hh [gates * hidden, hidden]."""

    gates: int

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any, weight_hh_attr: Any, bias_ih_attr: Any,
        bias_hh_attr: Any, state_size: int | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        for what, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"{type(self).__name__}: {what} must be a positive int, not {value!r}")
        limit = 1.0 / math.sqrt(hidden_size)
        spread, rows = Uniform(-limit, limit), self.gates * hidden_size
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_ih = self.create_parameter([rows, input_size], weight_ih_attr, default_initializer=spread)
        columns = state_size or hidden_size
        self.weight_hh = self.create_parameter([rows, columns], weight_hh_attr, default_initializer=spread)
        self.bias_ih = self.create_parameter([rows], bias_ih_attr, is_bias=True, default_initializer=spread)
        self.bias_hh = self.create_parameter([rows], bias_hh_attr, is_bias=True, default_initializer=spread)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)

    def _from_input(self, inputs: Tensor) -> Tensor:
        given = inputs.shape[-1]
        if isinstance(given, int) and given != self.input_size:
            raise ValueError(
                f"{type(self).__name__}: the input (shape {inputs.shape}) has {given} features, not {self.input_size}"
            )
        return _affine(inputs, self.weight_ih, self.bias_ih)

    def _from_state(self, state: Tensor) -> Tensor:
        return _affine(state, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_GatedCell):
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh), the activation "tanh" or "relu" (Elman, 1990).

    >>> import dy2st as paddle
    >>> cell = paddle.nn.SimpleRNNCell(3, 5)
    >>> out, state = cell(paddle.ones([2, 3]))
    >>> out.shape
    [2, 5]
    """

    gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, activation: str = "tanh", weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ):  # fmt: skip
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNNCell: activation must be 'tanh' or 'relu', not {activation!r}")
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self.activation = activation

    @composite_layer
    def forward(self, inputs: Tensor, states: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if states is None:
            states = self.get_initial_states(inputs)
        total = self._from_input(inputs) + self._from_state(states)  # type: ignore[arg-type]
        h = tanh(total) if self.activation == "tanh" else relu(total)
        return h, h


class LSTMCell(_GatedCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; with a forget gate, Gers et al., 2000).

    i, f, g, o are the four blocks of rows: c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c').
    With `proj_size`, h' is multiplied by a [hidden, proj_size] matrix (Sak et al., 2014).
    """

    gates = 4

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, proj_size: int = 0, name: str | None = None,
    ):  # fmt: skip
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ValueError(f"LSTMCell: proj_size must be from 0 to below hidden_size, not {proj_size}")
        super().__init__(
            input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, proj_size or None
        )  # fmt: skip
        self.proj_size = proj_size
        if proj_size:
            limit = 1.0 / math.sqrt(hidden_size)
            self.weight_ho = self.create_parameter(
                [hidden_size, proj_size], weight_hh_attr, default_initializer=Uniform(-limit, limit)
            )

    @composite_layer
    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if states is None:
            states = self.get_initial_states(inputs)
        h, c = states
        i, f, g, o = split(self._from_input(inputs) + self._from_state(h), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        if self.proj_size:
            h = matmul(h, self.weight_ho)
        return h, (h, c)

    @property
    def state_shape(self) -> Any:
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(_GatedCell):
    """A gated recurrent unit (Cho et al., 2014).

    r, z, c are the three blocks of rows: r and z through sigmoid; c = tanh(x_c + r * h_c); h' = z h + (1 - z) c.
    """

    gates = 3

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None, weight_hh_attr: Any = None,
        bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

    @composite_layer
    def forward(self, inputs: Tensor, states: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if states is None:
            states = self.get_initial_states(inputs)
        x_r, x_z, x_c = split(self._from_input(inputs), 3, -1)
        h_r, h_z, h_c = split(self._from_state(states), 3, -1)  # type: ignore[arg-type]
        r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
        c = tanh(x_c + r * h_c)
        h = (states - c) * z + c  # type: ignore[operator]
        return h, h


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = matmul(x, weight, transpose_y=True)
    return out if bias is None else out + bias
