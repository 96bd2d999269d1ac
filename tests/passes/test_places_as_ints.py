"""Bools that say a place are ints for native code."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes.lowering.bool_indices_to_int import BoolIndicesToInt
from tests.passes.texts import becomes, stays


def test_a_bool_becomes_an_int_once() -> None:
    becomes(
        BoolIndicesToInt(),
        """%x: float32[N], %flag: bool
        %l: list<float32[N]> = list_new(%x, %x) {type=!list<float32[N]>}
        %y: float32[N] = list_get(%l, %flag)
        %z: float32[] = index(%y, %flag) {spec=(("int", "?"),)}
        return %z""",
        """%x: float32[N], %flag: bool
        %l: list<float32[N]> = list_new(%x, %x) {type=!list<float32[N]>}
        %i: int = scalar_int(%flag)
        %y: float32[N] = list_get(%l, %i)
        %z: float32[] = index(%y, %i) {spec=(("int", "?"),)}
        return %z""",
    )


def test_a_bool_that_is_an_element_stays() -> None:
    stays(
        BoolIndicesToInt(),
        """%flag: bool, %i: int
        %l: list<bool> = list_new(%flag, %flag) {type=!list<bool>}
        %m: list<bool> = list_set(%l, %i, %flag)
        return %m""",
    )


def _got(x: Any) -> Any:
    return [x, x * 2][bool(x.sum() > 3)]


def _moved(x: Any) -> Any:
    flag, items = bool(x.sum() > 3), []
    for i in range(x.shape[0]):
        items.append(x[i] + i)
    items.insert(flag, x[0])
    items[flag] = items[flag] * 2
    return items.pop(flag), items[flag:][0], items[flag]


def _cut(x: Any) -> Any:
    flag = bool(x.sum() > 3)
    return x[flag:], x[:flag], x[1, flag:]


@pytest.mark.parametrize("function", [_got, _moved, _cut])
def test_a_bool_is_a_place_in_each_call(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    static = paddle.jit.to_static(function, full_graph=True)
    for start in (0.0, 2.0, -3.0, 4.0):
        x = paddle.to_tensor(np.arange(start, start + 6).reshape(3, 2).astype("float32"))
        found, wanted = static(x), function(x)
        if not isinstance(wanted, tuple):
            found, wanted = (found,), (wanted,)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
