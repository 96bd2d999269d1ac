"""Random choices in the loops of those who read them: dropout is one loop nest, with the interpreter's numbers."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.runtime.cpu.axis_maps import Group
from dy2st.runtime.cpu.grouping import schedule
from dy2st.runtime.cpu.lowering import prepared
from dy2st.runtime.cpu.native import NativePlan
from dy2st.runtime.plan import compile_plan
from tests.runtime.cpu.native import TARGETS, runnable

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


def members(p: Program) -> list[list[str]]:
    return [[o.name for o in s.members] for s in schedule(prepared(p).block) if isinstance(s, Group)]


def check(p: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    given = [*arrays, SEED, DRAW]
    found, wanted = NativePlan(p).run(given), compile_plan(p).run(given)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    return found


@pytest.fixture(autouse=True)
def threads():
    before = paddle.get_num_threads()
    yield
    paddle.set_num_threads(before)


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


@pytest.mark.parametrize("axes", ["0", "1", "0, 1"])
@pytest.mark.parametrize("width", ["64", "70", "M"])
def test_what_is_reduced(axes: str, width: str, rng: np.random.Generator) -> None:
    kept = [e for i, e in enumerate(("N", width)) if str(i) not in axes]
    more = f"%s: float32[{', '.join(kept)}] = sum(%y) {{axis=({axes},), keepdim=false}}\nreturn %s, %k"
    p = dropout(f"N, {width}", more=more.replace("1,)", "1)") if len(axes) > 1 else more)
    for rows in (1, 40, 900):
        check(p, rng.normal(size=(rows, int(width) if width.isdigit() else 33)).astype("float32"))


@pytest.mark.parametrize("target", TARGETS)
def test_every_cpu_within_its_memory(
    target: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, guarded: None
) -> None:
    if not runnable(target):
        pytest.skip("this CPU does not run such code")
    monkeypatch.setenv("DY2ST_CPU", target)
    for size in (1, 16, 17, 255, 3000):
        check(dropout("N"), rng.normal(size=size).astype("float32"))
        check(dropout("N, 64", bias="64"), *(rng.normal(size=s).astype("float32") for s in ((size, 64), 64)))


def test_any_number_of_threads_chooses_the_same(rng: np.random.Generator) -> None:
    for p, shapes in ((dropout("N, M"), [(301, 77)]), (dropout("N, 128", bias="128"), [(300, 128), (128,)])):
        given, found = [rng.normal(size=s).astype("float32") for s in shapes], list[list[np.ndarray]]()
        for count in (1, 2, 4):
            paddle.set_num_threads(count)
            found.append(check(p, *given))
        assert all(a.tobytes() == b.tobytes() for other in found[1:] for a, b in zip(found[0], other, strict=True))
