"""Forward mode and Taylor series where the tape kept shapes of operands alone, as of large ones."""

import itertools

import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd import jet, jvp
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tape import op_derivative
from dy2st.runtime.eager.tensor import Tensor
from tests.ops.test_registry import cases, has_derivative, is_float


def is_plain(op, sample):
    return has_derivative(op, sample) and all(isinstance(x, (np.ndarray, int, float)) for x in sample.operands)


def derivatives(op, sample, moving):
    """First and second derivatives along one direction in the operands `moving`."""
    rng = np.random.default_rng(3)
    operands = [Tensor(x.copy()) if isinstance(x, np.ndarray) else x for x in sample.operands]
    xs = [operands[i] for i in moving]
    vs = [paddle.to_tensor(rng.normal(size=x.shape)) for x in xs]

    def f(*given):
        all_of_them = [given[moving.index(i)] * 1.0 if i in moving else x for i, x in enumerate(operands)]
        made = apply(op, *all_of_them, **sample.attributes)
        floats = [t for t in (made if isinstance(made, tuple) else [made]) if t.dtype.is_floating]
        return sum((t * t).sum() for t in floats)

    return [jvp(f, xs, vs)[1].numpy(), *(t.numpy() for t in jet(f, xs, vs, order=2)[1])]


@pytest.mark.parametrize(("op", "sample"), cases(is_plain))
def test_ops(op, sample, monkeypatch):
    places = [i for i, x in enumerate(sample.operands) if is_float(x)]
    for moving in [c for n in (1, 2) for c in itertools.combinations(places, n)]:
        wanted = derivatives(op, sample, moving)
        with monkeypatch.context() as patch:
            patch.setattr(op_derivative, "SMALL", -1)
            for found, one in zip(derivatives(op, sample, moving), wanted, strict=True):
                np.testing.assert_allclose(found, one, rtol=1e-12, atol=1e-12)


def recurrence(x):
    y = paddle.zeros_like(x)
    y[0] = x[0]
    for i in range(1, 5):
        y[i] = y[i - 1] * x[i]
    return y


def through_a_view(x):
    y = paddle.zeros_like(x)
    y[1:].copy_(x[:-1] * x[1:])
    return y * y


@pytest.mark.parametrize("f", [recurrence, through_a_view])
@pytest.mark.parametrize("count", [8, 256, 257, 5000])
def test_writes_into_zeros_of_any_size(f, count):
    x, v = (paddle.to_tensor(np.linspace(*ends, count)) for ends in ((0.1, 1.0), (1.0, 2.0)))
    step = 1e-3
    ahead, here, behind = f(x + step * v), f(x), f(x - step * v)
    slopes = [jvp(f, x, v)[1], *jet(f, x, v, order=2)[1]]
    first, second = (ahead - behind) / (2 * step), (ahead - 2 * here + behind) / step**2
    for found, wanted in zip(slopes, (first, first, second), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-3, atol=1e-3)
