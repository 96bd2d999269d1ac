"""Lists that are rebuilt in loops: values and derivatives to second order, eagerly and as one Program."""

import linecache
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from tests.jit.list_programs import program

T = paddle.to_tensor
CALLS = (([1.0, 2.0], 2), ([1.0, 2.0], 4), ([0.5, 0.25], 3), ([2.0, 3.0, 4.0], 1), ([1.0, 1.0], 0))


class Box:
    """Holds a list."""

    def __init__(self, items: Any) -> None:
        self.items = items


def function(source: str, name: str) -> Any:
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, Any] = {"paddle": paddle, "Box": Box}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


def leaves(x: Any) -> list[Any]:
    if isinstance(x, Box):
        return leaves(x.items)
    if isinstance(x, dict):
        return leaves(list(x.values()))
    return [t for i in x for t in leaves(i)] if isinstance(x, (list, tuple)) else [x]


def outcome(call: Any, values: list[float], n: int) -> Any:
    """Return the numbers of a result, and its first and second derivatives; the kind of an error."""
    x = T(values, stop_gradient=False)
    try:
        found = leaves(call(x, T(n)))
    except Dy2stError:
        raise
    except Exception as error:
        return type(error).__name__
    loss = sum(((t * t).sum() * (i + 1) for i, t in enumerate(found) if not t.stop_gradient), T(0.0))
    derivatives: list[Any] = []
    if not loss.stop_gradient:
        (first,) = paddle.grad(loss, x, create_graph=True, allow_unused=True)
        second = None if first is None else paddle.grad((first * first).sum(), x, allow_unused=True)[0]
        derivatives = [first, second]
    return [None if t is None else t.numpy() for t in (*found, *derivatives)]


def check(seed: int) -> bool:
    """Compare one program in both ways; say whether it was converted."""
    source = program(seed)
    eager, static = function(source, f"<eager {seed}>"), function(source, f"<static {seed}>")
    static = paddle.jit.to_static(static, full_graph=True)
    for call in CALLS:
        want = outcome(eager, *call)
        try:
            got = outcome(static, *call)
        except Dy2stError:
            return False
        assert type(got) is type(want), f"{source}\n{call}: {got}, not {want}"
        if isinstance(want, str):
            assert got == want, source
            continue
        assert [x is None for x in got] == [x is None for x in want], f"{source}\n{call}: {got}, not {want}"
        for a, b in zip(got, want, strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"{source}\n{call}")
    return True


def test_programs_of_lists_are_the_same() -> None:
    converted = sum(map(check, range(3)))
    assert converted >= 2


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(1, 9))
def test_160_programs_of_lists_are_the_same(shard: int) -> None:
    converted = sum(map(check, range(shard * 1000, shard * 1000 + 20)))
    assert converted >= 15


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(100, 120))
def test_5000_programs_of_lists_are_the_same(shard: int) -> None:
    converted = sum(map(check, range(shard * 1000, shard * 1000 + 250)))
    assert converted >= 210
