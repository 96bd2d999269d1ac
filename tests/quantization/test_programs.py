"""Saved models with weights of integers: what they compute, their files, gradients, ONNX, and the command."""

import importlib

import numpy as np
import pytest

import dy2st as paddle
from dy2st.cli import main
from dy2st.quantization import quantize_program
from dy2st.quantization.thresholds import Histogram

SPEC = [paddle.static.InputSpec([None, 1, 8, 8], name="image")]


class Net(paddle.nn.Layer):
    """A convolution, random features of it, and a layer that a least-squares solution trains at once."""

    def __init__(self):
        super().__init__()
        paddle.seed(0)
        self.conv = paddle.nn.Conv2D(1, 16, 3, padding=1)
        self.hidden = paddle.nn.Linear(256, 512)
        self.out = paddle.nn.Linear(512, 10)

    def features(self, image):
        x = paddle.nn.functional.max_pool2d(paddle.nn.functional.relu(self.conv(image)), 2)
        return paddle.nn.functional.relu(self.hidden(x.flatten(1)))

    def forward(self, image):
        return self.out(self.features(image))


@pytest.fixture(scope="module")
def digits():
    x, y = importlib.import_module("sklearn.datasets").load_digits(return_X_y=True)
    images = (x / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return (images[:1200], y[:1200]), (images[1200:], y[1200:])


@pytest.fixture(scope="module")
def model(digits, tmp_path_factory):
    pytest.importorskip("sklearn")
    (images, labels), _ = digits
    net = Net().eval()
    with paddle.no_grad():
        f = net.features(paddle.to_tensor(images)).numpy().astype(np.float64)
    ones = np.concatenate([f, np.ones((len(f), 1))], 1)
    solved = np.linalg.solve(ones.T @ ones + np.eye(513), ones.T @ np.eye(10)[labels])
    net.out.weight.set_value(solved[:-1].astype(np.float32))
    net.out.bias.set_value(solved[-1].astype(np.float32))
    return paddle.jit.save(net, tmp_path_factory.mktemp("digits") / "net", input_spec=SPEC)


def right(layer, test):
    with paddle.no_grad():
        return float((layer(paddle.to_tensor(test[0])).numpy().argmax(1) == test[1]).mean())


@pytest.mark.parametrize(
    ("options", "loss", "size"),
    [({"bits": 8}, 0.01, 3.2), ({"bits": 4, "group_size": 32}, 0.05, 5.0)]
    + [({"bits": 8, "activations": how}, 0.015, 3.2) for how in ("absmax", "percentile")],
)  # fmt: skip
def test_digits(model, digits, options, loss, size, tmp_path):
    (images, _), test = digits
    before = paddle.jit.load(model)
    data = [images[i : i + 64] for i in range(0, 256, 64)] if "activations" in options else None
    found = quantize_program(model, data, **options)
    path = paddle.jit.save(found, tmp_path / "small")
    after = paddle.jit.load(path)
    x = paddle.to_tensor(test[0])
    assert np.array_equal(after(x).numpy(), found(x).numpy())
    assert right(before, test) > 0.93
    assert right(after, test) > right(before, test) - loss
    assert path.stat().st_size * size < model.stat().st_size
    ops = {operation.name for operation in after.program().walk()}
    assert {"quantized_matmul", "dequantize"} <= ops
    assert ("round" in ops) is (data is not None)


def test_gradients_flow_to_the_rest(model, digits):
    found = quantize_program(model)
    x = paddle.to_tensor(digits[1][0][:4], stop_gradient=False)
    numbers = {n: t for n, t in found.state_dict().items() if t.dtype is paddle.int8}
    assert sorted(numbers) == ["conv.quant_weight", "hidden.quant_weight", "out.quant_weight"]
    found(x)[:, 3].sum().backward()
    exact = paddle.jit.load(model)
    other = paddle.to_tensor(digits[1][0][:4], stop_gradient=False)
    exact(other)[:, 3].sum().backward()
    difference = np.linalg.norm(x.grad.numpy() - other.grad.numpy()) / np.linalg.norm(other.grad.numpy())
    assert 0 < difference < 0.3
    assert found.state_dict()["out.bias"].grad is not None


def test_calibration_data_of_any_form(model, digits):
    images = digits[0][0][:64]
    one = quantize_program(model, [images])
    x = paddle.to_tensor(digits[1][0][:9])
    for data in ([{"image": images}], [(images,)], lambda: iter([paddle.to_tensor(images)])):
        assert np.array_equal(quantize_program(model, data)(x).numpy(), one(x).numpy())


def test_weights_that_stay(tmp_path):
    class Tied(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = self.create_parameter([6, 4])
            self.steps = self.create_parameter([4, 4])
            self.same = self.steps

        def forward(self, ids, x):
            y = paddle.matmul(x, self.table, transpose_y=True) + self.table[ids].sum()
            return y + (x @ self.steps).sum()

    tied = Tied().eval()
    spec = [paddle.static.InputSpec([None], "int64"), paddle.static.InputSpec([None, 4])]
    path = paddle.jit.save(tied, tmp_path / "tied", input_spec=spec)
    found = quantize_program(path)
    assert sorted(found.state_dict()) == ["same", "steps", "table_quant_scale", "table_quant_weight"]
    ids, x = paddle.to_tensor([1, 5]), paddle.ones([2, 4])
    assert np.allclose(found(ids, x).numpy(), tied(ids, x).numpy(), atol=0.05)


def test_what_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="8 or 4 bits, groups of multiples of 16, not 3"):
        quantize_program(model, bits=3)
    with pytest.raises(ValueError, match="no calibration data"):
        quantize_program(model, [])
    with pytest.raises(ValueError, match="activations are one of 'absmax', 'percentile', 'kl'"):
        quantize_program(model, [np.ones((1, 1, 8, 8), np.float32)], activations="mean")
    with pytest.raises(TypeError, match=r"takes what paddle\.jit\.load returns, not Linear"):
        quantize_program(paddle.nn.Linear(2, 2))
    relu = paddle.jit.save(paddle.nn.ReLU(), tmp_path / "relu", input_spec=[paddle.static.InputSpec([None])])
    with pytest.raises(ValueError, match=r"reads a parameter of float32"):
        quantize_program(relu)
    small = paddle.jit.save(quantize_program(model), tmp_path / "small")
    with pytest.raises(ValueError, match=r"reads a parameter of float32"):
        quantize_program(small)


def test_onnx(model, digits, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    data = [digits[0][0][:64]]
    found = quantize_program(model, data, bits=4, group_size=32)
    path = paddle.onnx.export(found, str(tmp_path / "small.onnx"))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC  # no rounding of its own
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    x = digits[1][0][:20]
    (y,) = session.run(None, {session.get_inputs()[0].name: x})
    assert np.allclose(y, found(paddle.to_tensor(x)).numpy(), atol=1e-4)


def test_command(model, digits, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", image=digits[0][0][:100])
    out = tmp_path / "small"
    options = ["--calibration", str(tmp_path / "x.npz"), "--activations", "absmax", "--batch", "40"]
    assert main(["quantize", str(model), "-o", str(out), *options]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{out}.dy2st: ")
    assert said[0].endswith(f" bytes of {model.stat().st_size:,}")
    assert said[1].startswith("output: differs by ")
    assert float(said[1].split()[3].rstrip("%")) < 10
    assert right(paddle.jit.load(out), digits[1]) > 0.93
    np.savez(tmp_path / "bad.npz", image=np.zeros((0, 1, 8, 8), np.float32))
    assert main(["quantize", str(model), "-o", str(out), "--calibration", str(tmp_path / "bad.npz")]) == 1
    assert "arrays of one number of samples are needed, not [0]" in capsys.readouterr().err
    assert main(["quantize", str(model), "-o", str(out), "--batch", "0"]) == 1
    assert "--batch is a number of samples, not 0" in capsys.readouterr().err


def test_thresholds_of_distributions(rng):
    normal, outlier = Histogram(), Histogram()
    numbers = rng.normal(size=100_000)
    for part in np.split(numbers, 4):
        normal.add(part)
        outlier.add(part)
    outlier.add(np.array([1000.0, np.inf, np.nan]))
    assert normal.largest == np.abs(numbers).max()
    assert outlier.largest == 1000.0
    assert abs(normal.percentile(0.5) - np.quantile(np.abs(numbers), 0.5)) < 0.01
    assert outlier.percentile(0.999) < 5 < outlier.largest
    assert 2 < normal.kl() <= normal.largest
    assert outlier.kl() < 100
    assert Histogram().kl() == Histogram().percentile() == 0.0
