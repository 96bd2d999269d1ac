"""Random choices in the loops of those who read them: dropout is one loop nest, with the interpreter's numbers."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.fusion.grouping import schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan

SEED, DRAW = 2**40 + 7, 2**33 + 3


def dropout(shape: str, dtype: str = "float32", bias: str = "", more: str = "") -> Program:
    """Return a Program that keeps some elements of a tensor, after adding a bias, and what else is made of them."""
    t, dims = f"{dtype}[{shape}]", shape.split(", ")
    sizes = [f"%d{i}: int({d}) = dim(%x) {{axis={i}}}" for i, d in enumerate(dims) if not d.isdigit()]
    given = ", ".join(f"%d{i}" for i, d in enumerate(dims) if not d.isdigit())
    known = ", ".join(d if d.isdigit() else "none" for d in dims)
    lines = [
        *sizes, f"%c: {dtype}[] = constant() {{value={dtype}[](0.7)}}",
        f"%p: {t} = full({', '.join(['%c', *given.split(', ')] if given else ['%c'])}) {{shape=({known},)}}",
        *([f"%b: {t} = broadcast(%w{', ' + given if given else ''}) {{shape=({known},)}}",
           f"%a: {t} = add(%x, %b)"] if bias else [f"%a: {t} = abs(%x)"]),
        f"%k: {t} = random_bernoulli(%seed, %draw, %p)", f"%y: {t} = mul(%a, %k)", more or "return %y, %k",
    ]  # fmt: skip
    arguments = [f"%x: {t}", *([f"%w: {dtype}[{bias}]"] if bias else []), "%seed: int", "%draw: int"]
    return parse("\n".join(["program main", f"func main({', '.join(arguments)}) {{", *lines, "}", ""]))


DRAWS = {
    "uniform": ("float32", "", "random_uniform(%seed, %draw{dims}) {{shape={shape}, dtype=float32}}"),
    "uniform of float64": ("float64", "", "random_uniform(%seed, %draw{dims}) {{shape={shape}, dtype=float64}}"),
    "normal": ("float32", "", "random_normal(%seed, %draw{dims}) {{shape={shape}, dtype=float32}}"),
    "normal of float64": ("float64", "", "random_normal(%seed, %draw{dims}) {{shape={shape}, dtype=float64}}"),
    "exponential": ("float32", "", "random_exponential(%seed, %draw{dims}) {{shape={shape}, dtype=float32}}"),
    "whole": ("int64", ", %low: int, %high: int",
              "random_int(%seed, %draw, %low, %high{dims}) {{shape={shape}, dtype=int64}}"),
    "whole as uint8": ("uint8", ", %low: int, %high: int",
                       "random_int(%seed, %draw, %low, %high{dims}) {{shape={shape}, dtype=uint8}}"),
    "whole as floats": ("float32", ", %low: int, %high: int",
                        "random_int(%seed, %draw, %low, %high{dims}) {{shape={shape}, dtype=float32}}"),
}  # fmt: skip
"""The dtype of a draw, what it takes beside a seed and a number, and its operation."""


def noise(name: str, shape: str) -> Program:
    """Return a Program that adds random numbers to a tensor."""
    dtype, more, line = DRAWS[name]
    t, dims = f"{dtype}[{shape}]", shape.split(", ")
    sizes = [f"%d{i}: int({d}) = dim(%x) {{axis={i}}}" for i, d in enumerate(dims) if not d.isdigit()]
    given = "".join(f", %d{i}" for i, d in enumerate(dims) if not d.isdigit())
    template = f"({''.join('%s,' % (d if d.isdigit() else 'none') for d in dims)})"
    drawn = line.format(dims=given, shape=template)
    lines = [*sizes, f"%r: {t} = {drawn}", f"%y: {t} = add(%x, %r)", "return %y"]
    return parse("\n".join([f"program main\nfunc main(%x: {t}, %seed: int, %draw: int{more}) {{", *lines, "}", ""]))


def members(p: Program) -> list[list[str]]:
    return [[o.name for o in s.members] for s in schedule(prepared(p).block) if isinstance(s, FusedGroup)]


def check(p: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    given = [*arrays, SEED, DRAW]
    found, wanted = NativePlan(p).run(given), compile_plan(p).run(given)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 63, 64, 65, 255, 5001])
def test_the_interpreters_choices(size: int, dtype: str, rng: np.random.Generator) -> None:
    p = dropout("N", dtype)
    assert members(p)[-1][-2:] == ["random_bernoulli", "mul"]
    x = rng.normal(size=size).astype(dtype)
    for found, wanted in zip(NativePlan(p).run([x, SEED, DRAW]), compile_plan(p).run([x, SEED, DRAW]), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(0, 64), (1, 64), (3, 64), (17, 64), (700, 64)])
def test_rows_of_whole_vectors_have_their_own_places(shape: tuple[int, int], rng: np.random.Generator) -> None:
    p = dropout("N, 64", bias="64")
    assert [{"add", "random_bernoulli", "mul"} <= {*names} for names in members(p)] == [True]
    check(p, rng.normal(size=shape).astype("float32"), rng.normal(size=64).astype("float32"))


@pytest.mark.parametrize("width", [17, 63, 65])
def test_rows_that_begin_elsewhere_are_drawn_apart(width: int, rng: np.random.Generator) -> None:
    p = dropout(f"N, {width}", bias=f"{width}")
    assert not any({"random_bernoulli", "add"} <= {*names} for names in members(p))
    check(p, rng.normal(size=(9, width)).astype("float32"), rng.normal(size=width).astype("float32"))


def test_choices_of_rows_have_the_numbers_of_rows(rng: np.random.Generator) -> None:
    p = parse(
        "program main\nfunc main(%x: float32[N, 64], %seed: int, %draw: int) {\n"
        "%s: float32[N, 1] = max(%x) {axis=(1,), keepdim=true}\n"
        "%k: float32[N, 1] = random_bernoulli(%seed, %draw, %s)\n"
        "%n: int(N) = dim(%x) {axis=0}\n%w: float32[N, 64] = broadcast(%k, %n) {shape=(none, 64)}\n"
        "%y: float32[N, 64] = mul(%x, %w)\nreturn %y\n}\n"
    )
    x = rng.uniform(0, 0.505, size=(300, 64)).astype("float32")
    assert 0 < np.count_nonzero(check(p, x)[0].any(axis=1)) < 300


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", ["N", "N, 64", "N, 5", "N, M"])
def test_numbers_of_every_draw(name: str, shape: str, rng: np.random.Generator) -> None:
    p, bounds = noise(name, shape), [-2, 2**40 + 5] if "%low" in DRAWS[name][1] else []
    assert members(p) == [[f"random_{DRAWS[name][2].split('(')[0].removeprefix('random_')}", "add"]]
    for rows in (0, 1, 17, 255, 1500):
        sizes = {"N": rows, "M": 7}
        x = rng.uniform(0, 9, size=[int(sizes.get(d, d)) for d in shape.split(", ")]).astype(DRAWS[name][0])
        found, wanted = (run.run([x, SEED, DRAW, *bounds])[0] for run in (NativePlan(p), compile_plan(p)))
        if "uniform" in name or "whole" in name:
            assert found.tobytes() == wanted.tobytes()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_bounds_without_whole_numbers_between_are_an_error(rng: np.random.Generator) -> None:
    p = noise("whole", "N")
    with pytest.raises(ValueError, match="random integers need low < high, not 5 and 5"):
        NativePlan(p).run([np.zeros(40, "int64"), SEED, DRAW, 5, 5])


def test_a_draw_alone_is_no_loop_nest() -> None:
    p = parse(
        "program main\nfunc main(%seed: int, %draw: int, %n: int(N)) {\n"
        "%r: float32[N] = random_normal(%seed, %draw, %n) {shape=(none,), dtype=float32}\nreturn %r\n}\n"
    )
    assert members(p) == []


@pytest.mark.parametrize("axes", ["0", "1", "0, 1"])
@pytest.mark.parametrize("width", ["64", "70", "M"])
def test_what_is_reduced(axes: str, width: str, rng: np.random.Generator) -> None:
    kept = [e for i, e in enumerate(("N", width)) if str(i) not in axes]
    more = f"%s: float32[{', '.join(kept)}] = sum(%y) {{axis=({axes},), keepdim=false}}\nreturn %s, %k"
    p = dropout(f"N, {width}", more=more.replace("1,)", "1)") if len(axes) > 1 else more)
    for rows in (1, 40, 900):
        check(p, rng.normal(size=(rows, int(width) if width.isdigit() else 33)).astype("float32"))


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    for size in (1, 16, 17, 255, 3000):
        check(dropout("N"), rng.normal(size=size).astype("float32"))
        check(dropout("N, 64", bias="64"), *(rng.normal(size=s).astype("float32") for s in ((size, 64), 64)))
        for name in ("uniform", "normal", "exponential", "uniform of float64"):
            check(noise(name, "N, 64"), rng.normal(size=(size, 64)).astype(DRAWS[name][0]))


def test_any_number_of_threads_chooses_the_same(rng: np.random.Generator) -> None:
    for p, shapes in (
        (dropout("N, M"), [(301, 77)]),
        (dropout("N, 128", bias="128"), [(300, 128), (128,)]),
        (noise("normal", "N, M"), [(301, 77)]),
        (noise("exponential", "N, 64"), [(300, 64)]),
    ):
        given, found = [rng.normal(size=s).astype("float32") for s in shapes], list[list[np.ndarray]]()
        for count in (1, 2, 4):
            paddle.set_num_threads(count)
            found.append(check(p, *given))
        assert all(a.tobytes() == b.tobytes() for other in found[1:] for a, b in zip(found[0], other, strict=True))
