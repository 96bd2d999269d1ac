"""The same seed gives the same random bits: eager, in a Program of any kind, and in a saved file loaded elsewhere."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

ROOT = Path(__file__).parents[2]


def uniform(x: Any) -> Any:
    return paddle.uniform([x.shape[0], 3], min=-2.0, max=3.0)


def rand64(x: Any) -> Any:
    return paddle.rand([5], "float64")


def randint(x: Any) -> Any:
    return paddle.randint(-7, 1000, [x.shape[0], 3])


def bernoulli(x: Any) -> Any:
    return paddle.bernoulli(paddle.full([x.shape[0], 9], 0.3))


def randperm(x: Any) -> Any:
    return paddle.randperm(17)


def normal(x: Any) -> Any:
    return paddle.randn([x.shape[0], 3])


def dropout(x: Any) -> Any:
    return paddle.nn.functional.dropout(paddle.ones([x.shape[0], 9]), 0.5)


KINDS = (uniform, rand64, randint, bernoulli, randperm, normal, dropout)
X = paddle.arange(4.0)


def drawn(function: Callable[[Any], Any], calls: int = 3) -> list[Any]:
    """What calls one after the other give from one seed on."""
    paddle.seed(42)
    return [function(X).numpy() for _ in range(calls)]


def same(got: list[Any], want: list[Any]) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(want[0], want[1])  # each call draws anew


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_to_static_draws_what_eager_draws(kind: Callable[[Any], Any]) -> None:
    same(drawn(paddle.jit.to_static(kind, full_graph=True)), drawn(kind))


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_branches_and_loops_draw_only_where_they_run(kind: Callable[[Any], Any]) -> None:
    def several(x: Any) -> Any:
        total = kind(x) * 0
        i = paddle.to_tensor(0)
        while i < 3:
            if i != 1:
                total = total + kind(x) * (i + 1).astype(total.dtype)
            else:
                total = total - 1
            i = i + 1
        return total + kind(x)

    same(drawn(paddle.jit.to_static(several, full_graph=True)), drawn(several))


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_a_hand_built_program_draws_what_eager_draws(kind: Callable[[Any], Any]) -> None:
    want = drawn(kind)
    paddle.enable_static()
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        out = kind(paddle.static.data("x", [4], "float32"))
    paddle.seed(42)
    run = paddle.static.Executor().run
    same([run(main, {"x": X.numpy()}, [out])[0] for _ in range(3)], want)


class Draws(paddle.nn.Layer):
    """All kinds at once, as a layer to be saved."""

    def forward(self, x: Any) -> Any:
        return tuple(kind(x) for kind in KINDS)


@pytest.mark.slow
def test_a_saved_layer_draws_the_same_here_and_in_another_process(tmp_path: Path) -> None:
    layer = Draws()
    paddle.seed(42)
    want = [t.numpy() for _ in range(2) for t in layer(X)]
    path = paddle.jit.save(layer, tmp_path / "draws", input_spec=[InputSpec([None], "float32")])
    loaded = paddle.jit.load(path)
    loaded.train()
    paddle.seed(42)
    for a, b in zip([t.numpy() for _ in range(2) for t in loaded(X)], want, strict=True):
        np.testing.assert_array_equal(a, b)
    program = """
import sys, numpy as np, dy2st as paddle
model = paddle.jit.load(sys.argv[1])
model.train()
paddle.seed(42)
np.savez(sys.argv[2], *[t.numpy() for _ in range(2) for t in model(paddle.arange(4.0))])
"""
    out = tmp_path / "bits.npz"
    subprocess.run([sys.executable, "-c", program, str(path), str(out)], cwd=ROOT, check=True, timeout=60)
    with np.load(out) as found:
        for a, b in zip(found.values(), want, strict=True):
            np.testing.assert_array_equal(a, b)
