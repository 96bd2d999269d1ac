"""Which containers and objects a branch made: what it leaves then is a value, not the object.

A list that was there before an `if` stays the same object after it. One that a branch makes exists only where that
branch runs, so it leaves the branch taken apart (`NewList`, `NewObject`) and is put together again behind the `if`.
Old is what the user's running functions reach through their variables, what the side-effect log knows, and what came
from outside.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.location import error_here, frame_at, is_user_frame
from dy2st.ir.program import Value
from dy2st.kinds import is_container, is_deque, is_dict, is_tuple, type_of
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.alias_analysis import HeldContent, named_in, root
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.function_contents import keeps_things, kept_by
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    Items,
    NewList,
    NewObject,
    OneOf,
    TensorLike,
    Unset,
    abstract_value_of,
    refuse_attributes,
)
from dy2st.runtime.tracer.values.container_classes import CONTENT, is_of_users_class, plain_content
from dy2st.runtime.tracer.values.object_attributes import attributes, slots_of
from dy2st.runtime.tracer.values.sentinels import MISSING, Key
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

HELPER = "_dy"
"""What converted code names; functions of this package that are converted too (`nn.layers.rnn.scan`) show it."""


MOST_PARTS, MOST_NESTED = 10_000, 50
"""So many containers and objects are taken apart at most for one variable, and so many inside of each other."""


def made_aval(trace: Trace, x: Any, old: set[int]) -> AbstractValue:
    """Return the abstract value of what a branch left, with the things that it made taken apart."""
    return _TakenApart(trace, old).aval(x)


def made_content(trace: Trace, content: Any, old: set[int]) -> AbstractValue:
    """Return the abstract value of what a container holds."""
    return _TakenApart(trace, old).content(content)


class _TakenApart:
    """One walk through what a branch left; what leads to itself has no end, so it is refused."""

    def __init__(self, trace: Trace, old: set[int]):
        self.trace, self.old = trace, old
        self.around: list[int] = []
        self.seen: set[int] = set()
        self.count = 0

    def aval(self, x: Any) -> AbstractValue:
        if is_tuple(x):
            refuse_attributes(self.trace, x)
            return Items(type(x), tuple(map(self.aval, x)))
        if id(x) in self.old or self.trace.is_from_outside(x):
            return abstract_value_of(self.trace, x)
        if type(x) in CONTAINERS:
            if is_deque(x) and x.maxlen is not None:
                raise StructureError("a deque with a greatest length is made inside of a branch or loop")
            self.enter(x)
            made: AbstractValue = NewList(self.content(self.trace.content(x)))
        elif is_plain_object(x) or is_of_users_class(x):
            self.enter(x)
            found = self.trace.made_of(x)
            made = NewObject(type_of(x), tuple(found), tuple(self.part(name, item) for name, item in found.items()))
        else:
            return abstract_value_of(self.trace, x)
        self.around.pop()
        return made

    def part(self, name: str, x: Any) -> AbstractValue:
        return NewList(self.content(self.trace.content(x))) if name == CONTENT else self.aval(x)

    def content(self, content: Any) -> AbstractValue:
        if is_dict(content):
            return Items(dict, tuple(map(self.aval, content.values())), tuple(content))
        if isinstance(content, CONTAINERS):
            kind = next(k for k in CONTAINERS if isinstance(content, k))
            return Items(kind, tuple(map(self.aval, content)))
        return abstract_value_of(self.trace, content)

    def enter(self, x: Any) -> None:
        """Note that `x` is being taken apart; refuse what has no end, or none that is near."""
        self.count += 1
        if id(x) in self.around:
            what = f"a {type(x).__name__} that is made inside of a branch or loop leads to itself"
            raise error_here(StructureError, what, "make it before, or keep one of the two references elsewhere")
        if self.count > MOST_PARTS or len(self.around) > MOST_NESTED:
            what = f"a {type(x).__name__} that is made inside of a branch or loop has too many parts"
            raise error_here(StructureError, what, "make it before")
        self.trace.aliases.doubled |= id(x) in self.seen
        self.seen.add(id(x))
        self.around.append(id(x))


def is_plain_object(x: Any) -> bool:
    """Return whether `x` is an instance of a user's class that is no more than its attributes."""
    kind = type_of(x)
    if kind.__flags__ & (1 << 9) == 0 or kind.__new__ is not object.__new__:
        return False
    if not hasattr(x, "__dict__") and not slots_of(kind):
        return False
    return kind.__module__.partition(".")[0] not in ("dy2st", "builtins", "types", "functools", "numpy")


def either(x: Any, y: Any) -> AbstractValue:
    """Return the abstract value of one of two containers that were there before."""
    return OneOf((Unset(""), Const(x), Const(y)))


def old_objects(trace: Trace) -> set[int]:
    """Return the ids of the containers and objects that were there before the branches that are being joined.

    Those are what the functions that the trace runs reach through their variables; what they get from further out
    (arguments, closures, globals, attributes) is known to the trace as it is read.
    """
    seen: set[int] = {
        *trace.external,
        *trace.made.around(trace.builder),
        *(key[1] for one in trace.log.overlays for key in one if len(key) > 1),
    }
    waiting: list[Any] = [x for key in seen if (x := trace.log.objects.get(key)) is not None]
    waiting += (x for one in trace.log.overlays for key, x in one.items() if key[0] != "data" and _may_hold(x))
    waiting += variables(trace)
    visited: set[int] = set()
    while waiting:
        x = waiting.pop()
        if id(x) in visited:
            continue
        if isinstance(x, Variant):
            waiting += [i for t in x.alternatives for i in named_in(t)]
        elif isinstance(x, (*CONTAINERS, tuple)):
            content = trace.log.get(("items", id(x))) if isinstance(x, CONTAINERS) else x
            content = plain_content(x) if content is MISSING else content
            if isinstance(content, (Variant, SymbolicList)):
                held = content.alternatives if isinstance(content, Variant) else (content.element,)
                content = [i for t in held for i in named_in(t)]
            items = content.values() if is_dict(content) else content
            waiting += (i for i in items if _may_hold(i)) if isinstance(content, (*CONTAINERS, tuple)) else ()
            waiting += filter(_may_hold, attributes(x).values())
        elif is_plain_object(x):
            waiting += filter(_may_hold, attributes(x).values())
            waiting.append(type_of(x))
        elif (made := trace.made.classes.get(id(x))) is not None:
            waiting += filter(_may_hold, vars(made).values())
            waiting += made.__bases__
        elif keeps_things(x):
            waiting += filter(_may_hold, kept_by(x))
        else:
            continue
        visited.add(id(x))
    return seen | visited


def was_there(trace: Trace, key: Key, old: set[int]) -> bool:
    """Return whether an entry of the side-effect log is of something that was there before the block that is being
    closed.
    """
    if key[0] in ("items", "attr"):
        if key[1] in old or trace.is_from_outside(trace.log.owner(key)):
            return True
        return key[0] == "attr" and key[1] not in trace.made.objects and not is_plain_object(trace.log.owner(key))
    return key[0] != "data" or is_visible(trace, trace.log.objects[key[1]])


def is_visible(trace: Trace, t: Tensor | Variant) -> bool:
    """Return whether a tensor was there before the block that is being closed."""
    payload, builder = t.payload, trace.builder
    while builder is not None and isinstance(payload, Value):
        if payload.block is builder.block:
            return True
        builder = builder.parent
    return not isinstance(payload, Value)


def with_same(trace: Trace, t: AbstractValue, x: Any, y: Any) -> AbstractValue:
    """Return the abstract value of what two branches left with the tensors that both have left alone as they are."""
    if isinstance(t, TensorLike):
        return Const(x) if x is y and is_visible(trace, x) else t
    if not isinstance(t, Items):
        return t
    first, second = trace.content(x), trace.content(y)
    if t.keys is not None:
        first, second = ([c.get(k) for k in t.keys] for c in (first, second))
    items = zip(t.items, first, second, strict=True)
    return Items(t.kind, tuple(with_same(trace, i, p, q) for i, p, q in items), t.keys)


def _may_hold(x: Any) -> bool:
    """Return whether `x` can lead to containers or objects of the user's."""
    return isinstance(x, (*CONTAINERS, tuple, Variant, type)) or is_plain_object(x) or keeps_things(x)


def variables(trace: Trace) -> list[Any]:
    """Return what the variables of the user's running functions hold."""
    found: list[Any] = []
    frame: types.FrameType | None = frame_at(1)
    while frame is not None and frame is not trace.outermost:
        if is_user_frame(frame) or HELPER in frame.f_code.co_freevars:
            found += frame.f_locals.values()
        frame = frame.f_back
    return found


def held_elsewhere(trace: Trace, key: Key | None, left: Sequence[Any]) -> set[int]:
    """Return the ids of the containers and objects that are held elsewhere than in what branches left under a key."""
    beside = {*map(id, left), *(key[1:2] if key is not None else ())}
    return reached(trace, beside)


def refuse_shared(trace: Trace, t: Any) -> None:
    """Raise StructureError where another name may hold what is written, a tensor, container or object, too."""
    others = trace.aliases.others(t)
    plain = "a tensor" if isinstance(t, (Tensor, Variant)) else "an object"
    what = "a container" if isinstance(t, CONTAINERS) else plain
    if trace.aliases.is_held(t):
        reason = "a list, or a variable that may be something else, holds it as well"
    elif any(_is_outside(trace, x) or trace.is_argument(x) for x in others) or (
        others and {id(x) for x in others} & reached(trace)
    ):
        reason = f"another variable, item or attribute is the same {what.split()[1]}"
    else:
        return
    raise error_here(
        StructureError,
        f"{what} is changed in place, and only the run will tell whether {reason}",
        "change a copy of it",
    )


def held_in(trace: Trace, key: Any, x: Any, around: tuple[int, ...] = ()) -> Any:
    """Return the tensors and variants that a local variable, or what stands under a key of the log, leads to."""
    if isinstance(x, (Tensor, Variant)):
        skipped = is_tuple(key) and (
            key[0] in ("data", "grad")
            or (key[0] == "attr" and _is_outside(trace, x))  # it belongs to its attribute, which gets another one
        )
        return None if skipped else x
    if id(x) in around:
        return None
    around = (*around, id(x))
    content = trace.content(x) if isinstance(x, CONTAINERS) else x
    if isinstance(content, Variant):
        return HeldContent(x, {0: content})
    items: dict[Any, Any] = {}
    if is_container(content) or is_deque(content):
        pairs: Iterable[tuple[Any, Any]] = content.items() if is_dict(content) else enumerate(content)
        items = {k: held_in(trace, None, i, around) for k, i in pairs}
    if is_of_users_class(x):
        items |= {(".", k): held_in(trace, None, i, around) for k, i in trace.attributes_of(x).items()}
    if isinstance(x, (*CONTAINERS, tuple)):
        return HeldContent(x, items) if isinstance(x, CONTAINERS) else items
    if id(x) in trace.made.objects:
        return HeldContent(x, {k: held_in(trace, None, i, around) for k, i in trace.attributes_of(x).items()})
    return None


def _is_outside(trace: Trace, x: Any) -> bool:
    if isinstance(x, CONTAINERS):
        return id(x) in trace.external
    return isinstance(x, Tensor) and not isinstance(x.payload, Value)


def reached(trace: Trace, beside: Iterable[int] = ()) -> set[int]:
    """Return the ids of the tensors, variants, containers and objects that the user's running functions can come to.

    The containers and objects with the ids `beside` are not entered.
    """
    waiting = [x for overlay in trace.log.overlays for key, x in overlay.items() if key[0] != "data"
               and (len(key) == 1 or key[1] not in beside)]  # fmt: skip
    waiting += variables(trace)
    seen: set[int] = set(beside)
    found: set[int] = set()
    while waiting:
        x = waiting.pop()
        if isinstance(x, (Tensor, Variant)):
            found.add(id(root(x)))
            continue
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, CONTAINERS):
            found.add(id(x))
        x = trace.content(x)
        if isinstance(x, Variant):
            found.add(id(root(x)))
        elif isinstance(x, (*CONTAINERS, tuple)):
            waiting += x.values() if is_dict(x) else x
            waiting += attributes(x).values()
        elif is_plain_object(x):
            found.add(id(x))
            waiting += attributes(x).values()
        elif keeps_things(x):
            waiting += kept_by(x)
    return found
