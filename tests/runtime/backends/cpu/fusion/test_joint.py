"""Loop nests that do not need each other are one job for threads: an optimizer's updates of all parameters."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.ir.program import Operation, Program, tensor_type
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.fusion.epilogues import Epilogue
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import HorizontalGroup
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import lower, prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

SIZES = (1, 2, 15, 16, 17, 255, 1024, 1025, 200_000)


def program(arguments: str, body: str) -> Program:
    return parse(f"program main\nfunc main({arguments}) {{\n{body}\n}}\n")


def updates(sizes: tuple[int, ...], dtype: str = "float32") -> Program:
    """Return a Program that updates parameters of these sizes, each with a moment."""
    arguments, lines, made = [f"%rate: {dtype}[]"], [], []
    for i, n in enumerate(sizes):
        t = f"{dtype}[{n}]"
        arguments += [f"%w{i}: {t}", f"%m{i}: {t}", f"%g{i}: {t}"]
        lines += [
            f"%a{i}: {t} = add(%m{i}, %g{i})", f"%r{i}: {t} = broadcast(%rate) {{shape=({n},)}}",
            f"%e{i}: {t} = exp(%a{i})", f"%s{i}: {t} = mul(%e{i}, %r{i})", f"%n{i}: {t} = sub(%w{i}, %s{i})",
            f"%l{i}: {t} = renew(%n{i}, %w{i})",
        ]  # fmt: skip
        made += [f"%l{i}", f"%a{i}"]
    return program(", ".join(arguments), "\n".join([*lines, f"return {', '.join(made)}"]))


def inputs(p: Program, rng: np.random.Generator) -> list[np.ndarray]:
    return [
        np.asarray(rng.normal(size=[e for e in t.shape if isinstance(e, int)]), t.dtype.numpy)
        for t in map(tensor_type, p.block.arguments)
    ]


def steps(p: Program) -> list[str | int]:
    """Return the names of steps; of nests how many there are in one job."""
    found = schedule(prepared(p).block)
    return [
        len(s.groups) if isinstance(s, HorizontalGroup) else 1 if isinstance(s, FusedGroup) else _name(s) for s in found
    ]


def _name(step: Operation | Epilogue) -> str:
    return step.name if isinstance(step, Operation) else f"{step.product.name} and more"


def check(p: Program, given: list[np.ndarray]) -> list[np.ndarray]:
    found = NativePlan(p).run([x.copy() for x in given])
    for got, want in zip(found, compile_plan(p).run(given), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-6)
    return found


def test_updates_are_one_job_and_new_names_come_after_it() -> None:
    assert steps(updates((17, 255, 40))) == [3, "renew", "renew", "renew"]


def test_nests_that_need_each_other_are_not() -> None:
    body = "%t: float32[4, 5] = transpose(%{}) {{perm=(1, 0)}}"
    one = "%a: float32[5, 4] = exp(%x)\n%n: float32[5, 4] = renew(%a, %x)\n"
    two = "%b: float32[4, 5] = exp(%t)\nreturn %n, %b"
    head = "%x: float32[5, 4]"
    assert steps(program(head, one + body.format("n") + "\n" + two)) == [1, "renew", "transpose", 1]
    assert steps(program(head, one + body.format("x") + "\n" + two)) == [1, "renew", "transpose", 1]


def test_a_nest_waits_behind_other_nests_and_numbers_alone() -> None:
    p = program(
        "%x: float32[300], %y: float32[300], %z: float32[N], %w: float32[20, 20], %r: float64[]",
        """%a: float32[300] = exp(%x)
        %n: float32[300] = renew(%a, %x)
        %s: float32[] = sum(%z) {axis=(0,), keepdim=false}
        %q: float64[] = mul(%r, %r)
        %b: float32[300] = exp(%y)
        %m: float32[300] = renew(%b, %y)
        %p: float32[20, 20] = matmul(%w, %w) {transpose_x=false, transpose_y=false}
        return %n, %m, %s, %q, %p""",
    )
    found = steps(p)
    assert found.count(2) == 1
    assert found.index(2) < found.index("matmul")


@pytest.mark.parametrize(("sizes", "joint"), [(SIZES, True), ((17, 255, 40), False)])
def test_little_work_is_no_job(sizes: tuple[int, ...], joint: bool) -> None:
    unit = lower(prepared(updates(sizes)), current_target())
    assert ("dy2st.joint" in unit.kernels) is joint


def test_nests_of_other_shapes_share_their_code() -> None:
    kernels = lower(prepared(updates((400, 200_000, 70_000, 2000))), current_target()).kernels
    assert sum(name.startswith("dy2st.k.") for name in kernels.texts) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_interpreters_values(dtype: str, rng: np.random.Generator) -> None:
    p = updates(SIZES, dtype)
    given = inputs(p, rng)
    given[3][0], given[-1][-1] = np.nan, np.inf
    check(p, given)


def test_empty_parameters(rng: np.random.Generator) -> None:
    p = updates((0, 200_000, 0, 17))
    check(p, inputs(p, rng))


@pytest.mark.slow
def test_large_results_are_written_past_the_caches(rng: np.random.Generator) -> None:
    p = updates((300, 4_300_001))
    check(p, inputs(p, rng))


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    p = updates(SIZES)
    check(p, inputs(p, rng))


def test_any_number_of_threads_gives_the_same_bits(rng: np.random.Generator) -> None:
    p = updates(SIZES)
    given, found = inputs(p, rng), list[list[np.ndarray]]()
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        found += [check(p, given) for _ in range(5)]
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True))


def test_a_nest_that_reads_with_gaps_runs_by_itself(rng: np.random.Generator) -> None:
    p = program(
        "%x: float32[400, 500], %y: float32[400, 400]",
        """%l: float32[400, 400] = index(%x) {spec=(("slice", none, none, none), ("slice", none, 400, none))}
        %a: float32[400, 400] = exp(%l)
        %n: float32[400, 400] = renew(%a, %y)
        %b: float32[400, 400] = tanh(%y)
        %m: float32[400, 400] = renew(%b, %y)
        %c: float32[400, 400] = sin(%y)
        return %n, %m, %c""",
    )
    assert 3 in steps(p)
    check(p, inputs(p, rng))


def test_what_two_nests_read_none_of_them_overwrites(rng: np.random.Generator) -> None:
    p = program(
        "%x: float32[400, 400]",
        """%t: float32[400, 400] = matmul(%x, %x) {transpose_x=false, transpose_y=false}
        %f: float32[160000] = reshape(%t) {shape=(160000,)}
        %a: float32[160000] = exp(%f)
        %n: float32[160000] = renew(%a, %f)
        %b: float32[400, 400] = tanh(%t)
        %m: float32[400, 400] = renew(%b, %t)
        return %n, %m""",
    )
    assert 2 in steps(p)
    check(p, [np.asarray(rng.normal(size=(400, 400)) / 20, "float32")])


def norms(sizes: tuple[int, ...], dtype: str = "float32") -> Program:
    """Return a Program that scales arrays by the norm of all of their elements."""
    arguments, lines, made, total = [], [], [], "%zero"
    for i, n in enumerate(sizes):
        t = f"{dtype}[{n}]"
        arguments.append(f"%g{i}: {t}")
        lines += [
            f"%s{i}: {t} = mul(%g{i}, %g{i})", f"%n{i}: {dtype}[] = sum(%s{i}) {{axis=(0,), keepdim=false}}",
            f"%t{i}: {dtype}[] = add({total}, %n{i})",
        ]  # fmt: skip
        total = f"%t{i}"
    lines.append(f"%f: {dtype}[] = rsqrt({total})")
    for i, n in enumerate(sizes):
        t = f"{dtype}[{n}]"
        lines += [f"%r{i}: {t} = broadcast(%f) {{shape=({n},)}}", f"%y{i}: {t} = mul(%g{i}, %r{i})"]
        made.append(f"%y{i}")
    head = ", ".join([f"%zero: {dtype}[]", *arguments])
    return program(head, "\n".join([*lines, f"return {', '.join(made)}"]))


def test_norms_are_one_job_and_what_reads_their_sum_is_another() -> None:
    found = steps(norms((300, 40_000, 17)))
    assert [s for s in found if isinstance(s, int)] == [3, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_on_every_cpu(each_cpu: str, dtype: str, rng: np.random.Generator) -> None:
    p = norms((0, 1, 17, 4096, 4097, 500_001, 1_000_000), dtype)
    assert "dy2st.joint" in lower(prepared(p), current_target()).kernels
    check(p, inputs(p, rng))


def test_norms_within_their_memory(rng: np.random.Generator, guarded: None) -> None:
    p = norms((1, 15, 16, 17, 255, 300_001, 700_000))
    given = inputs(p, rng)
    check(p, given)
    given[3][5] = np.nan
    check(p, given)


def test_norms_are_the_same_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    p = norms((17, 4097, 500_001, 1_000_000))
    given, found = inputs(p, rng), list[list[np.ndarray]]()
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        found += [check(p, given) for _ in range(3)]
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True))


def test_each_norm_and_then_what_reads_it() -> None:
    lines = []
    for i in range(3):
        t = "float32[400, 500]"
        lines += [
            f"%s{i}: {t} = mul(%g{i}, %g{i})", f"%n{i}: float32[] = sum(%s{i}) {{axis=(0, 1), keepdim=false}}",
            f"%f{i}: float32[] = rsqrt(%n{i})", f"%r{i}: {t} = broadcast(%f{i}) {{shape=(400, 500)}}",
            f"%y{i}: {t} = mul(%g{i}, %r{i})",
        ]  # fmt: skip
    p = program(", ".join(f"%g{i}: float32[400, 500]" for i in range(3)), "\n".join([*lines, "return %y0, %y1, %y2"]))
    assert [s for s in steps(p) if isinstance(s, int)] == [3, 3]
    check(p, inputs(p, np.random.default_rng(0)))
