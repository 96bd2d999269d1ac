"""Blocks that are made anew: what takes the place of an operation, what is left out, what stays."""

from dy2st.dtypes import float64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.ir.verifier import verify
from dy2st.passes.core.rebuild_block import Now, rebuild
from dy2st.passes.core.rewrite import Replacements, renamings
from dy2st.shapes import symbol
from tests.autodiff.building import VECTOR


def test_operations_are_replaced_left_out_and_kept() -> None:
    b = Builder()
    x = b.argument(VECTOR)
    y = b.exp(x)
    z = b.tanh(y)
    unread = b.sin(z)
    b.block.results = [b.add(z, x), z]
    made: dict[str, Value] = {}

    def instead(b: Builder, operation: Operation, now: Now) -> list[Value] | None:
        if operation is unread.operation:
            return []
        if operation is not y.operation and operation is not z.operation:
            return None
        assert operation.operands == [made.get("exp", x)]  # as they are by now
        made[operation.name] = b.cos(operation.operands[0])
        assert now(x) is x
        return [made[operation.name]]

    rebuild(b.block, instead)
    verify(Program({"main": b.block}))
    assert [o.name for o in b.block.operations] == ["cos", "cos", "add"]
    assert b.block.operations[2].operands == [made["tanh"], x]
    assert b.block.results[1] is made["tanh"]


def test_a_symbol_is_renamed_alike_wherever_it_stands() -> None:
    n, m = symbol("N"), symbol("M")
    of = lambda *shape: TensorType(float64, shape)
    assert renamings(of(n, 2 * n), of(n, 2 * n)) == {}
    assert renamings(of(n, 3), of(m, 3)) == {"N": m}
    assert renamings(of(n, n), of(m, 3)) is None
    assert renamings(of(n, 2 * n), of(m, 2 * n)) is None
    assert renamings(of(2 * n, n), of(2 * n, m)) is None


def test_extents_that_callers_give_and_those_of_other_ranks_do_not_become_each_other() -> None:
    b = Builder()
    of = lambda *shape: TensorType(float64, shape)
    x, y, z = (b.argument(of(*shape)) for shape in ([symbol("N")], [symbol("M")], [symbol("N"), symbol("M")]))
    made = b.masked_select(x, b.isnan(x))
    replacements = Replacements(b.block)
    assert not replacements.replace(x, y)
    assert not replacements.replace(x, z)
    assert not replacements.unify(made.type, z.type)
    assert replacements.now(x) is x
    assert replacements.replace(made, y)
    assert replacements.now(made) is y
