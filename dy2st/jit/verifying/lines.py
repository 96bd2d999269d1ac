"""The first line that differs: what the operations of each line gave eagerly, against what they gave in the Program.

1. The Program as it was traced is interpreted. The results of one op on one line, in order, must be those that eager
   mode saw there; the earliest one (in eager order) that is not names the line: tracing or an op went wrong.
2. The optimised Program is run as it runs always. Each of its results must be one that was seen on its line before; the
   first one that was not names the line: a pass or the executor went wrong.
3. Gradients: each cotangent of eager mode, from the end, must be computed by the backward Program somewhere; the first
   one that is not names the line that used the tensor: the derivative of an op went wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.ir.literals import is_array
from dy2st.ir.location import Location
from dy2st.jit.verifying.described import close
from dy2st.jit.verifying.events import Event
from dy2st.jit.verifying.report import Culprit

Key = tuple[str, int, str]
Close = Callable[[np.ndarray, np.ndarray], bool]


def of_trace(eager: Sequence[Event], static: Sequence[Event], same: Close = close) -> Culprit | None:
    """Compare, op by op and line by line, in the order of eager mode."""
    found: dict[Key, list[Event]] = defaultdict(list)
    for event in static:
        found[_key(event)].append(event)
    seen: dict[Key, int] = defaultdict(int)
    for event in eager:
        key = _key(event)
        turn, others = seen[key], found.get(key, [])
        seen[key] += 1
        if turn < len(others) and event.location is not None and not _same(event, others[turn], same):
            time = f"the {_ordinal(turn + 1)} time " if len(others) > 1 else ""
            return Culprit(
                event.location,
                f"`{event.op}` gave {_shown(event)} eagerly, {_shown(others[turn])} in the Program {time}".rstrip(),
            )
    return None


def of_optimised(known: Sequence[Event], ran: Sequence[Event], same: Close = close) -> Culprit | None:
    """Find the first result of the optimised Program that its line has not given before."""
    by_line: dict[tuple[str, int], list[np.ndarray]] = defaultdict(list)
    for event in known:
        by_line[_line(event.location)] += event.arrays
    for event in ran:
        if event.location is None or _line(event.location) not in by_line:
            continue
        for array in event.arrays:
            if not any(_equal(array, other, same) for other in by_line[_line(event.location)]):
                reason = f"`{event.op}` gave {_text(array)} in the optimised Program, and nothing like it before"
                return Culprit(event.location, reason)
    return None


def of_gradients(
    cotangents: Sequence[tuple[Sequence[Event], np.ndarray]], ran: Sequence[Event], same: Close = close
) -> Culprit | None:
    """Find the last tensor whose eager cotangent the backward Program does not compute; name the line that used it.

    `cotangents` are, in the order of eager mode, what used a tensor, and its cotangent.
    """
    computed = [array for event in ran for array in event.arrays]
    for users, ct in reversed(cotangents):
        place = users[0].location if users else None  # without users, it is one of those to start from
        if place is not None and not any(_equal(ct, array, same) for array in computed):
            names = ", ".join(dict.fromkeys(f"`{e.op}`" for e in users))
            reason = f"the derivative of {names} gave {_text(ct)} eagerly, and nothing like it in the Program"
            return Culprit(place, reason)
    return None


def all_same(a: Sequence[Any], b: Sequence[Any], same: Close = close) -> bool:
    """Return whether two lists of results are the same, as far as they are arrays."""
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(_equal(x, y, same) for x, y in pairs if is_array(x))


def _key(event: Event) -> Key:
    return *_line(event.location), event.op


def _line(location: Location | None) -> tuple[str, int]:
    return ("", 0) if location is None else (location.file, location.line)


def _same(a: Event, b: Event, same: Close) -> bool:
    return len(a.arrays) == len(b.arrays) and all(_equal(x, y, same) for x, y in zip(a.arrays, b.arrays, strict=True))


def _equal(a: np.ndarray, b: np.ndarray, same: Close) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and same(a, b)


def _shown(event: Event) -> str:
    return ", ".join(map(_text, event.arrays))


def _text(array: Any) -> str:
    shown = " ".join(np.array2string(array, precision=5, threshold=6, edgeitems=2, separator=", ").split())
    return f"{array.dtype}{list(array.shape)} {shown}"


def _ordinal(n: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(n, f"{n}th")
