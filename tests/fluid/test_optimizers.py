"""1.x's constructors of optimizers, initializers, regularizers and clippings."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.fluid as fluid

O = fluid.optimizer

PAIRS = {
    "SGD": (lambda ps: O.SGDOptimizer(0.1, ps), lambda ps: paddle.optimizer.SGD(0.1, ps)),
    "Momentum": (
        lambda ps: O.MomentumOptimizer(0.1, 0.9, ps, True, fluid.regularizer.L2Decay(0.1)),
        lambda ps: paddle.optimizer.Momentum(0.1, 0.9, ps, True, 0.1),
    ),
    "Adagrad": (
        lambda ps: O.AdagradOptimizer(0.1, parameter_list=ps),
        lambda ps: paddle.optimizer.Adagrad(0.1, parameters=ps),
    ),
    "Adam": (
        lambda ps: O.AdamOptimizer(0.1, parameter_list=ps, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)),
        lambda ps: paddle.optimizer.Adam(0.1, parameters=ps, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)),
    ),
    "Adamax": (
        lambda ps: O.AdamaxOptimizer(0.1, parameter_list=ps),
        lambda ps: paddle.optimizer.Adamax(0.1, parameters=ps),
    ),
    "Adadelta": (
        lambda ps: O.AdadeltaOptimizer(0.1, parameter_list=ps),
        lambda ps: paddle.optimizer.Adadelta(0.1, parameters=ps),
    ),
    "RMSProp": (
        lambda ps: O.RMSPropOptimizer(0.1, parameter_list=ps),
        lambda ps: paddle.optimizer.RMSProp(0.1, parameters=ps),
    ),
    "Lamb": (
        lambda ps: O.LambOptimizer(0.1, parameter_list=ps),
        lambda ps: paddle.optimizer.Lamb(0.1, parameters=ps),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_an_optimizer_steps_as_the_modern_one(name):
    ends = []
    for make in PAIRS[name]:
        paddle.seed(3)
        layer = fluid.dygraph.Linear(3, 2)
        optimizer = make(layer.parameters())
        for _ in range(3):
            loss = fluid.layers.reduce_sum(fluid.layers.square(layer(paddle.ones([2, 3]))))
            loss.backward()
            optimizer.minimize(loss)
            layer.clear_gradients()
        ends.append(layer.weight.numpy())
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda: fluid.initializer.Xavier(), np.sqrt(6 / 300) * 0.9, np.sqrt(6 / 300)),
        (lambda: fluid.initializer.MSRA(), np.sqrt(6 / 100) * 0.9, np.sqrt(6 / 100)),
        (lambda: fluid.initializer.Constant(0.5), 0.5, 0.5),
        (lambda: fluid.initializer.Uniform(-2.0, 2.0), 1.9, 2.0),
    ],
)
def test_an_initializer_reaches_its_limit(make, low, high):
    values = paddle.create_parameter([100, 200], "float32", default_initializer=make()).numpy()
    assert low <= np.abs(values).max() <= high + 1e-6


@pytest.mark.parametrize(
    ("make", "std"),
    [
        (lambda: fluid.initializer.Xavier(uniform=False), np.sqrt(2 / 300)),
        (lambda: fluid.initializer.MSRA(uniform=False), np.sqrt(2 / 100)),
        (lambda: fluid.initializer.Normal(0.0, 0.3), 0.3),
    ],
)
def test_an_initializer_has_its_spread(make, std):
    values = paddle.create_parameter([100, 200], "float32", default_initializer=make()).numpy()
    assert values.std() == pytest.approx(std, rel=0.05)
