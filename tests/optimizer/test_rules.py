"""Each update rule against its formula written out in NumPy, eagerly and as part of a Program."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import optimizer as O

LR, STEPS = 0.1, 4


def sgd(p, gs):
    for g in gs:
        p = p - LR * g
    return p


def momentum(p, gs, nesterov=False):
    v = np.zeros_like(p)
    for g in gs:
        v = 0.9 * v + g
        p = p - LR * (g + 0.9 * v if nesterov else v)
    return p


def adagrad(p, gs):
    s = np.full_like(p, 0.1)
    for g in gs:
        s = s + g * g
        p = p - LR * g / (np.sqrt(s) + 1e-6)
    return p


def adadelta(p, gs):
    s, u = np.zeros_like(p), np.zeros_like(p)
    for g in gs:
        s = 0.95 * s + 0.05 * g * g
        d = g * np.sqrt((u + 1e-6) / (s + 1e-6))
        u = 0.95 * u + 0.05 * d * d
        p = p - LR * d
    return p


def rmsprop(p, gs):
    s, mean, v = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for g in gs:
        s = 0.9 * s + 0.1 * g * g
        mean = 0.9 * mean + 0.1 * g
        v = 0.5 * v + LR * g / np.sqrt(s - mean**2 + 1e-6)
        p = p - v
    return p


def adam(p, gs, decoupled=0.0, l2=0.0, amsgrad=False):
    m, v, most = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        g = g + l2 * p
        p = p * (1 - LR * decoupled)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        most = np.maximum(most, v)
        mh, vh = m / (1 - 0.9**t), (most if amsgrad else v) / (1 - 0.999**t)
        p = p - LR * mh / (np.sqrt(vh) + 1e-8)
    return p


def adamax(p, gs):
    m, u = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        m = 0.9 * m + 0.1 * g
        u = np.maximum(0.999 * u + 1e-8, np.abs(g))
        p = p - LR / (1 - 0.9**t) * m / u
    return p


def lamb(p, gs):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        r = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * p
        p = p - LR * np.sqrt((p * p).sum()) / np.sqrt((r * r).sum()) * r
    return p


def nadam(p, gs):
    m, v, product = np.zeros_like(p), np.zeros_like(p), 1.0
    for t, g in enumerate(gs, 1):
        mu, after = (0.9 * (1 - 0.5 * 0.96 ** (0.004 * k)) for k in (t, t + 1))
        product *= mu
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        mh = after * m / (1 - product * after) + (1 - mu) * g / (1 - product)
        p = p - LR * mh / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


def radam(p, gs):
    m, v, limit = np.zeros_like(p), np.zeros_like(p), 2 / (1 - 0.9) - 1
    for t, g in enumerate(gs, 1):
        m, v = 0.9 * m + 0.1 * g, 0.9 * v + 0.1 * g * g
        rho = limit - 2 * t * 0.9**t / (1 - 0.9**t)
        step = m / (1 - 0.9**t)
        if rho > 5:
            r = np.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
            step = step * r * np.sqrt(1 - 0.9**t) / (np.sqrt(v) + 1e-8)
        p = p - LR * step
    return p


def rprop(p, gs):
    before, step = np.zeros_like(p), np.full_like(p, LR)
    for g in gs:
        turned = g * before
        step = np.where(
            turned > 0, np.minimum(step * 1.2, 50), np.where(turned < 0, np.maximum(step * 0.5, 1e-5), step)
        )
        g = np.where(turned < 0, 0, g)
        p, before = p - np.sign(g) * step, g
    return p


def asgd(p, gs):
    d, seen = np.zeros_like(p), [np.zeros_like(p)] * 2
    for t, g in enumerate(gs, 1):
        d = d - seen[-1] + g
        seen = [g, seen[0]]
        p = p - LR / min(t, 2) * d
    return p


RULES = {
    "SGD": (sgd, lambda ps: O.SGD(LR, ps)),
    "Momentum": (momentum, lambda ps: O.Momentum(LR, 0.9, ps)),
    "Nesterov": (lambda p, gs: momentum(p, gs, True), lambda ps: O.Momentum(LR, 0.9, ps, use_nesterov=True)),
    "Adagrad": (adagrad, lambda ps: O.Adagrad(LR, parameters=ps, initial_accumulator_value=0.1)),
    "Adadelta": (adadelta, lambda ps: O.Adadelta(LR, parameters=ps)),
    "RMSProp": (rmsprop, lambda ps: O.RMSProp(LR, 0.9, momentum=0.5, centered=True, parameters=ps)),
    "Adam": (adam, lambda ps: O.Adam(LR, parameters=ps)),
    "AMSGrad": (lambda p, gs: adam(p, gs, amsgrad=True), lambda ps: O.Adam(LR, parameters=ps, amsgrad=True)),
    "AdamL2": (lambda p, gs: adam(p, gs, l2=0.2), lambda ps: O.Adam(LR, parameters=ps, weight_decay=0.2)),
    "AdamW": (lambda p, gs: adam(p, gs, decoupled=0.3), lambda ps: O.AdamW(LR, parameters=ps, weight_decay=0.3)),
    "Adamax": (adamax, lambda ps: O.Adamax(LR, parameters=ps)),
    "Lamb": (lamb, lambda ps: O.Lamb(LR, parameters=ps)),
    "NAdam": (nadam, lambda ps: O.NAdam(LR, parameters=ps)),
    "RAdam": (radam, lambda ps: O.RAdam(LR, beta2=0.9, parameters=ps)),
    "Rprop": (rprop, lambda ps: O.Rprop(LR, parameters=ps)),
    "ASGD": (asgd, lambda ps: O.ASGD(LR, 2, ps)),
}


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.proves(
    "optimizer.SGD optimizer.Momentum optimizer.Adagrad optimizer.Adadelta optimizer.RMSProp optimizer.Adam "
    "optimizer.AdamW optimizer.Adamax optimizer.Lamb optimizer.NAdam optimizer.RAdam optimizer.Rprop "
    "optimizer.ASGD"
)
def test_rule_is_its_formula(name, static, rng):
    formula, make = RULES[name]
    start, gradients = rng.normal(size=(3, 2)), [rng.normal(size=(3, 2)) for _ in range(STEPS)]
    p = paddle.create_parameter([3, 2], "float64", default_initializer=paddle.nn.initializer.Assign(start))
    optimizer = make([p])

    def step(g):
        (p * g).sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    for g in gradients:
        run(paddle.to_tensor(g))
    np.testing.assert_allclose(p.numpy(), formula(start, gradients), rtol=1e-7)
    if static:
        assert len(run.program_cache) == 1


def test_a_float16_parameter_with_multi_precision_keeps_small_steps(rng):
    p = paddle.create_parameter([4], "float16", default_initializer=paddle.nn.initializer.Constant(1.0))
    optimizer = O.SGD(1e-4, [p], multi_precision=True)
    for _ in range(10):
        p.grad = paddle.ones([4], "float16")
        optimizer.step()
    np.testing.assert_allclose(p.numpy(), np.float16(0.999), rtol=1e-3)
    assert p.numpy()[0] < 1.0


def test_lamb_of_a_zero_parameter_takes_a_plain_step():
    p = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = O.Lamb(LR, parameters=[p])
    p.grad = paddle.ones([2])
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), [-LR, -LR], rtol=1e-4)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: O.SGD("fast", []), TypeError, "the learning rate must be a number or an LRScheduler"),
        (lambda: O.SGD(0.1), AttributeError, "an optimizer needs its parameters"),
        (lambda: O.SGD(0.1, paddle.ones([1])), TypeError, "parameters must be a list of Tensors"),
        (lambda: O.SGD(0.1, [3]), TypeError, "an optimizer trains Tensors, not int"),
        (lambda: O.SGD(0.1, [], weight_decay="l2"), TypeError, "weight_decay must be a number or a regularizer"),
        (lambda: O.SGD(0.1, [], grad_clip=1.0), TypeError, "grad_clip must be a clipping"),
        (lambda: O.SGD(0.1, [{"lr": 1}]), ValueError, "needs the key 'params'"),
        (lambda: O.AdamW(0.1, parameters=[], weight_decay="x"), TypeError, "weight_decay must be a number"),
        (lambda: O.AdamW(0.1, parameters=[], use_lowprecision_moment=True), ValueError, "moments have the"),
        (lambda: O.Adam(0.1, beta1=1.0, parameters=[]), ValueError, "beta1 must be at least 0 and below 1"),
        (lambda: O.ASGD(0.1, 0, []), ValueError, "batch_num must be a positive int"),
        (lambda: O.Rprop(0.1, (0.0, 1.0), []), ValueError, "learning_rate_range must be"),
        (lambda: O.Rprop(0.1, parameters=[], etas=(2.0, 3.0)), ValueError, "etas must be"),
        (lambda: O.Optimizer(0.1, []).rule(None, None, None, None, {}, {}), NotImplementedError, "define `rule`"),
        (lambda: O.SGD(0.1, []).minimize(3.0), TypeError, "minimize needs the loss, a Tensor, not float"),
        (lambda: O.SGD(0.1, []).set_lr_scheduler(0.1), TypeError, "set_lr_scheduler needs an LRScheduler"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()
