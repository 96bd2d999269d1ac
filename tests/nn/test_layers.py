"""Every layer gives the same values and gradients eagerly and in a Program; a few gradients against differences."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn

ROWS, IMAGE, SEQUENCE, VOLUME = (4, 6), (2, 4, 6, 6), (2, 4, 8), (1, 2, 4, 4, 4)
LAYERS = {
    "Linear": (lambda: nn.Linear(6, 3), ROWS),
    "Linear of 3 axes": (lambda: nn.Linear(8, 3, bias_attr=False), SEQUENCE),
    "Conv1D": (lambda: nn.Conv1D(4, 6, 3, stride=2, padding=1, groups=2), SEQUENCE),
    "Conv2D": (lambda: nn.Conv2D(4, 6, 3, padding="SAME", dilation=2), IMAGE),
    "Conv2D reflect": (lambda: nn.Conv2D(4, 2, 3, padding=1, padding_mode="reflect"), IMAGE),
    "Conv2D NHWC": (lambda: nn.Conv2D(6, 2, 3, data_format="NHWC"), IMAGE),
    "Conv3D": (lambda: nn.Conv3D(2, 3, 2), VOLUME),
    "Conv1DTranspose": (lambda: nn.Conv1DTranspose(4, 2, 3, stride=2, output_padding=1), SEQUENCE),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(4, 2, 3, stride=2, padding=1, groups=2), IMAGE),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(2, 1, 2), VOLUME),
    "MaxPool1D": (lambda: nn.MaxPool1D(2), SEQUENCE),
    "MaxPool2D": (lambda: nn.MaxPool2D(3, 2, 1), IMAGE),
    "MaxPool3D": (lambda: nn.MaxPool3D(2), VOLUME),
    "AvgPool1D": (lambda: nn.AvgPool1D(3, 1, 1), SEQUENCE),
    "AvgPool2D": (lambda: nn.AvgPool2D(2, ceil_mode=True), IMAGE),
    "AvgPool3D": (lambda: nn.AvgPool3D(2), VOLUME),
    "AdaptiveAvgPool1D": (lambda: nn.AdaptiveAvgPool1D(3), SEQUENCE),
    "AdaptiveAvgPool2D": (lambda: nn.AdaptiveAvgPool2D((2, 4)), IMAGE),
    "AdaptiveMaxPool2D": (lambda: nn.AdaptiveMaxPool2D(4), IMAGE),
    "LPPool2D": (lambda: nn.LPPool2D(2.0, 2), IMAGE),
    "BatchNorm1D": (lambda: nn.BatchNorm1D(6), ROWS),
    "BatchNorm2D": (lambda: nn.BatchNorm2D(4), IMAGE),
    "BatchNorm3D": (lambda: nn.BatchNorm3D(2), VOLUME),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm([6, 6]), IMAGE),
    "RMSNorm": (lambda: nn.RMSNorm(6), ROWS),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "InstanceNorm1D": (lambda: nn.InstanceNorm1D(4), SEQUENCE),
    "InstanceNorm2D": (lambda: nn.InstanceNorm2D(4), IMAGE),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), IMAGE),
    "PReLU": (lambda: nn.PReLU(4), IMAGE),
    "Dropout": (lambda: nn.Dropout(0.4), ROWS),
    "Dropout2D": (lambda: nn.Dropout2D(0.4), IMAGE),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.4), ROWS),
    "Maxout": (lambda: nn.Maxout(2), IMAGE),
    "Sequential": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), ("last", nn.Linear(5, 2))), ROWS),
    **{
        name: (lambda name=name: getattr(nn, name)(), ROWS)
        for name in (
            "CELU ELU GELU GLU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
            "ReLU ReLU6 Sigmoid Silu Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU"
        ).split()
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_the_same_in_a_program(name, rng):
    make, shape = LAYERS[name]
    x = paddle.to_tensor(rng.normal(size=shape).astype("float32"), stop_gradient=False)
    found, layer = [], make()
    start = {k: v.numpy().copy() for k, v in layer.state_dict().items()}
    for _ in range(2):
        layer.set_state_dict(start)
        paddle.seed(5)
        out = layer(x)
        (out * out + out).sum().backward()
        tensors = [out, x.grad, *(p.grad for p in layer.parameters()), *layer.buffers()]
        found.append([t.numpy().copy() for t in tensors])
        x.clear_grad()
        layer.clear_gradients()
        paddle.jit.to_static(layer, full_graph=True)
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "name", ["Linear", "Conv2D", "Conv2DTranspose", "BatchNorm2D", "LayerNorm", "GroupNorm", "PReLU"]
)
def test_gradient_against_differences(name, rng):
    make, shape = LAYERS[name]
    layer = make().astype("float64")
    x = rng.normal(size=shape)
    factors = paddle.to_tensor(rng.normal(size=layer(paddle.to_tensor(x)).shape))

    def value(data):
        return float((layer(paddle.to_tensor(data)) * factors).sum())

    t = paddle.to_tensor(x, stop_gradient=False)
    (layer(t) * factors).sum().backward()
    for at in [tuple(int(rng.integers(n)) for n in shape) for _ in range(4)]:
        step = np.zeros(shape)
        step[at] = 1e-6
        np.testing.assert_allclose(t.grad.numpy()[at], (value(x + step) - value(x - step)) / 2e-6, rtol=1e-5, atol=1e-6)


def test_embedding_is_the_same_in_a_program():
    table = nn.Embedding(7, 3, padding_idx=0)
    ids = paddle.to_tensor([[0, 2], [6, 2]])
    found = []
    for _ in range(2):
        out = table(ids)
        out.sum().backward()
        found.append((out.numpy(), table.weight.grad.numpy()))
        table.clear_gradients()
        paddle.jit.to_static(table, full_graph=True)
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found[0][1][:, 0], [0, 0, 2, 0, 0, 0, 1])
    np.testing.assert_array_equal(found[0][0][0, 0], np.zeros(3))


def test_batch_norm_keeps_running_statistics_only_in_training(rng):
    layer = nn.BatchNorm1D(3, momentum=0.8)
    x = rng.normal(2.0, 3.0, size=(8, 3)).astype("float32")
    layer(paddle.to_tensor(x))
    np.testing.assert_allclose(layer._mean.numpy(), 0.2 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer._variance.numpy(), 0.8 + 0.2 * x.var(0), rtol=1e-5)
    layer.eval()
    before = layer._mean.numpy().copy()
    out = layer(paddle.to_tensor(x)).numpy()
    np.testing.assert_array_equal(layer._mean.numpy(), before)
    np.testing.assert_allclose(out, (x - before) / np.sqrt(layer._variance.numpy() + 1e-5), rtol=1e-4, atol=1e-5)


def test_batch_norm_statistics_in_a_program_follow_train_and_eval(rng):
    x = paddle.to_tensor(rng.normal(2.0, 3.0, size=(8, 3)).astype("float32"))
    eager, static = nn.BatchNorm1D(3), nn.BatchNorm1D(3)
    paddle.jit.to_static(static, full_graph=True)
    for training in (True, True, False, True):
        for layer in (eager, static):
            layer.train(training)
        np.testing.assert_allclose(static(x).numpy(), eager(x).numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(static._mean.numpy(), eager._mean.numpy(), rtol=1e-5)
        np.testing.assert_allclose(static._variance.numpy(), eager._variance.numpy(), rtol=1e-5)
    assert len(static.forward.program_cache) == 2


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_an_empty_batch(static):
    model = nn.Sequential(nn.Conv2D(1, 2, 3), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(2, 3))
    run = paddle.jit.to_static(model, full_graph=True) if static else model
    run(paddle.ones([2, 1, 4, 4]))
    out = run(paddle.zeros([0, 1, 4, 4]))
    out.sum().backward()
    assert out.shape == [0, 3]
    assert float(model[0].weight.grad.abs().sum()) == 0.0


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.Linear(3, 2)(paddle.ones([2, 4])), ValueError, "the last axis of the input"),
        (lambda: nn.Linear(3, 2)(paddle.to_tensor(1.0)), ValueError, "must have at least one axis"),
        (lambda: nn.Conv2D(3, 4, 3)(paddle.ones([1, 2, 5, 5])), ValueError, "has 2 channels, the filters"),
        (lambda: nn.Conv2D(3, 4, 3)(paddle.ones([3, 5, 5])), ValueError, "needs an input and filters of 4 axes"),
        (lambda: nn.Conv2D(3, 4, 3, groups=2), ValueError, "do not divide into 2 groups"),
        (lambda: nn.Conv2D(3, 4, 3, padding_mode="wrap"), ValueError, "padding_mode must be one of"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "3 channels do not divide into 2 groups"),
        (lambda: nn.BatchNorm2D(3)(paddle.ones([2, 3])), ValueError, "BatchNorm2D needs a 4-D tensor"),
        (lambda: nn.InstanceNorm2D(3)(paddle.ones([2, 3])), ValueError, "InstanceNorm2D needs a tensor of 4 axes"),
        (lambda: nn.LayerNorm(3)(paddle.ones([2, 4])), ValueError, "is not the end of the input's shape"),
        (lambda: nn.Embedding(0, 3), ValueError, "num_embeddings must be positive"),
        (lambda: nn.Embedding(4, 3, padding_idx=4), ValueError, "padding_idx 4 is outside of 4 rows"),
        (lambda: nn.Embedding(4, 3)(paddle.ones([2])), TypeError, "the indices must be integers, not float32"),
        (lambda: nn.Dropout(1.5)(paddle.ones([2])), ValueError, "p must be between 0 and 1"),
        (lambda: nn.Dropout(0.5, mode="x")(paddle.ones([2])), ValueError, "mode must be 'upscale_in_train'"),
        (lambda: nn.AlphaDropout(1.5)(paddle.ones([2])), ValueError, "p must be between 0 and 1"),
        (lambda: nn.Dropout2D(0.5)(paddle.ones([2])), ValueError, "dropout2d needs a tensor of 4 axes"),
        (lambda: nn.Dropout2D(0.5, "CHWN")(paddle.ones([2, 2, 2, 2])), ValueError, "data_format must be 'NCHW'"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()
