"""The reference interpreter: control flow, errors at the user's line, what leaves a run. Plans do the same."""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.location import Location
from dy2st.ir.program import Program, Value
from dy2st.ir.types import BOOL, INT, ListType, TensorType, optional
from dy2st.runtime.interpreter.error_locations import located
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from dy2st.shapes import symbol

VECTOR = TensorType(dtypes.float32, (symbol("N"),))
POINT = TensorType(dtypes.float32, ())
LIST = ListType(VECTOR)

Run = Callable[[Program, list[Any]], list[Any]]


@pytest.fixture(params=["interpreter", "plan"])
def run(request: pytest.FixtureRequest) -> Run:
    """Both ways to run a Program."""
    if request.param == "interpreter":
        return evaluate
    return lambda program, inputs: compile_plan(program).run(inputs)


def built(b: Builder, *results: Value) -> Program:
    b.block.results = list(results)
    return Program({"main": b.block})


def arrays(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def doubling_while() -> Program:
    """Double x while k < limit; gives x and k."""
    b = Builder()
    x, k, limit = b.argument(VECTOR), b.argument(INT), b.argument(INT)
    body = b.child()
    u, i, most = body.argument(VECTOR), body.argument(INT), body.argument(INT)
    more = body.scalar_add(i, 1)
    body.block.results = [body.scalar_lt(more, most), body.add(u, u), more]
    operands = [b.scalar_lt(k, limit), x, k, limit]
    return built(b, *b.emit("while_loop", operands, {"carried": 2}, [body.block]))


# ---- control flow ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("k", "factor"), [(0, 8), (2, 2), (3, 1), (7, 1)])
def test_while_loop_tests_before_each_turn(run: Run, k: int, factor: int) -> None:
    x, turns = run(doubling_while(), [arrays(1, 2), k, 3])
    assert x.tolist() == [factor, 2 * factor]
    assert turns == max(k, 3)


@pytest.mark.parametrize(("reverse", "want"), [(False, [0, 1, 2, 3]), (True, [3, 2, 1, 0])])
def test_counted_while_counts_both_ways(run: Run, reverse: bool, want: list[int]) -> None:
    b = Builder()
    n = b.argument(INT)
    seen = b.emit("list_new", [], {"type": ListType(INT)})
    body = b.child()
    i, items = body.argument(INT), body.argument(ListType(INT))
    body.block.results = [body.list_append(items, i)]
    out = b.emit("counted_while", [n, seen], {"carried": 1, "reverse": reverse}, [body.block])
    program = built(b, out)
    assert run(program, [4]) == [want]
    assert run(program, [0]) == [[]]
    assert run(program, [-2]) == [[]]


@pytest.mark.parametrize("pred", [True, np.array(True), np.array([1.5], np.float32), 3])
def test_cond_takes_numbers_and_tensors_of_one_element(run: Run, pred: Any) -> None:
    b = Builder()
    kind = BOOL if isinstance(pred, (bool, int)) else TensorType(dtypes.of_array(pred), pred.shape)
    p, x = b.argument(kind), b.argument(VECTOR)
    then, other = b.child(), b.child()
    then.block.results = [then.argument(VECTOR)]
    other.block.results = [other.neg(other.argument(VECTOR))]
    program = built(b, b.emit("cond", [p, x], {}, [then.block, other.block]))
    assert run(program, [pred, arrays(1)])[0].tolist() == [1]
    assert run(program, [type(pred)() if not isinstance(pred, np.ndarray) else pred * 0, arrays(1)])[0].tolist() == [-1]


def test_cond_of_several_elements_is_refused(run: Run) -> None:
    b = Builder()
    p = b.argument(VECTOR)
    then, other = b.child(), b.child()
    then.block.results, other.block.results = [then.scalar(1)], [other.scalar(2)]
    b.location = Location(__file__, 3, "forward")
    program = built(b, b.emit("cond", [p], {}, [then.block, other.block]))
    with pytest.raises(ValueError, match="ambiguous") as caught:
        run(program, [arrays(1, 2)])
    assert last_frame(caught.value) == (__file__, 3, "forward")


def factorial(limit: bool = True) -> Program:
    """f(n) = n * f(n - 1), which never ends without its test."""
    f = Builder()
    n = f.argument(INT)
    then, other = f.child(), f.child()
    then.argument(INT)
    then.block.results = [then.scalar(1)]
    m = other.argument(INT)
    other.location = Location(__file__, 1, "factorial")
    less = other.scalar_sub(m, 1)
    inner = other.emit("call", [less], {"function": "factorial", "types": (INT,)})
    other.block.results = [other.scalar_mul(m, inner)]
    test = f.scalar_lt(n, 1) if limit else f.scalar(False)
    f.block.results = [f.emit("cond", [test, n], {}, [then.block, other.block])]
    b = Builder()
    k = b.argument(INT)
    b.location = Location(__file__, 2, "main")
    b.block.results = [b.emit("call", [k], {"function": "factorial", "types": (INT,)})]
    return Program({"main": b.block, "factorial": f.block})


def test_functions_may_call_themselves(run: Run) -> None:
    assert run(factorial(), [20]) == [2432902008176640000]


def test_endless_recursion_names_the_function(run: Run) -> None:
    with pytest.raises(RecursionError, match="the function 'factorial' of the Program is called too deeply"):
        run(factorial(limit=False), [1])


def test_variants_and_optionals(run: Run) -> None:
    b = Builder()
    x = b.argument(VECTOR)
    kind = optional(VECTOR)
    there = b.emit("variant_new", [x], {"type": kind, "tag": 1})
    unset = b.emit("variant_new", [], {"type": kind, "tag": 0})
    program = built(b, there, unset, b.variant_tag(there), b.variant_get(there, tag=1, message=""))
    made, nothing, tag, back = run(program, [arrays(1)])
    assert made[0] == 1
    assert made[1].tolist() == [1]
    assert (nothing, tag, back.tolist()) == ((0, None), 1, [1])


# ---- errors ----------------------------------------------------------------------------------------------------------
def last_frame(error: BaseException) -> tuple[str, int | None, str]:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return frame.filename, frame.lineno, frame.name


def dividing(line: int) -> Program:
    b = Builder()
    n, x = b.argument(INT), b.argument(INT)
    body = b.child()
    body.argument(INT)
    v, d = body.argument(INT), body.argument(INT)
    body.location = Location(__file__, line, "forward")
    body.block.results = [body.scalar_floordiv(v, d)]
    out = b.emit("counted_while", [n, n, x], {"carried": 1, "reverse": False}, [body.block])
    return built(b, out)


def test_errors_end_at_the_users_line(run: Run) -> None:
    line = test_errors_end_at_the_users_line.__code__.co_firstlineno  # the line of the def
    with pytest.raises(ZeroDivisionError, match="by zero") as caught:
        run(dividing(line), [2, 0])
    assert last_frame(caught.value) == (__file__, line, "forward")
    text = "".join(traceback.format_exception(caught.value))
    assert "def test_errors_end_at_the_users_line" in text
    assert "^" not in text.rpartition("forward")[2]
    assert "ops/control/scalar.py" not in text
    assert not hasattr(caught.value, "__notes__")


def test_the_error_object_stays_the_same() -> None:
    error = ValueError("as it was")
    with pytest.raises(ValueError, match="as it was") as caught:
        raise located(error, Location("model.py", 7, "forward"))
    assert caught.value is error
    assert last_frame(error) == ("model.py", 7, "forward")


def test_an_error_without_a_location_ends_at_the_caller(run: Run) -> None:
    program = dividing(1)
    for operation in program.walk():
        operation.location = None
    with pytest.raises(ZeroDivisionError) as caught:
        run(program, [1, 0])
    frames = [f.filename for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[0] == __file__
    assert not any("ops" in name.rpartition("dy2st")[2] for name in frames)
    assert located(ValueError("nowhere"), None).__traceback__ is None


def test_frames_of_a_call_stand_before_those_of_what_is_called(run: Run) -> None:
    g = Builder()
    g.location = Location(__file__, 5, "halve")
    n = g.argument(INT)
    g.block.results = [g.scalar_floordiv(n, g.scalar_sub(n, n))]
    b = Builder()
    b.location = Location(__file__, 2, "forward")
    called = b.emit("call", [b.argument(INT)], {"function": "halve", "types": (INT,)})
    program = built(b, called)
    program.functions["halve"] = g.block
    with pytest.raises(ZeroDivisionError) as caught:
        run(program, [2])
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-2:] == [("forward", 2), ("halve", 5)]


def test_frames_of_python_code_that_an_op_calls_are_kept() -> None:
    def users_code() -> None:
        raise OSError("disk full")

    try:
        users_code()
    except OSError as error:
        names = [f.name for f in traceback.extract_tb(located(error, Location("m.py", 4, "forward")).__traceback__)]
    assert names[0] == "forward"
    assert names[-1] == "users_code"


def test_lines_after_the_end_of_a_file_do_not_break_the_report(run: Run) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(dividing(10**6), [1, 0])
    assert f"line {10**6}, in forward" in "".join(traceback.format_exception(caught.value))


# ---- results ---------------------------------------------------------------------------------------------------------
def test_0d_results_are_arrays(run: Run) -> None:
    b = Builder()
    s = b.argument(POINT)
    t = b.add(s, s)
    program = built(b, t, b.neg(t), b.add(t, 1.0), b.item(t))
    made = run(program, [np.array(2.0, np.float32)])
    assert [type(v) for v in made] == [np.ndarray, np.ndarray, np.ndarray, float]
    assert [float(v) for v in made] == [4.0, -4.0, 5.0, 4.0]


def test_infinities_and_nan_come_without_warnings(run: Run) -> None:
    b = Builder()
    x = b.argument(VECTOR)
    made = run(built(b, b.div(x, b.sub(x, x)), b.exp(x)), [arrays(1, 0, 1e9)])
    assert np.isnan(made[0][1])
    assert made[1][2] == np.inf


def test_a_constant_that_leaves_is_the_callers(run: Run) -> None:
    b = Builder()
    c = b.emit("constant", [], {"value": arrays(1, 2)})
    items = b.emit("list_new", [c], {"type": ListType(c.type)})
    boxed = b.emit("variant_new", [c], {"type": optional(c.type), "tag": 1})
    program = built(b, c, b.shaped("reshape", [c], [2, 1]), items, boxed)
    for _ in range(2):
        plain, view, inside, (_, payload) = run(program, [])
        for array in (plain, view.reshape(-1), inside[0], payload):
            assert array.tolist() == [1, 2]
            array += 5


def test_a_list_that_enters_is_not_changed(run: Run) -> None:
    b = Builder()
    items, x = b.argument(LIST), b.argument(VECTOR)
    grown = b.list_append(items, x)
    given = [arrays(1)]
    made = run(built(b, b.list_append(grown, x), b.list_set(items, 0, x)), [given, arrays(2)])
    assert [len(m) for m in made] == [3, 1]
    assert [v.tolist() for v in given] == [[1]]
