"""Recurrent cells and layers: formulas in NumPy, lengths, directions, one Program for every length."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn

F64 = "float64"


@pytest.fixture(autouse=True)
def double():
    paddle.set_default_dtype(F64)
    yield
    paddle.set_default_dtype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def parts(cell):
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(cell, n).numpy() if getattr(cell, n) is not None else 0.0 for n in names]


def simple(cell, x, h):
    w, u, b, c = parts(cell)
    h = np.tanh(x @ w.T + b + h @ u.T + c)
    return h, h


def gru(cell, x, h):
    w, u, b, c = parts(cell)
    xr, xz, xc = np.split(x @ w.T + b, 3, -1)
    hr, hz, hc = np.split(h @ u.T + c, 3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    new = np.tanh(xc + r * hc)
    h = z * h + (1 - z) * new
    return h, h


def lstm(cell, x, state):
    w, u, b, bh = parts(cell)
    h, c = state
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + bh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    if cell.proj_size:
        h = h @ cell.weight_ho.numpy()
    return h, (h, c)


def keep(runs, new, old):
    return tuple(keep(runs, n, o) for n, o in zip(new, old)) if isinstance(new, tuple) else np.where(runs, new, old)


def run(step, cell, x, state, lengths, reverse=False):
    """Return outputs [batch, time, ...] and the last state."""
    outs = [None] * x.shape[1]
    for t in reversed(range(x.shape[1])) if reverse else range(x.shape[1]):
        out, new = step(cell, x[:, t], state)
        state = keep((t < lengths)[:, None], new, state)
        outs[t] = out
    return np.stack(outs, 1), state


KINDS = {
    "SimpleRNN": (nn.SimpleRNN, nn.SimpleRNNCell, simple, {}),
    "GRU": (nn.GRU, nn.GRUCell, gru, {}),
    "LSTM": (nn.LSTM, nn.LSTMCell, lstm, {}),
    "projected LSTM": (nn.LSTM, nn.LSTMCell, lstm, {"proj_size": 2}),
}


def zero_state(kind, rows, width=4):
    if kind == "projected LSTM":
        return np.zeros((rows, 2)), np.zeros((rows, width))
    return (np.zeros((rows, width)),) * 2 if kind == "LSTM" else np.zeros((rows, width))


def arrays(x):
    return [a for part in x for a in arrays(part)] if isinstance(x, (tuple, list)) else [np.asarray(x)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.proves("nn.SimpleRNNCell nn.LSTMCell nn.GRUCell")
def test_cell_is_its_formula(kind, rng):
    _, make, step, options = KINDS[kind]
    cell = make(3, 4, **options)
    x = rng.normal(size=(5, 3))
    out, state = cell(paddle.to_tensor(x))
    want, want_state = step(cell, x, zero_state(kind, 5))
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-9)
    for a, b in zip(arrays(state), arrays(want_state)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("lengths", [None, [3, 6, 1]])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.proves("nn.SimpleRNN nn.LSTM nn.GRU")
def test_two_layers_in_both_directions(kind, lengths, rng):
    make, _, step, options = KINDS[kind]
    net = make(3, 4, num_layers=2, direction="bidirect", **options)
    x = rng.normal(size=(3, 6, 3))
    steps = np.array(lengths or [6, 6, 6])
    out, state = net(paddle.to_tensor(x), sequence_length=None if lengths is None else paddle.to_tensor(lengths))
    finals = []
    for layer in (net._sub_layers["0"], net._sub_layers["1"]):
        there, one = run(step, layer.cell_fw, x, zero_state(kind, 3), steps)
        back, two = run(step, layer.cell_bw, x, zero_state(kind, 3), steps, reverse=True)
        x = np.concatenate([there, back], -1) * (np.arange(6) < steps[:, None])[..., None]
        finals += [one, two]
    np.testing.assert_allclose(out.numpy(), x, rtol=1e-8, atol=1e-12)
    want = [np.stack(p) for p in zip(*finals)] if isinstance(finals[0], tuple) else [np.stack(finals)]
    for a, b in zip(arrays(state), want):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("lengths", [None, [2, 5]])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_the_same_in_a_program(kind, lengths, rng):
    make, _, _, options = KINDS[kind]

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.net = make(3, 4, direction="bidirect", **options)

        def forward(self, x, lengths):
            out, state = self.net(x, sequence_length=lengths)
            return out.square().sum() + (state[0] if isinstance(state, tuple) else state).sum()

    net, found = Net(), []
    x = paddle.to_tensor(rng.normal(size=(2, 6, 3)), stop_gradient=False)
    lengths = None if lengths is None else paddle.to_tensor(lengths)
    for _ in range(2):
        loss = net(x, lengths)
        loss.backward()
        found.append([loss.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in net.parameters())])
        net.clear_gradients()
        x.clear_grad()
        paddle.jit.to_static(net, full_graph=True)
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_one_program_serves_every_length_and_batch():
    net = paddle.jit.to_static(nn.GRU(3, 4), full_graph=True)
    plain = nn.GRU(3, 4)
    plain.set_state_dict(net.state_dict())
    for batch, steps in ((2, 7), (1, 1), (5, 3), (2, 12)):
        x = paddle.randn([batch, steps, 3])
        np.testing.assert_allclose(net(x)[0].numpy(), plain(x)[0].numpy(), rtol=1e-9)
    assert len(net.forward.program_cache) == 1
    assert "counted_while" in str(net.forward.concrete_program.main_program)


def test_gradient_against_differences(rng):
    net = nn.LSTM(2, 3)
    x = rng.normal(size=(2, 4, 2))
    weight = net.weight_hh_l0
    (net(paddle.to_tensor(x))[0].square().sum()).backward()
    start, step = weight.numpy().copy(), 1e-6
    for at in ((0, 0), (5, 1), (11, 2)):
        ends = []
        for sign in (1, -1):
            moved = start.copy()
            moved[at] += sign * step
            weight.set_value(paddle.to_tensor(moved))
            ends.append(float(net(paddle.to_tensor(x))[0].square().sum()))
        weight.set_value(paddle.to_tensor(start))
        np.testing.assert_allclose(weight.grad.numpy()[at], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-8)


def test_initial_states_are_taken_layer_by_layer(rng):
    net = nn.LSTM(3, 4, num_layers=2)
    x = paddle.to_tensor(rng.normal(size=(2, 6, 3)))
    whole, (h, c) = net(x)
    first, state = net(x[:, :2])
    rest, (h2, c2) = net(x[:, 2:], state)
    np.testing.assert_allclose(paddle.concat([first, rest], 1).numpy(), whole.numpy(), rtol=1e-9)
    np.testing.assert_allclose(h2.numpy(), h.numpy(), rtol=1e-9)
    np.testing.assert_allclose(c2.numpy(), c.numpy(), rtol=1e-9)


def test_time_major_swaps_the_first_axes(rng):
    net, other = nn.SimpleRNN(3, 4, time_major=True, activation="relu"), nn.SimpleRNN(3, 4, activation="relu")
    other.set_state_dict(net.state_dict())
    x = rng.normal(size=(5, 2, 3))
    out = net(paddle.to_tensor(x))[0].numpy()
    np.testing.assert_allclose(out, other(paddle.to_tensor(x.swapaxes(0, 1)))[0].numpy().swapaxes(0, 1), rtol=1e-9)


def test_dropout_between_layers_only_in_training(rng):
    net = nn.GRU(3, 4, num_layers=2, dropout=0.5)
    x = paddle.to_tensor(rng.normal(size=(2, 6, 3)))
    assert (net(x)[0].numpy() != net(x)[0].numpy()).any()
    net.eval()
    np.testing.assert_array_equal(net(x)[0].numpy(), net(x)[0].numpy())


def test_parameters_have_both_names_and_are_listed_once():
    net = nn.LSTM(3, 4, direction="bidirect", bias_hh_attr=False)
    names = [name for name, _ in net.named_parameters()]
    assert names == [
        *(f"{n}_l0" for n in ("weight_ih", "weight_hh", "bias_ih")),
        *(f"{n}_l0_reverse" for n in ("weight_ih", "weight_hh", "bias_ih")),
    ]
    assert "0.cell_fw.weight_ih" in net.state_dict()


def test_weights_start_uniform_by_the_hidden_size():
    values = nn.GRU(3, 25).weight_ih_l0.numpy()
    assert 0.15 < np.abs(values).max() <= 0.2


class Counter(nn.RNNCellBase):
    """Counts its steps, as a cell of a user's own."""

    @property
    def state_shape(self):
        return (1,)

    def forward(self, inputs, states, scale=1.0):
        states = states + scale
        if states.sum() > 5:
            states = states * 10
        return inputs.sum(-1, keepdim=True) + states, states


@pytest.mark.proves("nn.RNN nn.RNNCellBase")
def test_a_cell_of_ones_own_with_control_flow(rng):
    eager, static = nn.RNN(Counter(), is_reverse=True), nn.RNN(Counter(), is_reverse=True)
    paddle.jit.to_static(static, full_graph=True)
    x = paddle.to_tensor(rng.normal(size=(2, 7, 3)))
    for a, b in zip(eager(x, scale=0.5), static(x, scale=0.5)):
        np.testing.assert_allclose(a.numpy(), b.numpy())


@pytest.mark.proves("nn.BiRNN")
def test_birnn_takes_a_pair_of_states(rng):
    net = nn.BiRNN(nn.GRUCell(3, 4), nn.GRUCell(3, 4))
    x = paddle.to_tensor(rng.normal(size=(2, 5, 3)))
    states = paddle.ones([2, 4]), paddle.zeros([2, 4])
    out, (one, two) = net(x, states)
    assert (out.shape, one.shape, two.shape) == ([2, 5, 8], [2, 4], [2, 4])
    np.testing.assert_allclose(out[:, -1, :4].numpy(), one.numpy())
    np.testing.assert_allclose(out[:, 0, 4:].numpy(), two.numpy())


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.GRUCell(0, 4), ValueError, "input_size must be a positive int"),
        (lambda: nn.SimpleRNNCell(3, 4, "sin"), ValueError, "activation must be 'tanh' or 'relu'"),
        (lambda: nn.LSTMCell(3, 4, proj_size=4), ValueError, "proj_size must be from 0 to below hidden_size"),
        (lambda: nn.LSTM(3, 4, direction="back"), ValueError, "direction must be 'forward' or 'bidirect'"),
        (lambda: nn.LSTM(3, 4, num_layers=0), ValueError, "num_layers must be a positive int"),
        (lambda: nn.GRU(3, 4)(paddle.ones([2, 3])), ValueError, "needs a batch of sequences of vectors"),
        (lambda: nn.GRU(3, 4)(paddle.ones([2, 0, 3])), ValueError, "a sequence needs at least one step"),
        (lambda: nn.GRU(3, 4)(paddle.ones([2, 5, 2])), ValueError, "has 2 features, not 3"),
        (
            lambda: nn.GRU(3, 4)(paddle.ones([2, 5, 3]), paddle.ones([2, 2, 4])),
            ValueError,
            "initial states have 1 rows",
        ),
        (lambda: nn.LSTM(3, 4)(paddle.ones([2, 5, 3]), paddle.ones([1, 2, 4])), TypeError, r"a pair \(h, c\)"),
        (lambda: nn.GRU(3, 4)(paddle.ones([2, 5, 3]), (1, 2)), TypeError, "the initial states are a tensor"),
        (lambda: nn.RNN(nn.Linear(3, 4)), TypeError, "a recurrent layer needs a cell such as GRUCell, not Linear"),
        (lambda: nn.RNNCellBase().state_shape, NotImplementedError, "define the property `state_shape`"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()
