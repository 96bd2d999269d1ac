"""An iterator among the arguments serves one call; iterators that no Program can follow are refused, never misread."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor


def total(items: Any) -> Any:
    found = T(0.0)
    for x in items:
        found = found * 10 + x
    return found


def test_each_call_reads_its_own_iterator() -> None:
    static = paddle.jit.to_static(total, full_graph=True)
    assert float(static(iter([T(1.0), T(2.0)]))) == 12.0
    assert float(static(iter([T(3.0)]))) == 3.0
    assert float(static(x for x in (4, 5))) == 45.0
    assert len(static.program_cache) == 0


def test_an_iterator_that_was_used_up_stays_so() -> None:
    static = paddle.jit.to_static(total, full_graph=True)
    items = iter([T(1.0), T(2.0)])
    assert float(static(items)) == 12.0
    assert float(static(items)) == 0.0


def first_two(items: Iterator[Any], x: Any) -> Any:
    return next(items) + next(items) + x


def test_what_is_not_taken_is_left_to_the_caller() -> None:
    static = paddle.jit.to_static(first_two, full_graph=True)
    items = iter([1, 2, 3, 4])
    assert float(static(items, T(0.5))) == 3.5
    assert list(items) == [3, 4]


def test_break_pulls_no_further_item() -> None:
    def take(items, x):
        for i in items:
            x = x + i
            break
        return x

    items = iter([1, 2, 3])
    assert float(paddle.jit.to_static(take, full_graph=True)(items, T(0.0))) == 1.0
    assert list(items) == [2, 3]


def pulls_then_asks(items: Iterator[Any], x: Any) -> Any:
    first = next(items)
    return first + int(str(float(x))[0])


def test_eager_fallback_sees_the_items_that_tracing_pulled() -> None:
    static = paddle.jit.to_static(pulls_then_asks)
    with pytest.warns(FallbackWarning, match="runs eagerly"):
        assert static(iter([5, 6]), T(7.0)) == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert static(iter([6, 5]), T(7.0)) == 13


def break_by_a_tensor(items: Iterator[Any], x: Any) -> Any:
    for i in items:
        x = x + i
        if x > 2:
            break
    return x, next(items)


def test_symbolic_break_out_of_an_iterator_argument_is_refused() -> None:
    with pytest.raises(Dy2stError, match="only the run will tell how far this iterator has come"):
        paddle.jit.to_static(break_by_a_tensor, full_graph=True)(iter([1, 2, 3]), T(0.0))


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def generator_in_a_loop(x: Any) -> Any:
    items = numbers(10)
    while x < 5:
        x = x + next(items) + 1
    return x


def generator_expression_in_a_loop(x: Any) -> Any:
    items = (i + 1 for i in range(10))
    while x < 5:
        x = x + next(items)
    return x


def generator_in_a_branch(x: Any) -> Any:
    items = numbers(10)
    if x > 0:
        next(items)
    return x + next(items)


def permutations_in_a_branch(x: Any) -> Any:
    items = itertools.permutations((1, 2))
    if x > 0:
        next(items)
    return x + next(items)[0]


def generator_after_a_symbolic_break(x: Any) -> Any:
    items = numbers(5)
    for i in items:
        x = x + i
        if x > 2:
            break
    return x + next(items)


@pytest.mark.parametrize(
    "function",
    [generator_in_a_loop, generator_expression_in_a_loop, generator_in_a_branch, permutations_in_a_branch],
)
def test_a_generator_that_moves_where_only_the_run_tells_is_refused(function: Any) -> None:
    with pytest.raises(Dy2stError, match="an iterator is moved in a branch or loop of which only the run"):
        paddle.jit.to_static(function, full_graph=True)(T(1.0))
    for number in (1.0, -1.0):
        with pytest.warns(FallbackWarning, match="an iterator is moved"):
            assert float(paddle.jit.to_static(function)(T(number))) == float(function(T(number)))


def test_a_generator_that_a_loop_may_have_left_is_not_asked_for_more() -> None:
    message = "a generator is asked for more after a loop that may have left it"
    with pytest.raises(Dy2stError, match=message):
        paddle.jit.to_static(generator_after_a_symbolic_break, full_graph=True)(T(1.0))
    with pytest.warns(FallbackWarning, match=message):
        found = paddle.jit.to_static(generator_after_a_symbolic_break)(T(1.0))
    assert float(found) == float(generator_after_a_symbolic_break(T(1.0)))


def test_a_generator_that_branches_may_have_gone_through_is_refused() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        items = numbers(3)
        if x > 0:
            for i in items:
                x = x + i
        for i in items:
            x = x * 2 + i
        return x

    with pytest.raises(Dy2stError, match="only the run will tell how far a generator has come"):
        function(T(1.0))


def test_a_generator_does_not_leave_a_program() -> None:
    with pytest.raises(Dy2stError, match="an iterator leaves the function"):
        paddle.jit.to_static(lambda x: numbers(3), full_graph=True)(T(1.0))


def without_end(x: Any, depth: int = 0) -> Iterator[Any]:
    yield x
    yield from without_end(x / 2, depth + 1)


def test_a_generator_that_goes_through_itself_without_end_is_refused() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        for v in without_end(x):
            x = x + v
        return x

    with pytest.raises(Dy2stError, match="a generator goes through itself, 30 deep"):
        function(T(1.0))


def test_an_iterator_made_in_a_branch_is_refused_after_it() -> None:
    def choose(x):
        items = iter([1, 2]) if x > 0 else iter([3, 4])
        return next(items)

    with pytest.raises(Dy2stError, match="made inside of a branch or loop is used after it"):
        paddle.jit.to_static(choose, full_graph=True)(T(1.0))


@pytest.mark.parametrize("made", [numbers, lambda n: iter([n]), lambda n: (i for i in range(n)), lambda n: zip([n])])
def test_an_iterator_does_not_leave_a_program(made: Any) -> None:
    def give(x):
        return x, made(3)

    with pytest.raises(Dy2stError, match="an iterator leaves the function, which no Program can hand out"):
        paddle.jit.to_static(give, full_graph=True)(T(1.0))
    static = paddle.jit.to_static(give)
    with pytest.warns(FallbackWarning, match="return a list"):
        static(T(1.0))
    assert list(static(T(1.0))[1]) == list(give(T(1.0))[1])
