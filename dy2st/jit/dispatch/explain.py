"""What `explain()` says: why each Program was traced, which calls it served and which not, what it took as fixed, and
what runs eagerly.

Calls that hit the inline cache (`fast_call`) only count. What a call differs in from those before is worked out when it
is looked up or traced, which takes milliseconds anyway; everything else when somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.call_signature import ContainerNode, FlatCall, InputLeaf, StaticLeaf, rebuild
from dy2st.jit.guards.guards import SIMPLE, Guard
from dy2st.jit.guards.static_values import VALUES
from dy2st.records import field, record
from dy2st.runtime.eager.tensor import Tensor

MOST_EVENTS = 32
MOST_SHOWN = 8


@record
class CallHistory:
    """What became of the calls of one function, apart from those that Programs count."""

    traced: list[str] = field(default_factory=list[str])
    """For each Program: what for and why it was traced."""
    events: deque[str] = field(default_factory=lambda: deque[str](maxlen=MOST_EVENTS))
    """The last calls that were traced for themselves alone, each with the reason."""
    fallbacks: list[str] = field(default_factory=list[str])
    eager: int = 0
    once: int = 0
    """Calls with a Program of their own."""
    dropped: int = 0
    """Programs that were dropped, because there were too many."""
    calls_of_dropped: int = 0

    def calls(self, programs: list[ConcreteProgram]) -> int:
        """Return how many calls there were."""
        return sum(p.calls for p in programs) + self.eager + self.once + self.calls_of_dropped

    def drop(self, at: int, program: ConcreteProgram) -> None:
        """Note that a Program, at this place among them, was dropped."""
        del self.traced[at]
        self.dropped += 1
        self.calls_of_dropped += program.calls

    def fall_back(self, reason: str) -> None:
        """Note why something runs eagerly."""
        if reason not in self.fallbacks:
            self.fallbacks.append(reason)


class Explanation:
    """What `explain()` returns; prints as text.

    `programs` are the Programs, oldest first; `traced` says of each why it was traced, `specialised` what it takes as
    fixed, `runs` how it and its derivatives run (each a `Report`: native code or not, how long it took to make, what it
    asks of Python, how much memory it holds); `events` are the last calls that were traced for themselves alone;
    `fallbacks` the reasons, with their lines, why something runs eagerly; `calls` counts all, `eager_calls` those that
    ran eagerly; `split` says in which parts they ran.
    """

    def __init__(self, name: str, history: CallHistory, programs: list[ConcreteProgram]):
        self.name, self.programs = name, programs
        self.traced, self.events, self.fallbacks = list(history.traced), list(history.events), list(history.fallbacks)
        self.dropped = history.dropped
        self.calls, self.eager_calls = history.calls(programs), history.eager
        self.specialised = [list(specialised(p)) for p in programs]
        self.runs = [list(p.compiled.reports()) for p in programs]
        self.split: list[str] = []

    def __str__(self) -> str:
        lines = [f"{self.name}: {_counted(len(self.programs), 'program')}, {_counted(self.calls, 'call')}"]
        for why, program, fixed, runs in zip(self.traced, self.programs, self.specialised, self.runs, strict=False):
            lines.append(f"  {why}")
            refused = f"; not for {_counted(program.refused, 'call')}: {program.refusal}" if program.refused else ""
            lines.append(f"    used by {_counted(program.calls, 'call')}{refused}")
            if fixed:
                more = f", and {len(fixed) - MOST_SHOWN} more" if len(fixed) > MOST_SHOWN else ""
                lines.append(f"    only where {', '.join(fixed[:MOST_SHOWN])}{more}")
            lines += [f"    {role + ': ' if role else ''}{report}" for role, report in runs]
        lines += [f"  {event}" for event in self.events]
        if self.dropped:
            lines.append(
                f"  {_counted(self.dropped, 'program')} beyond {len(self.programs)} dropped, not called lately"
            )
        if self.eager_calls:
            how = "in parts" if self.split else "eagerly"
            lines.append(f"  {_counted(self.eager_calls, 'call')} ran {how}")
        lines += [f"  fallback: {f}" for f in self.fallbacks] or ["  no fallback"]
        lines += [f"  {line}" for line in self.split]
        return "\n".join(lines)

    __repr__ = __str__


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def signature_text(made: FlatCall) -> str:
    """Return the inputs of a call in words."""
    leaves = [made.numpy.get(i, x) for i, x in enumerate(made.leaves)]
    shown = [f"{name}: {_kind(x)}" for x, name in zip(leaves, made.names, strict=True)]
    return "(" + "; ".join(shown) + ")"


def _kind(x: Any) -> str:
    return f"{x.dtype.name}, rank {x.ndim}" if isinstance(x, Tensor) else f"any {type(x).__name__}"


def described(made: FlatCall, grad: bool) -> dict[str, str]:
    """Return in words what the key of a call is made of, by place."""
    seen: set[int] = set()
    found = {name: text for root, tree in made.tree.items() for name, text in _places(tree, root, made, seen)}
    found["gradients"] = "recorded" if grad else "not recorded"
    return found


def _places(tree: Any, name: str, made: FlatCall, seen: set[int]) -> Iterator[tuple[str, str]]:
    if isinstance(tree, InputLeaf):
        x = made.numpy.get(tree.index, made.leaves[tree.index])
        needs = isinstance(x, Tensor) and not x.stop_gradient
        yield name, _kind(x) + (", needs a gradient" if needs else "")
    elif isinstance(tree, StaticLeaf):
        yield name, _shown(tree.value)
    elif isinstance(tree, ContainerNode) and id(tree) not in seen:
        seen.add(id(tree))  # an object may lead back to itself
        kind = tree.kind.__name__
        yield name, f"any object of {kind}" if tree.is_object else f"a {kind} of {len(tree.items)}"
        for i, item in enumerate(tree.items):
            yield from _places(item, f"{name}_{i if tree.keys is None else tree.keys[i]}", made, seen)


def _shown(x: Any) -> str:
    if isinstance(x, (*VALUES, np.generic)):
        return f"{x!r:.60}"
    named = getattr(x, "__qualname__", None)
    return f"this object of {type(x).__name__}" if named is None else f"the {type(x).__name__} {named}"


def difference(found: dict[str, str], known: list[dict[str, str]]) -> str:
    """Say in what a call differs from the most similar one before."""
    differing = [[n for n in {**before, **found} if before.get(n) != found.get(n)] for before in known]
    at = min(range(len(known)), key=lambda i: len(differing[i]))
    parts = [f"`{n}` is {found.get(n, 'missing')}, was {known[at].get(n, 'missing')}" for n in differing[at]]
    return "; ".join(parts[:MOST_SHOWN]) or "another object stands where one did that may have changed"


def specialised(program: ConcreteProgram) -> Iterator[str]:
    """Give the values that a Program takes as fixed: of arguments, and of what was read from outside."""
    for name, x in program.values.items():
        yield f"`{name}` is {_shown(x)}"
    yield from program.fixed_extents()
    for guard in program.traced.guards:
        if isinstance(guard, Guard) and isinstance(guard.value, SIMPLE):
            yield f"{guard} is {guard.value!r:.60}"


def rebuild_values(made: FlatCall) -> dict[str, Any]:
    """Return the arguments of a call again."""
    containers = dict(enumerate(made.containers))
    leaves = [made.numpy.get(i, x) for i, x in enumerate(made.leaves)]
    return {name: rebuild(tree, leaves, containers, made.iterators) for name, tree in made.tree.items()}
