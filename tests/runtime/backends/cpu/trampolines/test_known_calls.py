"""Machine code looks at the tensors of a call, runs on their arrays and makes tensors, as Python would."""

import gc
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols
from dy2st.runtime.backends.cpu.trampolines import call
from dy2st.runtime.backends.cpu.trampolines.call import known_call
from dy2st.runtime.eager.tensor import Tensor

UNSEEN = object()
ONE = (Tensor, True)


class Special(Tensor):
    """A tensor of a user's class."""


def known(*inputs: Any, **more: Any) -> Any:
    made = known_call(inputs, UNSEEN, **more)
    assert made is not None
    return made


def tensor(*numbers: float, stop_gradient: bool = True) -> Any:
    return paddle.to_tensor(list(numbers), stop_gradient=stop_gradient)


def double(x: Any) -> Any:
    return [x * 2]


def test_the_only_result_is_a_tensor_like_any_other() -> None:
    made: Any = known(ONE)(double, tensor(1.0, 2.0))
    assert made.__class__ is Tensor
    assert made.tolist() == [2.0, 4.0]
    assert (made.stop_gradient, made.grad, made.is_leaf, made.inplace_version) == (True, None, True, 0)
    made.word = "kept"
    made.stop_gradient = False
    (made * made).sum().backward()
    assert (made.word, made.grad.tolist()) == ("kept", [4.0, 8.0])
    assert made.name != known(ONE)(double, tensor(1.0)).name


def test_results_by_their_numbers_are_tensors_in_the_list() -> None:
    made = known(ONE, results=(0, 2))(lambda x: [x, x, x + 1, 5], tensor(1.0))
    assert [type(x) for x in made] == [Tensor, np.ndarray, Tensor, int]
    assert (made[0].tolist(), made[2].tolist()) == ([1.0], [2.0])


def test_inputs_go_on_as_they_are_or_out_of_a_tuple() -> None:
    given = known(ONE, False, True, results=())(lambda *given: [given], tensor(1.0), "word", ((),))
    assert given[0][0].tolist() == [1.0]
    assert given[0][1:] == ("word", ())


@pytest.mark.parametrize(
    "given",
    [
        (tensor(1.0, stop_gradient=False),),
        (Special(np.ones(1)),),
        (np.ones(1),),
        (3,),
        (None,),
        (),
        (tensor(1.0), tensor(1.0)),
        (Tensor.__new__(Tensor),),
    ],
)
def test_another_call_is_not_made(given: Any) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    assert known(ONE)(never, *given) is UNSEEN


def test_a_tensor_of_a_class_of_its_own_is_known_by_that() -> None:
    look = known((Special, False))
    assert look(double, Special(np.ones(1), stop_gradient=False)).tolist() == [2.0]
    assert look(double, tensor(1.0, stop_gradient=False)) is UNSEEN


def test_the_first_ones_are_different_objects() -> None:
    look, x, y = known(ONE, ONE, ONE, distinct=2), tensor(1.0), tensor(2.0)
    assert look(lambda a, b, c: [a + b + c], x, y, x).tolist() == [4.0]
    assert look(lambda a, b, c: [a + b + c], x, x, y) is UNSEEN


def test_what_a_run_gives_that_is_no_list_is_given_on() -> None:
    look = known(ONE)
    assert look(lambda x: 42, tensor(1.0)) == 42
    assert look(lambda x: False, tensor(1.0)) is UNSEEN


def test_an_error_of_the_run_is_raised() -> None:
    with pytest.raises(ValueError, match="no good"):
        known(ONE)(lambda x: int("no good"), tensor(1.0))
    with pytest.raises(IndexError):
        known(ONE)(lambda x: [], tensor(1.0))
    with pytest.raises(IndexError):
        known(ONE, results=(1,))(lambda x: [x], tensor(1.0))


def test_a_run_holds_its_arrays_though_the_tensor_gets_another_one() -> None:
    x = tensor(1.0)

    def replace(array: Any) -> Any:
        x.payload = np.zeros(1)
        gc.collect()
        return [array + sys.getrefcount(array) * 0]

    assert known(ONE)(replace, x).tolist() == [1.0]


def test_nothing_is_held_after_a_call_and_nothing_lost() -> None:
    x, array = tensor(1.0), np.zeros(3, "float32")
    result, held, word = [array], (object(),), "word"
    look = known(ONE, False, True, results=(0,))
    names = x, x.payload, array, held, held[0], word, Tensor, UNSEEN

    def counts() -> list[int]:
        return [sys.getrefcount(thing) for thing in names]

    def calls(count: int) -> None:
        for _ in range(count):
            look(lambda *_: [*result], x, word, held)
            look(lambda *_: False, x, word, held)
            look(lambda *_: 7, x, word, held)
            look(None, word, x, held)
            with pytest.raises(TypeError):
                look(None, x, word, held)

    calls(10)
    gc.collect()
    before, objects = counts(), len(gc.get_objects())
    calls(1000)
    gc.collect()
    assert counts() == before
    assert abs(len(gc.get_objects()) - objects) < 50


@pytest.mark.slow
def test_memory_does_not_grow_over_a_hundred_thousand_calls() -> None:
    x, look = tensor(1.0), known(ONE)

    def calls(count: int) -> int:
        for _ in range(count):
            look(double, x)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = calls(1000)
        assert calls(100_000) - before < 20_000
    finally:
        tracemalloc.stop()


def test_a_tensor_made_here_is_collected_with_a_cycle_through_it() -> None:
    made = known(ONE)(double, tensor(1.0))
    made.itself = made
    assert gc.is_tracked(made)
    del made
    assert gc.collect() > 0


def test_where_tensors_are_laid_out_in_another_way_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(call._Layout, "is_right", lambda self: False)
        call._layout.cache_clear()
        assert known_call([ONE], UNSEEN) is None
    with monkeypatch.context() as patch:
        patch.setattr(cpython_symbols, "available", lambda: False)
        call._layout.cache_clear()
        assert known_call([ONE], UNSEEN) is None
    call._layout.cache_clear()
    assert known_call([ONE], UNSEEN) is not None
    assert known_call([ONE] * (call.MOST_INPUTS + 1), UNSEEN) is None
