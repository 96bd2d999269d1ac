"""Tensors joined from what loop nests make: nothing is copied where the nests can write the parts in their places."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import program
from tests.runtime.backends.cpu.native import thread_counts
from tests.runtime.backends.cpu.ops.test_weights import native

__all__ = ["native"]
SIZES = (0, 1, 2, 15, 16, 17, 255)
PARTS = "%s: float32[N, 24] = sin(%x)\n%c: float32[N, 24] = mul(%s, %y)\n"
TWO_NESTS = "%s: float32[N, 24] = sin(%x)\n%c: float32[N, 24] = cos(%y)\n"
JOINED = "%j: float32[N, 48] = concat(%c, %s) {axis=1}\n"


def text(body: str) -> str:
    return f"%x: float32[N, 24], %y: float32[N, 24]\n{body}"


def copies(body: str) -> bool:
    return "\njoin" in NativePlan(program(text(body))).unit.module.text()


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_parts_stand_one_after_the_other(axis: int, rows: int, rng: np.random.Generator) -> None:
    def function(x, y):
        a = paddle.sin(x)
        return paddle.concat([a, y + 1.0, paddle.tanh(a * y)], axis=axis)

    static = paddle.jit.to_static(function, full_graph=True)
    x, y = (paddle.to_tensor(rng.normal(size=(rows, 5, 24)).astype("float32")) for _ in range(2))
    with paddle.no_grad():
        for _ in range(3):
            np.testing.assert_allclose(static(x, y).numpy(), function(x, y).numpy(), rtol=1e-5, atol=1e-6)


def test_nests_write_parts_where_they_belong() -> None:
    assert not copies(PARTS + JOINED + "return %j")
    assert not copies(TWO_NESTS + JOINED + "return %j")


def test_no_part_has_memory_of_its_own() -> None:
    for parts in (PARTS, TWO_NESTS):
        made = NativePlan(program(text(parts + JOINED + "return %j"))).unit.module.text()
        assert made.count("call ptr @dy2st.room") == 1


@pytest.mark.parametrize(
    "body",
    [
        PARTS + JOINED + "return %j, %s",
        PARTS + JOINED + "%t: float32[N, 24] = sin(%s)\n%u: float32[N, 24, 1] = reshape(%t)\nreturn %j, %s",
        PARTS + "%j: float32[N, 48] = concat(%s, %s) {axis=1}\nreturn %j, %c",
        PARTS + "%j: float32[N, 48] = concat(%x, %c) {axis=1}\nreturn %j",
        PARTS + "%j: float32[2*N, 24] = concat(%c, %s) {axis=0}\nreturn %j",
    ],
    ids=["given too", "read too", "twice", "an argument", "nobody knows how long"],
)
def test_other_parts_are_copied(body: str, rng: np.random.Generator) -> None:
    body = body.replace("%u: float32[N, 24, 1] = reshape(%t)\nreturn %j, %s", "return %j, %t")
    assert copies(body)
    same(body, rng, 5)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("parts", [PARTS, TWO_NESTS], ids=["one nest", "two nests"])
def test_the_same_as_the_interpreter(parts: str, rows: int, rng: np.random.Generator) -> None:
    same(parts + JOINED + "return %j", rng, rows)


@pytest.mark.parametrize("parts", [PARTS, TWO_NESTS], ids=["one nest", "two nests"])
def test_on_every_kind_of_cpu(each_cpu: str, parts: str, rng: np.random.Generator, guarded: None) -> None:
    for rows in (1, 17):
        same(parts + JOINED + "return %j", rng, rows)


def same(body: str, rng: np.random.Generator, rows: int) -> None:
    """Check what native code gives on any number of threads, some of it not finite."""
    made = program(text(body))
    x, y = (rng.normal(size=(rows, 24)).astype(np.float32) for _ in range(2))
    if rows:
        x[0, :3] = np.nan, np.inf, -0.0
    native = NativePlan(made)
    with np.errstate(invalid="ignore"):
        want = compile_plan(made).run([x, y])
    for _ in thread_counts():
        got = native.run([x, y])
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
