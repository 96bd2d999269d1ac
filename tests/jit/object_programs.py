"""Random programs of Python objects, and what each call of one does: its result, and all that can be reached.

`program(seed)` writes Python source with a function `f(x, n, o, d, l)`: a tensor, an int tensor, an object, a dict and
a list. Objects, containers and aliases of them are made, swapped, written and deleted under tests of tensors and in
loops. `histories(source, wrap)` calls it with changing inputs and describes the result, the arguments and all globals
after each call, with the identity of each object and container in it.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import dy2st as paddle

CLASSES = """
import copy, dataclasses
from collections import OrderedDict
class A:
    kind = "a"
    def __init__(self, v):
        self.v = v
    def bump(self, by):
        self.v = self.v + by
        return self.v
    def chain(self):
        self.m = self.v * 2
        return self
class B(A):
    def __init__(self, v):
        super().__init__(v)
        self.w = v - 1
    def bump(self, by):
        self.w = by
        return super().bump(by)
@dataclasses.dataclass
class D:
    v: object
    w: object = 1
    items: list = dataclasses.field(default_factory=list)
class P(A):
    @property
    def p(self):
        return self.v * 3
    @p.setter
    def p(self, to):
        self.v = to
    def __len__(self):
        return 2
    def __getitem__(self, i):
        if i > 1:
            raise IndexError(i)
        return self.v + i
    def __setitem__(self, i, to):
        self.v = to + i
    def __contains__(self, x):
        self.asked = 1
        return True
    def __call__(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return self.v + x
    def __add__(self, other):
        return P(self.v + other.v)
    def __iadd__(self, other):
        self.v = self.v + other.v
        return self
    def __enter__(self):
        self.v = self.v + 1
        return self
    def __exit__(self, *error):
        self.v = self.v - 2
class E(A):
    def __eq__(self, other):
        self.compared = 1
        return isinstance(other, A) and other.v is self.v
    __hash__ = None
    def __bool__(self):
        self.asked = 1
        return True
    def __getattr__(self, name):
        if name == "late":
            return 7
        raise AttributeError(name)
class S:
    __slots__ = ("v", "w")
    def __init__(self, v):
        self.v = v
        self.w = 2
G = A(2.0)
H = B(1.0)
K = P(3.0)
T = {"a": 1, "b": A(4.0)}
L = [A(5.0), A(6.0)]
C = None
"""
CALLS = (([1.0, 2.0], 2), ([1.0, 2.0], 2), ([-3.0, 1.0], 3), ([0.5, -4.0, 6.0], 0), ([1.5, 2.0], 1), ([-2.0], 4))


WORDS: dict[str, tuple[str, ...]] = {
    "any": ("{v}", "{v}", "{v}", "o", "G", "H", "K", "L[0]", 'T["b"]', "l[0]"),
    "v": ("a", "b"),
    "tensor": ("x", "t"),
    "value": (
        "{tensor} * 2", "{tensor}.sum()", "{digit}", "{any}.v", "{any}.v + 1", "{tensor}", "{digit}.5",
        "x.sum() - {digit}",
        'getattr({any}, "w", 3)',
    ),
    "digit": tuple("0123456789"),
    "made": ("{kind}({value})",),
    "kind": ("A", "A", "B", "D", "P", "E", "S"),
    "thing": ("{made}", "{any}"),
    "list": ("l", "l", "L"),
    "dict": ("d", "d", "T"),
    "key": ("'a'", "'b'", "'z'", "'k'"),
    "operand": ("K", "K", "p"),
    "name": ("v", "m", "w"),
    "test": (
        "x.sum() > {digit} - 4", "x.sum() > 0", "x.max() < {digit}", "n > {digit} - 5", "n > 1",
        "n == 2 or x.sum() < 0",
        'hasattr({any}, "m")', "{any} is {any}", 'd["k"] is None', "isinstance({any}, B)", '"z" in d',
    ),
    "result": (
        "a.v, b.v, t, out", "a, b, out", "a", "[a, b], t", "{{'a': a, 'l': l}}, out", "t, out", "out", "a, o",
        "l[0].v, out, d",
    ),
}  # fmt: skip
"""What stands for the words in braces."""
STATEMENTS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (5, ("{any}.v = {value}", "{any}.v, {any}.v = {value}, {value}")),
    (4, ("{v} = {thing}",)),
    (2, ("a, b = b, a", "a, o = o, a", "b, l[0] = l[0], b", "a.v, b.v = b.v, a.v")),
    (3, ('if hasattr({any}, "m"): {v} = {any}', "{any}.m = {value}" , "H.m = {value}", "G.m = {thing}")),
    (2, ('if hasattr({v}, "m"): del {v}.m', 'if hasattr(G, "m"): del G.m', 'if hasattr(o, "m"): del o.m')),
    (2, ("if isinstance({v}, A): {v}.bump({digit})", "if isinstance({v}, A): a = {v}.chain()", "o.bump(1)",
         "b = H.chain()",
         "if type({v}) is D: {v}.items.append({value})")),
    (3, ("{list}.append({thing})", "{list}[-1] = {thing}", "{list}[0], {list}[-1] = {list}[-1], {list}[0]",
         "{list}.insert(0, {thing})", "if len({list}) > 3: {list}.pop()", "{v} = {list}[-1]", "{list}[-1].v = {value}",
         "for q in {list}: q.v = {value}")),
    (3, ("{dict}[{key}] = {thing}", "{dict}[{key}] = {value}", "{dict}.pop({key}, None)",
         "{dict}.setdefault({key}, [])",
         "if {dict}.get('k') is None: {dict}['k'] = []", "t = t + len({dict})", "{dict}.update(z={value})",
         "if isinstance({dict}.get('k'), list): {dict}['k'].append({value})", "d = {{**d, 'y': {value}}}",
         "if {dict}.get('b') is None: {dict}['b'] = {made}")),
    (3, ("t = t + {operand}[0]", "{operand}[1] = {value}", "{operand}.p = {value}", "t = t + {operand}.p", "p = p + K",
         "t = t + len({operand})", "t = t + {operand}(t)", "p += K", "with {operand} as q: q.v = q.v * 2",
         "for q in {operand}: t = t + q", "if 3 in {operand}: t = t + 1", "if {operand} == {any}: t = t + 1",
         "p = P({value})",
         "e = E(3)\nif e: t = t + e.asked")),
    (2, ('out.append(hasattr({any}, "{name}"))', 'out.append(getattr({any}, "{name}", -1))',
         "out.append({any} is {any})",
         "out.append('m' in vars(G))", "out.append(len(vars(o)))", "out.append(type({any}).__name__)",
         "out.append({any} in l)",
         "out.append({any} == {any})", "if type(a) is D: out.append(dataclasses.asdict(a)['w'])", "out.append(list(d))",
         "out.append(sorted(vars(H)))", "out.append({any}.v)", "out.append(isinstance({any}, B))", "out.append({any})",
         "out.append(l.index({any}) if {any} in l else -1)")),
    (2, ("{v} = {any}", "c = {any}")),
    (2, ("{v} = A({value})\n{v}.m = {thing}\n{v}.m.v = {value}", "l.append({{'q': {any}}}['q'])",
         "out.append([{any}, {any}])",
         "out.append({{'q': {any}}})")),
    (1, ("G.n = getattr(G, 'n', 0) + 1", "L.append(a)", "T['c'] = b", "C = a", "T['n'] = T.get('n', 0) + 1", "L[0] = b",
         "if C is None: C = A(x)", "if C is not None: t = t + C.v")),
    (1, ("{v} = copy.copy({any})", "l = list(l)", "d = dict(d)", "l = l[:]", "d = d.copy()",
         "if type(a) is D: a = dataclasses.replace(a, v=3)")),
)  # fmt: skip
"""Statements of one kind, and how often they are written."""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.loops = 0

    def __getitem__(self, word: str) -> str:
        return self.r.choice(WORDS[word]).format_map(self)

    def statement(self, depth: int) -> list[str]:
        """Return the lines of a statement."""
        block, loop = 5 if depth < 3 else 0, 1.5 if depth < 2 else 0
        kinds: list[Any] = [*(texts for _, texts in STATEMENTS), "if", "for", "return"]
        kind = self.r.choices(kinds, [*(weight for weight, _ in STATEMENTS), block, loop, 0.5 if depth else 0])[0]
        if kind == "if":
            lines = [f"if {self['test']}:", *self.block(depth + 1)]
            return lines + (["else:", *self.block(depth + 1)] if self.r.random() < 0.4 else [])
        if kind == "for":
            self.loops += 1
            return [f"for i{self.loops} in range({self.r.choice(['n', 'n', '2'])}):", *self.block(depth + 1)]
        if kind == "return":
            return [f"return {self['result']}"]
        return self.r.choice(kind).format_map(self).split("\n")

    def block(self, depth: int) -> list[str]:
        """Return the lines of a few statements."""
        return ["    " + line for _ in range(self.r.randint(1, 3)) for line in self.statement(depth)]

    def program(self) -> str:
        """Return the source of a program."""
        lines = ["global C", "t = x * 1.5", "out = []", "p = P(x)", "a = b = c = A(1)"]
        lines += [f"a = {self['made']}", f"b = {self['thing']}"]
        for _ in range(self.r.randint(2, 6)):
            lines += self.statement(0)
        lines.append(f"return {self['result']}")
        return "\n".join([CLASSES, "def f(x, n, o, d, l):", *("    " + line for line in lines), ""])


def program(seed: int) -> str:
    """Return the source of a program."""
    return Writer(seed).program()


def load(source: str, name: str) -> dict[str, Any]:
    """Run the source of a program; return its globals."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"paddle": paddle, "__name__": "program"}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space


def described(x: Any, seen: dict[int, int]) -> Any:
    """Return plain data for what `x` leads to; what was seen before is its number."""
    if isinstance(x, paddle.Tensor):
        array = np.asarray(x.numpy())
        return "tensor", str(array.dtype), array.shape, tuple(np.round(array.astype(float).ravel(), 4))
    if x is None or isinstance(x, (bool, int, float, str, type)):
        return (type(x).__name__, x.__name__ if isinstance(x, type) else round(x, 4) if isinstance(x, float) else x)
    if isinstance(x, tuple):
        return ("tuple", *(described(i, seen) for i in x))
    if id(x) in seen:
        return f"#{seen[id(x)]}"
    seen[id(x)] = len(seen)
    if isinstance(x, dict):
        return (type(x).__name__, *((k, described(v, seen)) for k, v in x.items()))
    if isinstance(x, list):
        return (type(x).__name__, *(described(i, seen) for i in x))
    names = sorted(vars(x)) if hasattr(x, "__dict__") else [n for n in ("v", "w") if hasattr(x, n)]
    return (type(x).__name__, *((n, described(object.__getattribute__(x, n), seen)) for n in names))


def history(
    source: str, name: str, wrap: Callable[[Any], Any], stop: type[BaseException] | tuple[()] = ()
) -> list[Any]:
    """Return what each call of a program gave and left; a call that raises `stop` ends the list with it."""
    space = load(source, name)
    f, A = wrap(space["f"]), space["A"]
    o, d, l = A(10.0), {"k": None, "a": A(1.0)}, [A(7.0), space["B"](8.0)]
    found: list[Any] = []
    for at, (values, count) in enumerate(CALLS):
        if at == 3:
            o, d, l = A(11.0), {"k": None, "b": o}, [o, A(3.0)]
        x = paddle.to_tensor(values)
        try:
            result = f(x, paddle.to_tensor(count), o, d, l)
        except stop as error:
            return [*found, error]
        except Exception as error:  # eager and static must raise the same
            result = "raised " + type(error).__name__
        roots = (result, o, d, l, *(space[n] for n in "GHKTLC"))
        found.append(described(roots, {}))
    return found
