"""Generator expressions that a built-in runs through at once, over tensors, lists and ranges."""

from typing import Any

import pytest

import dy2st as paddle


def sums(x):
    return sum(v * v for v in x), sum((v for v in x), x[0] * 10)


def any_and_all(x):
    return any(v > 2 for v in x), all(v > 0 for v in x)


def extremes(x):
    return max(v * 2 for v in x), min(v.item() for v in x)


def a_list(x):
    return list(v * 2 for v in x if v > 0)


def of_python_data(x):
    return sorted(i * 2 for i in range(3)), dict((i, x * i) for i in range(2)), tuple(x * k for k in (1, 2))


def of_numbers(x):
    return any(i > 2 for i in range(5)), all(isinstance(i, int) for i in [1, 2]), sum(n for n in x.shape)


def nested(x):
    return sum(v * w for v in x for w in (1, 2) if v > 0) + x.sum()


def as_a_test(x):
    if any(v > 2 for v in x) and not all(v > 0 for v in x):
        return x * 2
    return x


def that_stops_in_time(x):
    seen = []

    def note(v):
        seen.append(v)
        return v > 0

    return any(note(v) for v in x), len(seen)


def of_a_local_name(x):
    any = sum
    return any(v for v in [x, x])


def in_a_lambda(x):
    return (lambda y: sum(v for v in [y, y]))(x)


FUNCTIONS = [sums, any_and_all, extremes, a_list, of_python_data, of_numbers, nested, as_a_test, that_stops_in_time,
             of_a_local_name, in_a_lambda]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_generator_expression_acts_as_it_does_eagerly(function: Any) -> None:
    for values in ([1.0, 2.0, 3.0], [-1.0, 4.0], [-1.0, -0.5, -3.0]):
        assert paddle.jit.verify(function, paddle.to_tensor(values, stop_gradient=False)).check()
