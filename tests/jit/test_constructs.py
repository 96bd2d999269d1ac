"""Eager and static agree on every construct: values, types, effects, gradients, exceptions; and one Program serves."""

import contextlib
import copy
import io
import warnings
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from tests.jit import constructs as constructs  # registers the cases
from tests.jit.constructs.cases import CASES
from tests.jit.constructs.expected import FAILURES as EXPECTED


def fresh(x: Any) -> Any:
    """Return an argument of its own: arrays become tensors."""
    if isinstance(x, np.ndarray):
        return paddle.to_tensor(x.copy(), stop_gradient=x.dtype.kind != "f")
    if isinstance(x, (list, tuple)):
        return type(x)(map(fresh, x))
    return {k: fresh(v) for k, v in x.items()} if isinstance(x, dict) else copy.deepcopy(x)


def shown(x: Any) -> Any:
    """Return what must be the same of a value: type and content, all the way down."""
    if isinstance(x, paddle.Tensor):
        array = np.round(x.numpy().astype("float64"), 4) + 0.0
        return ("tensor", x.dtype.name, tuple(x.shape), array.tolist())
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [shown(i) for i in x])
    if isinstance(x, dict):
        return (type(x).__name__, {k: shown(v) for k, v in x.items()})
    if isinstance(x, float):
        return ("float", round(x, 4))
    return (type(x).__name__, x)


def tensors(x: Any) -> list[Any]:
    """List the tensors in a structure."""
    if isinstance(x, paddle.Tensor):
        return [x]
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for i in items for t in tensors(i)]


def gradients(result: Any, arguments: Any) -> Any:
    """Return the gradients of the sum of all float results."""
    live = [t for t in tensors(result) if t.dtype.name.startswith("float") and not t.stop_gradient]
    if live:
        total = live[0].astype("float64").sum()
        for t in live[1:]:
            total = total + t.astype("float64").sum()
        total.backward()
    return [None if t.grad is None else shown(t.grad) for t in tensors(arguments)]


def outcome(function: Any, arguments: tuple[Any, ...], observe: Any) -> dict[str, Any]:
    """Call once and return everything that must agree."""
    own = fresh(arguments)
    text = io.StringIO()
    seen: dict[str, Any] = {}
    paddle.seed(3)
    with contextlib.redirect_stdout(text):
        try:
            result = function(*own)
        except Exception as error:
            seen["error"] = (type(error).__name__, str(error))
            error.__traceback__ = None
        else:
            seen["result"] = shown(result)
            seen["gradients"] = gradients(result, own)
    seen["arguments"], seen["state"], seen["prints"] = shown(own), shown(observe()), text.getvalue()
    return seen


def rounds(calls: int) -> int:
    """Return how often all calls are made: twice, and four calls at least, because native code comes later."""
    return max(2, -(-4 // calls))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.group}-{c.name}")
def test_construct(case: Any, request: pytest.FixtureRequest) -> None:
    reason = EXPECTED.get(f"{case.group}.{case.name}")
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    eager, observe_eager = case.build()
    plain, observe_static = case.build()
    static = paddle.jit.to_static(plain, full_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(rounds(len(case.calls))):
            for arguments in case.calls:
                want = outcome(eager, arguments, observe_eager)
                got = outcome(static, arguments, observe_static)
                if not case.same_message and "error" in want and "error" in got:
                    want["error"], got["error"] = want["error"][0], got["error"][0]
                assert got == want, arguments
    assert static.explain().fallbacks == []
    if "error" not in outcome(eager, case.calls[0], observe_eager):
        assert len(static.program_cache) == case.programs, str(static.explain())
        text = str(static.concrete_program.main_program)
        for word in case.holds:
            assert word in text


def test_expected_failures_are_cases() -> None:
    assert set(EXPECTED) <= {f"{c.group}.{c.name}" for c in CASES}
