"""How often the body of a `try` is traced; what a `try` does is in tests/jit/constructs/tries.py."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.runtime.tracer.control_flow.try_except import TracedTry

HANDLERS = ("except KeyError:", "except ValueError:", "finally:", "except (KeyError, ValueError):")


def nested(path: Path, levels: int, handler: str) -> Callable[[Any, Any], Any]:
    """Return a function with so many `try` statements in each other, the innermost of which raises."""
    lines = ["def function(x, c):", "    y = x * 1.0"]
    lines += ["    " * (level + 1) + "try:" for level in range(levels)]
    inside = "    " * (levels + 1)
    lines += [f"{inside}if c.sum() > 1:", f"{inside}    raise ValueError('deep')", f"{inside}y = y * 2.0"]
    for level in reversed(range(levels)):
        lines += ["    " * (level + 1) + handler, "    " * (level + 2) + f"y = y - {level}.5"]
    path.write_text("\n".join([*lines, "    return y", ""]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function


@pytest.mark.parametrize("handler", HANDLERS)
def test_nested_tries_do_not_double_what_is_traced(
    handler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    before = TracedTry.__init__

    def counted(self: Any, *args: Any) -> None:
        started.append(1)
        before(self, *args)

    monkeypatch.setattr(TracedTry, "__init__", counted)
    counts = []
    for levels in (4, 8):
        function = nested(tmp_path / f"nested_{levels}.py", levels, handler)
        static = paddle.jit.to_static(function, full_graph=True)
        started.clear()
        x, low, high = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([0.0]), paddle.to_tensor([2.0])
        assert static(x, low).tolist() == function(x, low).tolist()
        counts.append(len(started))
        assert outcome(static, x, high) == outcome(function, x, high)
    assert counts[1] <= 4 * counts[0]  # with the square of the levels, not as a power of 2


def outcome(function: Callable[[Any, Any], Any], x: Any, c: Any) -> Any:
    try:
        return function(x, c).tolist()
    except ValueError as error:
        return str(error)


def test_a_try_that_has_other_sites_each_time_is_traced_right() -> None:
    def function(x: Any, c: Any) -> Any:
        y = x * 1.0
        for i in [0, 1, 2, 3]:
            try:
                y = y + i
                if i % 2 and c.sum() > 1:
                    raise ValueError("odd")
                if i > 2 and c.sum() > 2:
                    raise ValueError("large")
                y = y * 2.0
            except ValueError:
                y = y - 1.0
            else:
                y = y + 0.25
        return y

    static = paddle.jit.to_static(function, full_graph=True)
    for c in (0.0, 1.5, 2.5):
        given = paddle.to_tensor([1.0]), paddle.to_tensor([c])
        assert static(*given).tolist() == function(*given).tolist()
