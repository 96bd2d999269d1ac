"""`with_gradient`: its pull-back is put in place, and what is no pull-back of it is refused."""

import numpy as np
import pytest

from dy2st.autodiff.custom import transposed
from dy2st.autodiff.programs import jvp, vjp
from dy2st.errors import AutodiffError, InvalidProgram, ProgramSyntaxError
from dy2st.ir.opdef import lookup
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.runtime.interpreter.reference import evaluate
from tests.autodiff.building import POINT, VECTOR, cond, program


def text(types, body):
    return to_text(program(types, body), locations=False)


TRIPLE = text([VECTOR] * 3, lambda b, ct, y, x: b.mul(b.mul(ct, x), 3))


def layer(pullback, inputs=1):
    """The Program x -> x * x with this pull-back."""

    def body(b, x):
        y = b.detach(b.mul(x, x))
        return b.with_gradient(y, x, x, inputs=inputs, pullback=pullback, pushforward="", values=1, whose="Mine")

    return program([VECTOR], body)


def gradient(of, x, ct):
    made = vjp(of, [0], [(0, False)])
    values = evaluate(made.forward, [x])
    return evaluate(made.backward, [*values[1:], ct])


def test_the_gradient_is_what_the_pull_back_says():
    x, ct = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, -1.0])
    of = layer(TRIPLE)
    np.testing.assert_array_equal(evaluate(of, [x])[0], x * x)
    np.testing.assert_array_equal(gradient(of, x, ct)[0], 3 * x * ct)


def test_it_is_read_back_from_its_text():
    x, ct = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    again = parse(to_text(layer(TRIPLE)))
    np.testing.assert_array_equal(gradient(again, x, ct)[0], 3 * x * ct)


def test_a_result_that_nobody_uses_counts_as_zero():
    def body(b, x):
        pullback = text([VECTOR] * 4, lambda b, one, other, *_: b.add(one, b.mul(other, 10)))
        values = [b.detach(b.exp(x)), b.detach(b.sin(x))]
        return b.with_gradient(*values, x, inputs=1, pullback=pullback, pushforward="", values=2, whose="Mine")[0]

    assert gradient(program([VECTOR], body), np.ones(2), np.array([1.0, 2.0]))[0].tolist() == [1.0, 2.0]


def branches(b, ct, y, x):
    return cond(b, b.item(b.gt(b.sum(ct, axis=(0,), keepdim=False), 0)), lambda s: [s.use(ct)], lambda s: [s.use(x)])


@pytest.mark.parametrize(
    ("pullback", "error", "says"),
    [
        (text([VECTOR], lambda b, ct: ct), AutodiffError, "the backward of 'Mine' does not fit the values"),
        (text([VECTOR] * 3, lambda b, ct, y, x: [ct, x]), AutodiffError, "does not fit the values that it is for"),
        (text([VECTOR, POINT, VECTOR], lambda b, ct, y, x: ct), AutodiffError, r"takes float64\[\], not float64\[N\]"),
        (text([VECTOR] * 3, branches), AutodiffError, "is more than arithmetic: it has 'cond'"),
        ("", ProgramSyntaxError, "expected 'program'"),
        (
            TRIPLE.replace("mul", "sub", 1).replace("float64[N] = sub", "float64[] = sub", 1),
            InvalidProgram,
            "sub gives",
        ),
    ],
    ids=["too few", "too many", "other types", "control flow", "no text", "no Program"],
)
def test_what_is_no_pull_back_is_refused(pullback, error, says):
    with pytest.raises(error, match=says):
        vjp(layer(pullback), [0], [(0, False)])


def test_the_operands_are_values_then_inputs():
    with pytest.raises(ValueError, match="with_gradient: 1 operands are not 1 values and 2 inputs"):
        lookup("with_gradient").infer(VECTOR, inputs=2, pullback="", pushforward="", values=1, whose="Mine")


def test_without_a_push_forward_there_is_no_forward_mode():
    with pytest.raises(AutodiffError, match="'Mine' has a backward of its own and no forward derivative"):
        jvp(layer(TRIPLE), [0])


def test_a_push_forward_is_the_transpose_of_the_pull_back():
    made = transposed(parse(TRIPLE).block, 1)
    dx, y, x = np.array([1.0, 2.0]), np.zeros(2), np.array([5.0, 7.0])
    np.testing.assert_array_equal(evaluate(made, [dx, y, x])[0], 3 * x * dx)
