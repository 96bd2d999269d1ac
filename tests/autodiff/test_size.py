"""Derivatives of long Programs: no recursion over operations, time and size in proportion."""

import numpy as np

from dy2st import dtypes
from dy2st.autodiff.programs import jvp, vjp
from dy2st.ir.types import BOOL, INT, TensorType
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import MATRIX, POINT, VECTOR, N, cond, counted_while, empty_list, program
from tests.autodiff.checking import check

X = np.array([0.3, -0.7, 1.2])
Y = np.array([0.5, 0.4, -0.2])


def test_more_operations_in_a_row_than_python_nests_calls():
    def body(b, x):
        for _ in range(3_000):
            x = b.neg(x)
        return b.mul(x, x)

    made = program([POINT], body)
    pulled = vjp(made, (0,), [(0, False)])
    values = evaluate(pulled.forward, [np.array(3.0)])
    assert evaluate(pulled.backward, [*values[1:], np.array(1.0)]) == [6.0]
    pushed, _ = jvp(made, (0,))
    assert evaluate(pushed, [np.array(3.0), np.array(1.0)])[1] == 6.0


def test_what_does_not_change_in_a_loop_is_not_put_on_a_tape():
    """exp(y) is the same in every turn: it is computed before the loop and kept once."""

    def body(b, n, x, y):
        return counted_while(b, n, [x], lambda b, i, s: b.mul(s, b.exp(y)))

    made = vjp(program([INT, VECTOR, VECTOR], body), (1,), [(0, False)])
    assert "list_append" not in str(made.forward)
    check(program([INT, VECTOR, VECTOR], body), 3, X, Y, order=2)


def test_a_linear_loop_keeps_nothing():
    def body(b, n, x, y):
        return counted_while(b, n, [x], lambda b, i, s: b.add(s, y))

    made = vjp(program([INT, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    assert "list_append" not in str(made.forward)


def test_residuals_that_nobody_uses_are_left_out():
    made = vjp(program([VECTOR, VECTOR], lambda b, x, y: b.mul(b.exp(x), y)), (1,), [(0, False)])
    assert made.residuals == 1


def test_the_backward_loop_of_a_recurrent_net_has_no_cond():
    def body(b, n, h, w):
        return counted_while(b, n, [h], lambda b, i, h: b.tanh(b.mul(h, w)))

    made = vjp(program([INT, VECTOR, VECTOR], body), (1, 2), [(0, False)])
    (loop,) = [operation for operation in made.backward.block.operations if operation.name == "counted_while"]
    assert "cond" not in [operation.name for operation in loop.blocks[0].walk()]
    assert "optional_add" not in [operation.name for operation in loop.blocks[0].walk()]


def test_reading_a_list_in_a_loop_adds_to_one_list_of_cotangents():
    """Adding a whole list in every turn would make n reads cost n * n."""

    def body(b, n, x):
        items = counted_while(b, n, [empty_list(b)], lambda b, i, items: b.list_append(items, b.mul(x, x)))
        return counted_while(b, n, [x], lambda b, i, total: b.add(total, b.list_get(items, i)))

    made = vjp(program([INT, VECTOR], body), (1,), [(0, False)])
    names = [operation.name for operation in made.backward.walk()]
    assert names.count("list_accumulate") == 1
    loops = [operation for operation in made.backward.block.operations if operation.name == "counted_while"]
    for loop in loops:
        lists = [o for o in loop.blocks[0].walk() if o.name == "optional_add" and "list" in str(o.results[0].type)]
        assert lists == []


def test_the_number_that_a_list_told_is_kept_and_not_the_list():
    def body(b, n, x):
        def turn(b, i, items):
            rest, top = b.list_pop(items, -1)
            return b.list_append(b.list_append(rest, b.mul(top, x)), b.tanh(top))

        items = counted_while(b, n, [b.list_append(empty_list(b), x)], turn)
        return b.list_get(items, -1)

    made = vjp(program([INT, VECTOR], body), (1,), [(0, False)])
    assert "list<list<" not in str(made.forward)
    check(program([INT, VECTOR], body), 3, X, order=2)


def test_many_operations_under_one_flag_are_pulled_back_under_one_cond():
    def body(b, p, x):
        z = x
        for _ in range(30):
            z = b.tanh(z)
        return cond(b, p, lambda b: z, lambda b: b.mul(x, x))

    made = vjp(program([BOOL, VECTOR], body), (1,), [(0, False)])
    assert [operation.name for operation in made.backward.walk()].count("cond") == 1


ROWS = TensorType(VECTOR.dtype, (N, 3))


def rows(b, x, y):
    """Sum what is made of each row."""
    spec = (("int", "?"),)

    def turn(b, i, s):
        row = b.index(x, i, spec=spec)
        return b.add(b.mul(b.tanh(s), row), b.mul(row, b.index(x, b.scalar(0), spec=spec)))

    return counted_while(b, b.extent(N), [y], turn)


def test_reading_a_row_in_every_turn_adds_rows_and_no_matrices():
    made = vjp(program([ROWS, TensorType(VECTOR.dtype, (3,))], rows), (0, 1), [(0, False)])
    (loop,) = [operation for operation in made.backward.block.operations if operation.name == "counted_while"]
    names = [operation.name for operation in loop.blocks[0].walk()]
    assert names.count("index_add") == 2
    assert "full" not in names


def test_reading_rows_has_the_right_derivatives():
    matrix = np.array([[0.3, -0.7, 1.2], [0.5, 0.4, -0.2]])
    check(program([ROWS, TensorType(VECTOR.dtype, (3,))], rows), matrix, X, order=3, tolerance=1e-5)


def test_two_sums_share_a_row_that_was_read():
    def body(b, x, y):
        z = b.add(x, y)
        read = b.index(z, b.scalar(0), spec=(("int", "?"),))
        more = b.index(x, b.scalar(0), spec=(("int", "?"),))
        return b.mul(b.mul(read, more), read)

    check(program([VECTOR, VECTOR], body), X, Y, order=3)


def test_a_row_that_a_loop_reads_is_read_again_and_not_kept():
    def body(b, n, h, rows):
        def turn(b, i, h):
            return b.tanh(b.mul(h, b.index(rows, i, spec=(("int", "?"),))))

        return counted_while(b, n, [h], turn)

    made = program([INT, VECTOR, TensorType(VECTOR.dtype, (N, N))], body)
    forward = vjp(made, (1, 2), [(0, False)]).forward
    assert [o.name for o in forward.walk()].count("list_append") == 2  # h and the result of tanh, not the row
    check(made, 2, X, np.outer(X, Y), order=2)


def tapes(made):
    """Return the element types of the lists that the loop of a forward Program appends to."""
    (loop,) = [o for o in made.forward.block.operations if o.name in ("while_loop", "counted_while")]
    return [str(o.results[0].type) for o in loop.blocks[0].operations if o.name == "list_append"]


def test_a_view_is_kept_as_what_it_was_made_of():
    """`s` alone is kept: neither its broadcast over rows nor the extents of that."""

    def body(b, n, x, y):
        def turn(b, i, s):
            wide = b.broadcast_to(b.expand_dims(s, axes=(0,)), [2, *b.shape(s)])
            return b.sum(b.mul(wide, wide), axis=(0,), keepdim=False)

        return counted_while(b, n, [x], turn)

    made = vjp(program([INT, VECTOR, VECTOR], body), (1,), [(0, False)])
    assert tapes(made) == ["list<float64[N]>"]
    check(program([INT, VECTOR, VECTOR], body), 2, X, Y, order=2)


def test_a_cast_to_a_wider_dtype_is_kept_as_what_was_cast():
    def body(b, n, x, y):
        def turn(b, i, s):
            weight = b.cast(b.gt(s, 0.0), dtype=VECTOR.dtype)
            return b.mul(b.sin(s), weight)

        return counted_while(b, n, [x], turn)

    made = vjp(program([INT, VECTOR, VECTOR], body), (1,), [(0, False)])
    assert sorted(tapes(made)) == ["list<bool[N]>", "list<float64[N]>"]
    check(program([INT, VECTOR, VECTOR], body), 3, X, Y, order=2)


def test_extents_are_read_from_what_is_kept():
    """Extents change from turn to turn; they are those of tensors that the way back has."""

    def body(b, n, x):
        def turn(b, i, s):
            return b.concat(b.tanh(s), b.sin(s), axis=0)

        return counted_while(b, n, [x], turn, changing=True)

    made = vjp(program([INT, VECTOR], body), (1,), [(0, False)])
    assert set(tapes(made)) == {"list<float64[None]>"}
    check(program([INT, VECTOR], body), 3, X, order=2)


def test_a_write_in_a_branch_keeps_the_part_that_was_there():
    """Neither the row nor its extent is read of the whole matrix, which every turn would have to keep for that."""

    def body(b, x, n):
        row = {"spec": (("int", "?"),)}

        def turn(b, i, h):
            def wrote(side):
                part = side.index(h, i, **row)
                doubled = side.mul(side.broadcast_to(side.constant(2.0, dtypes.float64), side.shape(part)), part)
                return [side.index_set(h, side.mul(side.exp(part), doubled), i, **row)]

            return cond(b, b.scalar_eq(b.scalar_mod(i, 2), 0), wrote, lambda side: [h])

        return counted_while(b, n, [x], turn)

    made = program([MATRIX, INT], body)
    kept = tapes(vjp(made, (0,), [(0, False)]))
    assert kept
    assert not any("N, N" in kind for kind in kept)
    check(made, np.outer(X, Y), 3, order=2)
