"""Extents are those of operands, in front of elementwise operations."""

import numpy as np
import pytest

from dy2st.passes.lowering.dims_of_operands import DimsOfOperands
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, program, stays

DIMS = DimsOfOperands()
AXIS = "{axis=0}"


def test_the_extent_of_the_operand_is_taken() -> None:
    head = "%x: float32[N], %y: float32[N]"
    nest = "%a: float32[N] = add(%y, %x)\n%b: float32[N] = relu(%a)"
    late, early = (f"%n: int(N) = dim(%{source}) {AXIS}" for source in "by")
    becomes(
        DIMS,
        f"{head}\n{nest}\n{late}\nreturn %b, %n",
        f"{head}\n{early}\n{nest}\nreturn %b, %n",
    )


def test_other_operations_keep_theirs() -> None:
    made = "%a: float32[N] = broadcast(%z, %k) {shape=(none,)}"
    stays(DIMS, f"%z: float32[], %k: int(N)\n{made}\n%n: int(N) = dim(%a) {AXIS}\nreturn %n, %a")


def test_what_repeats_nothing_is_not_asked() -> None:
    head, made = "%x: float32[N], %k: int(N)", "%a: float32[N] = broadcast(%x, %k) {shape=(none,)}"
    asked = (f"%n: int(N) = dim(%{source}) {AXIS}" for source in "ax")
    late, early = asked
    becomes(DIMS, f"{head}\n{made}\n{late}\nreturn %n, %a", f"{head}\n{early}\n{made}\nreturn %n, %a")


def test_an_argument_is_asked_itself() -> None:
    stays(DIMS, f"%x: float32[N]\n%n: int(N) = dim(%x) {AXIS}\nreturn %n")


@pytest.mark.parametrize("size", [0, 1, 17, 255])
def test_what_needs_the_extent_shares_the_nest(size: int, rng: np.random.Generator) -> None:
    p = program(f"""%x: float32[N], %seed: int, %draw: int
        %a: float32[N] = relu(%x)
        %n: int(N) = dim(%a) {AXIS}
        %c: float32[] = constant() {{value=float32[](0.5)}}
        %p: float32[N] = full(%c, %n) {{shape=(none,)}}
        %k: float32[N] = random_bernoulli(%seed, %draw, %p)
        %y: float32[N] = mul(%a, %k)
        return %y""")
    (nest,) = (s for s in schedule(prepared(p).block) if isinstance(s, FusedGroup))
    assert [o.name for o in nest.members] == ["full", "relu", "random_bernoulli", "mul"]
    given = [rng.normal(size=size).astype("float32"), 3, 4]
    assert NativePlan(p).run(given)[0].tobytes() == compile_plan(p).run(given)[0].tobytes()


def test_an_argument_is_asked_before_it_is_written() -> None:
    part = '{spec=(("int", 0),)}'
    becomes(
        DIMS,
        f"""%x: float32[N, M], %r: float32[M]
        %y: float32[N, M] = index_set(%x, %r) {part}
        %n: int(N) = dim(%x) {{axis=0}}
        return %y, %n""",
        f"""%x: float32[N, M], %r: float32[M]
        %n: int(N) = dim(%x) {{axis=0}}
        %y: float32[N, M] = index_set(%x, %r) {part}
        return %y, %n""",
    )
