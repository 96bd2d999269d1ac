"""`unfold` and `fold` against loops, the padding layers against NumPy, sequences out of a beam search."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F

R = np.random.default_rng(0)
IMAGE = R.normal(size=(2, 3, 5, 6))
HOW = [
    {},
    {"strides": 2},
    {"paddings": 1, "dilations": 2},
    {"strides": [2, 1], "paddings": [1, 0, 2, 1]},
]


def columns(x, kernel, strides=1, paddings=0, dilations=1):
    pads = [paddings] * 4 if isinstance(paddings, int) else paddings
    strides = [strides] * 2 if isinstance(strides, int) else strides
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    reach = [(k - 1) * dilations + 1 for k in kernel]
    found = [
        x[:, :, i : i + reach[0] : dilations, j : j + reach[1] : dilations].reshape(len(x), -1)
        for i in range(0, x.shape[2] - reach[0] + 1, strides[0])
        for j in range(0, x.shape[3] - reach[1] + 1, strides[1])
    ]
    return np.stack(found, -1)


@pytest.mark.parametrize("how", HOW)
def test_unfold_gives_windows_as_columns(how):
    np.testing.assert_allclose(F.unfold(paddle.to_tensor(IMAGE), [2, 3], **how).numpy(), columns(IMAGE, [2, 3], **how))


@pytest.mark.parametrize("how", HOW)
def test_fold_is_the_transpose_of_unfold(how):
    found = columns(IMAGE, [2, 3], **how)
    c = R.normal(size=found.shape)
    folded = F.fold(paddle.to_tensor(c), [5, 6], [2, 3], **how).numpy()
    assert folded.shape == IMAGE.shape
    np.testing.assert_allclose((folded * IMAGE).sum(), (c * found).sum(), rtol=1e-10)


def test_layers_and_gradients():
    x = paddle.to_tensor(IMAGE, stop_gradient=False)
    both = nn.Sequential(nn.Unfold([2, 2], strides=2), nn.Fold([5, 6], [2, 2], strides=2))
    both(x).sum().backward()
    want = np.zeros((5, 6))
    want[:4] = 1.0
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to(want, IMAGE.shape))


def test_one_program_serves_every_size():
    static = paddle.jit.to_static(lambda x: F.fold(F.unfold(x, 2), x.shape[2:], 2), full_graph=True)
    for x in (IMAGE, IMAGE[:1, :, :3, :4]):
        eager = F.fold(F.unfold(paddle.to_tensor(x), 2), x.shape[2:], 2)
        np.testing.assert_allclose(static(paddle.to_tensor(x)).numpy(), eager.numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.unfold(paddle.ones([2, 3]), 2), "unfold needs images, tensors of 4 axes"),
        (lambda: F.fold(paddle.ones([2, 3]), [4, 4], 2), "fold needs columns, a tensor of 3 axes"),
        (lambda: F.fold(paddle.ones([2, 3, 9]), [4, 4], 2), "columns of 3 elements are not made of windows of 2 x 2"),
        (lambda: F.fold(paddle.ones([2, 4, 8]), [4, 4], 2), r"8 columns, but images of \[4, 4\] have 3 x 3 windows"),
    ],
)
def test_what_does_not_fit_is_said(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    ("stem", "mode", "extra"),
    [("Zero", "constant", ()), ("Constant", "constant", (1.5,)), ("Reflection", "reflect", ()),
     ("Replication", "edge", ()), ("Circular", "wrap", ())],
)  # fmt: skip
def test_padding_layers_are_numpys_modes(stem, mode, extra):
    volume = R.normal(size=(1, 2, 3, 4, 5))
    for rank, x in ((1, volume[0, 0]), (2, volume[0]), (3, volume)):
        x = x[None] if x.ndim < rank + 2 else x
        pad = list(range(1, 2 * rank + 1)) if stem != "Reflection" else [1, 2] * rank
        pad = [min(p, 2) for p in pad]
        pairs = [(0, 0)] * 2 + [tuple(pad[2 * i : 2 * i + 2]) for i in range(rank)][::-1]
        keywords = {"constant_values": extra[0] if extra else 0.0} if mode == "constant" else {}
        layer = getattr(nn, f"{stem}Pad{rank}D")(pad, *extra)
        np.testing.assert_array_equal(layer(paddle.to_tensor(x)).numpy(), np.pad(x, pairs, mode=mode, **keywords))


def test_short_names_are_the_same_layers():
    assert nn.Conv2d is nn.Conv2D
    assert nn.ReflectionPad2d is nn.ReflectionPad2D
    assert nn.Module is nn.Layer


def test_sequences_are_read_back_from_the_last_step():
    ids, parents = R.integers(0, 9, (4, 2, 3)), R.integers(0, 3, (4, 2, 3))
    want = np.zeros_like(ids)
    for batch in range(2):
        for beam in range(3):
            at = beam
            for step in range(3, -1, -1):
                want[step, batch, beam] = ids[step, batch, at]
                at = parents[step, batch, at]
    got = F.gather_tree(paddle.to_tensor(ids), paddle.to_tensor(parents))
    np.testing.assert_array_equal(got.numpy(), want)
    static = paddle.jit.to_static(F.gather_tree)(paddle.to_tensor(ids), paddle.to_tensor(parents))
    np.testing.assert_array_equal(static.numpy(), want)


@pytest.mark.parametrize(
    ("ids", "parents", "kind", "text"),
    [
        ([[[1.0]]], [[[0]]], TypeError, "ids and parents must be integers, not float32"),
        ([[[1]]], [[0]], ValueError, "ids and parents of one shape of 3 axes"),
        ([[[1]]], [[[1]]], IndexError, "gather_tree: index 1 is out of range for axis 2 of extent 1"),
    ],
)
def test_a_wrong_tree_is_refused(ids, parents, kind, text):
    with pytest.raises(kind, match=text):
        F.gather_tree(paddle.to_tensor(ids), paddle.to_tensor(parents))
