"""Learning-rate schedules against their formulas written out."""

import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st.optimizer import lr

N = 9
E = range(N)


def cos_between(low, high, done):
    return low + (high - low) * (1 + math.cos(math.pi * done)) / 2


SCHEDULES = {
    "NoamDecay": (lambda: lr.NoamDecay(16, 4), [16**-0.5 * min(max(e, 1) ** -0.5, e * 4**-1.5) for e in E]),
    "PiecewiseDecay": (lambda: lr.PiecewiseDecay([2, 5], [1.0, 0.5, 0.1]), [1, 1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]),
    "NaturalExpDecay": (lambda: lr.NaturalExpDecay(0.5, 0.1), [0.5 * math.exp(-0.1 * e) for e in E]),
    "InverseTimeDecay": (lambda: lr.InverseTimeDecay(0.5, 0.1), [0.5 / (1 + 0.1 * e) for e in E]),
    "ExponentialDecay": (lambda: lr.ExponentialDecay(0.5, 0.9), [0.5 * 0.9**e for e in E]),
    "PolynomialDecay": (
        lambda: lr.PolynomialDecay(0.5, 5, 0.1, 2.0), [0.4 * (1 - min(e, 5) / 5) ** 2 + 0.1 for e in E],
    ),
    "PolynomialDecay cycle": (
        lambda: lr.PolynomialDecay(0.5, 4, 0.1, 1.0, cycle=True),
        [0.4 * (1 - e / (4 * max(math.ceil(e / 4), 1))) + 0.1 for e in E],
    ),
    "StepDecay": (lambda: lr.StepDecay(0.5, 3, 0.1), [0.5 * 0.1 ** (e // 3) for e in E]),
    "MultiStepDecay": (lambda: lr.MultiStepDecay(0.5, [2, 6], 0.1), [0.5 * 0.1 ** ((e >= 2) + (e >= 6)) for e in E]),
    "LambdaDecay": (lambda: lr.LambdaDecay(0.5, lambda e: 0.9**e), [0.5 * 0.9**e for e in E]),
    "MultiplicativeDecay": (lambda: lr.MultiplicativeDecay(0.5, lambda e: 0.9), [0.5 * 0.9**e for e in E]),
    "LinearLR": (lambda: lr.LinearLR(0.6, 4, 0.5, 1.0), [0.6 * (0.5 + 0.5 * min(e, 4) / 4) for e in E]),
    "CosineAnnealingDecay": (lambda: lr.CosineAnnealingDecay(0.5, 4, 0.1), [cos_between(0.1, 0.5, e / 4) for e in E]),
    "CosineAnnealingWarmRestarts": (
        lambda: lr.CosineAnnealingWarmRestarts(0.5, 2, 2, 0.1),
        [cos_between(0.1, 0.5, d) for d in (0, 1 / 2, 0, 1 / 4, 2 / 4, 3 / 4, 0, 1 / 8, 2 / 8)],
    ),
    "LinearWarmup": (lambda: lr.LinearWarmup(0.5, 4, 0.0, 0.4), [0, 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5, 0.5]),
    "LinearWarmup of a schedule": (
        lambda: lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 4, 0.0, 0.4),
        [0, 0.1, 0.2, 0.3, *(0.5 * 0.9**e for e in range(5))],
    ),
    "OneCycleLR": (
        lambda: lr.OneCycleLR(1.0, 9, 10.0, 0.01, 1 / 3, "linear"),
        [0.1, 0.55, 1.0, *(1.0 - 0.99 * k / 6 for k in range(1, 7))],
    ),
    "CyclicLR": (lambda: lr.CyclicLR(0.1, 0.5, 2), [0.1, 0.3, 0.5, 0.3, 0.1, 0.3, 0.5, 0.3, 0.1]),
    "CyclicLR triangular2": (
        lambda: lr.CyclicLR(0.1, 0.5, 2, mode="triangular2"), [0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.proves(
    "optimizer.lr.NoamDecay optimizer.lr.PiecewiseDecay optimizer.lr.NaturalExpDecay "
    "optimizer.lr.InverseTimeDecay optimizer.lr.ExponentialDecay optimizer.lr.PolynomialDecay "
    "optimizer.lr.StepDecay optimizer.lr.MultiStepDecay optimizer.lr.LambdaDecay optimizer.lr.MultiplicativeDecay "
    "optimizer.lr.LinearLR optimizer.lr.CosineAnnealingDecay optimizer.lr.CosineAnnealingWarmRestarts "
    "optimizer.lr.LinearWarmup optimizer.lr.OneCycleLR optimizer.lr.CyclicLR"
)
def test_schedule_is_its_formula(name):
    make, want = SCHEDULES[name]
    schedule, rates = make(), []
    for _ in E:
        rates.append(schedule())
        schedule.step()
    np.testing.assert_allclose(rates, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n != "LinearWarmup of a schedule"])
def test_schedule_goes_on_after_its_state_was_restored(name):
    make, want = SCHEDULES[name]
    schedule = make()
    for _ in range(4):
        schedule.step()
    again = make()
    again.set_state_dict(schedule.state_dict())
    rates = []
    for _ in range(4, N):
        rates.append(again())
        again.step()
    np.testing.assert_allclose(rates, want[4:], rtol=1e-9, atol=1e-12)


@pytest.mark.proves("optimizer.lr.ReduceOnPlateau")
def test_plateau_falls_after_more_than_patience_bad_epochs():
    schedule = lr.ReduceOnPlateau(1.0, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    rates = []
    for loss in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, paddle.to_tensor(0.5), 0.5, 0.5, 0.5, 0.5):
        schedule.step(loss)
        rates.append(schedule())
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2]


@pytest.mark.proves("optimizer.lr.LRScheduler")
def test_a_given_epoch_is_gone_to():
    schedule = lr.ExponentialDecay(1.0, 0.5)
    schedule.step(5)
    assert schedule() == 0.5**5
    cosine = lr.CosineAnnealingDecay(1.0, 4)
    cosine.step(2)
    np.testing.assert_allclose(cosine(), 0.5)


def test_verbose_prints_each_change(capsys):
    lr.StepDecay(0.5, 1, verbose=True).step()
    assert "Epoch 1: StepDecay set learning rate to 0.05." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: lr.ExponentialDecay("x", 0.5), TypeError, "needs a number as learning rate, not str"),
        (lambda: lr.ExponentialDecay(-1.0, 0.5), ValueError, "must not be negative"),
        (lambda: lr.ExponentialDecay(1.0, 1.5), ValueError, "gamma must be between 0 and 1"),
        (lambda: lr.NoamDecay(0, 4), ValueError, "d_model must be positive"),
        (lambda: lr.PiecewiseDecay([1], [1.0]), ValueError, "1 boundaries need 2 values, not 1"),
        (lambda: lr.NaturalExpDecay(1.0, 0.0), ValueError, "gamma must be positive"),
        (lambda: lr.PolynomialDecay(1.0, 0), ValueError, "decay_steps must be positive"),
        (lambda: lr.StepDecay(1.0, 0), ValueError, "step_size must be a positive int"),
        (lambda: lr.StepDecay(1.0, 1, 1.0), ValueError, "gamma must be below 1"),
        (lambda: lr.MultiStepDecay(1.0, [3, 2]), ValueError, "milestones must increase"),
        (lambda: lr.MultiStepDecay(1.0, [3], 1.0), ValueError, "gamma must be below 1"),
        (lambda: lr.LambdaDecay(1.0, 0.9), TypeError, "lr_lambda must be a function of the epoch"),
        (lambda: lr.LinearLR(1.0, 4, 0.0), ValueError, "start_factor must be above 0"),
        (lambda: lr.LinearLR(1.0, 4, 0.5, 2.0), ValueError, "end_factor must be between 0 and 1"),
        (lambda: lr.LinearLR(1.0, 0), ValueError, "total_steps must be positive"),
        (lambda: lr.CosineAnnealingDecay(1.0, 0), ValueError, "T_max must be positive"),
        (lambda: lr.CosineAnnealingWarmRestarts(1.0, 0), ValueError, "T_0 must be a positive int"),
        (lambda: lr.CosineAnnealingWarmRestarts(1.0, 2, 0), ValueError, "T_mult must be a positive int"),
        (lambda: lr.LinearWarmup("x", 4, 0.0, 1.0), TypeError, "the rate must be a number or a scheduler"),
        (lambda: lr.LinearWarmup(1.0, 4, 1.0, 0.0), ValueError, "end_lr must be above start_lr"),
        (lambda: lr.ReduceOnPlateau(1.0, "up"), ValueError, "mode must be 'min' or 'max'"),
        (lambda: lr.ReduceOnPlateau(1.0, factor=1.0), ValueError, "factor must be below 1"),
        (lambda: lr.ReduceOnPlateau(1.0, threshold_mode="x"), ValueError, "threshold_mode must be"),
        (lambda: lr.OneCycleLR(1.0, 0), ValueError, "total_steps must be a positive int"),
        (lambda: lr.OneCycleLR(1.0, 4, phase_pct=2.0), ValueError, "phase_pct must be between 0 and 1"),
        (lambda: lr.OneCycleLR(1.0, 4, anneal_strategy="x"), ValueError, "anneal_strategy must be"),
        (lambda: lr.OneCycleLR(1.0, 4, phase_pct=0.6, three_phase=True), ValueError, "phase_pct must be below 0.5"),
        (lambda: lr.OneCycleLR(1.0, 4).step(9), ValueError, "step 9 is past total_steps=4"),
        (lambda: lr.CyclicLR(0.1, 1.0, 2, mode="x"), ValueError, "mode must be 'triangular'"),
        (lambda: lr.CyclicLR(0.1, 1.0, 2, scale_mode="x"), ValueError, "scale_mode must be"),
        (lambda: lr.CyclicLR(0.1, 1.0, 0), ValueError, "step sizes must be positive"),
        (lambda: lr.LRScheduler(1.0), NotImplementedError, "define `get_lr`"),
        (lambda: lr.StepDecay(1.0, 2).set_state_dict({}), RuntimeError, "lacks last_epoch, last_lr"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()
