"""Calls in converted code: built-ins by their symbolic meaning, user functions converted in turn, the rest as it is."""

from __future__ import annotations

import contextlib
import functools
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dy2st.errors import NeedsPythonValue
from dy2st.ir.context import current
from dy2st.kinds import (
    TUPLE,
    derives,
    is_class,
    is_container,
    is_dict,
    is_list,
    is_sequence,
    is_slice,
    is_tuple,
    type_of,
)
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.side_effect_check import refuse_debugger, refuse_impure
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.eager.tracked_settings import Settable
from dy2st.runtime.tracer.access.attributes import del_plain_attr, set_as_object
from dy2st.runtime.tracer.access.operators import users_dunder
from dy2st.runtime.tracer.builtins.builtins import BUILTINS
from dy2st.runtime.tracer.builtins.container_methods import bound_method, init_of_kind
from dy2st.runtime.tracer.builtins.dataclass_init import init_of_dataclass, is_of_dataclass
from dy2st.runtime.tracer.builtins.functools_cache import cached_call
from dy2st.runtime.tracer.builtins.iteration import zip_
from dy2st.runtime.tracer.builtins.itertools import ITERTOOLS
from dy2st.runtime.tracer.builtins.logs import logging_call
from dy2st.runtime.tracer.builtins.math import MATH
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.control_flow.recursion import call_function
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.code_names import asks_for_types
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, is_spliced, refuse_spliced
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.reach import items_of, same
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.recording.loop_checkpointing import under_policy
from dy2st.runtime.tracer.values.container_classes import bare, is_of_users_class, library_kind
from dy2st.runtime.tracer.values.object_attributes import put_attribute, slots_of
from dy2st.runtime.tracer.values.symbolic_iterator import made_here
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import Variant

_OF_OBJECT = {"__setattr__": set_as_object, "__delattr__": del_plain_attr}
"""What `object` does with attributes."""


def callable_for(trace: Trace, f: Any) -> Callable[..., Any]:
    """Return what to call in place of `f`."""
    refuse_debugger(f)
    if isinstance(f, Variant):
        return lambda *a, **k: switch(trace, f, lambda g: callable_for(trace, g)(*a, **k))
    try:
        special = BUILTINS.get(f) or MATH.get(f) or ITERTOOLS.get(f)
    except TypeError:  # an unhashable callable object
        special = None
    if special is not None:
        return functools.partial(_special, trace, special)
    if isinstance(f, types.MethodWrapperType) and f.__objclass__ is object and f.__name__ in _OF_OBJECT:
        return functools.partial(_OF_OBJECT[f.__name__], trace, f.__self__)  # from super()
    if (log := logging_call(trace, f)) is not None:
        return log
    trace.note_behaviour(f)
    if isinstance(f, functools.partial):
        return functools.partial(callable_for(trace, f.func), *f.args, **f.keywords)
    if (own := bound_method(trace, f) or cached_call(trace, f, callable_for)) is not None:
        return own
    if isinstance(f, types.MethodType) and convertible(f.__func__):
        return functools.partial(_call_of(trace, f.__func__), f.__self__)
    if convertible(f):
        return _call_of(trace, f)
    inner = getattr(f, "__dy2st_function__", None)
    if inner is not None:
        return under_policy(getattr(f, "checkpoint", None), callable_for(trace, inner))
    call = getattr(type_of(f), "__call__", None)  # noqa: B004 (the method itself is wanted, not whether there is one)
    if not isinstance(f, type) and isinstance(call, types.FunctionType) and convertible(call):
        return functools.partial(call_function, trace, call, f)
    return functools.partial(foreign_call, trace, f)


def _call_of(trace: Trace, f: Any) -> Callable[..., Any]:
    """Return the call of a function of the user's in its converted form."""
    if f.__code__.co_filename == contextlib.__file__ and hasattr(f, "__wrapped__"):  # @contextmanager
        managers = contextlib.contextmanager(trace.convert(f.__wrapped__))
        return functools.partial(_new_manager, trace, managers)
    if is_of_dataclass(f):
        return functools.partial(init_of_dataclass, trace, f)
    return functools.partial(call_function, trace, f)


def _new_manager(trace: Trace, of: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    made = of(*args, **keywords)
    trace.made.objects[id(made)] = made  # what it has is nothing from outside
    return made


def convertible(f: Any) -> bool:
    """Return whether `f` is a function of the user's, or one of Python's classes that are there to be derived from."""
    if not isinstance(f, types.FunctionType) or getattr(f, "__dy2st_not_to_static__", False):
        return False
    if f.__module__ in ("collections", "collections.abc"):
        return f.__qualname__.partition(".")[0] in _BASES
    return not is_plain_module(f.__module__) or getattr(f, "__dy2st_convert__", False)


_BASES = frozenset((
    "UserDict", "UserList", "ChainMap", "Mapping", "MutableMapping", "Sequence", "MutableSequence", "Set", "MutableSet",
))  # fmt: skip


def _special(trace: Trace, special: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call what stands for a built-in; a container whose content is one of several is met once with each."""
    if special is not zip_:
        refuse_spliced(args)
    for x in args:
        if isinstance(x, CONTAINERS) and isinstance(trace.content(x), Variant):
            return trace.on_content(x, switch, lambda: _special(trace, special, *args, **keywords))
    return made_here(trace, special(trace, *args, **keywords))


def foreign_call(trace: Trace, f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call something that is not converted; containers are handed over as they stand in the trace.

    It is called once for each alternative of a variant among the arguments, and for each value of a number of which
    the possible values are known when it needs the number as a Python value.
    """
    refuse_spliced(args)
    refuse_impure(trace.external, f, args)
    if is_class(f) and is_users_class(f):
        return _construct(trace, f, args, keywords)
    of_call = () if hasattr(f, "_forward_pre_hooks") else (f,)  # a layer's call notes them, after its hooks
    for x in (*of_call, getattr(f, "__self__", None), *args, *keywords.values()):
        note_settings(trace, x)
    if not (is_class(f) and derives(f, BaseException)):
        _refuse_text(trace, (*args, *keywords.values()))
    for x in (*args, *keywords.values()):
        if isinstance(x, CONTAINERS) and isinstance(trace.content(x), Variant):
            return trace.on_content(x, switch, lambda: foreign_call(trace, f, *args, **keywords))
    variant = _find(trace, (args, keywords), Variant)
    if variant is not None:
        return switch(trace, variant, lambda y: foreign_call(trace, f, *_put(trace, args, variant, y),
                                                             **_put(trace, keywords, variant, y)))  # fmt: skip
    number = _find(trace, (args, keywords), Scalar)
    if number is None:
        return made_here(trace, _as_it_is(trace, f, args, keywords))
    mark = trace.checkpoint()
    try:
        return made_here(trace, _as_it_is(trace, f, args, keywords))
    except NeedsPythonValue:
        trace.rollback(mark)
    return _each_choice(trace, number, number.choices, lambda y: foreign_call(
        trace, f, *_put(trace, args, number, y), **_put(trace, keywords, number, y)))  # fmt: skip


def _as_it_is(trace: Trace, f: Callable[..., Any], args: Any, keywords: Any) -> Any:
    """Call something that is not converted: the package's own code and lazy iterators with copies of what stands."""
    if _takes_copies(f):
        return f(*(_handed(trace, f, x) for x in args), **{k: _handed(trace, f, x) for k, x in keywords.items()})
    if asks_for_types(f) and (numbers := [*_numbers(trace, (args, keywords))]):
        text = "code that is not converted looks at types, and is handed a number that only the run will tell"
        raise needs_value(text, needed=numbers)
    way = _unrouted if f in _KEEPERS else routed
    result = natively(trace, f, *map(way, args), **{k: way(v) for k, v in keywords.items()})
    for x in (*args, *keywords.values()):
        _check_copy(trace, x)
    return result


def _check_copy(trace: Trace, x: Any) -> None:
    """Raise NeedsPythonValue where a call changed what stands for a container with one of several things in it."""
    found = trace.copies.get(id(x))
    if found is not None and not same(items_of(x), found[1]):
        raise needs_value("a container is changed by code that is not converted, and holds one of several things")
    for item in (x.values() if is_dict(x) else x) if found is not None else ():
        _check_copy(trace, item)


def _handed(trace: Trace, f: Any, x: Any) -> Any:
    x = plain(trace, x)
    return routed(x) if getattr(f, "__module__", "") == "itertools" else x


def _takes_copies(f: Any) -> bool:
    module = getattr(f, "__module__", None) or type(getattr(f, "__self__", f)).__module__
    if isinstance(f, type):
        return issubclass(f, (BaseException, Iterator)) or module.startswith(("dy2st.", "itertools"))
    return module.startswith(("dy2st.", "itertools")) or isinstance(getattr(f, "__self__", None), (Tensor, Scalar))


_KEEPERS: tuple[Callable[..., Any], ...] = (functools.partial, contextlib.contextmanager, defaultdict)
"""What calls a function later, which is converted then."""


def _unrouted(x: Any) -> Any:
    return x


def routed(f: Any) -> Any:
    """Return a function of the user's such that code which is not converted calls its converted form in a trace."""
    if not isinstance(f, (types.FunctionType, types.MethodType, types.BuiltinMethodType)):
        return f
    inner = getattr(f, "__func__", f)
    if not convertible(inner) and not isinstance(getattr(f, "__self__", None), CONTAINERS):
        return f

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current().trace
        return f(*args, **keywords) if trace is None else callable_for(trace, f)(*args, **keywords)

    return call


def note_settings(trace: Trace, x: Any, depth: int = 0) -> None:
    """Note the settings of an object of the package that is handed to its code, alone or in lists and dicts."""
    if isinstance(x, Settable):
        trace.note_settings(x)
    elif type(x) in CONTAINERS and depth < 2:
        for item in x.values() if is_dict(x) else x:
            note_settings(trace, item, depth + 1)


def _refuse_text(trace: Trace, arguments: Any, depth: int = 0) -> None:
    """Raise NeedsPythonValue where a text with values of the run is among arguments: Python reads all of it."""
    for x in arguments:
        if isinstance(x, Text):
            str(x)
        content = trace.content(x) if is_sequence(x) else ()
        if depth < 3 and _is_short(content):
            _refuse_text(trace, content, depth + 1)


def _each_choice(trace: Trace, number: Scalar, choices: Sequence[Any], use: Callable[[Any], Any]) -> Any:
    """Trace `use` once for each value that a number can have."""
    if len(choices) == 1:
        return use(choices[0])
    return trace.if_exp(
        number == choices[0], lambda: use(choices[0]), lambda: _each_choice(trace, number, choices[1:], use)
    )


def is_users_class(f: type) -> bool:
    """Return whether a class was written by the user."""
    return not is_plain_module(f.__module__) and f.__module__ != "builtins"


def _construct(trace: Trace, kind: type[Any], args: Any, keywords: dict[str, Any]) -> Any:
    """Make an instance of a user's class; `__init__` is converted, as it may write to what is outside."""
    init = kind.__init__
    trace.note_behaviour(kind)
    is_container = issubclass(kind, CONTAINERS) and init is library_kind(kind).__init__
    if users_dunder(kind, "__new__") is not None and type(kind).__call__ is type.__call__:
        made = callable_for(trace, kind.__new__)(kind, *args, **keywords)
        if isinstance(made, kind) and convertible(type(made).__init__):
            callable_for(trace, type(made).__init__)(made, *args, **keywords)
        return made
    if not _is_made_by_init(kind) or not (is_container or convertible(init)):
        made = natively(trace, kind, *args, **keywords)
    else:
        made = bare(kind)
        trace.made.constructing.add(id(made))
        try:
            trace.made.births[id(made)] = trace.builder
            if is_container:
                init_of_kind(trace, made, *args, **keywords)
            else:
                _call_of(trace, init)(made, *args, **keywords)
        finally:
            trace.made.constructing.discard(id(made))
    left = trace.log.take_attributes(made)
    if left:
        for name, x in left.items():
            if not isinstance(x, UnboundLocal):
                put_attribute(made, name, x)
    if is_plain_object(made) or is_of_users_class(made):
        trace.made.note(made, trace.builder)
    return made


def _is_made_by_init(kind: type[Any]) -> bool:
    """Return whether a new instance is an empty object and what the `__init__` that the user wrote does with it."""
    is_container = issubclass(kind, CONTAINERS)
    return (
        kind.__new__ is (library_kind(kind) if is_container else object).__new__
        and type(kind).__call__ is type.__call__
        and (kind.__dictoffset__ != 0 or bool(slots_of(kind)) or is_container)
    )


def _find(trace: Trace, x: Any, kind: type) -> Any:
    """Return the first variant, or number of which the possible values are known, among arguments."""
    if isinstance(x, kind):
        return x if not isinstance(x, Scalar) or x.choices is not None else None
    if is_container(x):
        content = trace.content(x)
        for item in content.values() if is_dict(content) else content if _is_short(content) else ():
            found = _find(trace, item, kind)
            if found is not None:
                return found
    if is_slice(x):
        return _find(trace, (x.start, x.stop, x.step), kind)
    return None


def _numbers(trace: Trace, x: Any, depth: int = 0) -> Iterator[Scalar]:
    """Yield the numbers of the run among arguments."""
    if isinstance(x, Scalar):
        yield x
    content = trace.content(x) if is_container(x) and depth < 4 else ()
    for item in content.values() if is_dict(content) else content if _is_short(content) else ():
        yield from _numbers(trace, item, depth + 1)


def _is_short(content: Any) -> bool:
    return is_sequence(content) and len(content) <= 64


def _put(trace: Trace, x: Any, old: Any, new: Any) -> Any:
    """Return arguments with one thing put in the place of another."""
    if x is old:
        return new
    if is_container(x) and _find(trace, x, type_of(old)) is not None:
        content = trace.content(x)
        if is_dict(content):
            made: Any = {k: _put(trace, i, old, new) for k, i in content.items()}
        else:
            items = [_put(trace, i, old, new) for i in content]
            made = TUPLE.__new__(type_of(x), items) if is_tuple(x) else type_of(x)(items)
        trace.copies[id(made)] = made, items_of(made)
        return made
    if is_slice(x):
        return slice(*(_put(trace, i, old, new) for i in (x.start, x.stop, x.step)))
    return x


def plain(trace: Trace, x: Any) -> Any:
    """Return a container as it stands in the trace, itself where the trace did not write it."""
    if type(x) in CONTAINERS:
        content = trace.content(x)  # with what was appended outside, and noted as read
        if is_spliced(content):  # Python put it together of lists of unknown length
            content = trace.content(x)
        if is_list(content) and any(type(i) in CONTAINERS for i in content):
            return [plain(trace, i) for i in content]
        if is_dict(content) and any(type(i) in CONTAINERS for i in content.values()):
            return {k: plain(trace, i) for k, i in content.items()}
        return content
    if type(x) is TUPLE and any(type_of(i) in CONTAINERS for i in x):
        return tuple(plain(trace, i) for i in x)
    return x
