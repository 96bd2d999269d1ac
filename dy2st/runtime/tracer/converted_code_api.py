"""The helper that converted source calls `_dy`: inside a trace it records, outside it does what Python does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dy2st.errors import NeedsPythonValue
from dy2st.ir.context import current
from dy2st.kinds import is_list
from dy2st.runtime.eager.side_effect_check import refusal, refuse_outside
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.access import attributes, boolean_ops, items, operators
from dy2st.runtime.tracer.builtins import container_methods, match_statement
from dy2st.runtime.tracer.builtins.calls import callable_for, convertible
from dy2st.runtime.tracer.builtins.string_formatting import format_, join, percent
from dy2st.runtime.tracer.builtins.unpacking import unpack
from dy2st.runtime.tracer.builtins.with_statement import context_manager, with_
from dy2st.runtime.tracer.control_flow import conditional, try_except
from dy2st.runtime.tracer.control_flow.assert_raise import assert_, loaded, raise_
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, refuse_spliced
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops import loop_statement
from dy2st.runtime.tracer.loops.generators import generated
from dy2st.runtime.tracer.values.container_classes import is_of_users_class, own_method
from dy2st.runtime.tracer.values.symbolic_iterator import made_here
from dy2st.runtime.tracer.values.symbolic_string import fstring
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

Thunk = Callable[[], Any]
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    f"{sign}=": getattr(operator, f"__i{name[2:]}")
    for sign, (_, name, swapped) in operators.BINARY.items()
    if swapped.startswith("__r")
}

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip

WRITTEN: dict[str, Callable[..., Any]] = {"format": format_, "join": join}


class Helper:
    """What `_dy` is; it has no state: the trace is the one that is current."""

    has_no_state = True
    """So functions that differ in nothing else are the same (static_values.py)."""

    # ---- control flow ----------------------------------------------------------------------------------------------
    def if_(self, test: Any, then: Thunk, orelse: Thunk, get_state: Thunk, set_state: Callable[[Any], None],
            names: Sequence[str]) -> None:  # fmt: skip
        trace = current().trace
        if trace is None or not trace.is_symbolic(test):
            (then if self.plain(trace, test) else orelse)()
        else:
            conditional.if_(
                trace, trace.truth(test) if is_list(test) else test, then, orelse, get_state, set_state, names
            )

    def if_exp(self, test: Any, then: Thunk, orelse: Thunk, assigned: Any = None) -> Any:
        trace = current().trace
        if trace is None or not trace.is_symbolic(test):
            return then() if self.plain(trace, test) else orelse()
        test = trace.truth(test) if is_list(test) else test
        return conditional.if_exp(trace, test, then, orelse, assigned)

    def while_(
        self, test: Thunk, body: Thunk, get_state: Thunk, set_state: Callable[[Any], None], names: Sequence[str]
    ) -> None:
        trace = current().trace
        if trace is None:
            while test():
                body()
        else:
            loop_statement.while_(trace, lambda: self.settled(trace, test()), body, get_state, set_state, names)

    def for_(self, iterable: Any, body: Callable[[Any], None], get_state: Thunk, set_state: Callable[[Any], None],
             names: Sequence[str], test: Thunk | None = None) -> None:  # fmt: skip
        trace = current().trace
        if trace is None:
            items = iter(iterable)
            while test is None or test():
                try:
                    item = next(items)
                except StopIteration:
                    return
                body(item)
        else:
            loop_statement.for_(trace, iterable, body, get_state, set_state, names, test)

    def plain(self, trace: Trace | None, x: Any) -> Any:
        """Return the truth of something that is not symbolic, as it stands in the trace."""
        if trace is None:
            return x
        return operators.truth(trace, x) if is_plain_object(x) or is_of_users_class(x) else trace.content(x)

    def settled(self, trace: Trace, x: Any) -> Any:
        """Return a loop's test: a symbolic value, or a Python truth."""
        if trace.is_symbolic(x):
            return trace.truth(x) if isinstance(x, (list, SymbolicList, Variant)) else x
        return bool(self.plain(trace, x))

    def bool_(self, x: Any) -> bool:
        try:
            return bool(x)
        except NeedsPythonValue as error:
            current().trace.refused = error  # a `finally` that jumps would drop it
            raise

    def match(self, ask: Callable[[Any], Any], subject: Any, ends: match_statement.Ends | None = None) -> Any:
        trace = current().trace
        return ask(subject) if trace is None else match_statement.match(trace, ask, subject, ends)

    # ---- logic -----------------------------------------------------------------------------------------------------
    def and_(self, first: Any, *thunks: Thunk, assigned: Any = None) -> Any:
        trace = current().trace
        if trace is not None:
            return boolean_ops.and_(trace, first, thunks, assigned)
        for thunk in thunks:
            if not first:
                return first
            first = thunk()
        return first

    def or_(self, first: Any, *thunks: Thunk, assigned: Any = None) -> Any:
        trace = current().trace
        if trace is not None:
            return boolean_ops.or_(trace, first, thunks, assigned)
        for thunk in thunks:
            if first:
                return first
            first = thunk()
        return first

    def not_(self, x: Any) -> Any:
        trace = current().trace
        return not x if trace is None else boolean_ops.not_(trace, x)

    def compare(self, first: Any, ops: Sequence[str], *thunks: Thunk) -> Any:
        trace = current().trace
        if trace is not None:
            return boolean_ops.compare(trace, first, ops, thunks)
        second = thunks[0]()
        result = COMPARISONS[ops[0]](first, second)
        return result and self.compare(second, ops[1:], *thunks[1:]) if len(ops) > 1 else result

    def is_(self, a: Any, b: Any, negate: bool) -> Any:
        trace = current().trace
        if trace is None:
            return (a is not b) if negate else (a is b)
        return boolean_ops.is_(trace, a, b, negate)

    def equal(self, a: Any, b: Any, negate: bool) -> Any:
        trace = current().trace
        if trace is None:
            return a != b if negate else a == b
        return boolean_ops.compare_one(trace, a, "!=" if negate else "==", b)

    def in_(self, a: Any, container: Any, negate: bool) -> Any:
        trace = current().trace
        if trace is None:
            return (a not in container) if negate else (a in container)
        return boolean_ops.in_(trace, a, container, negate)

    # ---- calls and accesses ----------------------------------------------------------------------------------------
    def call(self, f: Any) -> Callable[..., Any]:
        trace = current().trace
        return f if trace is None else callable_for(trace, f)

    def decorator(self, f: Any) -> Any:
        users = convertible(f) or (callable(f) and convertible(type(f).__call__))
        return self.call(f) if users else f

    def method(self, obj: Any, name: str) -> Callable[..., Any]:
        trace = current().trace
        if trace is not None and type(obj) is str and name in WRITTEN:
            return partial(WRITTEN[name], trace, obj)
        return getattr(obj, name) if trace is None else container_methods.method(trace, obj, name)

    def attr(self, obj: Any, name: str) -> Any:
        trace = current().trace
        return getattr(obj, name) if trace is None else attributes.attr(trace, obj, name)

    def set_attr(self, obj: Any, name: str, value: Any) -> None:
        trace = current().trace
        if trace is None:
            setattr(obj, name, value)
        else:
            attributes.set_attr(trace, obj, name, value)

    def del_attr(self, obj: Any, name: str) -> None:
        trace = current().trace
        if trace is None:
            delattr(obj, name)
        else:
            attributes.del_attr(trace, obj, name)

    def item(self, obj: Any, key: Any) -> Any:
        trace = current().trace
        return obj[key] if trace is None else items.item(trace, obj, key)

    def set_item(self, obj: Any, key: Any, value: Any) -> None:
        trace = current().trace
        if trace is None:
            obj[key] = value
        else:
            items.set_item(trace, obj, key, value)

    def del_item(self, obj: Any, key: Any) -> None:
        trace = current().trace
        if trace is None:
            del obj[key]
        else:
            items.del_item(trace, obj, key)

    def unpack(self, value: Any, before: int, after: int | None = None) -> Any:
        trace = current().trace
        return value if trace is None else unpack(trace, value, before, after)

    def generated(self, pull: Callable[..., Iterator[Any]], push: Any, arguments: tuple[Any, ...]) -> Iterator[Any]:
        trace = current().trace
        return pull(*arguments) if trace is None else generated(trace, pull, push, arguments)

    def generator(self, made: Iterator[Any]) -> Iterator[Any]:
        trace = current().trace
        return made if trace is None else made_here(trace, made)

    def gathered(self, kind: str, items: list[Any]) -> Any:
        if current().trace is not None:
            refuse_spliced(items)
        return tuple(items) if kind == "tuple" else set(items)

    def keyed(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        trace = current().trace
        if trace is None or Variant not in {type(key) for key, _ in pairs}:
            return dict(pairs)
        made: dict[Any, Any] = {}
        trace.store(made, {})
        for key, item in pairs:
            items.set_item(trace, made, key, item)
        return made

    def slice_(self, start: Any, stop: Any, step: Any) -> slice:
        trace = current().trace
        return slice(start, stop, step) if trace is None else items.slice_(trace, start, stop, step)

    def aug(self, op: str, target: Any, value: Any) -> Any:
        trace = current().trace
        if trace is None:
            return IN_PLACE[op](target, value)
        if isinstance(target, Variant):
            return conditional.switch(trace, target, lambda x: self.aug(op, x, value))
        if isinstance(value, Variant):
            return conditional.switch(trace, value, lambda x: self.aug(op, target, x))
        if isinstance(target, CONTAINERS) and (own := own_method(target, f"__{IN_PLACE[op].__name__}__")) is not None:
            return trace.callable(own)(target, value)
        if is_list(target):
            return self.aug_list(trace, op, target, value)
        if id(target) in trace.arrays:
            raise refusal(f"`{op}` writes an argument that is a NumPy array: give the function a tensor")
        if isinstance(target, CONTAINERS):
            trace.store(target, IN_PLACE[op](trace.writable(target), trace.content(value)))
            return target
        own = items.users_method(trace, target, f"__{IN_PLACE[op].__name__}__")
        if own is not None:
            return own(value)
        if is_plain_object(target) or is_plain_object(value):
            return operators.binary(trace, op[:-1], target, value)
        refuse_outside(trace.external, target)
        return natively(trace, IN_PLACE[op], target, value)

    def aug_list(self, trace: Trace, op: str, target: Any, value: Any) -> Any:
        """Do `target += value` or `target *= value` on a list, in the log."""
        content = trace.writable(target)
        if op == "+=" and SymbolicList in (type(content), type(trace.content(value))):
            container_methods.extend(trace, target, value)
        elif op == "+=":
            trace.store(target, content + list(trace.iterate(value)))
        else:
            trace.store(target, IN_PLACE[op](content, value))
        return target

    def binary(self, sign: str, a: Any, b: Any) -> Any:
        trace = current().trace
        if trace is None:
            return operators.BINARY[sign][0](a, b)
        if sign in operators.COMPARING:
            return boolean_ops.compare_one(trace, a, sign, b)
        return operators.binary(trace, sign, a, b)

    def of_frame(self, f: Any) -> Any:
        if current().trace is not None and f in (eval, exec, globals):
            raise refusal(f"{f.__name__}() reaches what no Program sees", "write what it does into the function")
        return f

    def unary(self, sign: str, x: Any) -> Any:
        trace = current().trace
        return operators.UNARY[sign][0](x) if trace is None else operators.unary(trace, sign, x)

    def items(self, x: Any) -> Any:
        trace = current().trace
        return x if trace is None else operators.items(trace, x)

    # ---- variables -------------------------------------------------------------------------------------------------
    def refuse_groups(self) -> None:
        if current().trace is not None:
            raise needs_value("`except*` takes groups of exceptions apart, which a Program has not", "use `except`")

    def made_class(self, kind: type) -> type:
        trace = current().trace
        if trace is not None:
            trace.made.classes[id(kind)] = kind
        return kind

    def undefined(self, name: str) -> UnboundLocal:
        return UnboundLocal(name)

    def load(self, value: Any, name: str, outer: bool = False) -> Any:
        if isinstance(value, UnboundLocal):
            if outer:
                raise NameError(
                    f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                )
            raise UnboundLocalError(UnboundLocal(name).message)
        return loaded(current().trace, value, name) if isinstance(value, Variant) else value

    def is_undefined(self, x: Any) -> bool:
        return isinstance(x, UnboundLocal)

    # ---- statements ------------------------------------------------------------------------------------------------
    def assert_(self, test: Thunk, message: Thunk | None) -> None:
        trace = current().trace
        if trace is None:
            if not test():
                raise AssertionError(*(() if message is None else (message(),)))
        else:
            assert_(trace, test, message)

    def raise_(self, exception: Thunk, cause: Thunk | None) -> None:
        trace = current().trace
        if trace is None:
            if cause is None:
                raise exception()
            raise exception() from cause()
        raise_(trace, exception, cause)

    def try_(self, body: Thunk, handler: Any, orelse: Thunk | None, final: Thunk | None, kinds: Thunk, get_state: Thunk,
             set_state: Callable[[Any], None], names: Sequence[str]) -> None:  # fmt: skip
        trace = current().trace
        if trace is None:
            try_except.plain(body, handler, orelse, final)
        else:
            try_except.try_(trace, body, handler, orelse, final, kinds, get_state, set_state, names)

    def context(self, manager: Any) -> Any:
        trace = current().trace
        return manager if trace is None else context_manager(trace, manager)

    def with_(self, manager: Any, body: Callable[[Any], None], get_state: Thunk, set_state: Callable[[Any], None],
              names: Sequence[str]) -> None:  # fmt: skip
        trace = current().trace
        if trace is None:
            with manager as entered:
                body(entered)
        else:
            with_(trace, manager, body, get_state, set_state, names)

    def percent(self, text: str, values: Any) -> Any:
        trace = current().trace
        return text % values if trace is None else percent(trace, text, values)

    def fstring(self, *parts: Any) -> Any:
        trace = current().trace
        if trace is None:
            return "".join(p if isinstance(p, str) else _formatted(*p) for p in parts)
        return fstring(trace, *parts)


def _formatted(value: Any, conversion: str | None, spec: str | None) -> str:
    shown = {"r": repr, "s": str, "a": ascii}[conversion](value) if conversion else value
    return format(shown, spec or "")


HELPER = Helper()
