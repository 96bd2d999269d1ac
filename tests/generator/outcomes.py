"""Run a program of `statements.py` eagerly and as one Program, and compare everything that a caller can see.

Compared are results with their types, what is raised and printed, the state of objects, gradients, and where a call
asks for it the gradients of the gradients' squares.
"""

import contextlib
import io
import linecache
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.errors import AutodiffError
from dy2st.jit.dispatch.fallback_warning import FallbackWarning
from dy2st.jit.serialization.output_schema import SavedObject
from tests.generator.statements import is_alone
from tests.generator.world import Box, Point, T, namespace

FILE = "random_tensor_program.py"
LARGEST, ROUNDING = 500.0, 2e-3
ENOUGH = 3
"""A program has run when so many of its calls are compared; behind one that gives too large numbers are no more."""


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    values: tuple[float, ...]
    number: float
    count: int
    dtype: str = "float32"
    second: bool = False
    """Whether gradients of gradients are compared."""
    hooked: bool = False
    """Whether a hook on `x` and one on the layer stand around the call."""


CALLS = (Call((1.0, -0.5), 0.5, 2), Call((-2.0, 0.25, 1.5), -1.0, 0), Call((0.5, 3.0), 2.0, 3))
SIZES = (0, 1, 3, 7, 8, 9, 16, 17, 33, 65)


def calls_of(seed: int) -> tuple[Call, ...]:
    """Return the calls of the program that a number names: the first twice, then other numbers, turns and sizes."""
    r = random.Random(~seed)
    dtype = r.choice(("float32", "float32", "float32", "float64"))
    small = is_alone(seed)
    second = r.random() < 0.25 or small
    most = 6 if small else 12

    def call(size: int, count: int) -> Call:
        values = tuple(r.randint(-most, most) / 8 for _ in range(size))
        return Call(values, r.choice((0.5, -1.0, 2.0)), count, dtype, second)

    first = call(r.randint(2, 4), r.randint(1, 4))
    others = [call(r.randint(1, 4), count) for count in (0, 2 if small else 7, r.randint(2, 5))]
    hooked = replace(others[2], hooked=True)
    return (first, first, others[1], others[0], call(r.choice(SIZES), r.randint(0, 4)), hooked)


def shown(x: Any, around: tuple[int, ...] = ()) -> Any:
    """Return what must be the same of a value: type and content, all the way down."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", x.dtype.name, tuple(x.shape), x.numpy().astype("float64").tolist())
    if isinstance(x, dict):
        return (type(x).__name__, [(k, shown(v, around)) for k, v in x.items()])
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [shown(i, around) for i in x])
    if isinstance(x, (Point, SavedObject)):  # one may be in itself; a file gives what a Point has
        return ("Point", id(x) in around or shown(dict(sorted(vars(x).items())), (*around, id(x))))
    return (type(x).__name__, x)


def floats(x: Any, met: set[int] | None = None) -> list[Any]:
    """List the tensors in a structure through which a gradient flows."""
    met = set() if met is None else met
    if isinstance(x, paddle.Tensor):
        return [x] if x.dtype.name in ("float32", "float64") and not x.stop_gradient else []
    if isinstance(x, (Point, SavedObject)) and id(x) not in met:
        met.add(id(x))
        x = vars(x)
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for i in items for t in floats(i, met)]


def ramp(x: Any) -> Any:
    """Return a factor for each element, so that no cotangent is like another."""
    return T(np.linspace(0.5, 1.5, math.prod(x.shape)).reshape(x.shape), x.dtype)


@contextlib.contextmanager
def hooks(x: Any, box: Box) -> Iterator[None]:
    """Halve the gradient of `x` and what the layer gives, for a time."""
    handles = [
        x.register_hook(lambda dx: dx * 0.5),
        box.net.register_forward_post_hook(lambda layer, inputs, output: output * 0.5),
    ]
    yield
    for handle in handles:
        handle.remove()


def outcome(function: Any, call: Call, box: Box) -> dict[str, Any]:
    """Call once; return everything that must agree."""
    values, dtype = list(call.values), call.dtype
    x, t = T(values, dtype, stop_gradient=False), T(call.number, dtype, stop_gradient=False)
    n = T(call.count)
    rows = T([[v * f for v in values] for f in (1.0, -0.5, 2.0)], dtype)
    box.state, box.log, box.peer = T([0.5] * len(values), dtype), [], None
    box.net.clear_gradients()
    paddle.seed(call.count)
    seen: dict[str, Any] = {}
    text = io.StringIO()
    with contextlib.redirect_stdout(text), hooks(x, box) if call.hooked else contextlib.nullcontext():
        try:
            result = function(x, t, n, rows, box)
        except Exception as error:
            own = re.search(r"\b(stop|checked) \d", str(error))  # texts of the library are compared elsewhere
            seen["error"] = (type(error).__name__, shown(error.args) if own else ())
        else:
            seen["result"] = shown(result)
            total = sum((part * ramp(part)).sum() for part in floats((result, box.state, box.log, box.peer)))
            if isinstance(total, paddle.Tensor):
                try:
                    if call.second:
                        first = _first_then_second(total, (x, t))
                        seen |= {} if first is None else {"first": first}
                    else:
                        total.backward()
                except AutodiffError as error:
                    seen["backward"] = str(error)
            seen["gradients"] = [None if v.grad is None else shown(v.grad) for v in (x, t, box.net.weight)]
    seen["box"] = shown((box.count, box.net.calls, box.state, box.log, box.peer, rows, n))
    seen["prints"] = text.getvalue()
    return seen


def _first_then_second(total: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the gradients of `total`; leave those of the sum of their squares."""
    first = paddle.grad(total, inputs, create_graph=True, allow_unused=True)
    squares = sum((g * g).sum() for g in first if g is not None and not g.stop_gradient)
    if isinstance(squares, paddle.Tensor):
        squares.backward()
    return [None if g is None else shown(g) for g in first] if any(g is not None for g in first) else None


@dataclass
class Difference:
    """A call of which both runs gave something else."""

    text: str
    call: Call
    number: int
    static: dict[str, Any]
    eager: dict[str, Any]

    @property
    def parts(self) -> list[str]:
        """What differs, by name."""
        return [k for k in {**self.static, **self.eager} if not alike(self.static.get(k), self.eager.get(k))]

    @property
    def kind(self) -> list[str]:
        """What a smaller program must have in common with this one: what differs, and the errors."""
        raised = [
            f"{way} {seen['error'][0]}"
            for way, seen in (("static", self.static), ("eager", self.eager))
            if "error" in seen
        ]
        return self.parts + raised

    def __str__(self) -> str:
        parts = self.parts
        lines = [f"{k}: static {self.static.get(k)}\n{' ' * len(k)}   eager {self.eager.get(k)}" for k in parts]
        return "\n".join([f"call {self.number}: {self.call}", self.text, *lines])


def function_of(text: str) -> Any:
    names = namespace()
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    exec(compile(text, FILE, "exec"), names)
    return names["program"]


def difference(text: str, calls: Sequence[Call] = CALLS, *, later: int = 0, seen: Callable[[Any], None] | None = None
               ) -> Difference | None:  # fmt: skip
    """Run a program both ways on every call, the first call `later` times more at the end; return the first difference.

    `seen` is handed the static function when all calls are made, but for those behind too large numbers.
    """
    eager, static = function_of(text), paddle.jit.to_static(function_of(text))
    boxes = (Box(), Box())
    calls = [replace(call, hooked=call.hooked and "grad(" not in text) for call in (*calls, *[calls[0]] * later)]
    refused = ""
    with np.errstate(all="ignore"):
        for number, call in enumerate(calls, 1):
            want = outcome(eager, call, boxes[0])
            if not is_small(want):
                if number <= ENOUGH:
                    return None
                break
            got, why = _without_warnings(static, call, boxes[1])
            refused = refused or why
            if "backward" in want:  # eager refuses what was written in place; a Program keeps what it needs
                return None
            if _takes_zeros_for_none(text, call):
                got, want = without_zeros(got), without_zeros(want)
            if not alike(got, want):
                return Difference(text, call, number, got, want)
    if refused:
        return Difference(text, calls[0], 1, {"refused": refused}, {})
    if seen is not None:
        seen(static)
    return None


def _without_warnings(function: Any, call: Call, box: Box) -> tuple[dict[str, Any], str]:
    """Return the outcome of a call of a static function, and why it ran eagerly if it did."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = outcome(function, call, box)
    return found, next((str(one.message) for one in caught if issubclass(one.category, FallbackWarning)), "")


def _takes_zeros_for_none(text: str, call: Call) -> bool:
    """Return whether a Program may give zeros for a gradient that eager mode does not have.

    That is so for what a `try` or a swallowing `with` may have run, for gradients of gradients, and where a tensor
    of at most one element makes views that have none.
    """
    return "try:" in text or "with box" in text or call.second or len(call.values) < 2


def without_zeros(seen: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome with None for gradients that are zero but for rounding."""
    return {name: _none_for_zeros(value) if name in ("gradients", "first") else value for name, value in seen.items()}


def _none_for_zeros(parts: list[Any]) -> list[Any]:
    return [None if p is None or np.all(np.abs(p[-1]) < ROUNDING) else p for p in parts]


def alike(a: Any, b: Any) -> bool:
    """Say whether two outcomes are the same to the rounding of float32."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING) or (math.isnan(a) and math.isnan(b))
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
