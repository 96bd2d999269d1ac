"""The guard of settings: what the package's own code read of layers, optimizers and the like while tracing.

`note` keeps the settings of an object, and of the objects among them. They are compared only where some setting was set
anew since the last call (`tracked_settings.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from dy2st.jit.guards.guards import SIMPLE, same
from dy2st.kinds import DICT
from dy2st.nn.layer_attributes import RegisteredAttributes, is_read_here
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settable, Settings, changes
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.sentinels import MISSING

_OF_LAYERS: tuple[type, ...] = (*SIMPLE, tuple, list, Tensor, Settable, FunctionType)


class SettingsGuard:
    """The settings that objects of the package had while tracing: `p` of a Dropout, `coeff` of a regularizer."""

    owner = None

    def __init__(self) -> None:
        self.objects: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.seen = changes.count

    def note(self, x: Any, without: frozenset[str] = frozenset()) -> Iterator[tuple[Any, str, Any]]:
        """Keep the settings of an object, but those in `without`, as they are now; return each with name and owner."""
        now = {name: value for name, value in settings_of(x).items() if name not in without}
        if id(x) not in self.objects and now:
            self.objects[id(x)] = x, {name: _frozen(value) for name, value in now.items()}
            if isinstance(x, Settable):
                changes.noted.add(x)
        for name, value in now.items():
            yield x, name, value
            for part in _parts(value):
                yield from self.note(part)

    def passes(self) -> bool:
        """Return whether they still are; they are looked at only where any was set anew."""
        if self.seen == changes.count:
            return True
        count = changes.count
        if self._changed() is not None:
            return False
        self.seen = count
        return True

    def changed_number(self) -> bool:
        """Say no: a Program takes them for constants."""
        return False

    def _changed(self) -> str | None:
        for x, before in self.objects.values():
            now = settings_of(x)
            for name, value in before.items():
                if name not in now or not same(_frozen(now[name]), value):
                    return f".{name} of a {type(x).__name__}"
            if isinstance(x, Settings) and (new := now.keys() - before.keys()):
                return f".{min(new)} of a {type(x).__name__}"
        return None

    def __str__(self) -> str:
        return self._changed() or "the settings of layers"


def settings_of(x: Any) -> dict[str, Any]:
    """Return the attributes of an object that no trace sees read."""
    if not isinstance(x, RegisteredAttributes):
        return x.settings_now()
    without = {"_training", *vars(x).get("_computed", ())}
    simple: dict[str, Any] = {
        name: value for name, value in vars(x).items() if isinstance(value, _OF_LAYERS) and name not in without
    }
    return {name: value for name, value in simple.items() if is_read_here(x, name)}


def _frozen(value: Any) -> Any:
    """Return a value that stays what it is where containers in it change."""
    if type(value) in (list, tuple):
        return tuple(map(_frozen, value))
    if type(value) is DICT:
        return tuple((key, _frozen(x)) for key, x in value.items())
    return value


def _parts(value: Any) -> Iterator[Any]:
    """Go through what has settings of its own in a setting."""
    if type(value) in (list, tuple):
        for x in value:
            yield from _parts(x)
    elif hasattr(value, "settings_now"):
        yield value


def wrote(trace: Trace, x: Any, name: str, value: Any) -> bool:
    """Return whether a trace has set a setting, which the package's code would not see."""
    written = trace.log.get(("attr", id(x), name))
    return written is not MISSING and not same(written, value)
