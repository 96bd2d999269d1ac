"""Which operations share a loop nest."""

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


def program(*lines, arguments="%x: float32[N, M]"):
    return parse("\n".join(["program main", f"func main({arguments}) {{", *(f"  {line}" for line in lines), "}", ""]))


def steps(p):
    found = schedule(prepared(p).block)
    return [[o.name for o in s.members] if isinstance(s, FusedGroup) else s.name for s in found]


def groups(p):
    return [step for step in steps(p) if isinstance(step, list)]


def compare(p, *inputs):
    for found, wanted in zip(NativePlan(p).run(inputs), compile_plan(p).run(inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


NORM = program(
    "%0: float32[N, M], %1: float32[N, 1], %2: float32[N, 1] = layer_norm(%x, %w, %w) {rank=1, epsilon=1e-05}",
    "return %0",
    arguments="%x: float32[N, M], %w: float32[M]",
)
REPEATED = program(
    "%c: float32[] = constant() {value=float32[](2.0)}",
    "%n: int(N) = dim(%x) {axis=0}",
    "%m: int(M) = dim(%x) {axis=1}",
    "%t: float32[N, M] = broadcast(%c, %n, %m) {shape=(none, none)}",
    "%a: float32[N, M] = add(%x, %t)",
    "%s: float32[M, N] = transpose(%t) {perm=(1, 0)}",
    "%b: float32[M, N] = exp(%s)",
    "%d: float32[N, M] = mul(%a, %t)",
    "return %b, %d, %t",
)


def test_a_norm_is_one_nest(rng):
    assert len(groups(NORM)) == 1
    compare(NORM, rng.normal(size=(3, 70)).astype("float32"), rng.normal(size=70).astype("float32"))


def test_a_repeated_number_belongs_to_each_nest_that_reads_it(rng):
    assert groups(REPEATED) == [["broadcast"], ["broadcast", "add", "mul"], ["exp"]]
    compare(REPEATED, rng.normal(size=(3, 5)).astype("float32"))


def test_a_number_is_repeated_before_all_that_reads_it_in_nests_put_together(rng):
    """One nest repeats the number itself; the other read it from memory, where the sum's operand was written."""
    p = program(
        "%n: int(N) = dim(%x) {axis=0}",
        "%m: int(M) = dim(%x) {axis=1}",
        "%t: float32[N, M] = broadcast(%c, %n, %m) {shape=(none, none)}",
        "%a: float32[N, M] = add(%x, %t)",
        "%s: float32[M, N] = transpose(%t) {perm=(1, 0)}",
        "%b: float32[N, M] = sin(%t)",
        "%d: float32[N, M] = minimum(%b, %a)",
        "return %d, %s",
        arguments="%x: float32[N, M], %c: float32[]",
    )
    assert groups(p)[-1] == ["broadcast", "sin", "add", "minimum"]
    compare(p, rng.normal(size=(3, 5)).astype("float32"), np.float32(0.25))


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 255])
def test_what_has_another_axis_of_extent_one_is_a_view_of_what_is_written(size, rng):
    p = program(
        "%a: float32[N] = exp(%x)", "%b: float32[1, N] = expand_dims(%a) {axes=(0,)}",
        "%c: float32[1, N] = square(%b)", "%d: float32[N] = squeeze(%c) {axes=(0,)}", "return %a, %b, %c, %d",
        arguments="%x: float32[N]",
    )  # fmt: skip
    (group, *views) = schedule(prepared(p).block)
    assert len(group.results) == 2
    assert [step.name for step in views] == ["expand_dims", "squeeze"]
    compare(p, rng.normal(size=size).astype("float32"))


def test_a_repeated_number_is_a_result_like_others():
    p = program(
        "%c: float32[] = constant() {value=float32[](2.0)}",
        "%n: int(N) = dim(%x) {axis=0}",
        "%t: float32[N] = broadcast(%c, %n) {shape=(none,)}",
        "return %t",
        arguments="%x: float32[N]",
    )
    compare(p, np.ones(4, "float32"))


def test_a_repeated_number_may_be_read_with_two_shapes(rng):
    p = program(
        "%c: float32[] = constant() {value=float32[](2.0)}",
        "%n: int(N) = dim(%x) {axis=0}",
        "%t: float32[N, 1] = broadcast(%c, %n) {shape=(none, 1)}",
        "%a: float32[N, 1] = sum(%x) {axis=(1,), keepdim=true}",
        "%b: float32[N, 1] = add(%a, %t)",
        "%m: int(M) = dim(%x) {axis=1}",
        "%u: float32[N, M] = broadcast(%t, %n, %m) {shape=(none, none)}",
        "%d: float32[N, M] = mul(%x, %u)",
        "return %b, %d",
    )
    compare(p, rng.normal(size=(3, 5)).astype("float32"))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (n, d)
        for n in ("sum", "mean", "max", "min", "prod")
        for d in ("float32", "float64", "int32")
        if n + d != "meanint32"
    ],
)
def test_a_reduction_of_all_that_rows_are_computed_for_is_one_of_rows_first(name, dtype, rng):
    made = {"int32": "int64"}.get(dtype, dtype) if name in ("sum", "prod") else dtype
    p = program(
        f"%0: {dtype}[N, K, 1] = max(%x) {{axis=(2,), keepdim=true}}",
        "%n: int(N) = dim(%x) {axis=0}",
        "%k: int(K) = dim(%x) {axis=1}",
        "%m: int(M) = dim(%x) {axis=2}",
        f"%1: {dtype}[N, K, M] = broadcast(%0, %n, %k, %m) {{shape=(none, none, none)}}",
        f"%2: {dtype}[N, K, M] = sub(%x, %1)",
        f"%3: {made}[] = {name}(%2) {{axis=(0, 1, 2), keepdim=false}}",
        "return %3",
        arguments=f"%x: {dtype}[N, K, M]",
    )
    in_order = name == "prod" and made != "int64"  # a part may overflow where another one is 0
    assert groups(p) == ([["max", "broadcast", "sub"]] if in_order else [["max", "broadcast", "sub", name], [name]])
    for shape in ((3, 2, 20), (1, 1, 1), (2, 3, 70)):
        compare(p, (rng.normal(size=shape) * 3).astype(dtype))
