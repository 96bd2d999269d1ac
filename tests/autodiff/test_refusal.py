"""What is said of derivatives that are not there."""

import numpy as np
import pytest

from dy2st.autodiff.programs import jet, jvp, vjp
from dy2st.autodiff.refusal import where_it_ends
from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block
from dy2st.ops.core.base import Op
from tests.autodiff.building import VECTOR, counted_while, program


class Twice(Op):
    """An op with a block that no rule knows."""

    abstract = True
    name = "twice"
    blocks = 1

    def infer(self, *operands, **attributes):
        return operands[0]


@pytest.fixture
def unknown(monkeypatch):
    """Return a Program that runs an op with a block for which derivatives have no rule."""
    op = Twice()
    monkeypatch.setitem(REGISTRY, "twice", op)

    def body(b: Builder, x):
        inner = Block()
        inner.results = [inner.add_argument(VECTOR)]
        return b.operation(op, [x], {}, [inner]).results[0]

    return program([VECTOR], body)


MODES = {
    "reverse": lambda made: vjp(made, (0,), [(0, False)]),
    "forward": lambda made: jvp(made, (0,)),
    "jet": lambda made: jet(made, ((0, (1,)),), 2),
}


@pytest.mark.parametrize("mode", MODES)
def test_an_operation_without_a_rule(unknown, mode):
    with pytest.raises(
        StructureError, match=r"a derivative goes through 'twice', for which there is no rule\n  at .*:\d"
    ):
        MODES[mode](unknown)


def ends(body):
    block = program([VECTOR], body).block
    found = where_it_ends(block, block.arguments[0], block.results)
    return None if found is None else found.name


def test_the_operation_at_which_a_derivative_ends_is_found():
    assert ends(lambda b, x: b.neg(b.cast(b.gt(b.exp(x), x), dtype=VECTOR.dtype))) == "gt"


def test_what_a_detached_operand_is_for_is_found():
    assert ends(lambda b, x: b.cast(b.gt(b.detach(x), b.detach(x)), dtype=VECTOR.dtype)) == "gt"
    assert ends(lambda b, x: b.exp(b.detach(x))) == "detach"


def test_a_way_that_does_not_end_has_no_such_operation():
    assert ends(lambda b, x: b.exp(x)) is None
    assert ends(lambda b, x: b.constant(np.zeros(3), VECTOR.dtype)) is None


def test_operations_beside_the_way_do_not_count():
    def body(b, x):
        b.gt(x, x)
        return counted_while(b, 2, [x], lambda b, i, s: b.exp(s))

    assert ends(body) is None
