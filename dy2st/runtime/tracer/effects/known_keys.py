"""Which keys known only at run time are known to be in a container, since a read has found them."""

from __future__ import annotations

from typing import Any

from dy2st.ir.builder import Builder
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar


class KnownKeys:
    """The keys that reads have found: what was emitted after a read, or in blocks of what follows it, has them too."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, int, Any], Any] = {}

    def note(self, builder: Builder | None, container: Any, key: Any) -> None:
        """Note that the container has this key."""
        if isinstance(key, Scalar):
            self._found[builder, id(container), key.value] = container

    def has(self, builder: Builder | None, container: Any, key: Any) -> bool:
        """Return whether a read before this place has found the key."""
        while isinstance(key, Scalar) and builder is not None:
            if (builder, id(container), key.value) in self._found:
                return True
            builder = builder.parent
        return False

    def forget(self, container: Any) -> None:
        """Forget what was found in a container that has lost a key."""
        self._found = {k: x for k, x in self._found.items() if x is not container}
