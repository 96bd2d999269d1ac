"""Versions of native code: which are made, that each runs what it is for, and that all give NumPy's results."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.fusion.shape_assumptions import assumptions, meetings
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.shape_specialization import ShapeSpecializations, native_code
from dy2st.runtime.interpreter.cost_model import bindings
from dy2st.runtime.interpreter.planned import compile_plan
from tests.in_threads import in_threads


def traced(f, *inputs):
    static = paddle.jit.to_static(f, full_graph=True)
    static(*(paddle.to_tensor(x, stop_gradient=False) for x in inputs))
    return static.concrete_program.main_program


def assumed(program, *inputs):
    return {name: str(extent) for name, extent in assumptions(program, bindings(program, inputs)).items()}


def scaled(x, w):
    return x * w + 1


def ones(*shape):
    return np.ones(shape, "float32")


def test_what_meets_is_equal_or_one():
    program = traced(scaled, ones(3, 4), ones(4))
    assert assumed(program, ones(3, 4), ones(4)) == {"x_1": "w_0"}
    assert assumed(program, ones(3, 4), ones(1)) == {"w_0": "1"}
    assert assumed(program, ones(3, 1), ones(4)) == {"x_1": "1"}
    assert assumed(program, ones(4, 4), ones(4)) == {"x_1": "w_0"}, "rows do not meet anything"


def test_a_program_whose_extents_all_are_told_has_one_version():
    program = traced(lambda x: paddle.tanh(x) + x, ones(3, 4))
    assert meetings(program) == []
    assert isinstance(native_code(program, [ones(3, 4)]), NativePlan)


def test_one_version_serves_all_shapes_of_a_pattern(rng):
    versions = native_code(traced(scaled, ones(3, 4), ones(4)), [ones(3, 4), ones(4)])
    for rows, columns in ((3, 4), (1, 7), (5, 1), (0, 3), (40, 33)):
        x, w = rng.normal(size=(rows, columns)).astype("float32"), rng.normal(size=columns).astype("float32")
        np.testing.assert_array_equal(versions.run([x, w])[0], x * w + np.float32(1))
    assert len(versions.assumed) == 1


def test_a_few_versions_are_made_and_then_one_for_all(rng):
    def f(a, b, c):
        return a * b + c

    versions = ShapeSpecializations(traced(f, ones(2, 3), ones(2, 3), ones(2, 3)))
    for ones_in in range(16):
        shapes = [tuple(1 if ones_in >> (2 * i + j) & 1 else 3 - j for j in range(2)) for i in range(3)]
        a, b, c = (rng.normal(size=shape).astype("float32") for shape in shapes)
        for _ in range(2):
            np.testing.assert_allclose(versions.run([a, b, c])[0], a * b + c, rtol=1e-6)
    assert len(versions.assumed) == 5
    assert versions.assumed[-1] == {}


def test_extents_that_do_not_meet_are_the_users_error():
    versions = native_code(traced(scaled, ones(3, 4), ones(4)), [ones(3, 4), ones(4)])
    for _ in range(2):
        with pytest.raises(ValueError, match="extents 4 and 5 differ"):
            versions.run([ones(3, 4), ones(5)])
    assert versions.run([ones(3, 4), ones(4)])[0].shape == (3, 4)


def test_a_loop_carries_what_it_begins_with():
    def newton(x, a):
        while paddle.abs(x * x - a).max() > 1e-5:
            x = x - (x * x - a) / (2 * x)
        return x

    a = np.linspace(1, 2, 37, dtype="float32")
    versions = native_code(traced(newton, a, a), [a, a])
    np.testing.assert_allclose(versions.run([a, a])[0], np.sqrt(a), rtol=1e-5)
    np.testing.assert_allclose(versions.run([a[:1], a])[0], np.sqrt(a), rtol=1e-5)
    assert [list(map(str, a.items())) for a in versions.assumed] == [["('x_0', a_0)"], ["('x_0', 1)"]]


def test_a_loop_that_grows_carries_what_the_program_says(rng):
    def grow(x, h):
        n = 0
        while n < 3:
            x, n = x + h, n + 1
        return x

    x, h = ones(1), rng.normal(size=5).astype("float32")
    versions = native_code(traced(grow, x, h), [x, h])
    np.testing.assert_allclose(versions.run([x, h])[0], 1 + 3 * h, rtol=1e-5)


def test_residuals_of_broadcast_shapes_are_inputs_like_others(rng):
    text = """program main
func main(%a: float32[bcast(w, x)], %b: float32[x]) {
  %0: int(bcast(w, x)) = dim(%a) {axis=0}
  %1: float32[bcast(w, x)] = broadcast(%b, %0) {shape=(none,)}
  %2: float32[bcast(w, x)] = mul(%a, %1)
  return %2
}
"""
    versions = ShapeSpecializations(parse(text))
    for shapes in ((4, 4), (4, 1), (1, 1)):
        a, b = (rng.normal(size=n).astype("float32") for n in shapes)
        np.testing.assert_array_equal(versions.run([a, b])[0], a * b)


@st.composite
def patterns(draw):
    """Draw shapes of three tensors that broadcast."""
    full = draw(st.lists(st.sampled_from((1, 2, 3, 17)), min_size=2, max_size=3))
    shapes = []
    for rank in draw(st.tuples(*[st.integers(1, len(full))] * 3)):
        shapes.append(tuple(draw(st.sampled_from((1, e))) for e in full[len(full) - rank :]))
    return shapes


def mixed(a, b, c):
    y = paddle.exp(a * b) - c
    s = (y * a).sum(axis=-1, keepdim=True) + b
    return y / (1 + s * s), y.max(axis=0)


def pulled(a, b, c):
    return paddle.grad(((a * b - c) * c).square().sum(), [a, b, c])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(patterns(), patterns(), st.sampled_from((mixed, pulled)), st.integers(0, 2**20))
def test_any_broadcasts_are_those_of_the_interpreter(first, second, f, seed):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=shape).astype("float32") for shape in first]
    program = traced(f, *inputs)
    versions, plan = ShapeSpecializations(program), compile_plan(program)
    others = [rng.normal(size=shape).astype("float32") for shape in second]
    ranks = [x.ndim for x in inputs] == [x.ndim for x in others]
    for given_ in (inputs, others if ranks else inputs, inputs):
        for found, wanted in zip(versions.run(given_), plan.run(given_), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)


def test_threads_that_ask_for_versions_at_once(rng):
    versions = ShapeSpecializations(traced(scaled, ones(3, 4), ones(4)))
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            columns = int(rng.integers(1, 5))
            x = rng.normal(size=(2, columns)).astype("float32")
            w = rng.normal(size=columns if rng.integers(2) else 1).astype("float32")
            if not np.array_equal(versions.run([x, w])[0], x * w + np.float32(1)):
                wrong.append((x.shape, w.shape))

    in_threads(*(partial(work, seed) for seed in range(6)))
    assert wrong == []


def test_inputs_that_are_not_as_the_program_says_raise_what_they_raise_without_versions():
    versions = native_code(traced(scaled, ones(3, 4), ones(4)), [ones(3, 4), ones(4)])
    with pytest.raises(ValueError, match="takes 2 inputs"):
        versions.run([ones(3, 4)])
    strided = np.ones((4, 3), "float32").T  # not as the builtin function wants it
    np.testing.assert_array_equal(versions.run([strided, ones(4)])[0], strided + 1)
    assert len(versions.assumed) == 1


def test_lists_and_numbers_among_the_inputs():
    text = """program main
func main(%x: float32[N], %w: float32[W], %items: list<float32[2]>, %k: int) {
  %0: int(N) = dim(%x) {axis=0}
  %1: int(W) = dim(%w) {axis=0}
  %2: int(bcast(N, W)) = broadcast_extent(%0, %1)
  %3: float32[bcast(N, W)] = broadcast(%x, %2) {shape=(none,)}
  %4: float32[bcast(N, W)] = broadcast(%w, %2) {shape=(none,)}
  %5: float32[bcast(N, W)] = mul(%3, %4)
  %6: int = list_len(%items)
  %7: int = scalar_add(%6, %k)
  return %5, %7
}
"""
    versions = ShapeSpecializations(parse(text))
    items = [ones(2), ones(2)]
    for n, w in ((3, 3), (3, 1), (1, 4), (3, 3)):
        found, count = versions.run([ones(n), 2 * ones(w), items, 5])
        np.testing.assert_array_equal(found, 2 * ones(max(n, w)))
        assert count == 7
    assert len(versions.assumed) == 3


def test_small_tensors_that_a_loop_carries_have_known_extents():
    def grow(x, n):
        while x.sum() < n:
            x = x * 2
        return x

    n = np.array(900.0, "float32")
    program = traced(grow, ones(1), n)
    assert meetings(program) == []
    assert assumed(program, ones(3), n) == {"x_0": "3"}
    assert assumed(program, ones(40), n) == {}
    made = native_code(program, [ones(1), n])
    assert isinstance(made, ShapeSpecializations)
    for size in (1, 2, 40, 3, 1):
        for got, want in zip(made.run([ones(size), n]), compile_plan(program).run([ones(size), n]), strict=True):
            np.testing.assert_array_equal(got, want)
    assert [len(known) for known in made.assumed] == [1, 0]


def test_numbers_that_are_extents_say_what_a_sum_undoes(rng):
    text = """program main
func main(%ct: float32[N, M], %k: int(W)) {
  %0: float32[W] = sum_to(%ct, %k) {shape=(none,)}
  return %0
}
"""
    versions = ShapeSpecializations(parse(text))
    for shape, k in (((3, 5), 5), ((3, 5), 1), ((2, 7), 7), ((4, 1), 1)):
        ct = rng.normal(size=shape).astype("float32")
        wanted = ct.sum(0) if k == shape[1] else ct.sum().reshape(1)
        np.testing.assert_allclose(versions.run([ct, k])[0], wanted, rtol=1e-5, atol=1e-6)
        assert not versions.version([ct, k]).host_calls
    assert len(versions.assumed) == 3


def cut_in_four(x, h, w):
    for _ in range(2):
        z, n = x @ w, h.shape[1]
        h = paddle.tanh(z[:, :n]) * z[:, n : 2 * n] + z[:, 2 * n : 3 * n] * h + z[:, 3 * n :]
    return h


def test_weights_whose_products_are_cut_keep_their_extents():
    x, h, w = ones(2, 3), ones(2, 4), ones(3, 16)
    program = traced(cut_in_four, x, h, w)
    assert assumed(program, x, h, w) == {"x_0": "h_0", "h_1": "4", "w_1": "16"}
    splits = traced(lambda x, w: sum(paddle.split(x @ w, 4, -1)), x, w)
    assert assumed(splits, x, w) == {"w_1": "16"}
    prefixes = traced(lambda x, n: x[: n.shape[0]] * 2, x, ones(1))
    assert assumed(prefixes, x, ones(1)) == {}, "x is no weight"


def test_other_weights_that_are_cut_have_a_version_for_all(rng):
    program = traced(cut_in_four, ones(2, 3), ones(2, 4), ones(3, 16))
    versions = ShapeSpecializations(program)
    for rows, states, n in ((2, 2, 4), (5, 5, 4), (6, 1, 4), (2, 2, 3), (1, 1, 5), (0, 0, 5), (3, 3, 1)):
        x, h, w = (rng.normal(size=s).astype("float32") for s in ((rows, 3), (states, n), (3, 4 * n)))
        want = compile_plan(program).run([x, h, w])[0]
        np.testing.assert_allclose(versions.run([x, h, w])[0], want, rtol=2e-5, atol=1e-6)
    first, one_state, others = versions.assumed
    assert (first["w_1"], one_state["w_1"], others.get("w_1")) == (16, 16, None)
    assert one_state["h_0"] == 1
