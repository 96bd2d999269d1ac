"""What is read at places, in the loops of those who read it: rows of a table, elements, places of every kind."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.parser import parse
from dy2st.ir.program import Program, tensor_type
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import thread_counts

SIZES = (0, 1, 2, 15, 16, 17, 255)


def program(arguments: str, *lines: str) -> Program:
    return parse("\n".join(["program main", f"func main({arguments}) {{", *lines, "}", ""]))


def chain(table: str, places: str, made: str, line: str, dtype: str = "float32", of: str = "int64") -> Program:
    """Return a Program that computes with what a line reads: the table's, places' and result's extents are given."""
    t = f"{dtype}[{made}]"
    return program(
        f"%x: {dtype}[{table}], %i: {of}[{places}]",
        f"%p: {t} = {line}", f"%a: {t} = abs(%p)", f"%y: {t} = add(%a, %p)", "return %y",
    )  # fmt: skip


FORMS = {
    "rows": chain("V, D", "N", "N, D", "take(%x, %i) {axis=0}"),
    "rows of two axes of places": chain("V, D", "N, 3", "N, 3, D", "take(%x, %i) {axis=0}"),
    "elements": chain("V", "N", "N", "take(%x, %i) {axis=0}"),
    "elements at a matrix of places": chain("V", "3, N", "3, N", "take(%x, %i) {axis=0}"),
    "columns": chain("D, V", "N", "D, N", "take(%x, %i) {axis=1}"),
    "a middle axis": chain("2, V, D", "N", "2, N, D", "take(%x, %i) {axis=1}"),
    "brackets": chain("V, D", "N", "N, D", 'index(%x, %i) {spec=(("tensor",),)}'),
    "brackets behind an axis": chain("D, V", "N", "D, N",
                                     'index(%x, %i) {spec=(("slice", none, none, none), ("tensor",))}'),
    "two places": chain("V, V", "N", "N", 'index(%x, %i, %i) {spec=(("tensor",), ("tensor",))}'),
    "along the last axis": chain("D, V", "D, N", "D, N", "take_along_axis(%x, %i) {axis=1}"),
    "along the first axis": chain("V, D", "N, D", "N, D", "take_along_axis(%x, %i) {axis=0}"),
    "one of each row": chain("D, V", "D, 1", "D, 1", "take_along_axis(%x, %i) {axis=1}"),
    "one of each row of a batch": chain("D, N, V", "D, N, 1", "D, N, 1", "take_along_axis(%x, %i) {axis=2}"),
    "along a middle axis": chain("2, V, D", "2, N, D", "2, N, D", "take_along_axis(%x, %i) {axis=1}"),
}  # fmt: skip


def inputs(p: Program, sizes: dict[str, int], rng: np.random.Generator) -> list[np.ndarray]:
    """Return a table, and places counted from its front and its end."""
    table, places = (tensor_type(v) for v in p.block.arguments)
    shapes = [[e if isinstance(e, int) else sizes[str(e)] for e in t.shape] for t in (table, places)]
    x = rng.normal(size=shapes[0]) * 9
    return [x.astype(table.dtype.name), spread(sizes["V"], shapes[1], rng).astype(places.dtype.name)]


def spread(extent: int, shape: list[int], rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-extent, extent, size=shape) if extent and 0 not in shape else np.zeros(shape, "int64")


def members(p: Program) -> list[list[str]]:
    return [[o.name for o in s.members] for s in schedule(prepared(p).block) if isinstance(s, FusedGroup)]


def is_fused(p: Program) -> bool:
    return any(REGISTRY[name].is_gather for names in members(p) for name in names)


def check(p: Program, *given: np.ndarray) -> list[np.ndarray]:
    plan = NativePlan(p)
    found, wanted = plan.run([*given]), compile_plan(p).run([*given])
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    assert not [call for call in plan.host_calls if not call.rare]
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_and_sizes(form: str, size: int, rng: np.random.Generator) -> None:
    p = FORMS[form]
    assert members(p) == [[p.block.operations[0].name, "abs", "add"]]
    for rows in (1, 40):
        check(p, *inputs(p, {"V": 7, "D": rows, "N": size}, rng))
        check(p, *inputs(p, {"V": 7, "D": size, "N": rows}, rng))


@pytest.mark.parametrize("of", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8"])
def test_all_dtypes(dtype: str, of: str, rng: np.random.Generator) -> None:
    for table, places, made in (("V, D", "N", "N, D"), ("V", "N", "N"), ("D, V", "N", "D, N")):
        p = chain(table, places, made, f"take(%x, %i) {{axis={int(table == 'D, V')}}}", dtype, of)
        assert is_fused(p)
        given = inputs(p, {"V": 9, "D": 33, "N": 50}, rng)
        check(p, given[0], np.abs(given[1]) % 9 if of == "uint8" else given[1])


def test_truth_values_are_picked(rng: np.random.Generator) -> None:
    t = "bool[N]"
    p = program("%x: bool[V], %i: int64[N]", f"%p: {t} = take(%x, %i) {{axis=0}}", f"%y: {t} = bitwise_not(%p)",
                f"%z: {t} = bitwise_xor(%y, %p)", "return %y, %z")  # fmt: skip
    assert is_fused(p)
    check(p, rng.normal(size=40) > 0, spread(40, [77], rng))


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    for p in FORMS.values():
        for size in SIZES:
            check(p, *inputs(p, {"V": 5, "D": 3, "N": size}, rng))
        for size in (1, 17):
            check(p, *inputs(p, {"V": 5, "D": size, "N": 3}, rng))


def test_any_number_of_threads_gives_the_same(rng: np.random.Generator) -> None:
    for p in FORMS.values():
        given = inputs(p, {"V": 300, "D": 70, "N": 1500 if p is FORMS["elements"] else 90}, rng)
        found = [check(p, *given) for _ in thread_counts()]
        assert all(a.tobytes() == b.tobytes() for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [7, -8, 2**62, -(2**62)])
def test_a_place_outside_is_an_error(form: str, place: int, rng: np.random.Generator) -> None:
    p = FORMS[form]
    x, i = inputs(p, {"V": 7, "D": 3, "N": 20}, rng)
    i.reshape(-1)[-1] = place
    with pytest.raises(IndexError, match=f"{place} is out of (range|bounds) for axis .*7"):
        NativePlan(p).run([x, i])


def test_nothing_is_inside_of_an_empty_axis() -> None:
    with pytest.raises(IndexError, match="index 0 is out of range for axis 0 of extent 0"):
        NativePlan(FORMS["rows"]).run([np.zeros((0, 4), "float32"), np.zeros(3, "int64")])


def test_a_norm_of_rows(rng: np.random.Generator) -> None:
    p = program(
        "%x: float32[V, 48], %i: int32[N, M]", "%p: float32[N, M, 48] = take(%x, %i) {axis=0}",
        "%s: float32[N, M, 1] = max(%p) {axis=(2,), keepdim=true}", "%n: int(N) = dim(%i) {axis=0}",
        "%m: int(M) = dim(%i) {axis=1}", "%w: float32[N, M, 48] = broadcast(%s, %n, %m) {shape=(none, none, 48)}",
        "%y: float32[N, M, 48] = sub(%p, %w)", "return %y",
    )  # fmt: skip
    assert members(p) == [["take", "max", "broadcast", "sub"]]
    for rows in SIZES:
        check(p, rng.normal(size=(9, 48)).astype("float32"), rng.integers(-9, 9, size=(rows, 3)).astype("int32"))


def test_one_place_a_row_beside_the_row(rng: np.random.Generator) -> None:
    """The label's element of each row, and the row itself."""
    p = program(
        "%x: float32[N, C], %i: int64[N, 1]", "%p: float32[N, 1] = take_along_axis(%x, %i) {axis=1}",
        "%s: float32[N, 1] = max(%x) {axis=(1,), keepdim=true}", "%y: float32[N, 1] = sub(%s, %p)", "return %y",
    )  # fmt: skip
    for rows in SIZES:
        check(p, rng.normal(size=(rows, 33)).astype("float32"), spread(33, [rows, 1], rng))


def test_a_table_that_is_read_element_by_element_too(rng: np.random.Generator) -> None:
    """The result may not stand in the table's memory: other rows still read there."""
    p = program(
        "%u: float32[N, D], %i: int64[N]", "%c: float32[] = constant() {value=float32[](2)}",
        "%n: int(N) = dim(%u) {axis=0}", "%d: int(D) = dim(%u) {axis=1}",
        "%t: float32[N, D] = broadcast(%c, %n, %d) {shape=(none, none)}",
        "%x: float32[N, D] = cumsum(%u) {axis=0, reverse=false}",
        "%p: float32[N, D] = take(%x, %i) {axis=0}", "%y: float32[N, D] = add(%x, %p)", "return %y",
    )  # fmt: skip
    assert members(p) == [["take", "add"]]
    check(p, rng.normal(size=(300, 70)).astype("float32"), spread(300, [300], rng))


def test_tables_with_gaps(rng: np.random.Generator) -> None:
    def picked(x: paddle.Tensor, i: paddle.Tensor) -> tuple[paddle.Tensor, ...]:
        return x[:, 1:][i] * 2, x[1:, ::2][i] * 2, x.t()[i] * 2, x[::3, :, None][i[:2]] * 2

    static = paddle.jit.to_static(picked, full_graph=True)
    x, i = paddle.to_tensor(rng.normal(size=(40, 40)).astype("float32")), paddle.to_tensor(spread(13, [50], rng))
    for _ in range(3):
        for found, wanted in zip(static(x, i), picked(x, i), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_places_with_gaps(rng: np.random.Generator) -> None:
    static = paddle.jit.to_static(lambda x, i: x[i[:, 1]] * 2, full_graph=True)
    x, i = paddle.to_tensor(rng.normal(size=(40, 5)).astype("float32")), spread(40, [50, 3], rng)
    for _ in range(3):
        np.testing.assert_array_equal(static(x, paddle.to_tensor(i)).numpy(), x.numpy()[i[:, 1]] * 2)


def test_nan_and_infinities_are_picked_as_they_are() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.0])
    p = chain("V", "N", "N", "take(%x, %i) {axis=0}", "float64")
    check(p, x, np.arange(-6, 6))


def test_places_that_loops_make_stand_in_memory_first(rng: np.random.Generator) -> None:
    p = program(
        "%x: float32[V, 8], %i: int64[N]", "%j: int64[N] = bitwise_not(%i)",
        "%p: float32[N, 8] = take(%x, %j) {axis=0}", "%y: float32[N, 8] = abs(%p)", "return %y",
    )  # fmt: skip
    assert members(p) == [["bitwise_not"], ["take", "abs"]]
    check(p, rng.normal(size=(9, 8)).astype("float32"), rng.integers(-9, 9, size=30))


def test_a_read_alone_is_no_loop_nest() -> None:
    p = program("%x: float32[V, 8], %i: int64[N]", "%p: float32[N, 8] = take(%x, %i) {axis=0}", "return %p")
    assert members(p) == []


@pytest.mark.parametrize(
    "line",
    [
        'index(%x, %k, %i) {spec=(("int", "?"), ("tensor",))}',
        'index(%x, %i) {spec=(("slice", 0, 5, none), ("tensor",))}',
        'index(%x, %i, %i) {spec=(("tensor",), ("slice", none, none, none), ("tensor",))}',
    ],
)
def test_other_brackets_are_read_apart(line: str) -> None:
    shape = {"int": "N", "slice": "5, N", "tensor": "N, 6"}[line.split('(("')[1].split('"')[0]]
    x = "float32[6, 6, 6]" if line.count("tensor") > 1 else "float32[6, 6]"
    p = program(f"%x: {x}, %k: int, %i: int64[N]", f"%p: float32[{shape}] = {line}",
                f"%y: float32[{shape}] = abs(%p)", "return %y")  # fmt: skip
    assert not is_fused(p)


def test_an_error_comes_behind_what_was_printed(capfd: pytest.CaptureFixture[str]) -> None:
    @paddle.jit.to_static(full_graph=True)
    def scored(x: paddle.Tensor, i: paddle.Tensor) -> paddle.Tensor:
        y = x[i] * 2
        print("before", i.shape[0])
        return y + x[i + 1]

    x = paddle.arange(6, dtype="float32")
    for _ in range(2):
        np.testing.assert_array_equal(scored(x, paddle.to_tensor([1, 2])).numpy(), [4.0, 7.0])
    capfd.readouterr()
    with pytest.raises(IndexError, match="index 6 is out of range for axis 0 of extent 6"):
        scored(x, paddle.to_tensor([1, 5]))
    assert capfd.readouterr().out.count("before") == 1


def test_rows_of_an_embedding_in_a_loop(rng: np.random.Generator) -> None:
    @paddle.jit.to_static(full_graph=True)
    def decoded(table: paddle.Tensor, tokens: paddle.Tensor) -> paddle.Tensor:
        h, t = paddle.zeros([2, 24]), paddle.to_tensor(0)
        while t < 5:
            h = paddle.tanh(paddle.nn.functional.embedding(tokens, table) + h)
            tokens = (tokens * 7 + 1) % 9
            t = t + 1
        return h

    table = rng.normal(size=(9, 24)).astype("float32")
    tokens, h = np.array([3, 8]), np.zeros((2, 24), "float32")
    found = [decoded(paddle.to_tensor(table), paddle.to_tensor(tokens)).numpy() for _ in range(3)][-1]
    for _ in range(5):
        h, tokens = np.tanh(table[tokens] + h), (tokens * 7 + 1) % 9
    np.testing.assert_allclose(found, h, rtol=2e-6, atol=1e-6)
