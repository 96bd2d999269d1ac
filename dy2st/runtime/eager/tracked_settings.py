"""Settings: attributes of the package's objects that a user may set at any time, and that no trace sees being read.

Code of the package is not converted, so what it reads of an optimizer, a regularizer or an initializer is a constant of
a Program. A trace keeps the settings of each such object that is handed to the package's code; a Program looks at them
again once any was set anew (`settings_guard.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakSet

from dy2st.ir.context import current
from dy2st.records import field, record
from dy2st.runtime.eager.side_effect_check import in_trace, refusal


@record
class _Changes:
    """How often something that a Program took for a constant was set anew: Programs look at it then."""

    count: int = 0
    noted: WeakSet[Settable] = field(default_factory=WeakSet)
    """The objects of which some trace has kept the settings."""


changes = _Changes()


class Settable:
    """Base of classes whose attributes are settings; those in `_not_settings` are not.

    These are what the object changes as it goes on, and what a trace reads by itself.
    """

    _not_settings: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and name not in self._not_settings:
            if in_trace() and current().trace.refuses_changes(self):
                raise refusal(
                    f".{name} of a {type(self).__name__} is set by code that is not converted",
                    "call it outside of the function",
                )
            if self in changes.noted:
                changes.count += 1
        object.__setattr__(self, name, value)

    def settings_now(self) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: value for name, value in vars(self).items() if name not in self._not_settings}


class Settings(dict[str, Any]):
    """A dict of settings, such as the options of a group of parameters."""

    def settings_now(self) -> dict[str, Any]:
        """Return the settings by name."""
        return dict(self)

    def __setitem__(self, key: str, value: Any) -> None:
        changes.count += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        changes.count += 1
        super().__delitem__(key)

    def update(self, *args: Any, **keywords: Any) -> None:
        changes.count += 1
        super().update(*args, **keywords)

    def setdefault(self, key: str, default: Any = None) -> Any:
        changes.count += 1
        return super().setdefault(key, default)

    def pop(self, *args: Any) -> Any:
        changes.count += 1
        return super().pop(*args)

    def popitem(self) -> tuple[str, Any]:
        changes.count += 1
        return super().popitem()

    def clear(self) -> None:
        changes.count += 1
        super().clear()

    def __ior__(self, other: Any) -> Settings:  # type: ignore[override,misc]
        self.update(other)
        return self


class Setting:
    """An attribute that is a setting, of a class whose other attributes change all the time."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        try:
            return x.__dict__[self.name]
        except KeyError:
            raise AttributeError(f"{type(x).__name__} has no attribute {self.name!r}") from None

    def __set__(self, x: Any, value: Any) -> None:
        changes.count += self.name in x.__dict__
        x.__dict__[self.name] = Settings(value) if type(value) is dict else value

    def __delete__(self, x: Any) -> None:
        changes.count += 1
        del x.__dict__[self.name]
