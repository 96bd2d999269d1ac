"""What a Program depends on outside of the function, and what may not leave it."""

import types
from collections import namedtuple
from itertools import count

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import ConversionError, StructureError, TraceError
from dy2st.jit.static_function import FallbackWarning

Pair = namedtuple("Pair", "x y")


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


# ---- layers ---------------------------------------------------------------------------------------------------------
def test_hooks_that_come_and_go():
    layer = paddle.nn.Linear(2, 2)
    f = paddle.jit.to_static(lambda x: layer(x), full_graph=True)
    x = tensor(1, 2)
    plain = f(x).numpy()
    hook = layer.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    np.testing.assert_allclose(f(x).numpy(), plain * 2)
    hook.remove()
    np.testing.assert_allclose(f(x).numpy(), plain)


def test_what_a_hook_writes_is_written_at_each_call():
    layer, seen = paddle.nn.Linear(2, 2), {}
    layer.register_forward_post_hook(lambda layer, inputs, output: seen.__setitem__("output", output))
    f = paddle.jit.to_static(lambda x: layer(x), full_graph=True)
    for x in (tensor(1, 2), tensor(3, 4)):
        np.testing.assert_allclose(seen.get("output", f(x)).numpy().shape, (2,))
        np.testing.assert_allclose(f(x).numpy(), seen["output"].numpy())


def test_sublayers_that_are_exchanged():
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.ReLU())
    layers = paddle.nn.LayerList([paddle.nn.Tanh()])

    def run(x):
        for layer in layers:
            x = layer(x)
        return x

    f, g, x = paddle.jit.to_static(lambda x: net(x)), paddle.jit.to_static(run), tensor(1, -2)
    f(x), g(x)
    net[1] = paddle.nn.Sigmoid()
    layers.append(paddle.nn.ReLU())
    np.testing.assert_allclose(f(x).numpy(), net(x).numpy())
    np.testing.assert_allclose(g(x).numpy(), run(x).numpy())


def test_training_mode_is_switched_inside():
    net = paddle.nn.Sequential(paddle.nn.Dropout(0.5))

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        net.eval()
        return net(x)

    for _ in range(2):
        net.train()
        assert f(tensor(1, 1)).tolist() == [1, 1]
        assert not net.training
        assert not net[0].training


# ---- what is read ---------------------------------------------------------------------------------------------------
def test_an_array_that_changes():
    table = np.array([1, 2], "float32")
    f = paddle.jit.to_static(lambda x: x + table, full_graph=True)
    assert f(tensor(0, 0)).tolist() == [1, 2]
    table[0] = 9
    assert f(tensor(0, 0)).tolist() == [9, 2]


@pytest.mark.parametrize("write", ["item", "method", "in_place"])
def test_an_array_that_is_written_falls_back(write):
    table = np.zeros(2, "float32")

    @paddle.jit.to_static
    def f(x):
        nonlocal table
        if write == "item":
            table[0] = table[0] + 1
        elif write == "method":
            table.fill(table[0] + 1)
        else:
            table += 1
        return x + table

    with pytest.warns(FallbackWarning, match="a ndarray from outside is changed"):
        assert f(tensor(0, 0))[0] == 1
    assert f(tensor(0, 0))[0] == 2


def test_an_iterator_from_outside_falls_back():
    numbers = count(5)

    @paddle.jit.to_static
    def f(x):
        return x + next(numbers)

    with pytest.warns(FallbackWarning, match="a count from outside is changed"):
        assert f(tensor(0)).tolist() == [5]
    assert f(tensor(0)).tolist() == [6]


def test_python_runs_through_a_range_of_unknown_length():
    def items(x):
        for i in range(x.shape[0]):
            yield x[i] * i

    @paddle.jit.to_static
    def f(x):
        later = items(x[x > 0])
        return next(later) + next(later)

    with pytest.warns(FallbackWarning, match="Python itself ran through something whose length only the run"):
        assert f(tensor(1, 2, 3)) == 2


# ---- what may not leave ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x: map(lambda v: v * 2, [x]),
        lambda x: (v for v in [x]),
        lambda x: lambda: x,
        lambda x: zip([x], [x], strict=True),
    ],
)
def test_an_object_that_holds_tensors_of_the_trace(function):
    with pytest.raises(StructureError, match="leaves the function"):
        paddle.jit.to_static(function, full_graph=True)(tensor(1))


def test_the_hash_of_a_number_of_the_run():
    for function in (lambda x: hash(x.item()), lambda x: {int(x): 1}, lambda x: len({int(x), 4})):
        with pytest.raises(TraceError, match="the hash of a"):
            paddle.jit.to_static(function, full_graph=True)(paddle.to_tensor(4))
        with pytest.warns(FallbackWarning):
            assert paddle.jit.to_static(function)(paddle.to_tensor(4)) == function(paddle.to_tensor(4))


class Holder:
    """Something to write to."""


@pytest.mark.parametrize("inner", [False, True])
def test_a_function_without_source_is_never_traced(inner):
    space = {"holder": Holder()}
    exec("def made(x):\n    holder.seen = x * 2\n    return x + 1\n", space)
    made = space["made"]
    f = (lambda x: made(x)) if inner else made
    static = paddle.jit.to_static(f)
    with pytest.warns(FallbackWarning, match="`made` cannot be converted: its source is not kept"):
        assert static(tensor(1)).tolist() == [2]
    assert space["holder"].seen.tolist() == [2]
    with pytest.raises(ConversionError, match="`made` cannot be converted"):
        paddle.jit.to_static(f, full_graph=True)(tensor(1))


def test_wrong_arguments_raise_what_python_says():
    def f(x, y, *, z=1):
        return x

    for arguments, words in (((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"q": 1}), ((1, 2), {"x": 1})):
        with pytest.raises(TypeError) as eager:
            f(*arguments, **words)
        with pytest.raises(TypeError) as static:
            paddle.jit.to_static(f)(*arguments, **words)
        assert str(static.value) == str(eager.value)


def test_an_exception_comes_after_the_raise_that_stands_before_it():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        if x.sum() > 0:
            raise KeyError("first")
        return {}["second"]

    with pytest.raises(KeyError, match="first"):
        f(tensor(1))
    with pytest.raises(KeyError, match="second"):
        f(tensor(-1))


def test_a_module_of_the_user_holds_state():
    settings = types.ModuleType("settings_of_this_test")
    settings.scale, settings.calls, settings.rows = 2.0, 0, [1]

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        settings.calls += 1
        return x * settings.scale + len(settings.rows)

    assert f(tensor(1)).tolist() == [3]
    settings.scale = 5.0
    settings.rows.append(1)
    assert f(tensor(1)).tolist() == [7]
    assert settings.calls == 2
