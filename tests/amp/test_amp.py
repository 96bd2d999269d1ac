"""Automatic casts and loss scaling: which dtypes ops get, eager as static, and how the scale follows gradients."""

from functools import partial

import numpy as np
import pytest

import dy2st as paddle
from dy2st import amp, nn
from tests.in_threads import in_threads

R = np.random.default_rng(0)
X = R.normal(size=(4, 3)).astype("float32")


@pytest.mark.proves("amp.auto_cast")
def test_products_run_in_float16_and_sums_in_float32():
    x = paddle.to_tensor(X)
    with amp.auto_cast():
        product = paddle.matmul(x, x, transpose_y=True)
        total, mixed, kept = product.sum(), product + x[:, :1], x.astype("float64") @ x.astype("float64").T
    assert (product.dtype, total.dtype, mixed.dtype, kept.dtype) == ("float16", "float32", "float32", "float64")
    np.testing.assert_allclose(product.numpy(), X @ X.T, rtol=2e-3, atol=2e-3)
    assert paddle.matmul(x, x, transpose_y=True).dtype == "float32"


def test_levels_say_what_else_is_cast():
    x = paddle.to_tensor(X)
    seen = {}
    for level in ("O0", "O1", "O2", "OD"):
        with amp.auto_cast(level=level):
            low = x @ x.T
            seen[level] = low.dtype.name, (x + x).dtype.name, (low + low).dtype.name, paddle.exp(low).dtype.name
    assert seen == {
        "O0": ("float32", "float32", "float32", "float32"),
        "O1": ("float16", "float32", "float16", "float32"),
        "O2": ("float16", "float16", "float16", "float32"),
        "OD": ("float16", "float32", "float32", "float32"),
    }


def test_lists_change_what_an_op_counts_as():
    x = paddle.to_tensor(X)
    with amp.auto_cast(custom_white_list={"elementwise_add", "exp"}, custom_black_list=["matmul_v2"]):
        assert [(x + x).dtype.name, paddle.exp(x).dtype.name, (x @ x.T).dtype.name] == ["float16", "float16", "float32"]


def test_it_may_be_off_and_says_whether_it_is_on():
    with amp.auto_cast(enable=False):
        assert not amp.is_autocast_enabled()
        assert paddle.matmul(paddle.ones([2, 2]), paddle.ones([2, 2])).dtype == "float32"
    with amp.auto_cast():
        assert amp.is_autocast_enabled()
        assert amp.get_autocast_dtype() == "float16"
    assert not amp.is_autocast_enabled()
    assert amp.get_autocast_cpu_dtype() == "float16"
    assert (amp.is_float16_supported(), amp.is_bfloat16_supported()) == (True, True)


def test_gradients_come_back_in_the_dtype_of_their_parameter():
    layer = nn.Linear(3, 2)
    with amp.auto_cast():
        loss = layer(paddle.to_tensor(X)).square().mean()
    loss.backward()
    assert layer.weight.grad.dtype == "float32"
    exact = nn.Linear(3, 2)
    exact.set_state_dict(layer.state_dict())
    exact(paddle.to_tensor(X)).square().mean().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), exact.weight.grad.numpy(), rtol=1e-2, atol=1e-3)


def test_static_casts_as_eager_does_and_has_a_program_for_each_setting():
    def f(x):
        return paddle.nn.functional.softmax(x @ x.T)

    static = paddle.jit.to_static(f, full_graph=True)
    x = paddle.to_tensor(X)
    with amp.auto_cast():
        np.testing.assert_allclose(
            static(x).numpy(), f(x).numpy(), rtol=5e-7
        )  # exp of native code: docs/native-math.md
        text = str(static.concrete_program.main_program)
    assert "float16" in text
    np.testing.assert_allclose(static(x).numpy(), f(x).numpy(), rtol=1e-6)
    assert len(static.program_cache) == 2


@pytest.mark.proves("amp.decorate")
def test_a_model_for_o2_keeps_norms_and_trains_with_float32_copies():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4), nn.Linear(4, 1))
    sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    model, sgd = amp.decorate(model, sgd, level="O2", excluded_layers=[model[2]])
    assert [p.dtype.name for p in model.parameters()] == ["float16"] * 2 + ["float32"] * 4
    scaler = amp.GradScaler(init_loss_scaling=128.0)
    losses = []
    for _ in range(20):
        with amp.auto_cast(level="O2"):
            loss = (model(paddle.to_tensor(X)) - 1.0).square().mean()
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
        sgd.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert model[0].weight.dtype == "float16"


def test_o1_needs_no_decoration():
    layer = nn.Linear(2, 2)
    assert amp.decorate(layer) is layer
    assert layer.weight.dtype == "float32"


@pytest.fixture
def trained():
    p = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
    return p, paddle.optimizer.SGD(0.5, parameters=[p])


def test_a_step_with_infinite_gradients_is_left_out_and_the_scale_halved(trained):
    p, sgd = trained
    scaler = amp.GradScaler(init_loss_scaling=8.0)
    (p * paddle.to_tensor([float("inf"), 1.0])).sum().backward()
    scaler.step(sgd)
    scaler.update()
    assert p.tolist() == [1.0, 1.0]
    assert scaler.get_init_loss_scaling() == 4.0
    p.clear_grad()
    scaler.scale(p.sum()).backward()
    scaler.step(sgd)
    assert p.tolist() == [0.5, 0.5]


@pytest.mark.proves("amp.GradScaler")
def test_the_scale_grows_after_finite_steps_and_stays_when_it_is_not_dynamic(trained):
    p, sgd = trained
    for dynamic, want in ((True, 16.0), (False, 8.0)):
        scaler = amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2, use_dynamic_loss_scaling=dynamic)
        for _ in range(2):
            p.clear_grad()
            scaler.scale(p.sum()).backward()
            scaler.minimize(sgd)
        assert scaler.get_init_loss_scaling() == want
        assert scaler.is_use_dynamic_loss_scaling() is dynamic


def test_a_scaler_that_is_off_does_nothing(trained):
    p, sgd = trained
    scaler = amp.GradScaler(enable=False)
    loss = p.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(sgd)
    scaler.step(sgd)
    scaler.update()
    assert p.tolist() == [0.5, 0.5]
    assert not scaler.is_enable()
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_its_state_comes_back():
    one, two = amp.GradScaler(init_loss_scaling=4.0, incr_ratio=3.0), amp.GradScaler()
    two.load_state_dict(one.state_dict())
    assert two.get_init_loss_scaling() == 4.0
    np.testing.assert_equal(two.state_dict(), one.state_dict())
    two.set_init_loss_scaling(2.0)
    assert two.get_init_loss_scaling() == 2.0


def test_a_scale_beyond_float16_divides_float16_gradients():
    p = paddle.create_parameter([1], "float16")
    p.grad = paddle.to_tensor([32768.0], "float16")
    amp.GradScaler(init_loss_scaling=65536.0).unscale_(paddle.optimizer.SGD(1.0, parameters=[p]))
    assert p.grad.tolist() == [0.5]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: amp.auto_cast(dtype="float64").__enter__(),
            ValueError,
            "dtype must be float16 or bfloat16",
        ),
        (lambda: amp.auto_cast(level="O9").__enter__(), ValueError, "level must be 'O0', 'O1', 'O2' or 'OD'"),
        (lambda: amp.auto_cast(use_promote=False).__enter__(), NotImplementedError, "use_promote=False"),
        (lambda: amp.auto_cast(custom_white_list=["nothing"]).__enter__(), ValueError, "no op is named nothing"),
        (lambda: amp.auto_cast(True, ["exp"], ["exp"]).__enter__(), ValueError, "exp cannot be in both lists"),
        (lambda: amp.decorate(nn.ReLU(), level="O3"), ValueError, "level must be 'O1' or 'O2'"),
        (lambda: amp.decorate(nn.ReLU(), master_grad=True), NotImplementedError, "save_dtype and master_grad"),
        (lambda: amp.decorate(3), TypeError, "models must be Layers, not int"),
        (lambda: amp.GradScaler(incr_ratio=1.0), ValueError, "incr_ratio must be above 1"),
        (lambda: amp.GradScaler(init_loss_scaling=0.0), ValueError, "must be positive"),
        (lambda: amp.GradScaler().load_state_dict({}), RuntimeError, "the state is empty"),
    ],
)
def test_what_cannot_be_done_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def scaled_steps(static, whole):
    """Train with a scaler, one of two gradients infinite at times; what is left after each step."""
    p = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
    adam = paddle.optimizer.Adam(0.1, parameters=[p])
    scaler = amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)

    def backward(x):
        loss = (p * p * x).sum()
        scaler.scale(loss).backward()
        return loss

    def update():
        scaler.step(adam)
        scaler.update()
        adam.clear_grad()

    def step(x):
        loss = backward(x)
        update()
        return loss

    converted = paddle.jit.to_static(step if whole else backward, full_graph=True) if static else step
    left = []
    for k in range(8):
        converted(paddle.to_tensor([1.0, float("inf") if k in (3, 5) else 2.0]))
        if static and not whole:
            update()
        left.append((p.tolist(), scaler.get_init_loss_scaling(), scaler.state_dict()["incr_count"]))
    return left


@pytest.mark.parametrize("whole", [True, False], ids=["step in the Program", "step outside"])
def test_scaled_steps_of_a_program_are_those_of_eager_mode(whole):
    np.testing.assert_equal(scaled_steps(True, whole), scaled_steps(False, whole))


def test_unscaling_twice_is_noticed(trained):
    _, sgd = trained
    scaler = amp.GradScaler()
    scaler.unscale_(sgd)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) was called twice"):
        scaler.unscale_(sgd)


def test_casts_begin_and_end_inside_of_a_program():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        y = x
        for _ in range(2):
            with amp.auto_cast():
                y = y @ x
        if y.sum() > 0:
            y = y @ x
        return y

    x = paddle.to_tensor(np.abs(X[:3]))
    want = x
    with amp.auto_cast():
        want = (want @ x) @ x
    want = want @ x
    np.testing.assert_allclose(f(x).numpy(), want.numpy(), rtol=1e-3)
    assert f(x).dtype == "float32"


def test_threads_have_settings_of_their_own():
    seen = {}

    def work(low):
        for _ in range(50):
            with amp.auto_cast(enable=low):
                seen.setdefault(low, set()).add((paddle.ones([2, 2]) @ paddle.ones([2, 2])).dtype.name)

    in_threads(*(partial(work, low) for low in (True, False)))
    assert seen == {True: {"float16"}, False: {"float32"}}
