"""`itertools` and `functools.reduce` on what only the run will tell; Python's own where Python can run through it.

tensors, ranges, lists of the run      by place (islice, pairwise, product, zip_longest): one loop of the Program
generators, tests that the run decides  as converted Python (itertools_source.py)
count, repeat, cycle                    by place, without an end
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dy2st.kinds import is_sequence
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins import itertools_source as forms
from dy2st.runtime.tracer.builtins.iteration import iter_, iterated, list_, must_roll
from dy2st.runtime.tracer.control_flow.recursion import call_function
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator
from dy2st.runtime.tracer.values.symbolic_iterable import (
    SymbolicIterable,
    derived,
    handed_over,
    iterable_of,
    python_data,
    smallest,
)
from dy2st.runtime.tracer.values.symbolic_iterator import ENDLESS, TracedIterator
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar


def _of_the_run(trace: Trace, *iterables: Any) -> bool:
    """Return whether it is known only at run time what an iterable gives."""
    return any(isinstance(x, PushIterator) or must_roll(trace, x) for x in iterables)


def _own(trace: Trace, f: Callable[..., Any], *iterables: Any, **keywords: Any) -> Iterator[Any]:
    """Return Python's own iterator."""
    return f(*(_source(trace, x) for x in iterables), **keywords)


def _source(trace: Trace, x: Any) -> Any:
    """Return what an iterator of Python's runs through."""
    return x if isinstance(x, TracedIterator) else trace.iterate(x)


def _endless(trace: Trace, get: Callable[[Any], Any]) -> TracedIterator:
    made = SymbolicIterable(ENDLESS, get, False)
    return TracedIterator(trace, lambda: made)


def _part(trace: Trace, x: Any) -> Callable[[], SymbolicIterable]:
    """Return what gives the items of something that has places, or is gone through more than once."""
    if isinstance(x, PushIterator):
        x = list_(trace, x)
    return handed_over(trace, python_data(trace, x) if iterable_of(trace, x) is None else x)


def _number(trace: Trace, x: Any) -> Any:
    """Return a count or bound as a number."""
    return trace.item(x) if isinstance(x, Tensor) else x


# ---- without an end --------------------------------------------------------------------------------------------------
def count_(trace: Trace, start: Any = 0, step: Any = 1) -> Any:
    """Return `count(...)`."""
    return _endless(trace, lambda i: start + i * step)


def repeat_(trace: Trace, x: Any, times: Any = None) -> Any:
    """Return `repeat(...)`."""
    if times is None:
        return _endless(trace, lambda i: x)
    times = _number(trace, times)
    if not trace.is_symbolic(times):
        made = SymbolicIterable(max(operator.index(times), 0), lambda i: x, False)
        return TracedIterator(trace, lambda: made)
    iterations = Scalar(trace.emit("scalar_max", [trace.scalar(times), trace.scalar(0)]))
    made = SymbolicIterable(iterations, lambda i: x, True)
    return TracedIterator(trace, lambda: made)


def cycle_(trace: Trace, items: Any) -> Any:
    """Return `cycle(...)`."""
    items = iterated(trace, items)
    if not _of_the_run(trace, items) and not is_sequence(items):
        return _own(trace, itertools.cycle, items)
    pool = _part(trace, items)()
    if trace.is_symbolic(pool.length) or pool.length == 0:  # nothing to give where there is none
        return _own(trace, itertools.cycle, items)
    return _endless(trace, lambda i: pool.get(i % pool.length))


# ---- by place --------------------------------------------------------------------------------------------------------
def islice_(trace: Trace, items: Any, *bounds: Any) -> Any:
    """Return `islice(...)`."""
    items = iterated(trace, items)
    bounds = tuple(_number(trace, b) for b in bounds)
    start: Any
    stop: Any
    step: Any
    start, stop, step = (None, *bounds, None) if len(bounds) == 1 else (*bounds, None)[:3]
    start, step = 0 if start is None else start, 1 if step is None else step
    symbolic = any(map(trace.is_symbolic, (start, stop, step)))
    endless = isinstance(items, TracedIterator) and items.source().length is ENDLESS
    if not (symbolic or endless or _of_the_run(trace, items)):
        return itertools.islice(_source(trace, items), *bounds)
    wrong = "Indices" if len(bounds) > 1 else "Stop argument"
    for bound, least in ((start, 0), (stop, 0), (step, 1)):
        if trace.is_symbolic(bound):
            trace.if_exp(bound < least, lambda least=least: _refuse_bound(wrong, least), lambda: None)
    itertools.islice((), *(1 if trace.is_symbolic(b) else b for b in bounds))  # refuses other numbers
    if isinstance(items, PushIterator):
        return call_function(trace, forms.islice, items, start, stop, step)
    part = _part(trace, items)
    if stop is None and part().length is ENDLESS:
        return _endless(trace, lambda i: part().get(start + i * step))

    def some(parts: Sequence[SymbolicIterable]) -> tuple[Any, Callable[[Any], Any]]:
        (found,) = parts
        end = found.length if stop is None else smallest(trace, [found.length, stop])
        iterations = -((start - end) // step)
        if isinstance(iterations, int):
            return max(iterations, 0), lambda i: found.get(start + i * step)
        least = Scalar(trace.emit("scalar_max", [trace.scalar(iterations), trace.scalar(0)]))
        return least, lambda i: found.get(start + i * step)

    if part().must_roll or symbolic:
        return derived(trace, [part], some)
    length, get = some([part()])
    made = SymbolicIterable(length, get, False)
    return TracedIterator(trace, lambda: made)


def _refuse_bound(what: str, least: int) -> None:
    """Raise what `islice` does."""
    if least:
        raise ValueError("Step for islice() must be a positive integer or None.")
    raise ValueError(f"{what} for islice() must be None or an integer: 0 <= x <= sys.maxsize.")


def pairwise_(trace: Trace, items: Any) -> Any:
    """Return `pairwise(...)`."""
    items = iterated(trace, items)
    if not _of_the_run(trace, items):
        return _own(trace, itertools.pairwise, items)
    if isinstance(items, PushIterator):
        return call_function(trace, forms.pairwise, items)

    def pairs(parts: Sequence[SymbolicIterable]) -> tuple[Any, Callable[[Any], Any]]:
        (found,) = parts
        iterations = Scalar(trace.emit("scalar_max", [trace.scalar(found.length - 1), trace.scalar(0)]))
        return iterations, lambda i: (found.get(i), found.get(i + 1))

    return derived(trace, [_part(trace, items)], pairs)


def product_(trace: Trace, *iterables: Any, repeat: int = 1) -> Any:
    """Return `product(...)`."""
    iterables = tuple(iterated(trace, x) for x in iterables)
    if not _of_the_run(trace, *iterables):
        return _own(trace, itertools.product, *iterables, repeat=repeat)
    pools = [_part(trace, x)() for x in iterables] * repeat
    iterations = trace.as_scalar(1)
    for pool in pools:
        iterations = iterations * pool.length

    def row(i: Any) -> tuple[Any, ...]:
        made: list[Any] = []
        for pool in reversed(pools[1:]):
            made.append(pool.get(i % pool.length))
            i = i // pool.length
        return pools[0].get(i), *reversed(made)

    made_once = SymbolicIterable(iterations, row, True)
    return TracedIterator(trace, lambda: made_once)


def zip_longest_(trace: Trace, *iterables: Any, fillvalue: Any = None) -> Any:
    """Return `zip_longest(...)`."""
    iterables = tuple(iterated(trace, x) for x in iterables)
    if not _of_the_run(trace, *iterables) or any(isinstance(x, PushIterator) for x in iterables):
        return _own(trace, itertools.zip_longest, *iterables, fillvalue=fillvalue)

    def item(items: SymbolicIterable, i: Any) -> Any:
        return trace.if_exp(trace.as_scalar(i) < items.length, lambda: items.get(i), lambda: fillvalue)

    def rows(found: Sequence[SymbolicIterable]) -> tuple[Any, Callable[[Any], Any]]:
        iterations = trace.as_scalar(0)
        for items in found:
            iterations = Scalar(trace.emit("scalar_max", [iterations.value, trace.scalar(items.length)]))
        return iterations, lambda i: tuple(item(items, i) for items in found)

    return derived(trace, [_part(trace, x) for x in iterables], rows)


def tee_(trace: Trace, items: Any, n: int = 2) -> Any:
    """Return `tee(...)`: of what has places, iterators of their own."""
    items = iterated(trace, items)
    if isinstance(items, PushIterator) or not must_roll(trace, items):
        return itertools.tee(_source(trace, items), n)
    part = _part(trace, items)
    return tuple(TracedIterator(trace, part) for _ in range(n))


# ---- as converted Python ---------------------------------------------------------------------------------------------
def chain_(trace: Trace, *iterables: Any) -> Any:
    """Return `chain(...)`."""
    iterables = tuple(iterated(trace, x) for x in iterables)
    if not _of_the_run(trace, *iterables):
        return _own(trace, itertools.chain, *iterables)
    return call_function(trace, forms.chain, *iterables)


def from_iterable_(trace: Trace, iterables: Any) -> Any:
    """Return `chain.from_iterable(...)`."""
    iterables = iterated(trace, iterables)
    if is_sequence(iterables) and not must_roll(trace, iterables):
        return chain_(trace, *trace.iterate(iterables))
    return call_function(trace, forms.from_iterable, iterables)


def accumulate_(trace: Trace, items: Any, function: Any = None, *, initial: Any = None) -> Any:
    """Return `accumulate(...)`."""
    items, first = iterated(trace, items), () if initial is None else (initial,)
    function = operator.add if function is None else function
    if not _of_the_run(trace, items):
        return itertools.accumulate(_source(trace, items), trace.callable(function), initial=initial)
    if first or isinstance(items, PushIterator):
        return call_function(trace, forms.accumulate, items, function, *first)
    items = iter_(trace, items)
    is_some, first = (lambda: items.reaches(items.position + 1)), (lambda: _first(items))
    return call_function(trace, forms.accumulate_from_first, is_some, first, items, function)


def starmap_(trace: Trace, function: Any, items: Any) -> Any:
    """Return `starmap(...)`."""
    items = iterated(trace, items)
    if not _of_the_run(trace, items):
        source = _source(trace, items)
        return itertools.starmap(trace.callable(function), source)
    return call_function(trace, forms.starmap, function, items)


def combinations_(trace: Trace, items: Any, r: int) -> Any:
    """Return `combinations(...)`."""
    items = iterated(trace, items)
    if not _of_the_run(trace, items):
        return itertools.combinations(_source(trace, items), r)
    if isinstance(items, (PushIterator, TracedIterator)):
        items = list_(trace, items)
    return call_function(trace, forms.combinations, items, r)


def reduce_(trace: Trace, function: Any, items: Any, *initial: Any) -> Any:
    """Return `functools.reduce(...)`."""
    items = iterated(trace, items)
    if not _of_the_run(trace, items):
        return functools.reduce(trace.callable(function), trace.iterate(items), *initial)
    if not initial and not isinstance(items, PushIterator):
        items = iter_(trace, items)
        initial = (trace.if_exp(items.reaches(items.position + 1), lambda: _first(items), _no_item),)
    return call_function(trace, forms.reduce, function, items, *initial)


def _first(items: TracedIterator) -> Any:
    """Return the next item of an iterator that has one."""
    position = items.position
    items.move(position + 1)
    return items.item(position)


def _no_item() -> None:
    raise TypeError("reduce() of empty iterable with no initial value")


def _converted(form: Any) -> Callable[..., Any]:
    def call(trace: Trace, *args: Any) -> Any:
        return call_function(trace, form, *args)

    return call


ITERTOOLS: dict[Any, Callable[..., Any]] = {
    itertools.count: count_, itertools.repeat: repeat_, itertools.cycle: cycle_, itertools.islice: islice_,
    itertools.pairwise: pairwise_, itertools.product: product_, itertools.zip_longest: zip_longest_,
    itertools.tee: tee_, itertools.chain: chain_, itertools.chain.from_iterable: from_iterable_,
    itertools.accumulate: accumulate_, itertools.starmap: starmap_, itertools.combinations: combinations_,
    itertools.takewhile: _converted(forms.takewhile), itertools.dropwhile: _converted(forms.dropwhile),
    itertools.filterfalse: _converted(forms.filterfalse), itertools.compress: _converted(forms.compress),
    functools.reduce: reduce_,
}  # fmt: skip
