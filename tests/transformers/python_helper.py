"""The helper that transformed code asks, with plain Python's answers: what is converted must act as the original."""

import builtins
import operator
from collections.abc import Callable, Iterable
from typing import Any

UNSET = "cannot access local variable '{}' where it is not associated with a value"
FREE = "cannot access free variable '{}' where it is not associated with a value in enclosing scope"
COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


def _augment(text: str) -> Callable[[Any, Any], Any]:
    namespace: dict[str, Any] = {}
    exec(f"def aug(a, b):\n    {text}\n    return a", namespace)
    return namespace["aug"]


AUG = {f"{op}=": _augment(f"a {op}= b") for op in "+ - * @ / % ** << >> | ^ & //".split()}


class Undefined:
    def __init__(self, name: str):
        self.name = name


class PythonHelper:
    """Plain semantics; `check` also reads and writes back the variables of each construct."""

    def __init__(self, check: bool = True):
        self.check = check

    def touch(self, get: Callable, set: Callable, names: tuple) -> None:
        if self.check:
            values = get()
            assert len(values) == len(names)
            assert builtins.all(isinstance(name, str) for name in names)
            set(values)

    def if_(self, test, then, orelse, get, set, names):
        self.touch(get, set, names)
        chosen = then if test else orelse
        chosen()
        self.touch(get, set, names)

    def generated(self, pull, push, arguments):
        return pull(*arguments)

    def if_exp(self, test, then, orelse, assigned=None):
        return then() if test else orelse()

    def while_(self, test, body, get, set, names):
        self.touch(get, set, names)
        while test():
            body()
            self.touch(get, set, names)

    def for_(self, iterable: Iterable, body, get, set, names, test=None):
        iterator = iter(iterable)
        self.touch(get, set, names)
        while test is None or test():
            try:
                item = next(iterator)
            except StopIteration:
                return
            body(item)
            self.touch(get, set, names)

    def bool_(self, x):
        return bool(x)

    def and_(self, value, *thunks, assigned=None):
        for thunk in thunks:
            if not value:
                return value
            value = thunk()
        return value

    def or_(self, value, *thunks, assigned=None):
        for thunk in thunks:
            if value:
                return value
            value = thunk()
        return value

    def not_(self, x):
        return not x

    def compare(self, left, ops, *thunks):
        assert len(ops) == len(thunks) >= 2
        for at, (op, thunk) in enumerate(zip(ops, thunks, strict=True)):
            right = thunk()
            result = COMPARE[op](left, right)
            if at == len(ops) - 1 or not result:
                return result
            left = right

    def is_(self, a, b, negate):
        return (a is b) != negate

    def in_(self, a, container, negate):
        return (a in container) != negate

    def call(self, f):
        return f

    def generator(self, made):
        return made

    def method(self, obj, name):
        return getattr(obj, name)

    attr = method

    def set_attr(self, obj, name, value):
        setattr(obj, name, value)

    def del_attr(self, obj, name):
        delattr(obj, name)

    def item(self, obj, key):
        return obj[key]

    def set_item(self, obj, key, value):
        obj[key] = value

    def del_item(self, obj, key):
        del obj[key]

    slice_ = staticmethod(slice)

    def aug(self, op, old, value):
        return AUG[op](old, value)

    def assert_(self, test, message):
        if not test():
            raise AssertionError(*([] if message is None else [message()]))

    def raise_(self, error, cause):
        if cause is None:
            raise error()
        raised = error()
        raise raised from cause()

    def undefined(self, name):
        return Undefined(name)

    def refuse_groups(self):
        return None

    def decorator(self, f):
        return f

    def made_class(self, kind):
        return kind

    def try_(self, body, handler, orelse, final, kinds, get, set, names):
        self.touch(get, set, names)
        try:
            try:
                body()
            except BaseException as error:
                self.touch(get, set, names)
                if handler is None:
                    raise
                handler(error)
            else:
                if orelse is not None:
                    orelse()
        finally:
            if final is not None:
                final()
        self.touch(get, set, names)

    def match(self, ask, subject, ends=None):
        return ask(subject)

    def binary(self, sign, a, b):
        return COMPARE[sign](a, b) if sign in COMPARE else BINARY[sign](a, b)

    def unary(self, sign, x):
        return {"-": operator.neg, "+": operator.pos, "~": operator.invert}[sign](x)

    def items(self, x):
        return x

    def of_frame(self, f):
        return f

    def percent(self, text, values):
        return text % values

    def context(self, manager):
        return manager

    def with_(self, manager, body, get, set, names):
        self.touch(get, set, names)
        with manager as entered:
            body(entered)
        self.touch(get, set, names)

    def is_undefined(self, value):
        return isinstance(value, Undefined)

    def gathered(self, kind, items):
        return tuple(items) if kind == "tuple" else set(items)

    def keyed(self, pairs):
        return dict(pairs)

    def unpack(self, value, before, after=None):
        return value

    def load(self, value, name, free=False):
        if not isinstance(value, Undefined):
            return value
        if free:
            raise NameError(FREE.format(name))
        raise UnboundLocalError(UNSET.format(name))

    def fstring(self, *parts):
        def text(part):
            if isinstance(part, str):
                return part
            value, conversion, spec = part
            value = {"r": repr, "s": str, "a": ascii, None: lambda x: x}[conversion](value)
            return format(value, spec or "")

        return "".join(builtins.map(text, parts))
