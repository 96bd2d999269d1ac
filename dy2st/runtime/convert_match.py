"""What a `match` finds out about its subject: Python matches it, with all inside of it as it stands in the trace.

A subject that is one of several things is asked about once for each. The attributes that class patterns read are put
into the objects for as long as Python looks at them; those of objects from outside become guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.runtime.attributes import attributes, drop_attribute, put_attribute
from dy2st.runtime.contents import CONTAINERS
from dy2st.runtime.convert_access import attr
from dy2st.runtime.convert_if import switch
from dy2st.runtime.keys import may_be, with_key
from dy2st.runtime.made_in_branch import is_plain_object
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.tensor import needs_value
from dy2st.runtime.variant import SymbolicList, Variant

DEEPEST = 8
"""Objects inside of each other that patterns are expected to look into."""


def match(trace: Any, ask: Callable[[Any], Any], subject: Any) -> Any:
    """Return what `ask` finds out about the subject of a `match`, for each thing that it may be."""
    if isinstance(subject, Variant):
        return switch(trace, subject, lambda x: match(trace, ask, x))
    if type(subject) is tuple:
        for i, part in enumerate(subject):
            if isinstance(part, Variant):
                return switch(trace, part, lambda x: match(trace, ask, (*subject[:i], x, *subject[i + 1 :])))  # noqa: B023 (called at once)
    if not isinstance(subject, CONTAINERS):
        return _asked(trace, ask, subject)
    content = trace.content(subject)
    if isinstance(content, Variant):
        return trace.on_content(subject, switch, lambda: match(trace, ask, subject))
    if isinstance(content, SymbolicList):
        raise needs_value("only the run will tell how long this list is, so Python cannot match it")
    return _asked(trace, ask, content if isinstance(content, type(subject)) else subject)


Attributes = dict[int, tuple[Any, dict[str, Any]]]
"""Objects by their id, with what their attributes are."""


def _asked(trace: Any, ask: Callable[[Any], Any], subject: Any, chosen: Attributes | None = None) -> Any:
    """Return what `ask` finds out; an attribute that is one of several things is `chosen`, each in turn."""
    found: Attributes = dict(chosen or {})
    _collect(trace, subject, found, ())
    for key, (x, now) in found.items():
        for name, value in now.items():
            if isinstance(value, Variant) or (isinstance(value, Scalar) and may_be(value) is not None):
                return with_key(trace, value, (), lambda v: _asked(
                    trace, ask, subject, {**(chosen or {}), key: (x, {**now, name: v})}), None)  # noqa: B023  # fmt: skip
    with _holding(found):
        return ask(subject)


def _collect(trace: Any, x: Any, found: Attributes, around: tuple[Any, ...]) -> None:
    """Add the objects inside of `x`, each with its attributes as they stand in the trace."""
    if len(around) > DEEPEST or any(x is one for one in around):
        return
    inside: Any = ()
    if isinstance(x, (tuple, list, dict)):
        inside = x.values() if isinstance(x, dict) else x
    elif is_plain_object(x):
        if id(x) not in found:
            found[id(x)] = x, {name: attr(trace, x, name) for name in trace.attributes_of(x)}
        inside = found[id(x)][1].values()
    for part in inside:
        _collect(trace, part, found, (*around, x))


@contextmanager
def _holding(found: Attributes) -> Iterator[None]:
    """Let objects have the given attributes for the length of a `with`."""
    before = [(x, attributes(x)) for x, _ in found.values()]
    try:
        for x, now in found.values():
            _let_have(x, {**attributes(x), **now})
        yield
    finally:
        for x, real in before:
            _let_have(x, real)


def _let_have(x: Any, wanted: dict[str, Any]) -> None:
    """Let an object have these attributes and no other ones."""
    for name in attributes(x).keys() - wanted.keys():
        drop_attribute(x, name)
    for name, value in wanted.items():
        put_attribute(x, name, value)
