"""The extents of a tensor as Paddle gives them, a list, which also behaves as the tuple of the array API standard.

`x.shape` is a plain list until the array namespace is used: importing `dy2st.array_api` makes it an `Extents`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Extents(list[Any]):
    """A list that equals the tuple of its elements, is added to tuples, and has its hash.

    >>> shape = Extents([2, 3])
    >>> shape == (2, 3), shape == [2, 3], shape + (4,), (1,) + shape
    (True, True, [2, 3, 4], [1, 2, 3])
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple(self) == other if isinstance(other, tuple) else list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __add__(self, other: Any) -> Extents:  # type: ignore[override]
        return Extents([*self, *other]) if isinstance(other, (list, tuple)) else NotImplemented

    def __radd__(self, other: Any) -> Extents:
        return Extents([*other, *self]) if isinstance(other, (list, tuple)) else NotImplemented

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return Extents(found) if isinstance(index, slice) else found

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def as_tuples() -> None:
    """Let shapes of tensors compare and add as tuples from here on."""
    _MADE_BY[0] = Extents


def extents(shape: Iterable[Any]) -> list[Any]:
    """Return the extents of a shape."""
    return _MADE_BY[0](shape)


_MADE_BY: list[type[list[Any]]] = [list]
