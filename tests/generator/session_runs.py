"""Run a session of `sessions.py` as users have it and op by op on NumPy, compare what both say, make it small."""

import contextlib
import copy
import gc
import os
import pickle
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st import nn
from dy2st.ir.context import current
from tests.generator.sessions import session_of
from tests.generator.shrinking import smaller_programs

REFUSED = re.compile("changed in place|was freed by an earlier backward")
"""Such errors may come in one run alone: what a Program keeps for a derivative is not what single ops keep."""
LARGEST = 1e6
TOLERANCES = {"float64": 1e-6, "float32": 2e-3, "float16": 3e-2}
SETTINGS = ("native_from", "walks_of_tape", "programs_from")
OP_BY_OP = (float("inf"), float("inf"), float("inf"))
AS_USERS = (1 << 15, 2, 2)
HASTY = ((0, 1, 1), (1, 0, 2), (8, 2, 0), (1 << 15, 1, 2))
"""From how many elements, walks and calls on native code runs: other numbers of these find more."""


class World:
    """What a session finds, and what it says."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def start(self, dtype: str) -> None:
        self.dtype = dtype
        paddle.set_default_dtype(dtype)
        paddle.seed(7)

    def settled(self, net: Any) -> Any:
        """Give parameters values that follow from their order."""
        for k, p in enumerate(net.parameters()):
            p.set_value(self.values(k, p.shape))
        return net

    def values(self, k: int, shape: Any) -> Any:
        count = int(np.prod(shape))
        return paddle.to_tensor((((np.arange(count) * 7 + 3 * k) % 13 - 6) / 8).reshape(shape).astype(self.dtype))

    def batch(self, i: int, rows: int) -> Any:
        return self.values(i + 1, [rows, 4])

    def like(self, y: Any) -> Any:
        return self.values(5, y.shape)

    def labels(self, y: Any) -> Any:
        return paddle.to_tensor(np.arange(y.shape[0]) % y.shape[1])

    def say(self, *what: Any) -> None:
        self.log.append(shown(what))

    def said(self, g: Any) -> None:
        self.say(g)

    def fails(self) -> None:
        raise KeyError("a hook")

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Note an error and go on."""
        try:
            yield
        except Exception as error:
            text = REFUSED.pattern if REFUSED.search(str(error)) else re.sub(r"\d+", "", str(error).split("(")[0])
            self.log.append(("error", type(error).__name__, text))

    def is_scheduled(self, opt: Any) -> bool:
        return isinstance(opt._learning_rate, paddle.optimizer.lr.LRScheduler)

    def big(self, layer: Any) -> Any:
        """Return a network of more parameters than one Program updates."""
        return nn.Sequential(*[layer(4, 4) for _ in range(34)])

    def loaded(self, state: Any) -> Any:
        """Return what is read from a file where a state was saved."""
        with tempfile.TemporaryDirectory() as folder:
            paddle.save(state, f"{folder}/state")
            return paddle.load(f"{folder}/state")

    def in_thread(self, function: Callable[[], Any]) -> None:
        """Call a function in another thread."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(function).result()

    def packed(self) -> Any:
        """Have the tape keep twice what it is given."""
        return paddle.autograd.saved_tensors_hooks(lambda t: t * 2.0, lambda t: t * 0.5)

    def copied(self, state: dict[str, Any]) -> dict[str, Any]:
        return {k: v.clone().detach() if isinstance(v, paddle.Tensor) else v for k, v in state.items()}

    def replace(self, net: Any, old: Any) -> None:
        """Put a new parameter in the place of one."""
        for layer in net.sublayers(include_self=True):
            for name, p in list(layer._parameters.items()):
                if p is old:
                    new = layer.create_parameter(old.shape)
                    new.set_value(old * 0.5)
                    setattr(layer, name, new)

    class Doubled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return v * 2.0

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (v,) = ctx.saved_tensor()
            return dy * 2.0 + v * 0.125


class Tied(nn.Layer):
    """One weight at two places."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        return self.second(paddle.tanh(self.first(x))) @ self.first.weight.T


class Turns(nn.Layer):
    """A layer that is used several times."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.scale = self.create_parameter([4])

    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = paddle.tanh(self.inner(x)) * self.scale
        return x


class Gate(nn.Layer):
    """A layer that runs at some values only."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.left(x) if float(x.sum()) > 0.1 else self.right(x) * 0.5


class Image(nn.Layer):
    """A convolution, pooling and a norm of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2D(1, 2, 3, padding=1), nn.BatchNorm2D(2)
        self.last = nn.Linear(2, 4)

    def forward(self, x: Any) -> Any:
        h = nn.functional.relu(self.norm(self.conv(x.reshape([-1, 1, 2, 2]))))
        return self.last(nn.functional.max_pool2d(h, 2).flatten(1))


class Recurrent(nn.Layer):
    """A recurrent network on three times of each row."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Any) -> Any:
        return self.cell(paddle.stack([x, x * 0.5, -x], 1))[0][:, -1]


class Words(nn.Layer):
    """An embedding, whose rows get gradients at some places."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.last = nn.Embedding(6, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.table((x.detach() > 0).astype("int64")).sum(1)) + x


class Flat(nn.Layer):
    """A layer whose parameters are views of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        flat = paddle.zeros([20])
        self.parts = [flat[:16].reshape([4, 4]), flat[16:]]
        for p in self.parts:
            p.stop_gradient = False

    def parameters(self, include_sublayers: bool = True) -> Any:
        return self.parts

    def forward(self, x: Any) -> Any:
        return x @ self.parts[0] + self.parts[1]


class Summed(nn.Layer):
    """Parameters that get one and the same cotangent."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (self.create_parameter([4]) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return (self.a + self.b + self.c.detach() + self.c) * 0.5 + x


class Sequence(nn.Layer):
    """Attention between the rows."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x.unsqueeze(0))[0]


for _one in (Tied, Turns, Gate, Image, Recurrent, Words, Flat, Summed, Sequence):
    setattr(World, _one.__name__, _one)


def shown(x: Any) -> Any:
    """Return what must be the same of a value."""
    if isinstance(x, paddle.Tensor):
        return ("tensor", x.dtype.name, x.stop_gradient, x.numpy().copy())
    if isinstance(x, (list, tuple)):
        return [shown(one) for one in x]
    if isinstance(x, paddle.optimizer.Optimizer):
        return [x.get_lr(), *(shown(v) for k, v in sorted(x.state_dict().items()) if k != "LR_Scheduler")]
    return x if isinstance(x, (int, float, str, type(None))) else type(x).__name__


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        tolerance = TOLERANCES.get(a.dtype.name, 0)
        return np.allclose(a, b, tolerance, tolerance, equal_nan=True)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return bool(np.isclose(a, b, equal_nan=True))
    return type(a) is type(b) and a == b


def is_refused(x: Any) -> bool:
    """Return whether something that a session said is an error about what the tape no longer has."""
    return isinstance(x, tuple) and x[-1] == REFUSED.pattern


def is_large(x: Any) -> bool:
    """Return whether a finite number is so large that rounding may decide of what follows."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f" and bool(np.any(np.isfinite(x) & (np.abs(x) > LARGEST)))
    return isinstance(x, (list, tuple)) and any(map(is_large, x))


@contextlib.contextmanager
def settings(values: tuple[float, float, float]) -> Iterator[None]:
    """Have native code run from other numbers of elements, walks and calls on."""
    process = current().process
    before, backend = [getattr(process, name) for name in SETTINGS], os.environ.get("DY2ST_BACKEND")
    for name, value in zip(SETTINGS, values, strict=True):
        setattr(process, name, value)
    if values is OP_BY_OP:
        os.environ["DY2ST_BACKEND"] = "interpreter"
    try:
        yield
    finally:
        for name, value in zip(SETTINGS, before, strict=True):
            setattr(process, name, value)
        os.environ.pop("DY2ST_BACKEND", None)
        if backend is not None:
            os.environ["DY2ST_BACKEND"] = backend


def said(text: str, values: tuple[float, float, float]) -> list[Any]:
    """Return what a session says."""
    names: dict[str, Any] = {"paddle": paddle, "nn": nn, "np": np, "copy": copy, "pickle": pickle, "gc": gc}
    exec(compile(text, "session.py", "exec"), names)
    world, dtype = World(), paddle.get_default_dtype()
    with settings(values), paddle.utils.unique_name.guard(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            names["program"](world)
        except Exception as error:
            world.log.append(("ended", type(error).__name__, str(error)))
        finally:
            paddle.set_default_dtype(dtype)
    return world.log


def difference(text: str, seed: int) -> tuple[str, set[Any]]:
    """Say where the two runs of a session differ, empty where they do not, and which errors there were."""
    want = said(text, OP_BY_OP)
    for values in (AS_USERS, HASTY[seed % len(HASTY)]):
        got = said(text, values)
        errors = {one for one in (*want, *got) if isinstance(one, tuple)}
        for at, (one, other) in enumerate(zip(got, want, strict=False)):
            if is_large(other) or (is_refused(one) != is_refused(other)):
                break
            if not alike(one, other):
                return f"at {at} of {len(want)} with {values}:\n as users {one}\n op by op {other}", errors
        else:
            if len(got) != len(want):
                return "one says more", errors
    return "", set()


def shrink(text: str, seed: int, seconds: float = 45.0) -> str:
    """Return the smallest session found that still differs, with no error that the whole one does not have."""
    end, differs = time.monotonic() + seconds, True
    _, allowed = difference(text, seed)
    while differs and time.monotonic() < end:
        differs = False
        for smaller in smaller_programs(text):
            if time.monotonic() > end:
                break
            found, errors = difference(smaller, seed)
            if found and errors <= allowed:
                text, differs = smaller, True
                break
    return text


def run(seeds: range, report: Callable[[str], None] = print) -> int:
    """Run sessions; report those that differ and return how many do."""
    count = 0
    for seed in seeds:
        text = session_of(seed)
        if first := difference(text, seed)[0]:
            count += 1
            small = shrink(text, seed)
            report(f"== session {seed}\n{small}\n{difference(small, seed)[0] or first}")
    return count
