"""Calls that a trace refuses, because a Program has no such effect, or because they give something else each time."""

import io
import logging
import os
import random
import time
from datetime import datetime
from heapq import heappush
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError
from dy2st.jit.static_function import FallbackWarning

GENERATOR, ARRAYS, LOGGER = random.Random(3), np.random.default_rng(3), logging.getLogger("of_this_test")
TEXT, HEAP = io.StringIO(), []

IMPURE = [
    lambda x: x + np.random.rand(),
    lambda x: x + ARRAYS.random(),
    lambda x: x + random.random(),
    lambda x: x + GENERATOR.randint(1, 9),
    lambda x: x + time.time(),
    lambda x: x + datetime.now().hour,
    lambda x: (TEXT.write("a"), x)[1],
    lambda x: (LOGGER.info("a"), x)[1],
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


@pytest.mark.parametrize("what", ["heap", "environment"])
def test_things_from_outside_that_a_trace_cannot_write(what):
    heap = []

    def f(x):
        if what == "heap":
            heappush(heap, 1)
        else:
            os.environ["OF_THIS_TEST"] = "1"
        return x

    with pytest.raises(TraceError, match="from outside is changed, which a Program cannot do"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor(1.0))
    assert not heap
    assert "OF_THIS_TEST" not in os.environ


def test_the_learning_rate_is_read_at_each_run_and_not_set():
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
    for change in (lambda x: schedule.step(), lambda x: fixed.set_lr(0.1)):
        with pytest.raises(TraceError, match="changes a Python object, which a Program cannot do; call it outside"):
            paddle.jit.to_static(change, full_graph=True)(x)
    assert fixed.get_lr() == 0.25
