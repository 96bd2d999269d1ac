"""The physics-informed network, small: its derivatives, its training in both modes, how near the solution it comes."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dy2st as paddle


@pytest.fixture(scope="module")
def pinn(example):
    return example("pinn")


@pytest.fixture(scope="module")
def trained(pinn):
    return pinn.train(600)


def test_the_solution_solves_the_equation(pinn):
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 1, 50), rng.uniform(0, 1, 50)
    d = 1e-4
    u, right, left = pinn.exact(x, t), pinn.exact(x + d, t), pinn.exact(x - d, t)
    u_t = (pinn.exact(x, t + d) - pinn.exact(x, t - d)) / (2 * d)
    missed = u_t + u * (right - left) / (2 * d) - pinn.NU * (right - 2 * u + left) / d**2
    assert np.abs(missed).max() < 1e-5


def test_the_residual_of_the_solution_is_zero(pinn):
    def front(x, t):
        return pinn.SPEED - pinn.HEIGHT * paddle.tanh(pinn.HEIGHT * (x - pinn.SPEED * t) / (2 * pinn.NU))

    x, t = (paddle.to_tensor(np.linspace(a, 1, 20)[:, None]) for a in (-1, 0))
    assert np.abs(pinn.residual(front, x, t).numpy()).max() < 1e-12


@pytest.mark.slow
def test_the_network_comes_near_the_solution(trained):
    assert trained.errors[0] > 0.5
    assert trained.errors[-1] < 0.12
    assert trained.losses[-1] < 1e-2 * trained.losses[0]


@pytest.mark.slow
def test_a_longer_training_comes_nearer(pinn):
    longer = pinn.train(3000)
    assert longer.errors[-1] < 0.01
    assert longer.losses[-1] < 1e-4 * longer.losses[0]


def test_the_training_step_is_one_program(trained):
    assert len(trained.step.program_cache) == 1
    assert "no fallback" in str(trained.step.explain())


def test_another_number_of_points_makes_no_further_program(pinn, trained):
    trained.step(*pinn.points(np.random.default_rng(2), 10))
    assert len(trained.step.program_cache) == 1


def test_eager_and_static_learn_alike(pinn):
    eager, static = (pinn.train(12, width=8, count=16, static=mode) for mode in (False, True))
    np.testing.assert_allclose(static.losses, eager.losses, rtol=1e-4)
    np.testing.assert_allclose(static.errors, eager.errors, rtol=1e-3)


def test_the_convergence_is_drawn(pinn, trained, tmp_path):
    pinn.log_plot(tmp_path / "pinn.svg", "a < b", {"loss": trained.losses, "error": trained.errors})
    drawn = ET.fromstring((tmp_path / "pinn.svg").read_text())
    lines = [e for e in drawn if e.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [len(trained.losses), len(trained.errors)]
    assert drawn[1].text == "a < b"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_logarithmic_axis_needs_positive_values(pinn, tmp_path, value):
    with pytest.raises(ValueError, match="a logarithmic axis has positive finite values only"):
        pinn.log_plot(tmp_path / "x.svg", "", {"loss": [1.0, value]})


def test_there_must_be_something_to_draw(pinn, tmp_path):
    with pytest.raises(ValueError, match="there is nothing to draw: no curve has a point"):
        pinn.log_plot(tmp_path / "x.svg", "", {"loss": []})
