"""`vmap`: a function of one item as a function of many at once, in eager and in static mode."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dy2st.autograd.rules import callable_here
from dy2st.errors import ConversionError, StructureError, TraceError
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.manipulation import moveaxis
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins.calls import plain
from dy2st.runtime.tracer.control_flow.vmapped_call import over_lanes
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant
from dy2st.utils.structures import flatten, is_sequence, pack_sequence_as

Axes = int | None | Mapping[Any, Any] | Sequence[Any]


class LanesWarning(UserWarning):
    """A function under vmap runs item by item; the text says why."""


def vmap(func: Callable[..., Any], in_axes: Axes = 0, out_axes: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes `func` of each item along an axis of its arguments, all items at once.

    The function is traced for one item, with its branches and loops, and becomes operations on all of them. Items may
    take different branches and leave loops at different iterations. It nests with itself and with derivatives of either
    mode. Keep what it returns: each has Programs of its own.

    Parameters
    ----------
    func
        Takes tensors, and lists, tuples and dicts of them; returns a tensor or such a structure of tensors.
    in_axes
        For each positional argument the axis of the items in its tensors, None for one that all items share; an int
        for all arguments. For an argument that is a dict, list or tuple it may be one too, with an axis for each part;
        a dict is for the one argument that there is. Tensors in keyword arguments have the items first.
    out_axes
        The axis of the items in each result; an int for all.

    Raises
    ------
    ValueError
        Where no argument has items, or their numbers differ.
    TypeError
        Where axes are no ints, or `in_axes` has a structure that an argument has not.

    A function that changes what is not its own (an attribute, a gradient) runs item by item, with a warning.

    >>> import dy2st as paddle
    >>> def f(x):
    ...     return x * x if x > 0 else -x
    >>> paddle.vmap(f)(paddle.to_tensor([1.0, -2.0, 3.0])).tolist()
    [1.0, 2.0, 9.0]
    >>> slopes = paddle.vmap(lambda x: paddle.incubate.autograd.vjp(lambda y: y**3, x)[1])
    >>> slopes(paddle.to_tensor([1.0, 2.0])).tolist()
    [3.0, 12.0]
    """
    for axes, what in ((flatten(in_axes), "in_axes"), (out_axes, "out_axes")):
        for axis in axes if isinstance(axes, (list, tuple)) else [axes]:
            if isinstance(axis, bool) or not isinstance(axis, int | None) or (axis is None and what == "out_axes"):
                raise TypeError(f"vmap: {what} must be an int or a sequence of ints, not {axis!r}")
    return Vectorized(func, in_axes, out_axes)


class Vectorized:
    """What `vmap` returns: a function over many items."""

    def __init__(self, func: Callable[..., Any], in_axes: Axes, out_axes: int | Sequence[int]):
        self._func, self._in, self._out = func, in_axes, out_axes
        self._static: Any = None
        if hasattr(func, "__name__"):
            functools.update_wrapper(self, func, updated=())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if current().trace is not None:
            return self._traced(*args, **keywords)
        count = self._count(args, keywords)
        if self._static is None:
            self._static = current().process.to_static(self._traced)
        try:
            return self._static(*args, **keywords)
        except (ConversionError, TraceError) as error:
            warnings.warn(f"vmap runs item by item: {error}", LanesWarning, stacklevel=2)
        return self._each(count, args, keywords)

    # ---- arguments -------------------------------------------------------------------------------------------------
    def _mapped(self, args: Sequence[Any], keywords: dict[str, Any]) -> tuple[list[Any], list[int | None]]:
        """Return the leaves of the arguments, and the axis of the items in each; None where there is none."""
        axes = list(self._in) if isinstance(self._in, (list, tuple)) else [self._in] * len(args)
        if isinstance(self._in, Mapping) and len(args) != 1:
            raise ValueError(f"vmap: in_axes is a dict, which is for one argument, not {len(args)}")
        if len(axes) != len(args):
            raise ValueError(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments")
        leaves: list[Any] = []
        places: list[int | None] = []
        for x, given in [*zip(args, axes, strict=True), *((x, 0) for x in keywords.values())]:
            for leaf, axis in _with_axes(x, given):
                leaves.append(leaf)
                places.append(axis if isinstance(leaf, Tensor) else None)
                if isinstance(leaf, Tensor) and axis is not None and not -leaf.ndim <= axis < leaf.ndim:
                    raise ValueError(f"vmap: an argument of {leaf.ndim} axes has no axis {axis} of items")
        if all(axis is None for axis in places):
            raise ValueError("vmap: no argument is a tensor with an axis of items")
        return leaves, places

    def _count(self, args: Sequence[Any], keywords: dict[str, Any]) -> int:
        """Return the number of items; ValueError where tensors disagree."""
        leaves, places = self._mapped(args, keywords)
        counts = {leaf.shape[axis] for leaf, axis in zip(leaves, places, strict=True) if axis is not None}
        if len(counts) > 1:
            raise ValueError(f"vmap: the mapped axes have different extents: {', '.join(map(str, sorted(counts)))}")
        return counts.pop()

    # ---- all at once -----------------------------------------------------------------------------------------------
    def _traced(self, *args: Any, **keywords: Any) -> Any:
        """Append what the function computes of all items to the Program that is being built; eagerly, item by item."""
        trace = current().trace
        if trace is None:
            return self._each(self._count(args, keywords), args, keywords)
        args = tuple(plain(trace, x) for x in args)
        keywords = {name: plain(trace, x) for name, x in keywords.items()}
        leaves, places = self._mapped(args, keywords)
        mapped = [_front(x, axis) for x, axis in zip(leaves, places, strict=True) if axis is not None]
        made: list[Any] = []

        def one_item(items: list[Tensor]) -> list[Tensor]:
            rest = iter(items)
            given = [x if axis is None else next(rest) for x, axis in zip(leaves, places, strict=True)]
            positional, named = pack_sequence_as([list(args), keywords], given)
            made.append(plain(trace, callable_here(self._func)(*positional, **named)))
            return [_tensor(x) for x in flatten(made[0])]

        found = over_lanes(trace, one_item, mapped)
        return self._results(made[0], found)

    def _results(self, like: Any, found: Sequence[Tensor]) -> Any:
        count = len(found)
        axes = list(self._out) if isinstance(self._out, (list, tuple)) else [self._out] * count
        if len(axes) != count:
            raise ValueError(f"vmap: out_axes has {len(axes)} entries for {count} results")
        return pack_sequence_as(like, [x if a == 0 else moveaxis(x, 0, a) for x, a in zip(found, axes, strict=True)])

    # ---- one by one ------------------------------------------------------------------------------------------------
    def _each(self, count: int, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call the function for each item, eagerly, and stack what it returns."""
        if not count:
            raise ValueError("vmap: a function that runs item by item needs at least one item")
        leaves, places = self._mapped(args, keywords)
        fronts = [_front(x, axis) for x, axis in zip(leaves, places, strict=True)]
        rows: list[list[Tensor]] = []
        out: Any = None
        for i in range(count):
            given = [x if axis is None else x[i] for x, axis in zip(fronts, places, strict=True)]
            positional, named = pack_sequence_as([list(args), keywords], given)
            out = self._func(*positional, **named)
            rows.append([_tensor(x) for x in flatten(out)])
            if len(rows[i]) != len(rows[0]):
                raise ValueError(f"vmap: item {i} gives {len(rows[i])} results, item 0 gives {len(rows[0])}")
        return self._results(out, [stack(list(items), axis=0) for items in zip(*rows, strict=True)])


def _with_axes(x: Any, axes: Any) -> list[tuple[Any, int | None]]:
    """Return the leaves of an argument, each with the axis that it has in `axes`; one axis is for all below it."""
    if not is_sequence(axes):
        return [(leaf, axes) for leaf in flatten(x)]
    if isinstance(axes, Mapping):
        if not isinstance(x, Mapping) or set(x) != set(axes):
            shown = f"the keys {list(x)}" if isinstance(x, Mapping) else f"a {type(x).__name__}"
            raise TypeError(f"vmap: in_axes has the keys {list(axes)} for {shown}")
        return [one for key in sorted(x) for one in _with_axes(x[key], axes[key])]
    if not isinstance(x, (list, tuple)) or len(x) != len(axes):
        shown = f"a {type(x).__name__}" + (f" of {len(x)}" if isinstance(x, (list, tuple)) else "")
        raise TypeError(f"vmap: in_axes has {len(axes)} axes for {shown}")
    return [one for part, axis in zip(x, axes, strict=True) for one in _with_axes(part, axis)]


def _front(x: Any, axis: int | None) -> Any:
    return x if axis in (None, 0) else moveaxis(x, axis, 0)


def _tensor(x: Any) -> Tensor:
    """Return a result as a tensor; TypeError for what is neither tensor nor number.

    Raises StructureError for what only the run tells more of, which items are asked for one by one.
    """
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (Variant, SymbolicList)):
        what = "one of several kinds of values" if isinstance(x, Variant) else "a list of unknown length"
        raise StructureError(f"the function under vmap returns {what}")
    if isinstance(x, (bool, int, float, Scalar)):
        return to_tensor(x)
    raise TypeError(f"vmap: the function must return tensors and numbers, not {type(x).__name__}")
