"""Random small loops that carry several numbers into each other: eager, step by step and natively, call after call."""

import linecache
import random

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference
from tests.shares import examples

CALLS = (3, 3, 10, 0, 1, 7)
"""Native code runs from the second call on; a trip count that it was not made with tells a wrong one."""
KINDS = {
    "int": "{}",
    "int64": "paddle.to_tensor({})",
    "int32": "paddle.to_tensor({}, dtype='int32')",
    "float32": "paddle.to_tensor({}.0)",
    "float64": "paddle.to_tensor({}.0, dtype='float64')",
    "one": "paddle.to_tensor([{}])",
    "one float": "paddle.to_tensor([{}.0])",
}


class Source:
    """Writes a function of a trip count with loops that carry numbers."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.kind = self.r.choice(list(KINDS))
        self.names = list("abcd"[: self.r.randint(1, 4)])

    def number(self) -> str:
        return KINDS[self.kind].format(self.r.choice([0, 0, 1, 2, 3, -1, -2]))

    def term(self, counter: str) -> str:
        """Return a carried value, the counter where it is of their kind, or a constant."""
        names = self.names * 2 + [counter] * (self.kind in ("int", "int64"))
        return self.r.choice([*names, str(self.r.randint(-2, 3)), "n" if self.kind in ("int64", "one") else "1"])

    def step(self, counter: str) -> list[str]:
        """Return a statement of a turn."""
        r, v, o = self.r, self.r.choice(self.names), self.term(counter)
        w = r.choice(self.names)
        forms = [f"{v} + {o}", f"{o} + {v}", f"{v} - {o}", f"{o} - {v}", f"{v} + {v}", w, f"{v} + 2", f"{v} * 1 + {o}"]
        return [r.choice([*(f"{v} = {form}" for form in forms), f"{v}, {w} = {w}, {v}", f"{v} += {o}"])]

    def loop(self, depth: int) -> list[str]:
        r, counter = self.r, f"i{depth}"
        begin, step = r.choice([0, 0, 0, 1, -1]), r.choice([1, 1, 1, 2, 3])
        body = [line for _ in range(r.randint(1, 3)) for line in self.step(counter)]
        if depth == 0 and r.random() < 0.3:
            body += self.loop(1)
        count = f"{counter} = {counter} + {step}"
        body = r.choice([[*body, count], [count, *body]])
        down = r.random() < 0.2
        if down:
            body = [line.replace(count, f"{counter} = {counter} - {step}") for line in body]
        test = f"{counter} > -{2 if depth else 'n'}" if down else f"{counter} < {2 if depth else 'n'}"
        if depth == 0 and not down and r.random() < 0.2:
            test = f"n > {counter}"
        start = f"paddle.to_tensor({begin})" if r.random() < 0.5 else f"{begin}"
        return [f"{counter} = {start}", f"while {test}:", *("    " + line for line in body)]

    def text(self) -> str:
        begun = [f"{v} = {self.number()}" for v in self.names]
        lines = [*begun, *self.loop(0), f"return {', '.join(self.names)}, i0"]
        return "\n".join(["def f(n):", *("    " + line for line in lines)])


def function(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"paddle": paddle}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def plain(results):
    return [x.numpy() if isinstance(x, paddle.Tensor) else x for x in results]


def check(seed):
    source = Source(seed).text()
    eager = function(source, f"<loop {seed}>")
    static = paddle.jit.to_static(function(source, f"<static loop {seed}>"), full_graph=True)
    for call, count in enumerate(CALLS, 1):
        wanted = plain(eager(paddle.to_tensor(count)))
        found = plain(static(paddle.to_tensor(count)))
        assert difference(found, wanted, [], exact=True) == "", f"seed {seed}, call {call} with {count}\n{source}"
    program = static.concrete_program.main_program
    native, plan = NativePlan(program), compile_plan(program, np)
    for count in CALLS:
        fault = difference(native.run([np.array(count)]), plan.run([np.array(count)]), [], exact=True)
        assert fault == "", f"seed {seed} with {count}\n{source}"


@pytest.fixture(autouse=True)
def natively(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def test_some_loops():
    for seed in range(examples(20)):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(1, 7))
def test_hundreds_of_loops(shard):
    for seed in range(1000 * shard, 1000 * shard + 40):
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(10))
def test_thousands_of_loops(shard):
    for seed in range(100_000 + 300 * shard, 100_300 + 300 * shard):
        check(seed)
