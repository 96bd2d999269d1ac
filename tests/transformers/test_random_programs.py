"""Random programs act the same converted and as written; `DY2ST` has no switch here: raise max_examples by profile."""

import contextlib
import linecache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dy2st import transformers
from tests.shares import examples
from tests.transformers.programs import programs
from tests.transformers.python_helper import PythonHelper

FILE = "<random program>"


class TooLong(Exception):
    """A loop that does not end, in both forms."""


class World:
    """What a program may touch."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what a program did."""
        self.seen: list[Any] = []
        self.ticks = 0

    def log(self, value: Any) -> Any:
        # An exception is equal to itself alone.
        self.seen.append(repr(value) if isinstance(value, Exception) else value)
        if len(self.seen) > 500:
            raise TooLong
        return value

    def tick(self) -> bool:
        self.ticks += 1
        return self.ticks < 30

    @contextlib.contextmanager
    def manager(self) -> Any:
        self.seen.append("enter")
        try:
            yield 5
        except ValueError:
            self.seen.append("swallowed")
        finally:
            self.seen.append("exit")


def run(fn: Any, world: World, args: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        result: tuple[Any, ...] = ("value", repr(fn(*args)))
    except Exception as error:
        result = ("raised", type(error), str(error))
    return *result, world.seen


def agree(text: str) -> None:
    """Run a program both ways on a few arguments."""
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    try:
        code = compile(text, FILE, "exec")
    except SyntaxError:  # such as a walrus on the variable of a comprehension
        return
    worlds, forms = (World(), World()), []
    for world in worlds:
        namespace: dict[str, Any] = {"log": world.log, "tick": world.tick, "manager": world.manager}
        exec(code, namespace)
        forms.append(namespace["program"])
    converted = transformers.convert(forms[1])
    forms[1] = converted.make(PythonHelper())
    for args in [(0, 1), (3, -1)]:
        outcomes: list[Any] = []
        for fn, world in zip(forms, worlds):
            world.begin()
            outcomes.append(run(fn, world, args))
        assert outcomes[1] == outcomes[0], f"{text}\n{converted.source}"


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_random_programs_act_the_same(text: str) -> None:
    agree(text)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_more_random_programs_act_the_same(text: str) -> None:
    agree(text)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_many_random_programs_act_the_same(text: str) -> None:
    agree(text)
