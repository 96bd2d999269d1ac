"""First calls that a signal interrupts at some moment: run as a program, it prints what went wrong, or nothing.

    python -m tests.jit.interrupted_calls KIND COUNT SEED

KIND is what the handler raises. Each turn converts a new function with a branch, a loop, a write to a parameter and a
counter, interrupts its first calls after a time drawn at random, and then looks at all that could be half done.
"""

import linecache
import random
import signal
import sys
import threading
import time
import traceback
import types
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.ir.context import current

SOURCE = """
def forward_{n}(self, x, n):
    self.calls += 1
    y = x
    i = paddle.to_tensor(0)
    while i < n:
        y = paddle.tanh(y @ self.w) + {n}
        if y.sum() > {n}:
            y = y - 1
        else:
            y = y * 2
        i = i + 1
    try:
        z = y.reshape([2, 8])
    except ZeroDivisionError:
        z = y
    self.mean.set_value(z.mean(axis=0))
    return (z * self.w.sum()).sum()
"""

KINDS: dict[str, Any] = {"TimeoutError": TimeoutError, "KeyboardInterrupt": KeyboardInterrupt, "ValueError": ValueError,
                         "KeyError": KeyError, "RuntimeError": RuntimeError}  # fmt: skip


class Net(paddle.nn.Layer):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.w = self.create_parameter([8, 8])
        self.register_buffer("mean", paddle.zeros([8]))
        self.calls = 0
        self._function = types.MethodType(function, self)

    def forward(self, x: Any, n: Any) -> Any:
        return self._function(x, n)


class Turn:
    """One function whose first calls are interrupted."""

    def __init__(self, n: int, kind: type[BaseException], rng: random.Random):
        self.n, self.kind, self.rng, self.fired = n, kind, rng, 0
        self.places: list[str] = []
        scope: dict[str, Any] = {"paddle": paddle}
        name = f"<interrupted {n}>"
        source = SOURCE.format(n=n)
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        exec(compile(source, name, "exec"), scope)
        self.plain = scope[f"forward_{n}"]
        self.eager, self.net = Net(self.plain), Net(paddle.jit.to_static(self.plain))
        self.net.set_state_dict(self.eager.state_dict())
        self.x = paddle.to_tensor(np.full([2, 8], 0.1, "float32"))

    def handler(self, number: int, frame: types.FrameType) -> None:
        self.fired += 1
        self.places.append(" < ".join(f"{e.filename}:{e.lineno}" for e in traceback.extract_stack(frame)[:-6:-1]))
        raise self.kind("from the handler")

    def interrupt(self, within: float) -> str | None:
        """Interrupt one call; return what is wrong with how the signal arrived."""
        before, count = self.fired, paddle.to_tensor(3)
        arrived: BaseException | None = None
        calls = self.net.calls
        try:
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-5, within))
            self.net(self.x, count)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:
            arrived = error
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.fired == before:
            return None if arrived is None else f"raised {arrived!r} by itself"
        if arrived is None:
            return f"the signal was lost at {self.places[-1]}"
        if type(arrived) is not self.kind or "from the handler" not in str(arrived):
            return f"another error arrived: {type(arrived).__name__}: {arrived}"[:300]
        if self.net.calls not in (calls, calls + 1):
            return f"calls is {self.net.calls}, was {calls}"
        return None

    def state(self) -> str | None:
        """Return what is half done."""
        if current().trace is not None:
            return "a trace is still active"
        for name, value in self.net.state_dict().items():
            if not isinstance(value.numpy(), np.ndarray):
                return f"{name} is {value!r:.100}"
        np.testing.assert_array_equal(self.net.w.numpy(), self.eager.w.numpy())
        for count in (3, 0, 5, 3):
            n = paddle.to_tensor(count)
            self.net.calls = self.eager.calls = 0
            found, want = float(self.net(self.x, n)), float(self.eager(self.x, n))
            if abs(found - want) > 1e-3 * (1 + abs(want)):
                return f"a later call gives {found}, not {want}"
            if self.net.calls != 1:
                return f"a later call counts {self.net.calls}"
            if not np.allclose(self.net.mean.numpy(), self.eager.mean.numpy(), rtol=1e-4):
                found, want = self.net.mean.tolist(), self.eager.mean.tolist()
                return f"call ({count}) writes {found[:2]}, not {want[:2]}; interrupted {self.places}"
        other = threading.Thread(target=lambda: self.net(self.x, paddle.to_tensor(2)), daemon=True)
        other.start()
        other.join(30)
        return "another thread waits for a lock" if other.is_alive() else None


def run(kind: str, count: int, seed: int) -> list[str]:
    rng, found = random.Random(seed), []
    took = []
    for n in range(3):
        turn = Turn(n, KINDS[kind], rng)
        began = time.perf_counter()
        turn.net(turn.x, paddle.to_tensor(3))
        took.append(time.perf_counter() - began)
    within = min(took) * 1.1
    for n in range(3, count + 3):
        turn = Turn(n, KINDS[kind], rng)
        signal.signal(signal.SIGALRM, turn.handler)
        for call in range(3):
            wrong = turn.interrupt(within if call == 0 else within / 4)
            if wrong is not None:
                found.append(f"{n} call {call}: {wrong}")
        try:
            wrong = turn.state()
        except BaseException as error:
            wrong = f"raises {type(error).__name__}: {error}"[:300]
        if wrong is not None:
            found.append(f"{n}: {wrong}")
    return found


if __name__ == "__main__":
    for line in run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(line)
