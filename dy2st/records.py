"""Records: classes that are their fields, as those of `dataclasses`, made in a twentieth of the time.

`dataclasses.dataclass` writes, compiles and runs the text of up to six methods for each class, 0.3 to 0.5 ms of every
import, whether there will be an instance or not. Here comparing, hashing and showing are the same few functions for
all classes, and `__init__` is that of a template under other names (`_TEMPLATES`): 5 us, not the 90 of compiling one.
Where there is none that fits, it is written when there have been a few instances.

>>> @record(frozen=True)
... class Point:
...     x: float
...     y: float = 0.0
>>> Point(1.0), Point(1.0) == Point(1.0, 0.0)
(Point(x=1.0, y=0.0), True)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

_REQUIRED: Any = object()
_FIELDS = "__record_fields__"
_FEW = 8
"""How many instances are made in less time than it takes to compile an `__init__`."""


class Field:
    """What is said of one field of a record beside its type."""

    __slots__ = ("compare", "default", "default_factory", "repr")

    def __init__(self, default: Any, default_factory: Callable[[], Any] | None, repr: bool, compare: bool):
        self.default, self.default_factory, self.repr, self.compare = default, default_factory, repr, compare


def field(
    *,
    default: Any = _REQUIRED,
    default_factory: Callable[[], Any] | None = None,
    repr: bool = True,
    compare: bool = True,
) -> Any:
    """Say of a field what it is where it is not given, and whether it is shown and compared."""
    return Field(default, default_factory, repr, compare)


@overload
def record(kind: type[T], /) -> type[T]: ...
@overload
def record(*, frozen: bool = False, eq: bool = True, slots: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(field,))
def record(kind: type[Any] | None = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False) -> Any:
    """Make a class a record of the names that its body annotates, after those of the records it derives from.

    A `frozen` one cannot be changed, and has a hash where it is compared by value (`eq`). With `slots` it has no
    `__dict__`. What the class defines itself stays.
    """
    if kind is None:
        return lambda kind: _made(kind, frozen, eq, slots)
    return _made(kind, frozen, eq, slots)


def replace(x: T, **changes: Any) -> T:
    """Return a record like `x` in which some fields have other values.

    >>> @record
    ... class Pair:
    ...     a: int
    ...     b: int
    >>> replace(Pair(1, 2), b=3)
    Pair(a=1, b=3)
    """
    return type(x)(**{name: getattr(x, name) for name in getattr(x, _FIELDS) if name not in changes}, **changes)


def _made(kind: type[Any], frozen: bool, eq: bool, slots: bool) -> type[Any]:
    own = {name: _field_of(kind, name) for name, said in kind.__annotations__.items() if "ClassVar" not in str(said)}
    fields: dict[str, Field] = {}
    for base in reversed(kind.__mro__[1:]):
        fields |= vars(base).get(_FIELDS, {})
    fields |= own
    if slots:
        kind = _with_slots(kind, tuple(own))
    made: dict[str, Any] = {"__init__": _init_made_late(kind, fields, frozen), "__repr__": _repr_of(fields)}
    if eq:
        made |= _compared(tuple(name for name, field in fields.items() if field.compare), frozen)
    if frozen:
        made |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        if slots:
            made |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, value in made.items():
        if name not in vars(kind):
            setattr(kind, name, value)
    setattr(kind, _FIELDS, fields)
    kind.__match_args__ = tuple(fields)
    return kind


def _field_of(kind: type[Any], name: str) -> Field:
    """Return what a class says of a field; the class keeps a plain default as an attribute."""
    said = vars(kind).get(name, _REQUIRED)
    if not isinstance(said, Field):
        return Field(said, None, True, True)
    if said.default is _REQUIRED:
        delattr(kind, name)
    else:
        setattr(kind, name, said.default)
    return said


def _with_slots(kind: type[Any], names: tuple[str, ...]) -> type[Any]:
    body = {key: value for key, value in vars(kind).items() if key not in (*names, "__dict__", "__weakref__")}
    body |= {"__slots__": names, "__qualname__": kind.__qualname__}
    return type(kind.__name__, kind.__bases__, body)


# ---- methods -----------------------------------------------------------------------------------------------------
def _init_made_late(kind: type[Any], fields: dict[str, Field], frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that puts a faster one in its place.

    Where no template fits, it fills a few instances field by field before.
    """
    left = [_FEW]

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:  # noqa: N807
        if "__init__" in vars(kind) and vars(kind)["__init__"] is __init__:
            made = _init_of_template(kind, fields, frozen) if left[0] == _FEW else None
            left[0] -= 1
            if made is None and left[0] >= 0 and _filled(self, fields, frozen, args, keywords):
                return
            kind.__init__ = _init(kind, fields, frozen) if made is None else made
        kind.__init__(self, *args, **keywords)

    return __init__


def _filled(made: Any, fields: dict[str, Field], frozen: bool, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    """Fill an instance; False where these are not the arguments that it takes."""
    put = object.__setattr__ if frozen else setattr
    values = dict(zip(fields, args, strict=False))
    if len(args) > len(fields) or not keywords.keys() <= fields.keys() - values.keys():
        return False
    values |= keywords
    for name, said in fields.items():
        if name not in values:
            if said.default_factory is None and said.default is _REQUIRED:
                return False
            values[name] = said.default if said.default_factory is None else said.default_factory()
        put(made, name, values[name])
    return True


_set = object.__setattr__
_Init = Callable[..., None]


def _templates() -> list[tuple[_Init, _Init]]:
    """Return for each number of fields what sets attributes, and what sets those of a frozen record."""

    def of_1(self: Any, _0: Any) -> None:
        self._0 = _0

    def of_2(self: Any, _0: Any, _1: Any) -> None:
        self._0 = _0
        self._1 = _1

    def of_3(self: Any, _0: Any, _1: Any, _2: Any) -> None:
        self._0 = _0
        self._1 = _1
        self._2 = _2

    def of_4(self: Any, _0: Any, _1: Any, _2: Any, _3: Any) -> None:
        self._0 = _0
        self._1 = _1
        self._2 = _2
        self._3 = _3

    def frozen_of_1(self: Any, _0: Any) -> None:
        _set(self, "_0", _0)

    def frozen_of_2(self: Any, _0: Any, _1: Any) -> None:
        _set(self, "_0", _0)
        _set(self, "_1", _1)

    def frozen_of_3(self: Any, _0: Any, _1: Any, _2: Any) -> None:
        _set(self, "_0", _0)
        _set(self, "_1", _1)
        _set(self, "_2", _2)

    def frozen_of_4(self: Any, _0: Any, _1: Any, _2: Any, _3: Any) -> None:
        _set(self, "_0", _0)
        _set(self, "_1", _1)
        _set(self, "_2", _2)
        _set(self, "_3", _3)

    return [(of_1, frozen_of_1), (of_2, frozen_of_2), (of_3, frozen_of_3), (of_4, frozen_of_4)]


_TEMPLATES = _templates()


def _init_of_template(kind: type[Any], fields: dict[str, Field], frozen: bool) -> _Init | None:
    """Return an `__init__`: a template in which the names of the fields stand; None where there is none like it."""
    names = tuple(fields)
    if not 0 < len(names) <= len(_TEMPLATES) or any(said.default_factory is not None for said in fields.values()):
        return None
    required = [said.default is _REQUIRED for said in fields.values()]
    if required != sorted(required, reverse=True):
        return None  # `_init` gives the error of one without a default behind one with
    known = {f"_{i}": name for i, name in enumerate(names)}
    code = _TEMPLATES[len(names) - 1][frozen].__code__
    code = code.replace(
        co_name="__init__", co_qualname=f"{kind.__qualname__}.__init__", co_varnames=("self", *names),
        co_names=tuple(known.get(name, name) for name in code.co_names),
        co_consts=tuple(known.get(x, x) if isinstance(x, str) else x for x in code.co_consts),
    )  # fmt: skip
    defaults = tuple(said.default for said in fields.values() if said.default is not _REQUIRED)
    made = types.FunctionType(code, {"_set": _set}, "__init__", defaults)
    made.__qualname__, made.__module__ = code.co_qualname, kind.__module__
    return made


def _init(kind: type[Any], fields: dict[str, Field], frozen: bool) -> Callable[..., None]:
    """Write `__init__`: an assignment a field."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_none": object()}
    parameters, lines = ["self"], ["pass"]
    for name, said in fields.items():
        value, default = name, ""
        if said.default_factory is not None:
            scope[f"_of_{name}"] = said.default_factory
            value, default = f"_of_{name}() if {name} is _none else {name}", "=_none"
        elif said.default is not _REQUIRED:
            scope[f"_of_{name}"], default = said.default, f"=_of_{name}"
        parameters.append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    made = scope["__init__"]
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    return made


def _repr_of(fields: dict[str, Field]) -> Callable[[Any], str]:
    shown = [name for name, field in fields.items() if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"

    return __repr__


def _compared(names: tuple[str, ...], frozen: bool) -> dict[str, Any]:
    """Return `__eq__` and `__hash__` by the values of fields; what can be changed has no hash."""
    key = _values_of(names)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return key(self) == key(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of fields as a tuple, which compares what is the same object as equal."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda self: ()
    one = attrgetter(*names)
    return lambda self: (one(self),)


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"cannot assign to {name!r}: a {type(self).__name__} does not change")


def _refuse_delete(self: Any, name: str) -> None:
    raise AttributeError(f"cannot delete {name!r}: a {type(self).__name__} does not change")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)
