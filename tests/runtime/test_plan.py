"""What plans do beyond the interpreter: reuse of buffers, lists in place, no state of a run, small cost."""

import sys
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REGISTRY, lookup
from dy2st.ir.program import Program, Value
from dy2st.ir.types import BOOL, INT, ListType, ScalarType, TensorType, Type
from dy2st.runtime.interpreter.op_kernels import bare_ufunc
from dy2st.runtime.interpreter.plan_builder import Functions
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from dy2st.shapes import symbol
from tests.in_threads import in_threads
from tests.passes.random_programs import bits

VECTOR = TensorType(dtypes.float32, (symbol("N"),))
POINT = TensorType(dtypes.float32, ())
LIST = ListType(VECTOR)


def built(b: Builder, *results: Value) -> Program:
    b.block.results = list(results)
    return Program({"main": b.block})


def arrays(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


class Counting:
    """NumPy, with a record of the arrays that ufuncs were told to write into."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def into(self, program: Program, inputs: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """Run a plan whose ufuncs report their `out`."""

        def watched(op: Any, xp: Any, arity: int, attributes: Any) -> Any:
            f = bare_ufunc(op, xp, arity, attributes)

            def call(*operands: Any, **keywords: Any) -> Any:
                if len(operands) > arity:
                    self.written.append(op.name)
                return f(*operands, **keywords)

            return None if f is None else call

        monkeypatch.setattr("dy2st.runtime.interpreter.plan_builder.bare_ufunc", watched)
        return compile_plan(program).run(inputs)


# ---- ufuncs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "arity", "ufunc"), [("add", 2, np.add), ("neg", 1, np.negative), ("exp", 1, np.exp)])
def test_an_op_that_is_one_ufunc_is_called_as_that(name: str, arity: int, ufunc: Any) -> None:
    assert bare_ufunc(lookup(name), np, arity, {}) is ufunc


@pytest.mark.parametrize(("name", "attributes"), [("safe_mul", {}), ("cast", {"dtype": dtypes.float32})])
def test_an_op_that_does_more_is_left_alone(name: str, attributes: dict[str, Any]) -> None:
    assert bare_ufunc(lookup(name), np, 2 if name == "safe_mul" else 1, attributes) is None


def test_ops_that_call_themselves_fresh_share_no_memory() -> None:
    rng = np.random.default_rng(0)
    checked = []
    for name, op in REGISTRY.items():
        if not getattr(op, "fresh", False):
            continue
        for sample in op.samples(rng):  # type: ignore[attr-defined]
            with np.errstate(all="ignore"):
                made = op.eval(np, *sample.operands, **sample.attributes)  # type: ignore[attr-defined]
            given = [o for o in sample.operands if isinstance(o, np.ndarray)]
            results = [m for m in (made if isinstance(made, tuple) else (made,)) if isinstance(m, np.ndarray)]
            assert not any(np.shares_memory(m, o) for m in results for o in given), name
            assert all(m.flags.writeable for m in results), name
            checked.append(name)
    assert checked


def sampled() -> list[str]:
    rng = np.random.default_rng(0)
    return [name for name, op in REGISTRY.items() if not op.blocks and any(True for _ in op.samples(rng))]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sampled())
def test_a_plan_of_one_op_means_eval(name: str) -> None:
    op = lookup(name)
    for sample in op.samples(np.random.default_rng(1)):  # type: ignore[attr-defined]
        b = Builder()
        program = built(
            b, *b.operation(op, [b.argument(type_of(o)) for o in sample.operands], sample.attributes).results
        )
        made = compile_plan(program).run(sample.operands)
        assert bits(made) == bits(evaluate(program, sample.operands))
        tensors = [isinstance(v.type, TensorType) for v in program.block.results]
        assert [isinstance(m, np.ndarray) for m in made] == tensors


def type_of(operand: Any) -> Type:
    """Return the type of a sample's operand."""
    if isinstance(operand, np.ndarray):
        return TensorType(dtypes.of_array(operand), operand.shape)
    if isinstance(operand, list):
        return ListType(type_of(operand[0]))
    return ScalarType(dtypes.kind_of_number(operand), operand if type(operand) is int else None)


# ---- buffers ---------------------------------------------------------------------------------------------------------
def test_results_are_written_over_what_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x, y = b.argument(VECTOR), b.argument(VECTOR)
    watch = Counting()
    made = watch.into(built(b, b.neg(b.mul(b.add(x, y), y))), [arrays(1, 2), arrays(3, 4)], monkeypatch)
    assert made[0].tolist() == [-12, -24]
    assert watch.written == ["mul", "neg"]


def test_inputs_constants_views_and_results_are_not_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x = b.argument(VECTOR)
    kept = b.add(x, x)
    viewed = b.mul(x, x)
    view = b.transpose(viewed, perm=(0,))
    constant = b.emit("constant", [], {"value": arrays(5, 6)})
    watch = Counting()
    program = built(b, kept, b.neg(kept), view, b.neg(viewed), b.neg(constant), b.neg(x))
    x0 = arrays(1, 2)
    for _ in range(2):
        made = watch.into(program, [x0], monkeypatch)
        assert [m.tolist() for m in made] == [[2, 4], [-2, -4], [1, 4], [-1, -4], [-5, -6], [-1, -2]]
    assert x0.tolist() == [1, 2]
    assert watch.written == []


def test_what_stands_in_a_list_is_not_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x = b.argument(VECTOR)
    y = b.add(x, x)
    items = b.emit("list_new", [y], {"type": LIST})
    watch = Counting()
    (got, negated) = watch.into(built(b, items, b.neg(y)), [arrays(1)], monkeypatch)
    assert (got[0].tolist(), negated.tolist()) == ([2], [-2])
    assert watch.written == []


def test_another_dtype_or_shape_is_not_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    x, s = b.argument(VECTOR), b.argument(TensorType(dtypes.float32, (1,)))
    small = b.add(s, s)
    wide = b.broadcast_to(small, b.shape(x))
    watch = Counting()
    smaller, total = watch.into(
        built(b, b.lt(b.add(x, x), b.neg(x)), b.add(wide, x)), [arrays(1, -2), arrays(3)], monkeypatch
    )
    assert smaller.tolist() == [False, True]
    assert total.tolist() == [7, 4]
    assert "lt" not in watch.written
    assert "add" not in watch.written


def test_branches_write_over_what_the_caller_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    p, x = b.argument(BOOL), b.argument(VECTOR)
    y = b.add(x, x)
    blocks = [b.child(), b.child()]
    for child, op in zip(blocks, ("neg", "tanh"), strict=True):
        child.block.results = [child.emit(op, [child.argument(VECTOR)])]
    out = b.emit("cond", [p, y], {}, [c.block for c in blocks])
    watch = Counting()
    assert watch.into(built(b, out), [True, arrays(1)], monkeypatch)[0].tolist() == [-2]
    assert watch.written == ["neg"]
    b.block.results = [out, y]
    watch = Counting()
    assert [v.tolist() for v in watch.into(Program({"main": b.block}), [True, arrays(1)], monkeypatch)] == [[-2], [2]]
    assert watch.written == []


def test_a_broadcast_that_numpy_does_itself_is_skipped() -> None:
    b = Builder()
    x, s = b.argument(VECTOR), b.argument(POINT)
    program = built(b, b.mul(x, s))
    names = [o.op.name for o in program.walk()]
    plan = Functions(program, np).entry()
    assert names == ["dim", "broadcast", "mul"]
    assert len(plan.steps) == 1, "the extent is not asked for either"
    assert compile_plan(program).run([arrays(1, 2), np.array(3, np.float32)])[0].tolist() == [3, 6]


def test_a_broadcast_that_gives_the_shape_is_done() -> None:
    b = Builder()
    s, x = b.argument(POINT), b.argument(VECTOR)
    wide = b.broadcast_to(s, b.shape(x))
    made = compile_plan(built(b, b.add(wide, wide), wide)).run([np.array(3, np.float32), arrays(0, 0)])
    assert [m.tolist() for m in made] == [[6, 6], [3, 3]]
    made[1][0] = 1  # a result is the caller's, element by element
    assert made[1].tolist() == [1, 3]


# ---- lists -----------------------------------------------------------------------------------------------------------
def appending(conditional: bool) -> Program:
    """Append to a list in every turn; under a cond when asked for."""
    b = Builder()
    n, start = b.argument(INT), b.argument(ListType(INT))
    body = b.child()
    i, items = body.argument(INT), body.argument(ListType(INT))
    if conditional:
        then, other = body.child(), body.child()
        inner, j = then.argument(ListType(INT)), then.argument(INT)
        then.block.results = [then.list_append(inner, j)]
        unchanged, _ = other.argument(ListType(INT)), other.argument(INT)
        other.block.results = [unchanged]
        test = body.scalar_ne(body.scalar_mod(i, 3), 0)
        body.block.results = [body.emit("cond", [test, items, i], {}, [then.block, other.block])]
    else:
        body.block.results = [body.list_append(items, i)]
    return built(b, b.emit("counted_while", [n, start], {"carried": 1, "reverse": False}, [body.block]))


@pytest.mark.parametrize("conditional", [False, True])
def test_appending_in_a_loop_is_linear(conditional: bool) -> None:
    plan = compile_plan(appending(conditional))
    given = [7]
    seconds = []
    for n in (10_000, 100_000):
        start = time.perf_counter()
        (made,) = plan.run([n, given])
        seconds.append(time.perf_counter() - start)
        assert made == [7, *(i for i in range(n) if i % 3 or not conditional)]
    assert given == [7]
    assert seconds[1] < 40 * seconds[0] + 0.2, "ten times the turns take ten times as long"


def test_a_list_that_is_used_again_is_not_grown_in_place() -> None:
    b = Builder()
    x = b.argument(VECTOR)
    one = b.list_append(b.emit("list_new", [], {"type": LIST}), x)
    two = b.list_append(one, x)
    assert [len(m) for m in compile_plan(built(b, one, two)).run([arrays(1)])] == [1, 2]


def test_a_list_carried_twice_stays_two_lists() -> None:
    b = Builder()
    n, x = b.argument(INT), b.argument(VECTOR)
    empty = b.emit("list_new", [], {"type": LIST})
    body = b.child()
    body.argument(INT)
    first, second, item = body.argument(LIST), body.argument(LIST), body.argument(VECTOR)
    body.block.results = [body.list_append(first, item), second]
    out = b.emit("counted_while", [n, empty, empty, x], {"carried": 2, "reverse": False}, [body.block])
    assert [len(m) for m in compile_plan(built(b, *out)).run([3, arrays(1)])] == [3, 0]


def test_a_swap_of_carried_values_moves_both() -> None:
    b = Builder()
    n, x, y = b.argument(INT), b.argument(VECTOR), b.argument(VECTOR)
    body = b.child()
    body.argument(INT)
    u, v = body.argument(VECTOR), body.argument(VECTOR)
    body.block.results = [v, u]
    out = b.emit("counted_while", [n, x, y], {"carried": 2, "reverse": False}, [body.block])
    assert [m.tolist() for m in compile_plan(built(b, *out)).run([3, arrays(1), arrays(2)])] == [[2], [1]]


# ---- runs ------------------------------------------------------------------------------------------------------------
def test_a_wrong_number_of_inputs_is_refused() -> None:
    b = Builder()
    x = b.argument(VECTOR, "x")
    with pytest.raises(ValueError, match=r"the Program takes 1 inputs \['x'\], not 2"):
        compile_plan(built(b, x)).run([arrays(1), arrays(2)])


def test_threads_share_a_plan() -> None:
    b = Builder()
    n, x = b.argument(INT), b.argument(VECTOR)
    items = b.emit("list_new", [], {"type": LIST})
    body = b.child()
    body.argument(INT)
    v, kept = body.argument(VECTOR), body.argument(LIST)
    more = body.neg(body.add(v, 1.0))
    body.block.results = [more, body.list_append(kept, body.mul(more, more))]
    out = b.emit("counted_while", [n, b.add(x, x), items], {"carried": 2, "reverse": False}, [body.block])
    program = built(b, *out)
    plan = compile_plan(program)
    wrong: list[int] = []

    def work(k: int) -> None:
        given = [20, np.full(5, k, np.float32)]
        want, squares = evaluate(program, given)
        for _ in range(60):
            made, kept = plan.run(given)
            if made.tolist() != want.tolist() or [a.tolist() for a in kept] != [a.tolist() for a in squares]:
                wrong.append(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        in_threads(*(partial(work, k) for k in range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_dead_arrays_are_given_back_while_the_plan_runs() -> None:
    b = Builder()
    n, x = b.argument(INT), b.argument(TensorType(dtypes.float32, (1 << 20,)))
    total = b.emit("reshape", [b.add(x, x)], {"shape": (1 << 10, 1 << 10)})
    for _ in range(6):  # matmul makes a new array each time; at most three may be alive
        total = b.matmul(b.neg(total), total, transpose_x=False, transpose_y=False)
    program = built(b, b.dim(total, axis=0), n)
    plan = Functions(program, np).entry()
    slots = len(plan.rest) + 2
    assert slots <= 8
    cleared = [step for step in plan.steps if step.__qualname__.startswith("clear_step")]
    assert cleared
