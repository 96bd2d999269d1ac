"""Run a program of `tensor_programs` eagerly and as one Program, and compare everything that a caller can see."""

import contextlib
import io
import linecache
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.errors import AutodiffError, Dy2stError

FILE = "random_tensor_program.py"
CALLS = (([1.0, -0.5], 0.5, 2), ([-2.0, 0.25, 1.5], -1.0, 0), ([0.5, 3.0], 2.0, 3))
LARGEST = 500.0
T = paddle.to_tensor


class Net(paddle.nn.Layer):
    """A layer with a parameter, a number that it counts, and a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(0.5))
        self.calls = 0

    def forward(self, v: Any) -> Any:
        self.calls += 1
        return v * self.weight if v.sum() > 0.3 else v - self.weight


class Box:
    """An object with attributes and methods that programs use."""

    def __init__(self) -> None:
        self.count, self.log, self.net = 0, [], Net()
        self.state = T([0.5])

    def step(self, v: Any) -> None:
        if v.sum() > 0.3:
            self.count += 1
        else:
            self.state = v

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        self.count += 1
        yield
        self.count += 10

    def swallowing(self) -> Any:
        return Swallowing(self)


class Swallowing:
    """A context that ends a ValueError."""

    def __init__(self, box: Box) -> None:
        self.box = box

    def __enter__(self) -> None:
        self.box.log.append("in")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.box.log.append("out")
        return kind is ValueError


def half(v: Any) -> Any:
    return v * 0.5 if v.sum() > 0.3 else v


def shrink(v: Any, depth: int) -> Any:
    return v if v.sum() < 1.7 or depth > 3 else shrink(v * 0.5, depth + 1)


def pair(v: Any, n: Any) -> Any:
    if n > 1:
        return v, 1
    return v * 2, v.sum()


def twice(rows: Any) -> Any:
    for row in rows:
        yield row * 2.0


def shown(x: Any) -> Any:
    """Return what must be the same of a value: type and content, all the way down."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", x.dtype.name, tuple(x.shape), x.numpy().astype("float64").tolist())
    if isinstance(x, dict):
        return (type(x).__name__, [(k, shown(v)) for k, v in x.items()])
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [shown(i) for i in x])
    return (type(x).__name__, x)


def floats(x: Any) -> list[Any]:
    """List the tensors in a structure through which a gradient flows."""
    if isinstance(x, paddle.Tensor):
        return [x] if x.dtype.name == "float32" and not x.stop_gradient else []
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for i in items for t in floats(i)]


def outcome(function: Any, call: tuple[Any, ...], box: Box) -> dict[str, Any]:
    """Call once; return everything that must agree."""
    values, number, count = call
    x, t = T(values, stop_gradient=False), T(number, stop_gradient=False)
    rows = T([[v * f for v in values] for f in (1.0, -0.5, 2.0)])
    box.state, box.log = T([0.5] * len(values)), []
    box.net.clear_gradients()
    seen: dict[str, Any] = {}
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            result = function(x, t, T(count), rows, box)
        except Dy2stError:
            raise
        except Exception as error:
            seen["error"] = (
                type(error).__name__,
                re.sub(r"\(generated_tensor_.*", "", str(error)),
            )  # as it is numbered
        else:
            seen["result"] = shown(result)
            total = sum(part.sum() for part in floats((result, box.state, box.log)))
            if isinstance(total, paddle.Tensor):
                try:
                    total.backward()
                except AutodiffError as error:
                    seen["backward"] = str(error)
            seen["gradients"] = [None if v.grad is None else shown(v.grad) for v in (x, t, box.net.weight)]
    seen["box"], seen["prints"] = shown((box.count, box.net.calls, box.state, box.log)), text.getvalue()
    return seen


@dataclass
class Difference:
    """A call of which both runs gave something else."""

    text: str
    call: tuple[Any, ...]
    static: dict[str, Any]
    eager: dict[str, Any]

    def __str__(self) -> str:
        parts = [k for k in {**self.static, **self.eager} if not alike(self.static.get(k), self.eager.get(k))]
        lines = [f"{k}: static {self.static.get(k)}\n{' ' * len(k)}   eager {self.eager.get(k)}" for k in parts]
        return "\n".join([f"called with {self.call}", self.text, *lines])


def function_of(text: str) -> Any:
    namespace: dict[str, Any] = {"paddle": paddle, "half": half, "shrink": shrink, "pair": pair, "twice": twice}
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    exec(compile(text, FILE, "exec"), namespace)
    return namespace["program"]


def difference(text: str) -> Difference | None:
    """Run a program both ways on every call; return the first difference."""
    eager, static = function_of(text), paddle.jit.to_static(function_of(text), full_graph=True)
    boxes = (Box(), Box())
    with np.errstate(all="ignore"):
        for call in CALLS:
            want = outcome(eager, call, boxes[0])
            if not is_small(want):
                return None
            try:
                got = outcome(static, call, boxes[1])
            except Dy2stError as error:
                got = {"refused": f"{type(error).__name__}: {error}"}
            if "backward" in want:  # eager refuses what was written in place; a Program keeps what it needs
                return None
            if "try:" in text or "with box" in text:  # a Program gives zeros there for None
                got, want = without_zeros(got), without_zeros(want)
            if not alike(got, want):
                return Difference(text, call, got, want)
    return None


def without_zeros(seen: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome with None for gradients that are zero."""
    parts = seen.get("gradients", [])
    return {**seen, "gradients": [None if p is None or not np.any(p[-1]) else p for p in parts]}


def alike(a: Any, b: Any) -> bool:
    """Say whether two outcomes are the same to the rounding of float32."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-3, abs_tol=2e-3) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def is_small(x: Any) -> bool:
    """Say whether all numbers are of a size at which float32 keeps three digits."""
    if isinstance(x, float):
        return not abs(x) > LARGEST
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return all(map(is_small, items))
