"""Calls that a trace refuses, because a Program has no such effect, or because they give something else each time."""

import io
import logging
import os
import random
import time
from collections import UserDict, UserList
from datetime import datetime
from heapq import heappush
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError
from dy2st.jit.static_function import FallbackWarning

GENERATOR, ARRAYS, LOGGER = random.Random(3), np.random.default_rng(3), logging.getLogger("of_this_test")
TEXT = io.StringIO()

IMPURE = [
    lambda x: x + np.random.rand(),
    lambda x: x + ARRAYS.random(),
    lambda x: x + random.random(),
    lambda x: x + GENERATOR.randint(1, 9),
    lambda x: x + time.time(),
    lambda x: x + datetime.now().hour,
    lambda x: (TEXT.write("a"), x)[1],
    lambda x: (LOGGER.isEnabledFor(10), x)[1],
    lambda x: (open(os.devnull).close(), x)[1],
    lambda x: (np.save(TEXT, 1), x)[1],
    lambda x: (Path("nothing").exists(), x)[1],
    lambda x: (paddle.save({}, "nothing"), x)[1],
]


@pytest.mark.parametrize("function", IMPURE)
def test_refused(function):
    with pytest.raises(TraceError, match="has an effect, or another result at every call") as caught:
        paddle.jit.to_static(function, full_graph=True)(paddle.to_tensor(1.0))
    assert "test_impure.py" in str(caught.value)


def test_the_fallback_draws_what_eager_draws():
    f = paddle.jit.to_static(lambda x: x * np.random.rand())
    x = paddle.to_tensor(1.0)
    np.random.seed(3)
    want = [np.float32(np.random.rand()) for _ in range(2)]
    np.random.seed(3)
    with pytest.warns(FallbackWarning):
        first = f(x)
    assert [float(first), float(f(x))] == [float(w) for w in want]


WRITES = [
    lambda x: os.environ.__setitem__("OF_THIS_TEST", "1"),
    lambda x: os.environ.setdefault("OF_THIS_TEST", "1"),
    lambda x: os.environ.update(OF_THIS_TEST="1"),
]


@pytest.mark.parametrize("write", WRITES)
def test_things_from_outside_that_a_trace_cannot_write(write):
    with pytest.raises(TraceError, match="from outside is changed, which a Program cannot do"):
        paddle.jit.to_static(write, full_graph=True)(paddle.to_tensor(1.0))
    assert "OF_THIS_TEST" not in os.environ


def test_a_heap_from_outside_changes_at_each_call():
    heap = []
    push = paddle.jit.to_static(lambda x, k: (heappush(heap, k), x * 2)[1], full_graph=True)
    for k in (3, 3, 1, 2):
        assert float(push(paddle.to_tensor(1.0), k)) == 2.0
    assert heap == [1, 2, 3, 3]


def test_statements_that_write_things_from_outside():
    def write(x):
        os.environ["OF_THIS_TEST"] = "1"
        return x

    def remove(x):
        del os.environ["OF_THIS_TEST"]
        return x

    for f in (write, remove):
        with pytest.raises(TraceError, match="from outside is changed, which a Program cannot do"):
            paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor(1.0))
    assert "OF_THIS_TEST" not in os.environ


def test_containers_of_the_standard_library_from_outside_change_at_each_call():
    def contents(static):
        mapping, items = UserDict(a=1), UserList([1])

        def f(x):
            mapping[f"k{len(mapping)}"] = x * 2
            if x > 2:
                mapping["a"] = mapping["a"] + 1
            items.append(3.0)
            items.append(x)
            if x > 3:
                items.pop(0)
            mapping.pop("k1", None)
            mapping.update(b=len(items))
            mapping.setdefault("z", x)
            return x + mapping["a"]

        g = paddle.jit.to_static(f, full_graph=True) if static else f
        for value in (1.0, 3.0, 4.0, 5.0, 2.0):
            result = float(g(paddle.to_tensor(value)))
            yield result, {k: float(v) for k, v in mapping.items()}, [float(v) for v in items]

    assert list(contents(True)) == list(contents(False))


def test_a_librarys_container_is_read_as_it_is_at_each_call():
    scales, items = UserDict(a=2.0), UserList([1.0])
    f = paddle.jit.to_static(lambda x: x * scales["a"] + items[0], full_graph=True)
    x = paddle.to_tensor(1.0)
    assert float(f(x)) == 3.0
    scales["a"] = 5.0
    assert float(f(x)) == 6.0
    items[0] = 2.0
    assert float(f(x)) == 7.0


def test_a_librarys_container_that_the_function_makes_can_be_written():
    def f(x):
        made = UserDict()
        made["a"] = x
        made.update(b=2 * x)
        return made["a"] + made["b"]

    assert float(paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor(1.0))) == 3.0


def test_the_learning_rate_is_read_and_set_at_each_run():
    net = paddle.nn.Linear(1, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.5, 1)
    optimizer = paddle.optimizer.SGD(schedule, parameters=net.parameters())
    fixed = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    f = paddle.jit.to_static(lambda x: (x * optimizer.get_lr(), x * schedule(), x * fixed.get_lr()), full_graph=True)
    x = paddle.to_tensor(1.0)
    assert [float(y) for y in f(x)] == [0.5, 0.5, 0.5]
    schedule.step()
    fixed.set_lr(0.25)
    assert [round(float(y), 6) for y in f(x)] == [0.05, 0.05, 0.25]
    lower = paddle.jit.to_static(lambda x: fixed.set_lr(float(x) / 10), full_graph=True)
    for rate in (1.0, 3.0):
        lower(paddle.to_tensor(rate))
        assert fixed.get_lr() == pytest.approx(rate / 10)
