"""Random functions of tensors act the same eagerly and as one Program: values, types, prints, state, gradients."""

import contextlib
import importlib.util
import io
import linecache
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import dy2st as paddle

_spec = importlib.util.spec_from_file_location("tensor_programs", Path(__file__).with_name("tensor_programs.py"))
assert _spec is not None
assert _spec.loader is not None
tensor_programs = importlib.util.module_from_spec(_spec)
sys.modules["tensor_programs"] = tensor_programs
_spec.loader.exec_module(tensor_programs)

FILE = "random_tensor_program.py"
CALLS = (([1.0, -0.5], 0.5, 2), ([-2.0, 0.25], -1.0, 0), ([0.5, 3.0], 2.0, 3))
T = paddle.to_tensor


class Box:
    """An object with attributes that programs read and write."""

    def __init__(self) -> None:
        self.count = 0
        self.state = T([0.5, -0.25])


def half(v: Any) -> Any:
    return v * 0.5 if v.sum() > 0 else v


def shown(x: Any) -> Any:
    if isinstance(x, paddle.Tensor):
        return ("tensor", x.dtype.name, tuple(x.shape), x.numpy().astype("float64").tolist())
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [shown(i) for i in x])
    return (type(x).__name__, x)


def floats(x: Any) -> list[Any]:
    if isinstance(x, paddle.Tensor):
        return [x] if x.dtype.name == "float32" and not x.stop_gradient else []
    return [t for i in x for t in floats(i)] if isinstance(x, (list, tuple)) else []


def outcome(function: Any, call: tuple[Any, ...], box: Box) -> dict[str, Any]:
    values, number, count = call
    x, t = T(values, stop_gradient=False), T(number, stop_gradient=False)
    rows = T([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    seen: dict[str, Any] = {}
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            result = function(x, t, T(count), rows, box)
        except Exception as error:
            seen["error"] = (type(error).__name__, str(error) if isinstance(error, ValueError) else "")
        else:
            seen["result"] = shown(result)
            live = floats(result)
            if live:
                total = live[0].sum()
                for part in live[1:]:
                    total = total + part.sum()
                total.backward()
            seen["gradients"] = [None if v.grad is None else v.grad.numpy().astype("float64").tolist() for v in (x, t)]
    seen["box"], seen["prints"] = shown((box.count, box.state.detach())), text.getvalue()
    return seen


def agree(text: str) -> None:
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    functions = []
    for _ in range(2):
        namespace: dict[str, Any] = {"paddle": paddle, "half": half}
        exec(compile(text, FILE, "exec"), namespace)
        functions.append(namespace["program"])
    static = paddle.jit.to_static(functions[1], full_graph=True)
    boxes = (Box(), Box())
    with np.errstate(all="ignore"):
        for call in CALLS:
            want = outcome(functions[0], call, boxes[0])
            if not _finite(want):
                return
            got = outcome(static, call, boxes[1])
            if got.get("error", ("",))[0] == "StructureError":  # past eight alternatives, say: it falls back
                return
            assert alike(got, want), f"{call}\n{text}\n{got}\n{want}"
            boxes[0].state, boxes[1].state = boxes[0].state.detach(), boxes[1].state.detach()


def alike(a: Any, b: Any) -> bool:
    """Say whether two outcomes are the same to the rounding of float32."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 2e-3 * (1 + abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def _finite(x: Any) -> bool:
    """Say whether all numbers are of a size at which float32 keeps three digits."""
    if isinstance(x, float):
        return abs(x) < 500
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return all(map(_finite, items))


quiet = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@settings(max_examples=20, **quiet)
@given(tensor_programs.programs())
def test_random_programs_are_the_same(text: str) -> None:
    agree(text)


@pytest.mark.slow
@settings(max_examples=600, **quiet)
@given(tensor_programs.programs())
def test_more_random_programs_are_the_same(text: str) -> None:
    agree(text)


@pytest.mark.soak
@settings(max_examples=20_000, **{**quiet, "derandomize": False})
@given(tensor_programs.programs())
def test_many_random_programs_are_the_same(text: str) -> None:
    agree(text)
