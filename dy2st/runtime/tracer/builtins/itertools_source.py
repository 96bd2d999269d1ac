"""What functions of `itertools` and `functools` do, as Python that is converted where it meets values of the run.

Most are generators: what they take items of may be one as well, and their turns become those of the loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


def chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of one after the other."""
    for items in iterables:
        yield from items


def from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Yield the items of all that one iterable holds."""
    for items in iterables:
        yield from items


def accumulate(items: Iterable[Any], function: Callable[[Any, Any], Any], *initial: Any) -> Iterator[Any]:
    """Yield what `function` makes of all items so far."""
    total, began = None, False
    for value in initial:
        total, began = value, True
        yield total
    for item in items:
        total = function(total, item) if began else item
        began = True
        yield total


def accumulate_from_first(
    is_some: Callable[[], Any], first: Callable[[], Any], items: Iterable[Any], function: Callable[[Any, Any], Any]
) -> Iterator[Any]:
    """Yield what `function` makes of all items so far; an iterator of which it is known whether it has a first one."""
    if is_some():
        total = first()
        yield total
        for item in items:
            total = function(total, item)
            yield total


def pairwise(items: Iterable[Any]) -> Iterator[Any]:
    """Yield each item with the one before it."""
    before, began = None, False
    for item in items:
        if began:
            yield before, item
        before, began = item, True


def islice(items: Iterable[Any], start: int, stop: int | None, step: int) -> Iterator[Any]:
    """Yield every `step`-th item from `start` on, and ask for none behind the last one before `stop`."""
    place, wanted = 0, start
    if stop is None or stop > 0:
        for item in items:
            if place == wanted and (stop is None or place < stop):
                wanted = wanted + step
                yield item
            place = place + 1
            if stop is not None and place >= stop:
                break


def takewhile(wanted: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield items until one is not wanted."""
    for item in items:
        if not wanted(item):
            break
        yield item


def dropwhile(unwanted: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield the first item that is not unwanted, and all behind it."""
    dropping = True
    for item in items:
        if dropping and unwanted(item):
            continue
        dropping = False
        yield item


def filterfalse(unwanted: Callable[[Any], Any] | None, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items that are not unwanted."""
    for item in items:
        if not (item if unwanted is None else unwanted(item)):
            yield item


def compress(items: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    """Yield the items beside which a selector is true."""
    for item, wanted in zip(items, selectors, strict=False):
        if wanted:
            yield item


def starmap(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield what `function` makes of each item's parts."""
    for item in items:
        yield function(*item)


def combinations(items: Sequence[Any], count: int, first: Any = 0) -> Iterator[Any]:
    """Yield `count` items at a time, in their order."""
    if count == 0:
        yield ()
    else:
        for i in range(first, len(items)):
            for rest in combinations(items, count - 1, i + 1):
                yield (items[i], *rest)


def reduce(function: Callable[[Any, Any], Any], items: Iterable[Any], *initial: Any) -> Any:
    """Return what `function` makes of all items."""
    total, began = None, False
    for value in initial:
        total, began = value, True
    for item in items:
        total = function(total, item) if began else item
        began = True
    if not began:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


for _function in (chain, from_iterable, accumulate, accumulate_from_first, pairwise, islice,
                  takewhile, dropwhile, filterfalse, compress, starmap, combinations, reduce):  # fmt: skip
    _function.__dy2st_convert__ = True  # type: ignore[attr-defined]
