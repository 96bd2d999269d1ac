"""The printed source of a few functions, read by people; `--update-golden` writes it anew."""

from collections.abc import Callable

import pytest

from dy2st import transformers

# ruff: noqa: F821


def refine(self, x, limit=1e-3):
    """Newton's steps until they are small."""
    steps = 0
    while self.error(x) > limit and steps < self.max_steps:
        x = x - self.step(x)
        steps += 1
    return x, steps


def classify(x):
    if x.mean() > 0:
        label = "high"
    elif x.mean() < 0:
        label = "low"
    else:
        return None
    return f"{label}: {x.mean():.2f}"


def search(rows, target):
    for i, row in enumerate(rows):
        for value in row:
            if value < 0:
                continue
            if value == target:
                return i, value
    else:
        print("nothing")


def guarded(xs):
    total = 0
    try:
        for x in xs:
            assert x != 0, "zero"
            total += 1 / x
            if total > 10:
                break
    except AssertionError as error:
        raise ValueError("bad input") from error
    finally:
        log(total)
    return total


def containers(self, xs):
    self.seen["n"] += 1
    kept = [x * 2 for x in xs if 0 < x < 9]
    first, *self.rest = kept or [None]
    del self.seen["old"]
    return first if first is not None else max(kept, key=lambda x: -x)


def dispatch(command):
    match command:
        case 0 | None:
            return "stop"
        case n if n > 9:
            return "far"
        case [x, y]:
            return x + y
    return "unknown"


@pytest.mark.parametrize("fn", [refine, classify, search, guarded, containers, dispatch], ids=lambda fn: fn.__name__)
def test_printed_source(fn: Callable[..., object], golden: Callable[[str, str], None]) -> None:
    golden(f"transformers/{fn.__name__}", transformers.convert(fn).source)
