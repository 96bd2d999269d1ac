"""What a plan writes in place, and what it must not: views that are still used, values that somebody else has."""

from typing import Any

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import BOOL, INT, TensorType, optional
from dy2st.ops.indexing.getitem import IndexSet
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from dy2st.shapes import symbol
from tests.autodiff.building import cond, counted_while, program

MATRIX = TensorType(dtypes.float64, (symbol("N"), 3))
ROW = (("int", "?"),)
MAYBE = optional(MATRIX)


@pytest.fixture
def copies(monkeypatch):
    """Count the whole arrays that `index_set` copies."""
    made: list[int] = []
    whole = IndexSet.eval

    def counting(self, xp, x, value, *operands, spec):
        made.append(x.size)
        return whole(self, xp, x, value, *operands, spec=spec)

    monkeypatch.setattr(IndexSet, "eval", counting)
    return made


def ran(made: Program, *inputs: Any) -> list[Any]:
    """Run a plan; it gives what the interpreter gives, and leaves its inputs alone."""
    before = [np.array(x) for x in inputs]
    found = compile_plan(made).run(list(inputs))
    for x, was in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, was)
    for one, other in zip(found, evaluate(made, list(inputs)), strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def put(b: Builder, x, row, i):
    return b.index_set(x, row, i, spec=ROW)


X = np.arange(12.0).reshape(4, 3)


def test_a_write_behind_the_last_use_of_a_view_is_in_place(copies):
    def body(b, x):
        y = b.exp(x)
        row = b.neg(b.index(y, b.scalar(1), spec=ROW))
        return put(b, y, row, b.scalar(0))

    compile_plan(program([MATRIX], body)).run([X])
    assert copies == []


def test_a_part_that_is_used_behind_a_write_is_copied_and_not_the_whole(copies):
    def body(b, x):
        y = b.exp(x)
        row = b.index(y, b.scalar(0), spec=ROW)
        return put(b, y, b.index(y, b.scalar(1), spec=ROW), b.scalar(0)), row

    found = compile_plan(program([MATRIX], body)).run([X])
    assert copies == []
    np.testing.assert_array_equal(found[1], np.exp(X[0]))


def test_a_view_that_leaves_the_block_is_not_written_into(copies):
    def body(b, x):
        y = b.exp(x)
        turned = b.emit("transpose", [y], {"perm": (1, 0)})
        return put(b, y, b.constant(0.0, dtypes.float64), b.scalar(0)), turned

    found = ran(program([MATRIX], body), X)
    np.testing.assert_array_equal(found[1], np.exp(X).T)


def test_a_view_of_a_view_counts(copies):
    def body(b, x):
        y = b.exp(x)
        turned = b.emit("transpose", [b.emit("transpose", [y], {"perm": (1, 0)})], {"perm": (1, 0)})
        return put(b, y, b.constant(0.0, dtypes.float64), b.scalar(0)), b.add(turned, turned)

    found = ran(program([MATRIX], body), X)
    np.testing.assert_array_equal(found[1], 2 * np.exp(X))


def test_a_view_that_a_branch_gives_back_counts():
    def body(b, p, x):
        y = b.exp(x)
        turned = b.emit("transpose", [y], {"perm": (1, 0)})
        kept = cond(b, p, lambda b: b.use(turned), lambda b: b.neg(turned))
        return put(b, y, b.constant(0.0, dtypes.float64), b.scalar(0)), kept

    for p in (True, False):
        ran(program([BOOL, MATRIX], body), p, X)


def test_an_optional_hands_its_tensor_over(copies):
    def body(b, x):
        some = b.emit("variant_new", [b.exp(x)], {"type": MAYBE, "tag": 1})
        inside = b.emit("variant_get", [some], {"tag": 1, "message": ""})
        return put(b, inside, b.constant(0.0, dtypes.float64), b.scalar(0))

    compile_plan(program([MATRIX], body)).run([X])
    assert copies == []


def test_an_optional_that_is_used_again_does_not():
    def body(b, x):
        some = b.emit("variant_new", [b.exp(x)], {"type": MAYBE, "tag": 1})
        inside = b.emit("variant_get", [some], {"tag": 1, "message": ""})
        changed = put(b, inside, b.constant(0.0, dtypes.float64), b.scalar(0))
        return changed, b.emit("variant_get", [some], {"tag": 1, "message": ""})

    found = ran(program([MATRIX], body), X)
    np.testing.assert_array_equal(found[1], np.exp(X))


def test_an_optional_of_an_input_does_not():
    def body(b, x):
        some = b.emit("variant_new", [x], {"type": MAYBE, "tag": 1})
        inside = b.emit("variant_get", [some], {"tag": 1, "message": ""})
        return put(b, inside, b.constant(0.0, dtypes.float64), b.scalar(0))

    ran(program([MATRIX], body), X)


@pytest.mark.parametrize("same", [True, False])
def test_a_loop_that_writes_rows_copies_what_it_starts_from_once(same, copies):
    def body(b, n, x):
        def turn(b, i, y):
            row = b.index(y, b.scalar(0) if same else i, spec=ROW)
            return put(b, y, row if same else b.neg(row), i)

        return counted_while(b, n, [x], turn)

    made = program([INT, MATRIX], body)
    compile_plan(made).run([4, X])
    assert copies == []
    ran(made, 4, X)


def test_a_loop_that_writes_into_a_view_starts_from_a_copy():
    def body(b, n, x):
        wide = b.broadcast_to(b.constant(1.0, dtypes.float64), list(b.shape(x)))
        return counted_while(b, n, [wide], lambda b, i, y: put(b, y, b.neg(b.index(y, i, spec=ROW)), i))

    found = ran(program([INT, MATRIX], body), 2, X)
    np.testing.assert_array_equal(found[0][:, 0], [-1, -1, 1, 1])


def test_what_is_written_is_what_nobody_needs_and_not_the_value_that_is_written():
    def body(b, x, v):
        kept, value = b.mul(x, 2.0), b.mul(v, 3.0)
        return [b.index_set(kept, value, b.scalar(0), spec=ROW), kept]

    x, v = np.ones((2, 3)), np.arange(3.0)
    made, kept = ran(program([MATRIX, TensorType(dtypes.float64, (3,))], body), x, v)
    np.testing.assert_array_equal(made, [[0, 3, 6], [2, 2, 2]])
    np.testing.assert_array_equal(kept, np.full((2, 3), 2.0))


def test_a_tensor_that_says_where_it_is_written_is_copied():
    def body(b, x, v):
        at = b.sub(x, 1)
        return [b.index_set(at, b.add(v, 1), at, spec=(("tensor",),))]

    ints = TensorType(dtypes.int64, (symbol("N"),))
    (made,) = ran(program([ints, ints], body), np.array([3, 1, 2, 2]), np.array([6, 7, 8, 8]))
    np.testing.assert_array_equal(made, [8, 9, 7, 1])
