"""The side-effect log: nothing real is changed while tracing.

What converted code writes (tensor elements in place, attributes, items of containers, gradients, the draw number of the
generator) goes here, under a key, and is read back from here. Branches fork the log; when tracing is over, the writes
are results of the Program and are committed to the real objects after each run.

Keys: ("data", id) elements of a tensor; ("grad", id); ("attr", id, name); ("items", id) content of a list, dict, set or
deque; ("rng",). The log keeps the objects alive, so that an id stays theirs.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dy2st.runtime.tracer.values.sentinels import MISSING, Key


class SideEffectLog:
    """A stack of overlays from key to value; the top one takes the writes."""

    def __init__(self) -> None:
        self.overlays: list[dict[Key, Any]] = [{}]
        self.objects: dict[int, Any] = {}
        self.has_data = False
        """Whether elements of some tensor were ever written, on whatever path."""
        self.with_attributes: set[int] = set()
        """The objects of which an attribute was ever written, by id."""

    def get(self, key: Key) -> Any:
        """Return what was written last under `key`, or MISSING."""
        for overlay in reversed(self.overlays):
            if key in overlay:
                return overlay[key]
        return MISSING

    def set(self, key: Key, owner: Any, value: Any) -> None:
        """Write `value`; `owner` is the object whose id is in the key."""
        if owner is not None:
            self.objects[id(owner)] = owner
        self.has_data |= key[0] == "data"
        if key[0] == "attr":
            self.with_attributes.add(key[1])
        self.overlays[-1][key] = value

    def attributes(self, owner: Any) -> dict[str, Any]:
        """Return the attributes of an object that were written, as they are now."""
        if id(owner) not in self.with_attributes:
            return {}
        return {key[2]: value for overlay in self.overlays for key, value in overlay.items()
                if key[0] == "attr" and key[1] == id(owner)}  # fmt: skip

    def take_attributes(self, owner: Any) -> dict[str, Any]:
        """Return the attributes of an object that were written last, and forget that they were."""
        top = self.overlays[-1]
        return {key[2]: top.pop(key) for key in [k for k in top if k[0] == "attr" and k[1] == id(owner)]}

    def owner(self, key: Key) -> Any:
        """Return the object whose id is in the key; None where there is none."""
        return self.objects.get(key[1]) if len(key) > 1 else None

    def keep(self, owner: Any) -> None:
        """Keep an object alive while its id is in use."""
        self.objects[id(owner)] = owner

    @contextmanager
    def fork(self, overlay: dict[Key, Any] | None = None) -> Generator[dict[Key, Any]]:
        """Write into an overlay of its own for the length of a `with`; it is the caller's afterwards."""
        overlay = {} if overlay is None else overlay
        self.overlays.append(overlay)
        try:
            yield overlay
        finally:
            self.overlays.pop()
