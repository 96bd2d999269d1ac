"""Library functions made of several ops, which eager mode runs as one Program once a kind of call was seen 16 times.

`cross_entropy` is a dozen ops, each with its dispatch, its array and its node on the tape; as a Program it is one call
and one node. A kind of call is which Python values the function got, and of tensors dtype, rank and whether a gradient
flows: one Program serves all extents. Parameters are arguments, so layers of one class share it. What is seen a few
times is never traced, and has the same bits each time. Whatever goes wrong is left to the function itself, which says
what it is.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

from numpy import ndarray

from dy2st import config
from dy2st.dtypes import DType
from dy2st.ir.context import current, replaced
from dy2st.naming import is_plain_module
from dy2st.records import replace
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.version_counter import BY_PROGRAM
from dy2st.runtime.signal_delivery import comes_from_handler

Function = TypeVar("Function", bound=Callable[..., Any])
_MOST_KINDS = 512
"""So many kinds of call of one function are remembered."""
_TENSORS = (Tensor, Parameter)
_OPERATORS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "neg", "getitem")
_PLAIN = (type(None), bool, int, str, DType)


class Kinds:
    """The kinds of call of one function: how often each was seen, and then its Program."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self._found: dict[Any, Any] = {}
        """By kind a number of calls, what runs them as a Program, or None where the function itself does."""

    def run(
        self, kind: Any, tensors: Sequence[Tensor], make: Callable[..., Any], args: Any, keywords: dict[str, Any]
    ) -> Any:
        """Call the function, or the Program of `make(*args, **keywords)`, which gives it as one of its tensors."""
        function, process = self._function, current().process
        if not process.to_static_enabled:
            return function(*args, **keywords)
        found = self._found.get(kind, 0)
        if found.__class__ is int:
            if len(self._found) >= _MOST_KINDS:
                self._found.clear()
            if found < process.programs_from:
                self._found[kind] = found + 1
                default_generator()  # the process that is replaced for a moment must have it
                with replaced(process=replace(process, to_static_enabled=False)):  # what is inside becomes part of it
                    return function(*args, **keywords)
            made = process.library_program(make(*args, **keywords)) if tensors else None
            found = self._found[kind] = made
        if found is None:
            return function(*args, **keywords)
        drawn = None if (generator := process.generator) is None else (generator.seed, generator.draw)
        try:
            made = found(*tensors)
            if current().grad:
                _keep(made)
            return made
        except Exception as error:
            if comes_from_handler(error):
                raise
            if generator is not None and (generator.seed, generator.draw) != drawn:
                generator.set_state(drawn)
        result = function(*args, **keywords)
        self._found[kind] = None
        return result


def _keep(made: Any) -> None:
    """Note which arguments and results the tape keeps: a write in place leaves them, as single ops may keep others."""
    results: list[Tensor] = []
    _add((made,), [], results)
    node = results[0].tape_node if results else None
    if node is None:
        return
    arguments, of_results = node.source.pullback.shared
    kept = [node.operands[i] for i in arguments]
    kept += [t for t in results if t.tape_node is node and t.tape_index in of_results]
    for t in kept:
        if t.__class__ is Tensor and not t.stop_gradient:
            (t if t.storage_version is None else t.storage_version).kept = BY_PROGRAM


def composite(function: Function) -> Function:
    """Let eager calls of a pure function on tensors run as one Program, once the kind of call was seen before.

    The function depends on its arguments alone, and writes nothing but the random generator.
    """
    kinds = Kinds(function)

    def of_tensors(*args: Any, **keywords: Any) -> Callable[..., Any]:
        return function_of_tensors(function, args, keywords)

    @functools.wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        key = key_here()
        if key is not None:
            tensors: list[Tensor] = []
            if describe(args, keywords, key, tensors):
                return kinds.run(tuple(key), tensors, of_tensors, args, keywords)
        return function(*args, **keywords)

    run.__dy2st_kinds__ = kinds  # type: ignore[attr-defined]
    return cast("Function", run)


def key_here() -> list[Any] | None:
    """Return the first part of a key, which tells modes apart; None where eager ops must be seen one by one."""
    context = current()
    if context.trace is not None or context.amp is not None or context.saved is not None:
        return None
    return [context.grad, context.process.default_dtype]


def describe(args: Sequence[Any], keywords: dict[str, Any], key: list[Any], tensors: list[Tensor]) -> bool:
    """Add to a key what tells kinds of call apart, and the tensors; return whether a Program may serve such a call."""
    if keywords:
        key.extend(keywords)
        return _add(args, key, tensors) and _add(tuple(keywords.values()), key, tensors)
    return _add(args, key, tensors)


def _add(values: Sequence[Any], key: list[Any], tensors: list[Tensor]) -> bool:
    for x in values:
        kind = x.__class__
        if kind in _TENSORS:
            array = x.payload
            if array.__class__ is not ndarray:
                return False
            if x.view_of is not None:
                x.view_of.refresh(x)
            key += kind, array.dtype, array.ndim, x.stop_gradient
            tensors.append(x)
        elif kind in _PLAIN:
            key += kind, x
        elif kind is float:
            key.append(repr(x))
        elif kind is tuple or kind is list:
            key += kind, len(x)
            if not _add(x, key, tensors):
                return False
        elif kind is FunctionType and is_plain_module(x.__module__):
            key.append(x)
        else:
            return False
    return True


def function_of_tensors(
    function: Callable[..., Any], args: Any, keywords: dict[str, Any], parts: Sequence[Any] = ()
) -> Any:
    """Return the function of the tensors among the arguments alone; `parts` are what it calls by other names."""
    plan, names = _without_tensors(args), tuple(keywords)
    more = _without_tensors(tuple(keywords.values()))

    def run(*tensors: Tensor) -> Any:
        if current().trace is not None:
            _note_parts(current().trace.note_library, parts or (function,))
        given = iter(tensors)
        positional = _filled(plan, given)
        return function(*positional, **dict(zip(names, _filled(more, given), strict=True)))

    run.__qualname__ = run.__name__ = function.__name__
    return run


def _note_parts(note: Callable[[Any, str], None], functions: Sequence[Any]) -> None:
    """Note that a Program depends on the library's functions, and the methods of tensors, that functions name."""
    todo, seen = [getattr(f, "__wrapped__", f) for f in functions], set[int]()
    while todo:
        f = todo.pop()
        if id(f) in seen or not isinstance(f, FunctionType) or not is_plain_module(f.__module__):
            continue
        seen.add(id(f))
        module = sys.modules[f.__module__]
        names = set(f.__code__.co_names)
        for name in sorted(names):
            value = vars(module).get(name)
            for owner in (module, Tensor) if value is None else (module,):
                if isinstance(vars(owner).get(name), FunctionType):
                    note(owner, name)
            todo.append(getattr(value, "__wrapped__", value))
            if isinstance(value, ModuleType) and is_plain_module(value.__name__):
                for part in sorted(names & vars(value).keys()):
                    if isinstance(found := vars(value)[part], FunctionType):
                        note(value, part)
                        todo.append(getattr(found, "__wrapped__", found))
    for name in _OPERATORS:
        note(Tensor, f"__{name}__")


def _without_tensors(values: Sequence[Any]) -> Any:
    """Return arguments with `Tensor` in the place of each tensor."""
    one = (Tensor if isinstance(x, Tensor) else _without_tensors(x) if isinstance(x, (tuple, list)) else x
           for x in values)  # fmt: skip
    return type(values)(one)  # type: ignore[call-arg]


def _filled(plan: Any, given: Any) -> Any:
    return type(plan)(next(given) if x is Tensor else _filled(x, given) if isinstance(x, (tuple, list)) else x
                      for x in plan)  # fmt: skip


if (_told := config.eager_programs()) is not None:
    current().process.programs_from = _told or math.inf
