"""Keys of dicts and sets known only at run time: each key that it may be is tried in turn.

A key that may be new would make a container with keys that nobody knows, so it is written only where a read before it,
on the same path, has found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dy2st.errors import NeedsPythonValue
from dy2st.kinds import TUPLE, is_tuple
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_scalar import Number, Scalar
from dy2st.runtime.tracer.values.union import Variant


def is_open(key: Any) -> bool:
    """Return whether it is known only at run time what a key is."""
    return isinstance(key, (Variant, Scalar)) or (type(key) is TUPLE and any(map(is_open, key)))


def may_be(key: Scalar) -> tuple[Any, ...] | None:
    """Return the values that a number can have, where they are known."""
    return (False, True) if key.kind == "bool" else key.choices


def with_key(
    trace: Trace, key: Any, container: Iterable[Any], use: Callable[[Any], Any], otherwise: Callable[[], Any] | None
) -> Any:
    """Return what `use(k)` gives for what `key` is; `otherwise()` where it is none of the keys of the container.

    Without `otherwise`, `use` takes keys that are new as well, and what the key can be has to be known.
    """
    if isinstance(key, Variant):
        return switch(trace, key, use)
    if is_tuple(key):
        return _with_tuple(trace, key, container, use, otherwise)
    choices = may_be(key)
    if choices is not None:
        *first, last = choices
        return _try_each(trace, key, first, use, lambda: use(last))
    if otherwise is None:
        raise symbolic_key(key, container)
    return _try_each(trace, key, [k for k in container if isinstance(k, Number)], use, otherwise)


def _with_tuple(
    trace: Trace, key: tuple[Any, ...], container: Iterable[Any], use: Callable[[Any], Any],
    otherwise: Callable[[], Any] | None,
) -> Any:  # fmt: skip
    """Do what `with_key` does for a tuple of which parts are open: part by part."""
    i = next((i for i, part in enumerate(key) if is_open(part)), None)
    if i is None:
        return use(key) if otherwise is None or key in container else otherwise()
    parts = list(dict.fromkeys(k[i] for k in container if is_tuple(k) and len(k) == len(key)))

    def chosen(part: Any) -> Any:
        return _with_tuple(trace, (*key[:i], part, *key[i + 1 :]), container, use, otherwise)

    return with_key(trace, key[i], parts, chosen, otherwise)


def _try_each(
    trace: Trace, key: Scalar, known: list[Any], use: Callable[[Any], Any], otherwise: Callable[[], Any]
) -> Any:
    if not known:
        return otherwise()
    return trace.if_exp(
        key == known[0], lambda: use(known[0]), lambda: _try_each(trace, key, known[1:], use, otherwise)
    )


def at_position(trace: Trace, key: Scalar, items: Any, k: int = 0) -> Any:
    """Return `items[key]` of a list or tuple whose items are containers or objects: the very one that stands there."""
    if k == len(items):
        return lacks_position(items)
    here = (key == k) | (key == k - len(items))
    return trace.if_exp(here, lambda: items[k], lambda: at_position(trace, key, items, k + 1))


def lacks_position(items: Any) -> None:
    """Raise the error for a position outside of a list or tuple."""
    raise IndexError(f"{type(items).__name__} index out of range")


def lacks(key: Any) -> Callable[[], Any]:
    """Return what raises the error for a key that a container lacks."""

    def fail() -> None:
        raise KeyError(key)

    return fail


def is_among(trace: Trace, key: Any, container: Iterable[Any]) -> Any:
    """Return whether `key in container`."""
    return with_key(trace, key, container, lambda k: k in container, lambda: False)


def symbolic_key(key: Scalar, container: Any) -> NeedsPythonValue:
    """Return the error for a key known only at run time and that may be new."""
    return needs_value(
        f"a symbolic {key.kind} was used as a new key of a {type(container).__name__}",
        "use a list or a tensor, which take such an index; the keys of a dict are known while tracing",
        [key],
    )
