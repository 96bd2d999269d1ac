"""bfloat16: each operation computes in float32 and rounds once, in eager mode, in Programs and natively alike."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.ir.context import current
from tests.peers import paddle_bfloat16
from tests.peers.paddle_bfloat16 import described

F = nn.functional


def rounded(x):
    """float32 numbers rounded to bfloat16, by another way than the library's: the bits, and Python's round."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.int64)
    upper, rest = bits >> 16, bits & 0xFFFF
    upper += (rest > 0x8000) | ((rest == 0x8000) & (upper & 1 == 1))
    return (upper << 16).astype(np.uint32).view(np.float32)


def wide(t):
    return t.astype("float32").numpy()


@pytest.fixture
def x(rng):
    return paddle.to_tensor(rng.normal(size=(5, 33)), "bfloat16")


def test_numbers_are_rounded_to_the_nearest_when_a_tensor_is_made(rng):
    numbers = rng.normal(size=1000).astype("float32") * 10.0 ** rng.integers(-30, 30, 1000)
    for made in (paddle.to_tensor(numbers, "bfloat16"), paddle.to_tensor(numbers.astype("float32")).bfloat16()):
        np.testing.assert_array_equal(wide(made), rounded(numbers))
    assert paddle.to_tensor(1.00390625, "bfloat16").item() == 1.0  # half-way: to the even one
    assert paddle.full([2], 1.1, "bfloat16").tolist() == [1.1015625, 1.1015625]


def test_bits_as_paddle_hands_them_over_are_numbers():
    made = paddle.to_tensor(np.array([16320, 16400, 49222], np.uint16))
    assert (made.dtype, made.tolist()) == (paddle.bfloat16, [1.5, 2.25, -3.09375])


def test_results_have_the_bits_of_paddles():
    wanted = json.loads(paddle_bfloat16.FILE.read_text())
    assert {name: described(t) for name, t in paddle_bfloat16.results(paddle).items()} == wanted


def test_the_dtype_is_known_by_its_names(x):
    import ml_dtypes

    assert x.dtype == "bfloat16" == paddle.bfloat16.name
    assert x.dtype == ml_dtypes.bfloat16 == np.dtype(ml_dtypes.bfloat16)
    assert x.dtype not in ("float16", np.float32)
    assert paddle.to_tensor(np.ones(2, ml_dtypes.bfloat16)).dtype is paddle.bfloat16
    assert x.numpy().dtype == ml_dtypes.bfloat16
    assert (paddle.finfo("bfloat16").eps, paddle.finfo(x.dtype).bits) == (2.0**-7, 16)
    assert (x.is_floating_point(), x.element_size()) == (True, 2)


def test_it_prints_as_numbers():
    text = repr(paddle.to_tensor([1.5, 2.25, -3.1], "bfloat16"))
    assert "dtype=bfloat16," in text
    assert "[ 1.50000,  2.25000, -3.09375])" in text


FUNCTIONS = {
    "add": lambda x, y: x + y, "number": lambda x, y: x * 0.1, "divide": lambda x, y: x / y, "power": lambda x, y: x**3,
    "exp": lambda x, y: paddle.exp(x), "tanh": lambda x, y: paddle.tanh(x), "gelu": lambda x, y: F.gelu(x),
    "matmul": lambda x, y: x @ y.T, "sum": lambda x, y: x.sum(axis=1), "mean": lambda x, y: x.mean(),
    "softmax": lambda x, y: F.softmax(x), "layer_norm": lambda x, y: F.layer_norm(x, [33]),
    "cumsum": lambda x, y: x.cumsum(axis=1), "sort": lambda x, y: x.sort(axis=1),
    "logsumexp": lambda x, y: x.logsumexp(1),
    "maximum": lambda x, y: paddle.maximum(x, y), "clip": lambda x, y: x.clip(-0.3, 0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_operation_is_that_of_float32_rounded_once(name, x, rng):
    y = paddle.to_tensor(rng.normal(size=(5, 33)), "bfloat16")
    function = FUNCTIONS[name]
    made = function(x, y)
    assert made.dtype is paddle.bfloat16
    if name == "number":  # 0.1 is a bfloat16 beside a bfloat16
        wanted = x.astype("float32") * float(paddle.to_tensor(0.1, "bfloat16"))
    else:
        wanted = function(x.astype("float32"), y.astype("float32"))
    if name != "clip":
        np.testing.assert_array_equal(wide(made), rounded(wanted.numpy()))
    again = paddle.jit.to_static(function, full_graph=True)
    for _ in range(3):
        np.testing.assert_array_equal(again(x, y).numpy(), made.numpy())


def test_the_result_of_each_operation_is_rounded_also_where_loops_are_fused(x):
    def f(x):
        return ((x * 1.7 + 0.3) * x - x) / 3.0

    step = wide(x)
    for number, op in ((1.7, np.multiply), (0.3, np.add)):
        step = rounded(op(step, rounded(np.float32(number))))
    step = rounded(rounded(rounded(step * wide(x)) - wide(x)) / np.float32(3))
    np.testing.assert_array_equal(wide(f(x)), step)
    np.testing.assert_array_equal(wide(paddle.jit.to_static(f, full_graph=True)(x)), step)


def test_views_share_memory(x):
    x[1:3].reshape([66])[0] = 7.0
    assert x[1, 0].item() == 7.0


def test_comparisons_and_places_are_of_other_dtypes(x):
    assert [(x > 0).dtype.name, x.argmax().dtype.name, x.astype("int32").dtype.name] == ["bool", "int64", "int32"]
    np.testing.assert_array_equal((x > 0).numpy(), wide(x) > 0)


@pytest.mark.parametrize("static", [False, True])
def test_gradients_are_of_bfloat16(x, static):
    def f(x, w):
        return (F.softmax(paddle.tanh(x @ w)) * x).sum()

    w = paddle.to_tensor(np.eye(33), "bfloat16")
    low, high = [], []
    for found, dtype in ((low, "bfloat16"), (high, "float32")):
        a, b = (t.astype(dtype).detach() for t in (x, w))
        a.stop_gradient = b.stop_gradient = False
        (paddle.jit.to_static(f, full_graph=True) if static else f)(a, b).backward()
        found += [a.grad, b.grad]
    for one, other in zip(low, high, strict=True):
        assert one.dtype is paddle.bfloat16
        scale = np.abs(other.numpy()).max()
        np.testing.assert_allclose(wide(one), other.numpy(), atol=3e-2 * scale)


def test_eager_and_static_gradients_have_the_same_bits(x):
    def f(x):
        return (paddle.tanh(x) * x + x * 0.5).sum()

    found = []
    for function in (f, paddle.jit.to_static(f, full_graph=True)):
        for _ in range(3):
            a = x.detach()
            a.stop_gradient = False
            function(a).backward()
        found.append(a.grad.numpy())
    np.testing.assert_array_equal(*found)


def test_ops_that_are_called_often_have_gradients_and_the_same_bits(monkeypatch):
    """Native code takes over after so many calls of a kind (runtime/eager/frequent_ops.py)."""
    monkeypatch.setattr(current().process, "looks_at_op", 1)
    a, b = (paddle.to_tensor(n, "bfloat16", stop_gradient=False) for n in ([1.5, -2.7, 0.1], [0.3, 7.0, 1e-3]))
    found = []
    for _ in range(20):
        made = (a * b + paddle.tanh(a)) / b
        made.sum().backward()
        found.append([t.numpy().tolist() for t in (made.detach(), a.grad, b.grad)])
        a.clear_grad()
        b.clear_grad()
    assert all(one == found[0] for one in found)


def test_random_numbers_are_the_same_eagerly_and_natively():
    def f():
        return paddle.rand([1000], "bfloat16"), paddle.bernoulli(paddle.full([1000], 0.3, "bfloat16"))

    paddle.seed(3)
    eager = [t.numpy() for t in f()]
    paddle.seed(3)
    static = [t.numpy() for t in paddle.jit.to_static(f, full_graph=True)()]
    for one, other in zip(eager, static, strict=True):
        np.testing.assert_array_equal(one, other)
    assert eager[0].astype("float32").max() < 1.0
    assert 0.2 < eager[1].astype("float32").mean() < 0.4


# ---- training ---------------------------------------------------------------------------------------------------
def trained(dtype, level, static=False, steps=30):
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
    if level == "O2":
        model, optimizer = paddle.amp.decorate(model, optimizer, level="O2", dtype=dtype)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(64, 8)), "float32")
    y = x[:, :1] * x[:, 1:2]

    def step(x, y):
        with paddle.amp.auto_cast(level != "O0", level=level if level != "O0" else "O1", dtype=dtype):
            loss = F.mse_loss(model(x).astype("float32"), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    return [float(run(x, y)) for _ in range(steps)], model, optimizer


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_training_in_bfloat16_goes_as_in_float32(level):
    wanted, *_ = trained("float16", "O0")
    eager, model, optimizer = trained("bfloat16", level)
    static, *_ = trained("bfloat16", level, static=True)
    np.testing.assert_allclose(eager, wanted, rtol=0.05)
    np.testing.assert_allclose(static, eager, rtol=1e-3)
    assert {p.dtype.name for p in model.parameters()} == {"bfloat16" if level == "O2" else "float32"}
    if level == "O2":
        assert len(optimizer.state_dict()["master_weights"]) == 4


def test_auto_cast_runs_products_in_bfloat16():
    a = paddle.ones([2, 2])
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert [(a @ a).dtype.name, F.softmax(a).dtype.name, (a + a).dtype.name] == ["bfloat16", "float32", "float32"]
        assert paddle.amp.get_autocast_dtype() == "bfloat16"


# ---- files, other libraries ---------------------------------------------------------------------------------------
def test_files_keep_it(tmp_path, x):
    paddle.save({"x": x, "n": 3}, tmp_path / "s.pdparams")
    found = paddle.load(tmp_path / "s.pdparams")["x"]
    assert found.dtype is paddle.bfloat16
    np.testing.assert_array_equal(found.numpy(), x.numpy())


def test_a_layer_is_saved_and_runs_again(tmp_path, x):
    layer = nn.Sequential(nn.Linear(33, 4), nn.GELU()).bfloat16()
    paddle.jit.save(layer, str(tmp_path / "m"), input_spec=[paddle.static.InputSpec([None, 33], "bfloat16")])
    again = paddle.jit.load(str(tmp_path / "m"))
    assert {p.dtype.name for p in again.parameters()} == {"bfloat16"}
    np.testing.assert_array_equal(again(x).numpy(), layer(x).numpy())


def test_state_of_another_precision_is_cast(x):
    layer = nn.Linear(33, 4)
    layer.set_state_dict({name: t.astype("bfloat16") for name, t in layer.state_dict().items()})
    assert {p.dtype.name for p in layer.parameters()} == {"float32"}


def test_dlpack_shares_memory(x):
    shared = paddle.from_dlpack(x)
    assert shared.dtype is paddle.bfloat16
    shared[0, 0] = 9.0
    assert x[0, 0].item() == 9.0
    assert paddle.utils.dlpack.from_dlpack(paddle.utils.dlpack.to_dlpack(x)).dtype is paddle.bfloat16


def test_a_program_is_written_and_read_as_text():
    from dy2st.ir.parser import parse

    static = paddle.jit.to_static(lambda x: x * 1.7, full_graph=True)
    static(paddle.ones([2], "bfloat16"))
    text = str(static.concrete_program.main_program)
    assert "bfloat16[](1.703125)" in text
    assert str(parse(text)) == text


def test_importing_the_library_does_not_load_the_package():
    code = """
import sys, dy2st
assert (dy2st.ones([2]) + 1).dtype != "bfloat16" and "ml_dtypes" not in sys.modules
assert dy2st.ones([2], "bfloat16").numpy().dtype.name == "bfloat16" and "ml_dtypes" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kept_code_does_not_know_the_number_of_the_dtype(tmp_path):
    """Another package gave NumPy a dtype first: then the number is another one in that process."""
    code = """
import sys
{first}
import dy2st as paddle
f = paddle.jit.to_static(lambda x: (x * 2.5).astype("bfloat16"), full_graph=True)
for _ in range(3):
    y = f(paddle.ones([40]))
assert y.dtype is paddle.bfloat16 and y.numpy().dtype.name == "bfloat16", y.numpy().dtype
assert y.tolist() == [2.5] * 40
print(y.numpy().dtype.num)
"""
    first = "from numpy._core._rational_tests import rational"  # NumPy's own example of a dtype of somebody else's
    environment = {**os.environ, "DY2ST_CACHE_DIR": str(tmp_path), "DY2ST_BACKEND": "native"}
    found = []
    for one in ("", first):
        command = [sys.executable, "-c", code.format(first=one)]
        run = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        found.append(run.stdout.split()[-1])
    assert found[0] != found[1]
