"""The attributes of a user's object, in its `__dict__` and its slots; no code of its class runs."""

from __future__ import annotations

from typing import Any

from dy2st.kinds import type_of, variables_of
from dy2st.runtime.gc_pause import while_it_lives


@while_it_lives
def slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class, as its instances know them."""
    found: list[str] = []
    for base in kind.__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            private = name.startswith("__") and not name.endswith("__")
            found.append(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


def attributes(x: Any) -> dict[str, Any]:
    """Return the attributes that an object has now, by name."""
    own: Any = getattr(x, "__dict__", ())
    found: dict[str, Any] = {} if own is x else dict(own)  # a dict whose items are its attributes has none beside them
    for name in slots_of(type_of(x)):
        try:
            found[name] = object.__getattribute__(x, name)
        except AttributeError:  # a slot that is not set
            continue
    return found


def put_attribute(x: Any, name: str, value: Any) -> None:
    """Let an object have an attribute."""
    if name in slots_of(type_of(x)):
        object.__setattr__(x, name, value)
    else:
        vars(x)[name] = value


def drop_attribute(x: Any, name: str) -> None:
    """Let an object have no attribute of this name."""
    if name not in slots_of(type_of(x)):
        variables_of(x).pop(name, None)
    elif name in attributes(x):
        object.__delattr__(x, name)
