"""Derivatives and training in hand-built Programs: append_backward, gradients, minimize, statistics."""

import numpy as np
import pytest

import dy2st as paddle

nn = paddle.static.nn
F32 = "float32"


def run(feed, *fetches, program=None):
    return paddle.static.Executor().run(program, feed=feed, fetch_list=list(fetches))


def start():
    paddle.static.Executor().run(paddle.static.default_startup_program())


def weight(name="w", shape=(1,), value=2.0, **options):
    attr = paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(value), **options)
    return paddle.static.create_parameter(list(shape), F32, attr=attr)


@pytest.mark.proves("static.append_backward")
def test_append_backward_gives_pairs_named_after_parameters(main):
    w, x = weight(), paddle.static.data("x", [1], F32)
    ((p, g),) = paddle.static.append_backward((w * w * x).sum())
    start()
    assert p is w
    assert g.name == "w@GRAD"
    assert run({"x": np.array([3.0], F32)}, "w@GRAD")[0].tolist() == [12.0]


def test_append_backward_for_chosen_parameters_and_without_blocked_variables(main):
    w, v = weight(), weight("v", value=5.0)
    loss = (w * v).sum()
    assert [p.name for p, _ in paddle.static.append_backward(loss, parameter_list=["v"])] == ["v"]
    assert [p.name for p, _ in paddle.static.append_backward(loss, no_grad_set={"v"})] == ["w"]


def test_frozen_parameters_have_no_pair(main):
    w, v = weight(trainable=False), weight("v")
    assert [p.name for p, _ in paddle.static.append_backward((w * v).sum())] == ["v"]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda w: paddle.static.append_backward(w.sum(), callbacks=[print]), ValueError, "callbacks are not"),
        (lambda w: paddle.static.append_backward(3), TypeError, "append_backward needs the loss, a variable, not int"),
        (lambda w: paddle.static.append_backward(w * 1),
         ValueError, r"the loss must have one element, not the shape \[2\]"),
        (lambda w: paddle.static.append_backward(w.sum(), ["q"]), ValueError, "the Program has no variable named 'q'"),
        (lambda w: paddle.static.append_backward(w.sum(), 3), TypeError, "is a list of variables or names, not int"),
        (lambda w: paddle.static.append_backward(w.sum(), [3]), TypeError, "list of variables or names, but has a int"),
        (lambda w: paddle.static.gradients(3, w), TypeError, "gradients: targets are variables, not int"),
        (lambda w: paddle.static.gradients(w, 3), TypeError, "gradients: inputs are variables, not int"),
        (lambda w: paddle.static.gradients(w, w, [w, w]), ValueError, "2 target_gradients were given for 1 targets"),
        (lambda w: paddle.static.gradients(w, w, [w.sum()]), ValueError, "has 0 axes, the target has 1"),
        (lambda w: w.sum().backward(), RuntimeError, "for a variable of a hand-built Program use"),
        (lambda w: paddle.optimizer.SGD(0.1).minimize(paddle.ones([1])),
         ValueError, "depends on no trainable parameter"),
    ],
)  # fmt: skip
def test_wrong_arguments(main, call, kind, message):
    w = weight(shape=(2,))
    with pytest.raises(kind, match=message):
        call(w)


@pytest.mark.parametrize("call", [lambda: paddle.static.append_backward(3), lambda: paddle.static.data("x", [1])])
def test_building_needs_static_mode(call):
    with pytest.raises(RuntimeError, match=r"builds a Program by hand: call paddle.enable_static\(\) first"):
        call()


@pytest.mark.proves("static.gradients")
def test_gradients_of_several_targets_and_orders(main):
    x = paddle.static.data("x", [2], F32)
    (first,) = paddle.static.gradients([x**3, x * 2], x)
    (second,) = paddle.static.gradients(first, x)
    got = run({"x": np.array([1.0, 2.0], F32)}, first, second)
    assert [g.tolist() for g in got] == [[5.0, 14.0], [6.0, 12.0]]


def test_gradients_start_from_given_ones_and_are_none_where_nothing_depends(main):
    x, z = paddle.static.data("x", [2], F32), paddle.static.data("z", [2], F32)
    found = paddle.static.gradients(x * x, [x, z], paddle.assign(np.array([1.0, 10.0], F32)))
    assert found[1] is None
    assert run({"x": np.ones(2, F32)}, found[0])[0].tolist() == [2.0, 20.0]


def test_no_gradient_flows_through_the_no_grad_set(main):
    x = paddle.static.data("x", [1], F32)
    y = x * 3
    (g,) = paddle.static.gradients(x * y, x, no_grad_set=[y])
    assert run({"x": np.array([2.0], F32)}, g)[0].tolist() == [6.0]


def test_gradients_through_a_loop_of_unknown_length(main):
    x = paddle.static.data("x", [], "float64")
    (y,) = nn.while_loop(lambda v: v < 8, lambda v: v * v, [x])
    orders = [y]
    for _ in range(3):
        orders.append(paddle.static.gradients(orders[-1], x)[0])
    np.testing.assert_allclose([o.item() for o in run({"x": np.array(2.0)}, *orders)], [16, 32, 48, 48])


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: paddle.optimizer.SGD(0.1, parameters=ps),
        lambda ps: paddle.optimizer.Momentum(0.1, parameters=ps, weight_decay=0.01),
        lambda ps: paddle.optimizer.Adam(0.1, parameters=ps, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)),
        lambda ps: paddle.optimizer.AdamW(0.1, parameters=ps),
    ],
)
@pytest.mark.proves("static.Executor static.Executor.run static.data static.Program")
def test_training_steps_are_those_of_eager_mode(main, make, rng):
    data = [rng.normal(size=(4, 3)).astype(F32) for _ in range(3)]
    start_values = rng.normal(size=(3, 2)).astype(F32)
    w = paddle.static.create_parameter([3, 2], F32, attr=paddle.ParamAttr(
        name="w", initializer=paddle.nn.initializer.Assign(start_values)))  # fmt: skip
    x = paddle.static.data("x", [None, 3], F32)
    loss = (paddle.tanh(x @ w) ** 2).mean()
    make(None).minimize(loss)
    start()
    got = [run({"x": d}, loss, w) for d in data]
    paddle.disable_static()
    p = paddle.create_parameter([3, 2], F32, attr=paddle.ParamAttr(
        initializer=paddle.nn.initializer.Assign(start_values)))  # fmt: skip
    optimizer = make([p])
    for d, (static_loss, static_w) in zip(data, got, strict=True):
        eager = (paddle.tanh(paddle.to_tensor(d) @ p) ** 2).mean()
        eager.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        np.testing.assert_allclose(static_loss, eager.numpy(), rtol=1e-6)
        np.testing.assert_allclose(static_w, p.numpy(), rtol=1e-5, atol=1e-7)


def test_a_parameter_that_only_an_untaken_branch_used_is_left_alone(main):
    w, v = weight(), weight("v")
    x = paddle.static.data("x", [1], F32)
    loss = nn.cond(x > 0, lambda: (w * w).sum(), lambda: (v * v).sum())
    paddle.optimizer.Momentum(0.1, weight_decay=0.5).minimize(loss)
    start()
    got_w, got_v = run({"x": np.array([1.0], F32)}, w, v)
    assert got_w.item() != 2.0
    assert got_v.item() == 2.0


def test_the_learning_rate_can_be_set_between_runs(main):
    w = weight()
    optimizer = paddle.optimizer.SGD(0.5)
    optimizer.minimize((w * 1.0).sum())
    start()
    assert run({}, w)[0].tolist() == [1.5]
    optimizer.set_lr(0.25)
    assert run({}, w)[0].tolist() == [1.25]


def test_minimize_returns_operations_and_pairs(main):
    w = weight()
    operations, pairs = paddle.optimizer.SGD(0.5).minimize((w * w).sum())
    assert "mul" in {o.type for o in operations}
    assert [p.name for p, _ in pairs] == ["w"]


def test_a_startup_program_may_be_named(main):
    own = paddle.static.Program()
    w = weight()
    paddle.optimizer.Adam(0.5).minimize((w * w).sum(), startup_program=own)
    start()
    paddle.static.Executor().run(own)
    assert run({}, w)[0].item() < 2.0


def test_an_eager_layer_is_trained_in_place(main):
    paddle.disable_static()
    layer = paddle.nn.Linear(2, 1)
    before = layer.weight.numpy()
    paddle.enable_static()
    with paddle.static.program_guard(main):
        loss = layer(paddle.static.data("x", [None, 2], F32)).sum()
        paddle.optimizer.SGD(0.1, parameters=layer.parameters()).minimize(loss)
        run({"x": np.ones((1, 2), F32)})
    paddle.disable_static()
    np.testing.assert_allclose(layer.weight.numpy(), before - 0.1, rtol=1e-6)


def test_two_networks_share_a_parameter_by_name(main):
    x = paddle.static.data("x", [None, 2], F32)
    one, two = nn.fc(x, 3, weight_attr="shared"), nn.fc(x, 3, weight_attr="shared")
    start()
    a, b = run({"x": np.ones((1, 2), F32)}, one, two)
    assert a.tolist() == b.tolist()
    with pytest.raises(ValueError, match=r"the parameter shared is float32\[2, 3\] already and cannot also be"):
        nn.fc(x, 4, weight_attr="shared")
