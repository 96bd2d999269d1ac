"""Library functions and layers of several ops run as Programs in eager mode: nothing shows but the time."""

import os
import subprocess
import sys
import threading
import types
from unittest import mock

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn
from dy2st.ir.context import current
from dy2st.nn import layers

T = paddle.to_tensor


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Let the second call of each kind be a Program."""
    monkeypatch.setattr(current().process, "programs_from", 1)


def op_by_op(function):
    """Return what a function gives where nothing is put together."""
    process = current().process
    before, process.to_static_enabled = process.to_static_enabled, False
    try:
        return function()
    finally:
        process.to_static_enabled = before


def programs_of(function):
    """Return the Programs that stand for calls of a composite."""
    return [x for x in function.__dy2st_kinds__._found.values() if x.__class__ is not int]


def of(rng, *shape):
    return T(rng.normal(size=shape).astype("float32"), stop_gradient=False)


def positive(rng, *shape):
    return T(rng.uniform(0.1, 0.9, shape).astype("float32"), stop_gradient=False)


def signs(rng, *shape):
    return T(np.where(rng.uniform(size=shape) < 0.5, -1.0, 1.0).astype("float32"))


def classes(rng, *shape, below=4):
    return T(rng.integers(0, below, shape))


FUNCTIONS = {
    **dict.fromkeys(
        (
            "celu",
            "elu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "mish",
            "relu6",
            "selu",
            "softshrink",
            "softsign",
            "tanhshrink",
            "thresholded_relu",
        ),
        lambda g, n: (of(g, n, 4),),
    ),
    "mse_loss": lambda g, n: (of(g, n, 4), of(g, n, 4)),
    "square_error_cost": lambda g, n: (of(g, n, 4), of(g, n, 4)),
    "l1_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), "sum"),
    "smooth_l1_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), "none", 0.7),
    "binary_cross_entropy": lambda g, n: (positive(g, n, 4), positive(g, n, 4)),
    "binary_cross_entropy_with_logits": lambda g, n: (of(g, n, 4), positive(g, n, 4), None, "mean", positive(g, 4)),
    "sigmoid_focal_loss": lambda g, n: (of(g, n, 4), positive(g, n, 4)),
    "kl_div": lambda g, n: (of(g, n, 4), positive(g, n, 4), "batchmean"),
    "log_loss": lambda g, n: (positive(g, n, 1), positive(g, n, 1)),
    "soft_margin_loss": lambda g, n: (of(g, n, 4), signs(g, n, 4)),
    "poisson_nll_loss": lambda g, n: (of(g, n, 4), positive(g, n, 4), True, True),
    "gaussian_nll_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), positive(g, n, 4), True),
    "dice_loss": lambda g, n: (positive(g, n, 3, 4), classes(g, n, 3, 1)),
    "cross_entropy": lambda g, n: (of(g, n, 4), classes(g, n), positive(g, 4), 2, "mean", False, -1, True, 0.1),
    "softmax_with_cross_entropy": lambda g, n: (of(g, n, 4), classes(g, n, 1)),
    "nll_loss": lambda g, n: (of(g, n, 4), classes(g, n), positive(g, 4)),
    "label_smooth": lambda g, n: (positive(g, n, 4),),
    "cosine_similarity": lambda g, n: (of(g, n, 4), of(g, n, 4), -1),
    "pairwise_distance": lambda g, n: (of(g, n, 4), of(g, n, 4), 3),
    "cosine_embedding_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), classes(g, n, below=2) * 2 - 1),
    "hinge_embedding_loss": lambda g, n: (of(g, n, 4), signs(g, n, 4)),
    "margin_ranking_loss": lambda g, n: (of(g, n), of(g, n), signs(g, n), 0.5),
    "triplet_margin_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), of(g, n, 4), 1.0, 2.0, 1e-6, True),
    "npair_loss": lambda g, n: (of(g, n, 4), of(g, n, 4), classes(g, n)),
    "multi_label_soft_margin_loss": lambda g, n: (of(g, n, 4), classes(g, n, 4, below=2).astype("float32")),
    "multi_margin_loss": lambda g, n: (of(g, n, 4), classes(g, n), 2),
    "multi_label_margin_loss": lambda g, n: (of(g, n, 4), T(np.tile([[2, 0, -1, -1]], (n, 1)))),
    "rms_norm": lambda g, n: (of(g, n, 4), [4], of(g, 4)),
    "layer_norm": lambda g, n: (of(g, n, 3, 4), [3, 4], of(g, 12), of(g, 12)),
    "group_norm": lambda g, n: (of(g, n, 4, 3, 2), 2, 1e-5, of(g, 4), of(g, 4)),
    "instance_norm": lambda g, n: (of(g, n, 4, 3, 2), None, None, of(g, 4), of(g, 4)),
    "local_response_norm": lambda g, n: (of(g, n, 4, 3), 3, 0.1),
    "normalize": lambda g, n: (of(g, n, 4),),
    "prelu": lambda g, n: (of(g, n, 4), of(g, 4)),
    "maxout": lambda g, n: (of(g, n, 4, 3), 2),
    "glu": lambda g, n: (of(g, n, 4),),
    "swiglu": lambda g, n: (of(g, n, 4),),
    "scaled_dot_product_attention": lambda g, n: (*(of(g, 2, n, 2, 4) for _ in range(3)), None, 0.3, True),
    "conv1d": lambda g, n: (of(g, n, 3, 5), of(g, 2, 3, 3), of(g, 2), 1, "same"),
    "conv2d": lambda g, n: (of(g, n, 3, 5, 6), of(g, 2, 3, 3, 2), of(g, 2), 2, 1),
    "conv3d": lambda g, n: (of(g, n, 2, 3, 4, 3), of(g, 2, 2, 2, 2, 2), of(g, 2)),
    "conv1d_transpose": lambda g, n: (of(g, n, 3, 5), of(g, 3, 2, 3), of(g, 2), 2),
    "conv2d_transpose": lambda g, n: (of(g, n, 3, 4, 3), of(g, 3, 2, 2, 2), of(g, 2), 1, 1),
    "conv3d_transpose": lambda g, n: (of(g, n, 2, 2, 3, 2), of(g, 2, 2, 2, 2, 2)),
    "linear": lambda g, n: (of(g, n, 3, 4), of(g, 4, 2), of(g, 2)),
    "bilinear": lambda g, n: (of(g, n, 3), of(g, n, 4), of(g, 2, 3, 4), of(g, 1, 2)),
}
LAYERS = {
    "LSTMCell": (lambda: nn.LSTMCell(3, 4, proj_size=2), lambda g, n: (of(g, n, 3), (of(g, n, 2), of(g, n, 4)))),
    "GRUCell": (lambda: nn.GRUCell(3, 4), lambda g, n: (of(g, n, 3),)),
    "SimpleRNNCell": (lambda: nn.SimpleRNNCell(3, 4, "relu"), lambda g, n: (of(g, n, 3), of(g, n, 4))),
    "RNN": (lambda: nn.RNN(nn.GRUCell(3, 4), is_reverse=True), lambda g, n: (of(g, 2, n, 3),)),
    "BiRNN": (lambda: nn.BiRNN(nn.SimpleRNNCell(3, 4), nn.LSTMCell(3, 4)), lambda g, n: (of(g, 2, n, 3),)),
    "LSTM": (
        lambda: nn.LSTM(3, 4, 2, "bidirect", dropout=0.3),
        lambda g, n: (of(g, 3, n, 3), None, T(g.integers(1, n + 1, 3))),
    ),
    "GRU": (lambda: nn.GRU(3, 4, 2, time_major=True), lambda g, n: (of(g, n, 2, 3), of(g, 2, 2, 4))),
    "SimpleRNN": (lambda: nn.SimpleRNN(3, 4), lambda g, n: (of(g, 2, n, 3),)),
    "MultiHeadAttention": (
        lambda: nn.MultiHeadAttention(4, 2, 0.2, need_weights=True, bias_attr=False),
        lambda g, n: (of(g, 2, n, 4), of(g, 2, 3, 4), None, of(g, n, 3)),
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", normalize_before=True),
        lambda g, n: (of(g, 2, n, 4),),
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 8),
        lambda g, n: (of(g, 2, n, 4), of(g, 2, 3, 4)),
    ),
}
SHAPES = (3, 5, 4, 5, 1)


def parts(x):
    return [x] if isinstance(x, paddle.Tensor) else [t for one in x for t in parts(one)]


def outcomes(call, samples, parameters, grad, order):
    """Return the values of calls, their gradients to an order, and where the generator came to."""
    paddle.seed(5)
    found = []
    for args in samples:
        with paddle.set_grad_enabled(grad):
            outs = parts(call(*args))
        found += [x.numpy() for x in outs]
        assert [x.stop_gradient for x in outs] == [not grad or x.dtype.name != "float32" for x in outs]
        if not grad:
            continue
        leaves = [x for x in parts([a for a in args if isinstance(a, (paddle.Tensor, tuple))]) if not x.stop_gradient]
        leaves += parameters
        total = sum((x * x).sum() for x in outs)
        grads = [x for x in paddle.grad(total, leaves, create_graph=order == 2, allow_unused=True) if x is not None]
        found += [x.numpy() for x in grads]
        if order == 2:
            again = sum((x * x).sum() for x in grads if not x.stop_gradient)
            found += [x.numpy() for x in paddle.grad(again, leaves, allow_unused=True) if x is not None]
    return [*found, np.array(paddle.get_rng_state()[0])]


def same(found, want):
    size = max(1.0, *(np.abs(x).max(initial=0.0) for x in want[:-1]))
    for a, b in zip(found, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * size)


WAYS = pytest.mark.parametrize(("grad", "order"), [(False, 1), (True, 1), (True, 2)])


@WAYS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_what_its_ops_give(name, grad, order, rng):
    function = getattr(F, name)
    samples = [FUNCTIONS[name](rng, n) for n in SHAPES]
    want = op_by_op(lambda: outcomes(function, samples, [], grad, order))
    same(outcomes(function, samples, [], grad, order), want)
    assert any(programs_of(function))


@WAYS
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_a_layer_gives_what_its_ops_give(name, training, grad, order, rng):
    make, arguments = LAYERS[name]
    layer = make().train(training)
    samples = [arguments(rng, n) for n in SHAPES]
    want = op_by_op(lambda: outcomes(layer, samples, layer.parameters(), grad, order))
    same(outcomes(layer, samples, layer.parameters(), grad, order), want)
    assert any(programs_of(type(layer).forward))


def test_everything_that_is_declared_is_tested():
    declared = {name for name, f in vars(F).items() if hasattr(f, "__dy2st_kinds__") and name[-1] != "_"}
    assert declared == set(FUNCTIONS)
    modules = [m for m in vars(layers).values() if isinstance(m, types.ModuleType)]
    kinds = [k for m in modules for k in vars(m).values() if isinstance(k, type) and issubclass(k, nn.Layer)]
    kinds = [k for k in kinds if not k.__name__.startswith("_")]
    assert {k.__name__ for k in kinds if hasattr(k.forward, "__dy2st_kinds__")} == set(LAYERS)


def test_what_is_seen_twice_is_no_program_by_default(monkeypatch, rng):
    monkeypatch.setattr(current().process, "programs_from", 2)
    x = of(rng, 2, 3, 4, 5, 6)
    before = len(programs_of(F.mse_loss))
    for programs in (0, 0, 1, 1):
        F.mse_loss(x, x)
        assert len(programs_of(F.mse_loss)) == before + programs


_FIVE_CALLS = """
import dy2st as paddle
from dy2st import nn
import dy2st.nn.functional as F

paddle.seed(1)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
x = paddle.randn([1, 4])
found = set()
for _ in range(5):
    logits = net(x)
    net.clear_gradients()
    F.cross_entropy(logits, paddle.to_tensor([1])).backward()
    found.add((F.softmax(logits).numpy().tobytes(), *(p.grad.numpy().tobytes() for p in net.parameters())))
assert len(found) == 1
"""


def test_five_calls_of_a_model_have_the_same_bits():
    for backend in ("auto", "native"):
        environment = {**os.environ, "DY2ST_BACKEND": backend}
        subprocess.run([sys.executable, "-c", _FIVE_CALLS], env=environment, check=True, timeout=120)


def test_what_is_inside_of_a_composite_does_not_count(monkeypatch, rng):
    monkeypatch.setattr(current().process, "programs_from", 2)
    lstm, before = nn.LSTM(3, 9), list(nn.LSTMCell.forward.__dy2st_kinds__._found)
    for _ in range(4):
        lstm(of(rng, 2, 5, 3))
    assert list(nn.LSTMCell.forward.__dy2st_kinds__._found) == before


def test_layers_with_the_same_settings_share_a_program(rng):
    cells = [nn.GRUCell(3, 7), nn.GRUCell(3, 7), nn.GRUCell(3, 7)]
    before = len(programs_of(nn.GRUCell.forward))
    found = [cell(of(rng, 2, 3))[0] for cell in cells * 3]
    assert len(programs_of(nn.GRUCell.forward)) == before + 1
    found[-1].sum().backward()
    assert cells[2].weight_hh.grad is not None
    assert cells[1].weight_hh.grad is None


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((T([[1.0, 2.0]]), T([5])), ValueError, "label 5 is not one of 2"),
        ((T([[1.0, 2.0]]), T([[[1]]])), ValueError, "do not fit an input of shape"),
        ((T([[1.0, 2.0]]), T([1]), None, -100, "middle"), ValueError, "reduction"),
    ],
)
def test_errors_are_those_of_the_function(args, error, text):
    for _ in range(4):
        F.cross_entropy(T([[1.0, 2.0]]), T([1]))
        with pytest.raises(error, match=text) as raised:
            F.cross_entropy(*args)
        with pytest.raises(error) as want:
            op_by_op(lambda: F.cross_entropy(*args))
        assert str(raised.value) == str(want.value)


def test_settings_that_are_set_anew_count(rng):
    layer = nn.MultiHeadAttention(4, 2)
    x = of(rng, 2, 3, 4)
    for change in (lambda: None, lambda: setattr(layer, "dropout", 0.5), layer.eval, layer.train):
        change()
        for _ in range(3):
            paddle.seed(1)
            found = layer(x)
            paddle.seed(1)
            np.testing.assert_array_equal(found.numpy(), op_by_op(lambda: layer(x)).numpy())


def test_parameters_and_sublayers_that_are_set_anew_count(rng):
    layer, x = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), of(rng, 2, 3, 4)
    for _ in range(3):
        layer(x)
    layer.linear1.weight = paddle.create_parameter([4, 8], "float32")
    np.testing.assert_array_equal(layer(x).numpy(), op_by_op(lambda: layer(x)).numpy())
    layer.norm1 = nn.Identity()
    np.testing.assert_array_equal(layer(x).numpy(), op_by_op(lambda: layer(x)).numpy())
    layer.linear2.weight = nn.Parameter(layer.linear2.weight.astype("float64"))
    np.testing.assert_array_equal(layer(x).numpy(), op_by_op(lambda: layer(x)).numpy())
    layer.self_attn.k_proj.weight = layer.self_attn.q_proj.weight
    for _ in range(3):
        np.testing.assert_array_equal(layer(x).numpy(), op_by_op(lambda: layer(x)).numpy())


def test_what_is_the_user_s_runs_as_it_stands(rng, monkeypatch):
    calls = []

    class Own(nn.LSTMCell):
        def forward(self, inputs, states=None):
            calls.append("own")
            return super().forward(inputs, states)

    x, net = of(rng, 2, 3, 4), nn.TransformerEncoderLayer(4, 2, 8)
    cell, rnn = Own(4, 4), nn.RNN(Own(4, 4))
    handles = []
    for turn in range(4):
        if turn == 2:
            handles.append(net.self_attn.q_proj.register_forward_post_hook(lambda *_: calls.append("hook")))
        net(x)
        cell(x[0])
        rnn(x)
    assert calls.count("own") == 4 * (1 + 3)
    assert calls.count("hook") == 2
    handles[0].remove()
    net(x)
    assert calls.count("hook") == 2
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: calls.append("patched") or F.linear(x, self.weight))
    net(x)
    assert calls.count("patched") == 6


def test_what_is_replaced_in_the_library_is_replaced(rng):
    x, y = of(rng, 4, 3), of(rng, 4, 3)
    cell = nn.GRUCell(3, 4)
    for name, change in (
        ("dy2st.functions.math.math.square", lambda v: v * 0.0 + 7.0),
        ("dy2st.nn.functional.loss.square_error_cost", lambda a, b: a * 0.0 + 7.0),
    ):
        before = [float(F.mse_loss(x, y, "sum")) for _ in range(4)]
        with mock.patch(name, change):
            assert [round(float(F.mse_loss(x, y, "sum"))) for _ in range(3)] == [84] * 3
        F.mse_loss.__dy2st_kinds__._found.clear()
        np.testing.assert_allclose(float(F.mse_loss(x, y, "sum")), before[0], rtol=1e-5)
    for _ in range(3):
        cell(x)
    with mock.patch("dy2st.nn.layers.rnn_cells.sigmoid", lambda v: v * 0.0):
        np.testing.assert_array_equal(cell(x)[0].numpy(), op_by_op(lambda: cell(x)[0]).numpy())
    for _ in range(4):
        F.l1_loss(x, y)
    with mock.patch.object(paddle.Tensor, "__sub__", lambda a, b: a * 0.0 + 3.0):
        assert float(F.l1_loss(x, y)) == 3.0


def test_amp_hooks_on_saved_tensors_and_traces_see_ops(rng):
    x, y = of(rng, 2, 3), of(rng, 2, 3)
    F.mse_loss(x, y)
    before = len(programs_of(F.mse_loss))
    packed = []
    for _ in range(3):
        with paddle.amp.auto_cast(custom_white_list={"square"}):
            F.mse_loss(x, y)
        with paddle.autograd.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            F.mse_loss(x, y).backward()
    assert packed
    assert len(programs_of(F.mse_loss)) == before


def test_what_is_written_in_place_afterwards(rng):
    """The tape has what it needs, also where single ops need other things."""

    def grads(x, cell):
        x = x.detach()
        x.stop_gradient = False
        h = x * 2.0
        out, _ = cell(h)
        loss = F.mse_loss(h, T(np.zeros(h.shape, "float32"))) + (out[:, 1:] * out[:, 1:]).sum()
        h[0] = 0.0
        h.add_(T(1.0))
        out[:, 0] = 7.0
        (loss + out.sum()).backward()
        return x.grad.numpy(), h.numpy(), out.numpy()

    lstm = nn.LSTM(3, 4)
    for n in (2, 3, 4, 5, 2):
        x = of(rng, 2, n, 3)
        for found, want in zip(grads(x, lstm), op_by_op(lambda x=x: grads(x, lstm)), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


def test_leaf_hooks_and_writes_in_place(rng):
    for _ in range(4):
        x, seen = of(rng, 2, 3), []
        x.register_hook(seen.append)
        loss = F.mse_loss(x, T(np.zeros((2, 3), "float32")))
        with paddle.no_grad():
            x.add_(T(1.0))
        loss.backward()
        np.testing.assert_allclose(seen[0].numpy(), (x.numpy() - 1.0) / 3.0, rtol=1e-5)


def test_views_have_the_history_of_what_was_written_to_their_base(rng):
    for _ in range(4):
        base = of(rng, 3, 4)
        whole = base * 1.0
        row, other = whole[0], of(rng, 4)
        whole[0] = other
        F.mse_loss(row, T(np.zeros(4, "float32"))).backward()
        np.testing.assert_allclose(other.grad.numpy(), other.numpy() / 2.0, rtol=1e-5)
        np.testing.assert_array_equal(base.grad.numpy(), 0.0)


def test_values_are_told_apart():
    x, y = T([0.5, 3.0]), T([0.0, 0.0])
    for delta in (1, 1.0, True, 2.0, 2) * 3:
        found = F.smooth_l1_loss(x, y, "none", delta)
        np.testing.assert_array_equal(
            found.numpy(), op_by_op(lambda d=delta: F.smooth_l1_loss(x, y, "none", d)).numpy()
        )


def test_threads(rng):
    x, failed = of(rng, 4, 3), []
    want = op_by_op(lambda: F.l1_loss(x, x * 2.0).numpy())

    def work():
        try:
            for n in range(30):
                found = F.l1_loss(x, x * 2.0, "mean" if n % 2 else "sum") / (1 if n % 2 else 12)
                np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_natively(monkeypatch, rng):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    for name in ("cross_entropy", "gaussian_nll_loss"):
        function = getattr(F, name)
        samples = [FUNCTIONS[name](rng, n) for n in SHAPES]
        want = op_by_op(lambda f=function, s=samples: outcomes(f, s, [], True, 1))
        same(outcomes(function, samples, [], True, 1), want)
