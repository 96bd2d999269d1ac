"""What a StaticFunction keeps: Programs by kind of call, nothing of a failed trace, no object beyond its life."""

import copy
import gc
import pickle
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.jit.static_function import FallbackWarning
from tests.in_threads import in_threads

SCALE = 2.0


class Scaler:
    def __init__(self, k):
        self.k = k

    @paddle.jit.to_static
    def run(self, x):
        return x * self.k


class Affine(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    @paddle.jit.to_static
    def forward(self, x):
        return self.fc(x)


def tensor(*values):
    return paddle.to_tensor(np.array(values, "float32"))


@pytest.mark.parametrize("make", [lambda: Scaler(2), Affine, lambda: paddle.jit.to_static(nn.Linear(2, 2))])
def test_an_object_with_static_methods_can_be_collected(make):
    made = make()
    getattr(made, "run", made)(paddle.ones([1, 2]))
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is None


def test_copies_have_programs_of_their_own():
    one = Scaler(2)
    one.run(tensor(1))
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        other.k = 5
        assert other.run(tensor(1)).tolist() == [5.0]
        assert one.run(tensor(1)).tolist() == [2.0]


def test_a_deep_copied_layer_uses_its_own_weights():
    layer = paddle.jit.to_static(nn.Linear(2, 2))
    layer(paddle.ones([1, 2]))
    twin = copy.deepcopy(layer)
    twin.weight.set_value(paddle.zeros([2, 2]))
    twin.bias.set_value(paddle.zeros([2]))
    assert twin(paddle.ones([1, 2])).tolist() == [[0.0, 0.0]]
    assert layer(paddle.ones([1, 2])).tolist() != [[0.0, 0.0]]


def test_a_number_that_changed_once_becomes_an_input():
    scaler = Scaler(2)
    for k in (2, 3, 4, 5, 6):
        scaler.k = k
        assert scaler.run(tensor(1)).tolist() == [float(k)]
    assert len(scaler.run.program_cache) == 2


def test_a_number_that_python_needs_stays_a_guard():
    class Deep:
        turns = 1

        @paddle.jit.to_static(full_graph=True)
        def run(self, x):
            return x.reshape([1] * self.turns + [-1])

    deep = Deep()
    for turns in (1, 2, 3, 2):
        deep.turns = turns
        assert deep.run(tensor(1)).ndim == turns + 1
    assert len(deep.run.program_cache) == 3


def test_a_global_that_is_rebound_is_seen():
    global SCALE

    @paddle.jit.to_static
    def scaled(x):
        return x * SCALE

    found = []
    for SCALE in (2.0, 3.0, 4.0):
        found += scaled(tensor(1)).tolist()
    assert found == [2.0, 3.0, 4.0]
    assert len(scaled.program_cache) == 2


def test_a_closure_variable_that_is_rebound_is_seen():
    k = paddle.to_tensor(2.0)

    @paddle.jit.to_static
    def scaled(x):
        return x * k

    assert scaled(tensor(1)).tolist() == [2.0]
    k = paddle.to_tensor(3.0)
    assert scaled(tensor(1)).tolist() == [3.0]
    assert len(scaled.program_cache) == 1


def test_tracing_rebinds_nothing_real():
    seen = []
    count = 0

    @paddle.jit.to_static
    def step(x):
        nonlocal count
        count += 1
        looked()
        return x

    @paddle.jit.not_to_static
    def looked():
        seen.append(count)

    step(tensor(1))
    assert seen == [0]
    assert count == 1


def test_nan_and_negative_zero_are_told_apart():
    @paddle.jit.to_static
    def times(x, k):
        return x * k

    for k in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0, -0.0):  # also once calls are known by a check that is made for them
        assert np.signbit(times(tensor(1), k).numpy()).tolist() == [np.signbit(k)]
    for _ in range(3):
        assert np.isnan(times(tensor(1), float("nan")).numpy()).all()
    assert len(times.program_cache) <= 3


def test_an_exception_while_tracing_leaves_nothing_behind():
    class Box:
        def __init__(self):
            self.last: Any = None
            self.fail = True

    box: Any = Box()

    @paddle.jit.to_static
    def step(x):
        y = x * 2
        if box.fail:
            paddle.matmul(paddle.ones([2, 3]), paddle.ones([5, 7]))
        box.last = y
        return y

    with pytest.raises(ValueError, match="matmul"):
        step(tensor(1))
    assert box.last is None
    assert len(step.program_cache) == 0
    box.fail = False
    assert step(tensor(3)).tolist() == [6.0]
    assert box.last.tolist() == [6.0]


def test_effects_before_an_unconditional_raise_happen_once_a_call(capsys):
    class Box:
        count = 0

    box = Box()

    @paddle.jit.to_static
    def step(x):
        box.count += 1
        print("sum", float(x.sum()))
        raise KeyError(f"after {x.sum().item()}")

    for turn in (1, 2):
        with pytest.raises(KeyError, match=r"after 3\.0"):
            step(tensor(1, 2))
        assert box.count == turn
    assert capsys.readouterr().out == "sum 3.0\n" * 2


def test_explain_says_why_each_program_was_traced():
    scaler: Any = Scaler(2)
    scaler.run(tensor(1))
    scaler.run(paddle.ones([2, 2]))
    scaler.k = "ab"
    with pytest.raises(TypeError):
        scaler.run(tensor(1))
    scaler.k = 7
    scaler.run(tensor(1))
    text = str(scaler.run.explain())
    assert "program 0 was traced for (x: float32, rank 1): the first call" in text
    assert "program 1 was traced for (x: float32, rank 2) at call 2" in text
    assert "`x` is float32, rank 2, was float32, rank 1" in text
    assert ".k of a Scaler has changed: it was 2 and is 7" in text
    assert "no fallback" in text


def test_a_fallback_is_explained_with_its_line():
    @paddle.jit.to_static
    def bad(x):
        return x.numpy().sum()

    with pytest.warns(FallbackWarning, match="bad"):
        assert bad(tensor(1, 2)) == 3.0
    (reason,) = bad.explain().fallbacks
    assert "test_static_function.py:" in reason


def test_threads_share_one_static_function():
    @paddle.jit.to_static
    def step(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    wrong = []

    def work(rows):
        for turn in range(20):
            x = paddle.full([rows], 1.0 if turn % 2 else -1.0)
            if step(x).tolist() != [2.0 if turn % 2 else -2.0] * rows:
                wrong.append((rows, turn))

    in_threads(*(partial(work, rows) for rows in range(1, 6)))
    assert wrong == []
    assert len(step.program_cache) == 1


def test_the_same_tensor_twice_is_another_kind_of_call():
    @paddle.jit.to_static
    def both(x, y):
        return x + y

    a, b = tensor(1), tensor(2)
    assert [both(a, b).tolist(), both(a, a).tolist(), both(b, a).tolist()] == [[3.0], [2.0], [3.0]]
    assert len(both.program_cache) == 2


def test_not_to_static_of_something_that_is_no_function():
    with pytest.raises(TypeError, match="not_to_static marks a function, not int 3"):
        paddle.jit.not_to_static(3)


def test_a_program_is_made_for_arguments_without_a_call():
    doubled = paddle.jit.to_static(lambda x: x * 2)
    program, runs = doubled.get_concrete_program(paddle.ones([2]))
    assert program is runs is doubled.concrete_program
    assert doubled(paddle.ones([3])).tolist() == [2.0] * 3
    assert len(doubled.program_cache) == 1
    doubled.get_concrete_program(paddle.static.InputSpec([None, 3]))
    assert len(doubled.program_cache) == 2


def test_the_mode_of_a_method_is_that_of_its_layer():
    doubled = paddle.jit.to_static(lambda x: x * 2)
    doubled.train()
    doubled.eval()
    layer = paddle.jit.to_static(paddle.nn.Linear(2, 2))
    layer.forward.train()
    with pytest.raises(RuntimeError, match=r"Linear\.forward is a method of a layer: call eval\(\) of the layer"):
        layer.forward.eval()
    layer.eval()
    layer.forward.eval()
    with pytest.raises(RuntimeError, match=r"call train\(\) of the layer"):
        layer.forward.train()
