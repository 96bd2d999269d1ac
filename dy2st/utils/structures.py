"""Nested lists, tuples and dicts: their leaves, functions on all leaves, other leaves in the same structure.

The leaves of a dict come in the order of its sorted keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.values.union import SymbolicList


def is_sequence(x: Any) -> bool:
    """Return whether x is a structure: a list, tuple or dict, and no leaf."""
    return isinstance(x, (list, tuple, Mapping))


def flatten(nest: Any) -> list[Any]:
    """Return the leaves of a structure, in order.

    >>> import dy2st as paddle
    >>> paddle.utils.flatten([1, (2, {"b": 4, "a": 3})])
    [1, 2, 3, 4]
    """
    if isinstance(nest, SymbolicList):
        raise needs_value("the leaves of a structure with a list whose length only the run will tell were asked for")
    if not is_sequence(nest):
        return [nest]
    return [leaf for _, item in _items(nest) for leaf in flatten(item)]


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Return the structure with `func` of the leaves (one of each structure, which must be alike) in their places.

    >>> import dy2st as paddle
    >>> paddle.utils.map_structure(lambda x, y: x + y, [1, {"a": 2}], [10, {"a": 20}])
    [11, {'a': 22}]
    """
    if not structure:
        raise ValueError("map_structure needs at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    leaves = [func(*together) for together in zip(*map(flatten, structure), strict=True)]
    return pack_sequence_as(structure[0], leaves)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Return other leaves in the places of a structure's own.

    Raises ValueError where there are too few or too many.

    >>> import dy2st as paddle
    >>> paddle.utils.pack_sequence_as([0, (0, 0)], [1, 2, 3])
    [1, (2, 3)]
    """
    given, wanted = list(flat_sequence), len(flatten(structure))
    if len(given) != wanted:
        raise ValueError(f"pack_sequence_as: {len(given)} leaves for a structure of {wanted}")
    return _packed(structure, iter(given))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ValueError unless both structures differ in their leaves only; TypeError where types of containers do.

    With check_types=False a list and a tuple are alike.
    """
    if is_sequence(nest1) != is_sequence(nest2) or isinstance(nest1, Mapping) != isinstance(nest2, Mapping):
        raise ValueError(f"two structures differ: one has {_shown(nest1)} where the other has {_shown(nest2)}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise TypeError(f"two structures differ: {type(nest1).__name__} and {type(nest2).__name__}")
    first, second = _items(nest1), _items(nest2)
    if [key for key, _ in first] != [key for key, _ in second]:
        raise ValueError(f"two structures differ: one has {_shown(nest1)} where the other has {_shown(nest2)}")
    for (_, a), (_, b) in zip(first, second, strict=True):
        assert_same_structure(a, b, check_types)


def _items(nest: Any) -> list[tuple[Any, Any]]:
    if isinstance(nest, Mapping):
        return [(key, nest[key]) for key in sorted(nest)]
    return list(enumerate(nest))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_sequence(structure):
        return next(leaves)
    made = {key: _packed(item, leaves) for key, item in _items(structure)}
    if isinstance(structure, Mapping):
        return type(structure)((key, made[key]) for key in structure)  # type: ignore[call-arg]
    if hasattr(structure, "_fields"):
        return type(structure)(*made.values())
    return type(structure)(made.values())


def _shown(nest: Any) -> str:
    if isinstance(nest, Mapping):
        return f"a dict of {sorted(nest)}"
    return f"a {type(nest).__name__} of {len(nest)}" if is_sequence(nest) else "a leaf"
