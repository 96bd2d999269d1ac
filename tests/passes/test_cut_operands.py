"""Operands of sums are cut, and not the sums."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.lowering.push_slice_up import PushSliceUp
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, stays

CUT = PushSliceUp()
HEAD = "%p: float32[N, 6], %q: float32[N, 6], %b: float32[6]\n"
ALL = '("slice", none, none, none)'
LEFT, RIGHT = f'{{spec=({ALL}, ("slice", none, 2, none))}}', f'{{spec=({ALL}, ("slice", 2, none, none))}}'


def test_slices_of_a_sum_are_sums_of_slices():
    before = f"""{HEAD}%z: float32[N, 6] = add(%p, %q)
        %i: float32[N, 2] = index(%z) {LEFT}
        %f: float32[N, 4] = index(%z) {RIGHT}
        return %i, %f"""
    after = f"""{HEAD}%a: float32[N, 2] = index(%p) {LEFT}
        %c: float32[N, 2] = index(%q) {LEFT}
        %i: float32[N, 2] = add(%a, %c)
        %d: float32[N, 4] = index(%p) {RIGHT}
        %e: float32[N, 4] = index(%q) {RIGHT}
        %f: float32[N, 4] = add(%d, %e)
        return %i, %f"""
    becomes(CUT, before, after)


def test_what_is_repeated_is_cut_before():
    before = f"""{HEAD}%n: int(N) = dim(%p) {{axis=0}}
        %r: float32[N, 6] = broadcast(%b, %n) {{shape=(none, 6)}}
        %z: float32[N, 6] = mul(%p, %r)
        %i: float32[N, 2], %f: float32[N, 4] = split(%z) {{sections=(2, 4), axis=1}}
        return %i, %f"""
    after = f"""{HEAD}%n: int(N) = dim(%p) {{axis=0}}
        %a: float32[N, 2], %c: float32[N, 4] = split(%p) {{sections=(2, 4), axis=1}}
        %d: float32[2], %e: float32[4] = split(%b) {{sections=(2, 4), axis=0}}
        %g: float32[N, 2] = broadcast(%d, %n) {{shape=(none, 2)}}
        %h: float32[N, 4] = broadcast(%e, %n) {{shape=(none, 4)}}
        %i: float32[N, 2] = mul(%p_a, %g)
        %f: float32[N, 4] = mul(%p_c, %h)
        return %i, %f""".replace("%p_a", "%a").replace("%p_c", "%c")
    becomes(CUT, before, after)


def test_axes_of_extent_one_between_a_sum_and_its_slices_stay_behind_them():
    head, left, right = (
        "%p: float32[1, 6], %q: float32[1, 6]\n",
        *('("slice", none, 2, none)', '("slice", 2, none, none)'),
    )
    before = f"""{head}%z: float32[1, 6] = add(%p, %q)
        %s: float32[6] = squeeze(%z) {{axes=(0,)}}
        %t: float32[6, 1] = expand_dims(%s) {{axes=(1,)}}
        %i: float32[2, 1] = index(%t) {{spec=({left},)}}
        %f: float32[4, 1] = index(%t) {{spec=({right},)}}
        return %i, %f"""
    parts = (
        f"""%p{n}: float32[1, {length}] = index(%p) {{spec=({ALL}, {cut})}}
        %q{n}: float32[1, {length}] = index(%q) {{spec=({ALL}, {cut})}}
        %z{n}: float32[1, {length}] = add(%p{n}, %q{n})
        %s{n}: float32[{length}] = squeeze(%z{n}) {{axes=(0,)}}
        %t{n}: float32[{length}, 1] = expand_dims(%s{n}) {{axes=(1,)}}\n"""
        for n, length, cut in ((0, 2, left), (1, 4, right))
    )
    becomes(CUT, before, f"{head}{''.join(parts)}return %t0, %t1")


def test_slices_along_an_axis_that_is_put_in_stay():
    whole = '("slice", none, 1, none)'
    stays(
        CUT,
        f"""%p: float32[6], %q: float32[6]
        %z: float32[6] = add(%p, %q)
        %s: float32[1, 6] = expand_dims(%z) {{axes=(0,)}}
        %i: float32[1, 6] = index(%s) {{spec=({whole},)}}
        return %i""",
    )


@pytest.mark.parametrize(
    "rest",
    [
        f"%i: float32[N, 2] = index(%z) {LEFT}\nreturn %i, %z",
        f"%i: float32[N, 2] = index(%z) {LEFT}\n%s: float32[N, 6] = exp(%z)\nreturn %i, %s",
        f"%i: float32[N, 4] = index(%z) {RIGHT}\n%j: float32[N, 4] = index(%z) {RIGHT}\nreturn %i, %j",
        '%i: float32[N] = index(%z) {spec=(("slice", none, none, none), ("int", 2))}\nreturn %i',
        '%i: float32[N, 3] = index(%z) {spec=(("slice", none, none, none), ("slice", none, none, 2))}\nreturn %i',
        f"%i: float32[N, 2] = index(%z) {LEFT}\n%w: float32[6, N] = transpose(%z) {{perm=(1, 0)}}\nreturn %i, %w",
    ],
)
def test_what_is_used_otherwise_or_twice_stays(rest):
    stays(CUT, f"{HEAD}%z: float32[N, 6] = add(%p, %q)\n{rest}")


def test_parts_of_unknown_length_stay():
    head = "%p: float32[N, M], %q: float32[N, M], %k: int\n"
    spec = '{spec=(("slice", none, none, none), ("slice", none, "?", none))}'
    stays(CUT, f"{head}%z: float32[N, M] = add(%p, %q)\n%i: float32[N, L] = index(%z, %k) {spec}\nreturn %i")


def test_the_same_numbers(rng):
    def f(x, w, b):
        i, f, g = paddle.split(x @ w + b * 2, 3, axis=-1)
        y = paddle.exp(x @ w - b)
        return paddle.tanh(i) * f + g, y[:, :3] + y[:, 3:6], (x[:, None] * w[None, :, 0])[:, :, 1:]

    given = [rng.normal(size=s).astype("float32") for s in ((5, 4), (4, 9), (9,))]
    static = paddle.jit.to_static(f, full_graph=True)
    static(*map(paddle.to_tensor, given))
    program = static.concrete_program.main_program
    changed = prepared(program)
    for got, want in zip(compile_plan(changed).run(given), compile_plan(program).run(given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
