"""`paddle.nn.quant`: weights as integers, products with them, their gradients, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn.quant import (
    WeightOnlyLinear,
    llm_int8_linear,
    quantize_weight,
    weight_dequantize,
    weight_only_linear,
    weight_quantize,
)

GROUPS = (-1, 64)


def integers_of(w, most, group):
    """The integers [out, in] and scales of a weight [in, out], as numbers of float64."""
    rows = w.T.astype(np.float64)
    parts = rows.reshape(len(rows), -1, group if group > 0 else rows.shape[1])
    scale = np.abs(parts).max(2) / most
    return np.rint(parts / scale[:, :, None]).reshape(rows.shape), scale


def halves(packed):
    """The rows of integers in bytes, written another way than the op has it."""
    values = packed.view(np.uint8).astype(int)
    rows = np.empty((2 * len(packed), packed.shape[1]), int)
    rows[0::2], rows[1::2] = values % 16, values // 16
    return np.where(rows > 7, rows - 16, rows)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("algo", "most"), [("weight_only_int8", 127), ("weight_only_int4", 7)])
def test_integers_and_scales(algo, most, group, rng):
    w = rng.normal(size=(128, 6)).astype(np.float32)
    integers, scale = weight_quantize(paddle.to_tensor(w), algo, group_size=group)
    wanted, scales = integers_of(w, most, group)
    found = integers.numpy() if most == 127 else halves(integers.numpy())
    assert integers.dtype is paddle.int8
    assert scale.dtype is paddle.float32
    assert np.abs(found - wanted).max() <= 1
    assert (found == wanted).mean() > 0.99
    assert np.allclose(scale.numpy(), scales[:, 0] if group == -1 else scales.T)
    numbers = weight_dequantize(integers, scale, algo, group_size=group).numpy()
    step = np.repeat(scales, w.shape[0] // scales.shape[1], 1).T
    assert np.all(np.abs(numbers - w) <= step * 0.5001)


def test_halves_are_rounded_away_from_zero():
    """As PaddlePaddle's kernel does, which its `round` does not."""
    column = np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5], "float32")
    integers, _ = weight_quantize(paddle.to_tensor(np.tile(column[:, None], (8, 2))))
    assert sorted(set(integers.numpy().ravel().tolist())) == [-3, -2, -1, 1, 2, 3, 4, 127]


def test_a_new_process_has_the_module():
    said = "import dy2st as paddle; print(paddle.nn.quant.Stub.__name__)"
    assert subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout == "Stub\n"


def test_scales_have_the_dtype_of_the_weight(rng):
    w = paddle.to_tensor(rng.normal(size=(8, 4)).astype(np.float16))
    assert [weight_quantize(w, algo)[1].dtype.name for algo in ("weight_only_int8", "llm.int8")] == [
        "float16",
        "float32",
    ]
    w = paddle.zeros([4, 2])
    integers, scale = weight_quantize(w)
    assert not integers.numpy().any()
    assert not scale.numpy().any()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_products_eager_and_static_with_gradients(kind, group, rng):
    w = rng.normal(size=(128, 6)).astype(np.float32)
    integers, scale = weight_quantize(paddle.to_tensor(w), f"weight_only_{kind}", group_size=group)
    numbers = weight_dequantize(integers, scale, f"weight_only_{kind}", group_size=group).numpy()
    x = paddle.to_tensor(rng.normal(size=(2, 3, 128)).astype(np.float32), stop_gradient=False)
    bias = paddle.to_tensor(rng.normal(size=6).astype(np.float32), stop_gradient=False)
    scale.stop_gradient = False

    def f(x, integers, bias, scale):
        return weight_only_linear(x, integers, bias, scale, kind, group_size=group)

    ct = rng.normal(size=(2, 3, 6)).astype(np.float32)
    for function in (f, paddle.jit.to_static(f, full_graph=True)):
        y = function(x, integers, bias, scale)
        assert np.allclose(y.numpy(), x.numpy() @ numbers + bias.numpy(), atol=1e-4)
        dx, db, ds = paddle.grad((y * paddle.to_tensor(ct)).sum(), [x, bias, scale])
        assert np.allclose(dx.numpy(), ct @ numbers.T, atol=1e-4)
        assert np.allclose(db.numpy(), ct.sum((0, 1)), atol=1e-4)
        slope = np.einsum("abi,abo->io", x.numpy(), ct) * numbers
        parts = slope.reshape(scale.shape[0] if group > 0 else 1, -1, 6).sum(1)
        assert np.allclose(ds.numpy() * scale.numpy(), parts.reshape(scale.shape), atol=1e-3)


def test_outliers_are_not_rounded(rng):
    w = rng.normal(size=(16, 4)).astype(np.float32)
    integers, scale = weight_quantize(paddle.to_tensor(w), "llm.int8")
    numbers = weight_dequantize(integers, scale, "llm.int8").numpy()
    x = rng.normal(size=(5, 16)).astype(np.float32)
    x[:, 3] *= 100
    y = llm_int8_linear(paddle.to_tensor(x), integers, None, scale, threshold=6.0).numpy()
    inner = x.copy()
    inner[:, np.abs(x).max(0) > 6.0] = 0
    step = np.abs(inner).max(1, keepdims=True) / 127
    bound = (np.abs(numbers).sum(0) * step * 0.51) + 1e-3
    assert np.all(np.abs(y - x @ numbers) <= bound)
    rounded = np.rint(inner / step) * step + (x - inner)
    assert np.allclose(y, rounded @ numbers, atol=2e-3)


def test_a_model_of_such_layers(rng, tmp_path):
    model = paddle.nn.Sequential(paddle.nn.Linear(64, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 5)).eval()
    x = paddle.to_tensor(rng.normal(size=(3, 64)).astype(np.float32))
    small = quantize_weight(model, "weight_only_int4")
    assert type(small[0]) is WeightOnlyLinear
    assert type(small[2]) is paddle.nn.Linear, "5 outputs are no pairs"
    assert type(model[0]) is paddle.nn.Linear
    assert small[0].quant_weight.shape == [16, 64]
    assert [p.name for p in small.parameters() if p.dtype is paddle.int8 and not p.stop_gradient] == []
    paddle.jit.save(small, tmp_path / "small", input_spec=[paddle.static.InputSpec([None, 64])])
    assert np.allclose(paddle.jit.load(tmp_path / "small")(x).numpy(), small(x).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda w: weight_quantize(w, "int3"), "algo is one of 'weight_only_int8'"),
        (lambda w: weight_quantize(w, group_size=32), "group_size is -1, 64 or 128, not 32"),
        (lambda w: weight_quantize(w, group_size=64), "4 inputs do not divide into groups of 64"),
        (lambda w: weight_quantize(w, "weight_only_int4"), "pairs of outputs, and there are 3"),
        (lambda w: weight_quantize(w[0]), r"takes a weight \[in, out\]"),
        (lambda w: weight_only_linear(w, w), "needs the scales"),
        (lambda w: llm_int8_linear(w, w), "needs the scales"),
        (lambda w: weight_only_linear(w, w, None, w, "int2"), "'int8' or 'int4', not 'int2'"),
        (lambda w: quantize_weight(paddle.nn.Linear(2, 2), "llm.int8"), "algo is 'weight_only_int8' or"),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call(paddle.ones([4, 3]))
