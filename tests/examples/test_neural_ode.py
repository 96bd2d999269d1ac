"""The adaptive solver against formulas, in both modes and to the second order; the network that learns through it."""

import numpy as np
import pytest

import dy2st as paddle


@pytest.fixture(scope="module")
def ode(example):
    return example("neural_ode")


@pytest.fixture(scope="module")
def static(ode):
    return paddle.jit.to_static(ode.oscillator, full_graph=True)


@pytest.fixture(scope="module")
def trained(ode):
    return ode.train(80)


def decay(ode, static: bool):
    def final(rate, duration):
        return ode.solve(lambda y: -rate * y, paddle.ones([], rate.dtype), duration, 1e-7)[0]

    return paddle.jit.to_static(final, full_graph=True) if static else final


def test_the_formulas_of_the_sensitivities(ode):
    given, d = np.array([0.15, 1.4, 1.0, -0.5]), 1e-6
    _, slopes = ode.sensitivities(*given, 2.0)
    for i, slope in enumerate(slopes):
        step = np.zeros(4)
        step[i] = d
        more, less = (ode.sensitivities(*(given + s), 2.0)[0] for s in (step, -step))
        assert slope == pytest.approx((more - less) / (2 * d), rel=1e-7)


@pytest.mark.parametrize("tolerance", [1e-5, 1e-7])
def test_gradients_through_adaptive_steps_are_the_sensitivities(ode, static, tolerance):
    errors = ode.sensitivity_errors(static, 3.0, tolerance)
    assert errors[0] < 10 * tolerance
    assert max(errors[1:]) < 100 * tolerance


def test_a_tighter_tolerance_takes_more_steps(ode, static):
    given = [paddle.to_tensor(np.array(v)) for v in (0.15, 1.4, 1.0, -0.5)]
    loose, tight = (int(static(*given, 3.0, tolerance)[1]) for tolerance in (1e-4, 1e-7))
    assert 5 < loose < tight / 4


def test_eager_and_static_agree(ode, static):
    for ours, theirs in zip(
        ode.sensitivity_errors(ode.oscillator, 1.0, 1e-5), ode.sensitivity_errors(static, 1.0, 1e-5), strict=True
    ):
        assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("mode", ["eager", "static"])
def test_second_order_through_adaptive_steps(ode, mode):
    rate = paddle.to_tensor(np.array(0.7), stop_gradient=False)
    y = decay(ode, mode == "static")(rate, 1.0)
    (slope,) = paddle.grad([y], [rate], create_graph=True)
    (bend,) = paddle.grad([slope], [rate])
    assert float(y) == pytest.approx(np.exp(-0.7), abs=1e-6)
    assert float(slope) == pytest.approx(-np.exp(-0.7), abs=1e-5)
    assert float(bend) == pytest.approx(np.exp(-0.7), abs=1e-3)


def test_no_step_for_no_time(ode, static):
    given = [paddle.to_tensor(np.array(v), stop_gradient=False) for v in (0.15, 1.4, 1.0, -0.5)]
    place, steps = static(*given, 0.0, 1e-5)
    place.backward()
    assert (float(place), int(steps)) == (1.0, 0)
    assert float(given[2].grad) == 1.0


@pytest.mark.slow
def test_the_network_learns_the_flow(ode, trained):
    field, _, losses = trained
    assert losses[-1] < 5e-3 * losses[0]
    starts, times = np.array([[0.8, -0.3], [-0.5, 0.4]]), np.array([1.0])
    end, _ = ode.solve(field, paddle.to_tensor(starts.astype("float32")), 1.0, 1e-4)
    assert np.abs(end.numpy() - ode.flow(starts, times)[0]).max() < 0.1


@pytest.mark.slow
def test_the_training_step_is_one_program(trained):
    step = trained[1]
    assert len(step.program_cache) == 1
    assert "no fallback" in str(step.explain())
    assert "while_loop" in str(step.concrete_program.main_program)
