"""Many arrays of which the types know all are read and made by one loop over a table."""

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.ir.program import Program, tensor_type
from dy2st.runtime.backends.cpu.compile import lowered
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

TYPES = (
    *("float32[]", "float64[]", "int64[]", "int8[3]", "float32[2, 2]", "float64[16]", "float32[17]", "bool[40]"),
    *("int16[3, 30]", "float16[5]", "complex64[2, 3]", "float64[0, 40]", "float32[30, 50]", "bool[]", "bool[4]"),
)


def program(types: tuple[str, ...] = TYPES) -> Program:
    """Return a Program that gives what it takes, each in memory of its own."""
    arguments = ", ".join(f"%x{i}: {t}" for i, t in enumerate(types))
    lines = [f"%y{i}: {t} = {'logical_not' if 'bool' in t else 'neg'}(%x{i})" for i, t in enumerate(types)]
    results = ", ".join(f"%y{i}" for i in range(len(types)))
    return parse(f"program main\nfunc main({arguments}) {{\n" + "\n".join([*lines, f"return {results}"]) + "\n}\n")


def inputs(p: Program, rng: np.random.Generator) -> list[np.ndarray]:
    return [
        np.asarray(rng.normal(size=[e for e in t.shape if isinstance(e, int)]) * 3, t.dtype.numpy)
        for t in map(tensor_type, p.block.arguments)
    ]


def check(p: Program, given: list[np.ndarray]) -> None:
    for got, want in zip(NativePlan(p).run(given), compile_plan(p).run(given), strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_every_type_comes_and_goes(rng: np.random.Generator) -> None:
    p = program()
    unit = lowered(p)
    assert "dy2st.entry.arguments" in unit.module
    assert "dy2st.entry.results" in unit.module
    check(p, inputs(p, rng))


def test_few_arrays_have_no_table(rng: np.random.Generator) -> None:
    p = program(TYPES[:5])
    assert "dy2st.entry.arguments" not in lowered(p).module
    check(p, inputs(p, rng))


def test_results_that_nobody_holds_keep_their_memory(rng: np.random.Generator) -> None:
    p = program(("float32[2000]",) * 9)
    made = NativePlan(p).run(inputs(p, rng))
    assert all(x.base is not None for x in made)


@pytest.mark.parametrize("place", range(len(TYPES)))
def test_an_array_that_is_not_as_its_type_says_is_not_taken(place: int, rng: np.random.Generator) -> None:
    p = program()
    plan, given = NativePlan(p), inputs(p, rng)
    x = given[place]
    others = [np.zeros(x.shape, "uint8"), x[..., None]]
    if x.ndim:
        others += [np.concatenate([x, x[-1:]]) if len(x) else np.zeros((1, 40)), x.tolist()]
    for other in others:
        assert plan.call(*[other if i == place else y for i, y in enumerate(given)]) is False


def test_an_array_with_gaps_is_not_taken(rng: np.random.Generator) -> None:
    p = program()
    given = inputs(p, rng)
    given[-3] = np.asarray(given[-3].T.copy().T)
    assert NativePlan(p).call(*given) is False
    check(p, given)
