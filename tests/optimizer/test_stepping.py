"""What all optimizers share: groups, learning rates, decay, clipping, state, minimize."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import optimizer as O
from dy2st.regularizer import L1Decay, L2Decay, WeightDecayRegularizer

Assign = paddle.nn.initializer.Assign


def parameter(values, **attr):
    return paddle.create_parameter(
        [len(values)], "float64", attr=paddle.ParamAttr(initializer=Assign(np.array(values)), **attr)
    )


def stepped(p, optimizer, gradient):
    before = p.numpy().copy()
    p.grad = paddle.to_tensor(np.array(gradient))
    optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    return before - p.numpy()


def test_groups_have_their_own_factor_and_decay():
    a, b = parameter([1.0]), parameter([1.0])
    optimizer = O.SGD(0.1, [{"params": [a]}, {"params": [b], "learning_rate": 0.5, "weight_decay": 2.0}])
    a.grad = b.grad = paddle.to_tensor(np.array([1.0]))
    optimizer.step()
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [1 - 0.1, 1 - 0.05 * (1 + 2.0)])


def test_a_parameter_in_two_groups():
    a = parameter([1.0])
    with pytest.raises(ValueError, match="more than one parameter group"):
        O.SGD(0.1, [{"params": [a]}, {"params": [a]}])
    optimizer = O.SGD(0.1, [a])
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer._add_param_group({"params": [a]})


@pytest.mark.proves("ParamAttr")
def test_a_parameter_has_its_own_rate_and_regularizer():
    p = parameter([2.0, -2.0], learning_rate=0.5, regularizer=L1Decay(3.0))
    np.testing.assert_allclose(stepped(p, O.SGD(0.1, [p], weight_decay=7.0), [1.0, 1.0]), [0.05 * 4, 0.05 * -2])


@pytest.mark.proves("regularizer.L2Decay")
def test_l2_decay_adds_the_parameter():
    p = parameter([2.0])
    np.testing.assert_allclose(stepped(p, O.SGD(0.1, [p], weight_decay=L2Decay(0.5)), [1.0]), [0.1 * 2.0])


@pytest.mark.proves("regularizer.L1Decay")
def test_a_regularizer_says_its_term():
    with pytest.raises(NotImplementedError, match="define `term`"):
        WeightDecayRegularizer(0.1).term(None, None)
    assert repr(L2Decay(0.5)) == "L2Decay(coeff=0.5)"


def test_adamw_asks_which_parameters_decay():
    p, q = parameter([1.0], name="w"), parameter([1.0], name="b")
    optimizer = O.AdamW(0.1, parameters=[p, q], weight_decay=0.5, apply_decay_param_fun=lambda name: name == "w")
    zero = paddle.zeros([1], "float64")
    p.grad, q.grad = zero, zero
    optimizer.step()
    np.testing.assert_allclose([p.numpy()[0], q.numpy()[0]], [1 - 0.05, 1.0])


def test_adamw_ratio_of_the_learning_rate():
    p = parameter([1.0])
    optimizer = O.AdamW(0.1, parameters=[p], weight_decay=0.0, lr_ratio=lambda _: 0.5)
    np.testing.assert_allclose(stepped(p, optimizer, [3.0]), [0.05], rtol=1e-6)


@pytest.mark.parametrize(
    ("clip", "want"),
    [
        (lambda: paddle.nn.ClipGradByValue(2.0), [2.0, 2.0]),
        (lambda: paddle.nn.ClipGradByValue(3.5, min=3.2), [3.2, 3.5]),
        (lambda: paddle.nn.ClipGradByNorm(1.0), [0.6, 0.8]),
        (lambda: paddle.nn.ClipGradByNorm(100.0), [3.0, 4.0]),
        (lambda: paddle.nn.ClipGradByGlobalNorm(2.5), [1.5, 2.0]),
    ],
)
@pytest.mark.proves("nn.ClipGradByValue nn.ClipGradByNorm")
def test_clipping(clip, want):
    p = parameter([0.0, 0.0])
    np.testing.assert_allclose(stepped(p, O.SGD(1.0, [p], grad_clip=clip()), [3.0, 4.0]), want)


@pytest.mark.proves("nn.ClipGradByGlobalNorm")
def test_a_global_norm_counts_all_but_those_that_are_not_clipped():
    p, q, free = parameter([0.0]), parameter([0.0]), parameter([0.0], need_clip=False)
    optimizer = O.SGD(1.0, [p, q, free], grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    for t, g in ((p, 3.0), (q, 4.0), (free, 100.0)):
        t.grad = paddle.to_tensor(np.array([g]))
    optimizer.step()
    np.testing.assert_allclose([t.numpy()[0] for t in (p, q, free)], [-0.6, -0.8, -100.0])


def test_clipping_leaves_a_missing_gradient_missing():
    p = parameter([0.0])
    assert paddle.nn.ClipGradByGlobalNorm(1.0)([(p, None)]) == [(p, None)]


def test_clip_by_value_needs_a_positive_bound():
    with pytest.raises(ValueError, match="max must be positive"):
        paddle.nn.ClipGradByValue(-1.0)


def test_a_parameter_without_gradient_is_left_alone():
    p, q = parameter([1.0]), parameter([1.0])
    optimizer = O.AdamW(0.1, parameters=[p, q], weight_decay=0.5)
    stepped(p, optimizer, [1.0])
    assert q.numpy()[0] == 1.0
    assert not any(q.name in name for name in optimizer.state_dict())


def test_a_frozen_parameter_is_left_alone():
    p = parameter([1.0], trainable=False)
    np.testing.assert_array_equal(stepped(p, O.SGD(0.1, [p]), [1.0]), [0.0])


def test_set_lr_reaches_a_program_without_a_new_trace():
    p = parameter([0.0])
    optimizer = O.SGD(0.1, [p])

    @paddle.jit.to_static(full_graph=True)
    def step():
        p.sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)

    step()
    optimizer.set_lr(1.0)
    step()
    np.testing.assert_allclose(p.numpy(), [-1.1])
    assert len(step.program_cache) == 1


def test_a_scheduler_reaches_a_program_without_a_new_trace():
    p = parameter([0.0])
    schedule = O.lr.StepDecay(1.0, step_size=1, gamma=0.5)
    optimizer = O.SGD(schedule, [p])

    @paddle.jit.to_static(full_graph=True)
    def step():
        p.sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)

    for _ in range(3):
        step()
        schedule.step()
    np.testing.assert_allclose(p.numpy(), [-1.75])
    assert len(step.program_cache) == 1
    with pytest.raises(RuntimeError, match="set by an LRScheduler"):
        optimizer.set_lr(0.1)


def test_state_goes_to_another_optimizer():
    gradients = [[1.0, -2.0], [0.5, 3.0], [2.0, 2.0], [-1.0, 1.0]]

    def begin():
        p = parameter([1.0, 2.0], name="w")
        return p, O.Adam(O.lr.ExponentialDecay(0.1, 0.5), parameters=[p])

    p, optimizer = begin()
    for g in gradients:
        stepped(p, optimizer, g)
        optimizer._learning_rate.step()
    q, first = begin()
    for g in gradients[:2]:
        stepped(q, first, g)
        first._learning_rate.step()
    again, second = begin()
    again.set_value(q)
    second.set_state_dict({k: v if isinstance(v, dict) else v.numpy() for k, v in first.state_dict().items()})
    for g in gradients[2:]:
        stepped(again, second, g)
        second._learning_rate.step()
    np.testing.assert_array_equal(again.numpy(), p.numpy())
    assert set(first.state_dict()) >= {"w_moment1_0", "w_moment2_0", "LR_Scheduler"}


def test_state_of_another_shape():
    p = parameter([1.0, 2.0], name="v")
    optimizer = O.Momentum(0.1, parameters=[p])
    stepped(p, optimizer, [1.0, 1.0])
    with pytest.raises(ValueError, match=r"the state v_velocity_0 has shape \[2\], the value given for it \[3\]"):
        optimizer.set_state_dict({"v_velocity_0": np.zeros(3)})


@pytest.mark.proves("optimizer.Optimizer.minimize")
def test_minimize_steps_by_the_gradients_of_backward():
    p = parameter([2.0])
    optimizer = O.SGD(0.1, [p])
    loss = (p * p).sum()
    loss.backward()
    operations, pairs = optimizer.minimize(loss)
    assert operations == []
    assert pairs[0][0] is p
    np.testing.assert_allclose(p.numpy(), [1.6])


@pytest.mark.proves("optimizer.Optimizer.step")
def test_a_step_keeps_the_memory_of_the_parameter():
    p = parameter([1.0, 2.0])
    view = p.numpy()
    before = view.copy()
    stepped(p, O.SGD(0.1, [p]), [1.0, 1.0])
    np.testing.assert_allclose(p.numpy(), before - 0.1)


def test_a_nan_gradient_reaches_the_parameter():
    p = parameter([1.0])
    assert np.isnan(stepped(p, O.Adam(0.1, parameters=[p]), [np.nan]))[0]


def test_an_empty_parameter_can_be_stepped():
    p = paddle.create_parameter([0, 3], "float32")
    optimizer = O.Adam(0.1, parameters=[p], grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    p.grad = paddle.zeros([0, 3])
    optimizer.step()
    assert p.shape == [0, 3]


class Halved(O.SGD):
    def rule(self, m, p, g, lr, state, options):
        return p - lr * g * 0.5, {}


@pytest.mark.parametrize(("kind", "line"), [(O.Adam, "optimizer.step()"), (Halved, "return p - lr * g * 0.5, {}")])
def test_operations_of_an_update_name_the_step_or_the_users_rule(kind, line):
    p = parameter([1.0, 2.0])
    optimizer = kind(learning_rate=0.1, parameters=[p])

    @paddle.jit.to_static(full_graph=True)
    def step(x):
        (p * x).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    step(paddle.to_tensor(np.array([1.0, 1.0])))
    operations = [*step.concrete_program.main_program.walk()]
    assert line in {o.location.source() for o in operations if o.location is not None}
    assert all(o.location is not None and o.location.file == __file__ for o in operations)


@pytest.mark.parametrize("rule", [O.SGD, O.Momentum, O.AdamW])
def test_a_weight_decay_that_is_set_between_steps_is_that_of_the_next_step(rule):
    def weights(decays, static=False):
        w = parameter([1.0, -2.0])
        optimizer = rule(0.1, parameters=[{"params": [w]}], weight_decay=0.5)

        def step():
            (w * w).sum().backward()
            optimizer.step()
            optimizer.clear_grad()

        step = paddle.jit.to_static(step) if static else step
        found = []
        for decay in decays:
            if decay is not None:
                optimizer._param_groups[0]["weight_decay"] = decay
            step()
            found.append(w.numpy())
        return np.stack(found)

    kept, set_to_the_same = weights([None] * 5), weights([None, 0.5, 0.5, 0.5, 0.5])
    np.testing.assert_array_equal(kept, set_to_the_same)
    ended = weights([None, None, None, 0.0, None])
    np.testing.assert_array_equal(kept[:3], ended[:3])
    assert (np.abs(ended[3:]) > np.abs(kept[3:])).all()
    np.testing.assert_allclose(weights([None, None, None, 0.0, None], static=True), ended, rtol=1e-6)
