"""Views of dicts: `keys()`, `values()` and `items()` of a dict show what it holds whenever somebody looks.

A dict that the trace made shows what it holds, so Python's own view of it does. A dict from outside is never touched:
its views are those of a dict beside it that shows what the trace wrote.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import Any

from dy2st.kinds import is_dict, type_of
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.values.container_classes import fill, library_kind

_NAMES = ("keys", "values", "items")
_KINDS: dict[type, str] = {
    type(getattr(made, name)()): name for made in (dict[Any, Any](), OrderedDict[Any, Any]()) for name in _NAMES
}


def is_view(x: Any) -> bool:
    """Return whether `x` is what `keys()`, `values()` or `items()` of a dict gave.

    >>> is_view({}.keys()), is_view([])
    (True, False)
    """
    return type_of(x) in _KINDS


def owner_of(view: Any) -> Any:
    """Return the dict that a view shows."""
    return next((x for x in gc.get_referents(view) if is_dict(x)), None)


def shown_items(view: Any, content: Any) -> list[Any]:
    """Return what a view shows of a dict with this content."""
    if not is_dict(content):
        raise needs_value(f"only the run will tell what a dict holds whose .{_KINDS[type_of(view)]}() were kept")
    return list(getattr(content, _KINDS[type_of(view)])())


class MirroredDicts:
    """Dicts that stand beside those from outside for their views."""

    def __init__(self) -> None:
        self._beside: dict[int, Any] = {}
        self._owners: dict[int, Any] = {}

    def view(self, owner: Any, content: Any, name: str, beside: bool) -> Any:
        """Return a view of a dict with this content; it is one of a dict `beside` it that shows what it holds."""
        made: Any = owner
        kind: Any = library_kind(type_of(owner))
        if beside:
            kind = OrderedDict if issubclass(kind, OrderedDict) else dict
            made = self._beside.setdefault(id(owner), kind())
            self._owners[id(made)] = owner
            fill(made, content)
        return getattr(kind, name)(made)

    def show(self, owner: Any, content: Any) -> None:
        """Let the dict beside another one hold what that holds."""
        if id(owner) in self._beside:
            fill(self._beside[id(owner)], content)

    def owner_of(self, view: Any) -> Any:
        """Return the dict whose content a view shows in the trace."""
        owner = owner_of(view)
        return self._owners.get(id(owner), owner)
