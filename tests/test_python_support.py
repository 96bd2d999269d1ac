"""docs/python-support.md is true: its examples act the same eagerly and as Programs, its refusals say what it says."""

import ast
import contextlib
import dataclasses
import inspect
import io
import linecache
import re
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError

PAGE = Path(__file__).parent.parent / "docs" / "python-support.md"
FILE = "example.py"
INPUTS: dict[str, tuple[Any, ...]] = {
    "x": ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.5], [0.5, 0.25]),
    "y": ([0.5, -1.0, 2.0], [1.0, 1.0, 1.0], [3.0, -2.0]),
    "m": ([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.eye(3).tolist(), [[0.5, -2.0, 1.0]] * 4),
    "n": (3, 0, 4),
    "k": (2, 1, 2),
    "flag": (True, False, True),
}
"""What the parameters of an example are, by name, in each of three calls."""


@dataclass(frozen=True)
class Example:
    """A function of the page, with the block of code that it stands in."""

    name: str
    code: str
    refusal: str = ""

    def make(self) -> tuple[Any, dict[str, Any]]:
        """Return the function and the names around it, made anew."""
        linecache.cache[FILE] = (len(self.code), None, self.code.splitlines(keepends=True), FILE)
        around: dict[str, Any] = {"paddle": paddle, "np": np, "__name__": "example"}
        exec(compile(self.code, FILE, "exec"), around)
        return around[self.name], around


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the blocks of Python on the page, each with the block of text behind it, if there is one."""
    text = PAGE.read_text(encoding="utf-8")
    for match in re.finditer(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", text, re.DOTALL):
        yield match.group(1), match.group(2) or ""


def examples() -> list[Example]:
    found: list[Example] = []
    for code, refusal in blocks():
        for node in ast.parse(code).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_example(node, bool(refusal)):
                found.append(Example(node.name, code, refusal))
    return found


def _is_example(node: ast.FunctionDef | ast.AsyncFunctionDef, refused: bool) -> bool:
    """Say whether a function takes what the page names; generators and cached functions stand for others to call."""
    takes = {a.arg for a in node.args.args} <= INPUTS.keys() and bool(node.args.args)
    yields = any(isinstance(x, ast.Yield) for x in ast.walk(node))
    return takes and not node.name.startswith("_") and (refused or not (yields or "cache" in ast.dump(node)))


def inputs(function: Any, call: int) -> list[Any]:
    return [fresh(name, INPUTS[name][call]) for name in inspect.signature(function).parameters]


def fresh(name: str, value: Any) -> Any:
    if name in ("k", "flag"):
        return value
    return paddle.to_tensor(value, stop_gradient=name == "n")


def shown(x: Any) -> Any:
    """Return what must be the same of a value: type and content, all the way down."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", x.dtype.name, x.shape, np.round(x.numpy().astype("float64"), 3).tolist())
    if isinstance(x, float):
        return ("float", round(x, 3))
    if isinstance(x, dict):
        return (type(x).__name__, [(k, shown(v)) for k, v in x.items()])
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [shown(i) for i in x])
    if isinstance(x, paddle.nn.Layer):
        own = {k: v for k, v in vars(x).items() if isinstance(v, (int, paddle.Tensor, type(None)))}
        return (type(x).__name__, shown(own), shown(dict(x.state_dict())))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return (type(x).__name__, shown(vars(x)))
    return (type(x).__name__, x if isinstance(x, (int, str, type(None))) else "")


def state(around: dict[str, Any]) -> Any:
    """Return what an example can leave behind: the data among the names around it."""
    code = (types.FunctionType, types.ModuleType, type)
    return {k: shown(v) for k, v in around.items() if not k.startswith("__") and not isinstance(v, code)}


def tensors(x: Any) -> list[Any]:
    if isinstance(x, paddle.Tensor):
        return [] if x.stop_gradient or not x.dtype.name.startswith("float") else [x]
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for item in items for t in tensors(item)]


def outcome(function: Any, arguments: list[Any], around: dict[str, Any]) -> dict[str, Any]:
    """Call once and return everything that must agree."""
    text, seen = io.StringIO(), {}
    paddle.seed(5)
    with contextlib.redirect_stdout(text), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            seen["error"] = (type(error).__name__, str(error))
        else:
            seen["result"] = shown(result)
            if live := tensors(result):
                paddle.add_n([t.sum().astype("float32") for t in live]).backward()
            seen["gradients"] = [shown(t.grad) for t in arguments if isinstance(t, paddle.Tensor)]
    seen["warnings"] = [(w.category, str(w.message), w.filename, w.lineno) for w in warned]
    return seen | {"arguments": shown(arguments), "state": state(around), "prints": text.getvalue()}


@pytest.mark.parametrize("example", [e for e in examples() if not e.refusal], ids=lambda e: e.name)
def test_an_example_acts_the_same(example: Example) -> None:
    eager, around_eager = example.make()
    plain, around_static = example.make()
    static = paddle.jit.to_static(plain, full_graph=True)
    for call in range(3):
        want = outcome(eager, inputs(eager, call), around_eager)
        got = outcome(static, inputs(eager, call), around_static)
        assert got == want, f"call {call}"
    assert static.explain().fallbacks == []


def refused() -> list[Any]:
    slow = ("left_by_an_exception",)  # 10,000 turns of a loop are recorded
    return [pytest.param(e, id=e.name, marks=[pytest.mark.slow] * (e.name in slow)) for e in examples() if e.refusal]


@pytest.mark.parametrize("example", refused())
def test_a_refusal_says_what_the_page_says(example: Example) -> None:
    function, _ = example.make()
    with pytest.raises((Dy2stError, TypeError, ValueError)) as caught:
        paddle.jit.to_static(function, full_graph=True)(*inputs(function, 0))
    text = "".join(traceback.format_exception_only(caught.value)).rpartition("dy2st.errors.")[2]
    assert text == example.refusal


def test_every_section_has_examples() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    for number in range(1, 10):
        (section,) = [s for s in sections if s.startswith(f"{number}. ")]
        assert section.count("```python\n") >= 2, section[:40]
    assert len(examples()) >= 100
