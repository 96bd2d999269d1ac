"""The text of native code: the same in every process, so that it is compiled once."""

import pytest

import dy2st as paddle
from dy2st.ir.clone import clone_program
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.lowering import lower, prepared


def columns(x):
    y = x * 2
    return y.sum(axis=0), (y + 1).sum(axis=0), (y + 2).max(axis=0), (y + 3).mean(axis=0), (y + 4).sum(axis=0)


def branches(x):
    a, b, c, d, e = x + 1, x + 2, x + 3, x + 4, x + 5
    if x.sum() > 0:
        a, b, c, d, e = x, x, x, x, x
    return a, b, c, d, e


@pytest.mark.parametrize("function", [columns, branches])
def test_text_does_not_depend_on_where_values_stand_in_memory(function):
    static = paddle.jit.to_static(function, full_graph=True)
    static(paddle.ones([3, 4]))
    program = static.concrete_program.main_program
    copies = [clone_program(program) for _ in range(12)]
    texts = set()
    for copy in copies:
        unit = lower(prepared(copy), current_target())
        texts.add(unit.module.text(unit.kernels) + unit.kernels.text())
    assert len(texts) == 1
