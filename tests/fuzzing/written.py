"""Programs that are written at random, from nothing: any op on whatever is at hand, in blocks within blocks.

Types are those that ops infer, which trust operands and attributes; what a file claims beyond that, `mutations.py`
adds. Operands are taken from few values, so that many ops take the same value twice, or a view of what they write to.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import bool_
from dy2st.errors import Dy2stError
from dy2st.ir.builder import Builder
from dy2st.ir.checker.type_join import changed, same_kind
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    UnsetType,
    VariantType,
)
from dy2st.shapes import symbol
from tests.fuzzing.containers import CONTAINERS, DTYPES
from tests.ops.evaluate import type_of

_NAMES = ("N", "N", "N", "M", "K")
_DEEPEST = 3
_REFUSED = (Dy2stError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError, OverflowError,
            ZeroDivisionError)  # fmt: skip
"""What type rules raise on operands that they do not take; then another operation is written."""

Samples = dict[str, list[tuple[list[Type], dict[str, Any]]]]


@functools.cache
def samples() -> Samples:
    """Return operand types and attributes of all ops that may stand in a file."""
    found: Samples = {}
    for name, op in sorted(REGISTRY.items()):
        if op.saveable and not op.blocks and name not in ("call", "raise", "assert", "print", "warn", "log_record"):
            made = list(op.samples(np.random.default_rng(0)))  # type: ignore[attr-defined]
            found[name] = [([type_of(x, True) for x in s.operands], s.attributes) for s in made]
    return found


def written(known: Samples, rng: random.Random) -> Program:
    """Return a random Program, of one function or two."""
    author = Author(known, rng)
    functions: dict[str, Block] = {}
    if rng.random() < 0.3:
        functions["helper"] = author.function("helper", 6)
        author.helper = functions["helper"]
    functions["main"] = author.function("main", rng.choice((3, 6, 12, 25)))
    return Program(functions, "main")


class Author:
    def __init__(self, known: Samples, rng: random.Random):
        self.known, self.rng, self.names = known, rng, sorted(known)
        self.helper: Block | None = None
        self.labels = 0

    # ---- types and values ------------------------------------------------------------------------------------------
    def extent(self) -> Any:
        return symbol(self.rng.choice(_NAMES)) if self.rng.random() < 0.7 else self.rng.choice((0, 1, 2, 3, 4, 4, 9))

    def type(self, depth: int = 0) -> Type:
        rng, choice = self.rng, self.rng.random()
        if choice < 0.62 or depth > 2:
            rank = rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 4))
            return TensorType(rng.choice(DTYPES), tuple(self.extent() for _ in range(rank)))
        if choice < 0.8:
            return rng.choice((INT, INT, FLOAT, BOOL))
        if choice < 0.88:
            return ListType(_inner(self.type(depth + 1)))
        if choice < 0.93:
            return TupleType(tuple(self.type(depth + 1) for _ in range(rng.randrange(3))))
        others = [rng.choice((NONE, ConstType("c"), self.type(depth + 1))) for _ in range(rng.choice((1, 1, 2)))]
        return VariantType((UNSET, *others))

    def value(self, b: Builder, wanted: Type) -> Value:
        """Return a value of the kind of a type: one that is at hand, or a new one."""
        at_hand = [v for v in _values(b.block) if same_kind(v.type, wanted)]
        if at_hand and self.rng.random() < 0.85:
            return self.rng.choice(at_hand[-4:] if self.rng.random() < 0.5 else at_hand)
        return self.made(b, wanted)

    def made(self, b: Builder, wanted: Type) -> Value:
        rng = self.rng
        if isinstance(wanted, TensorType):
            large = math.prod(e for e in wanted.shape if isinstance(e, int)) > 10_000
            if wanted.rank and (large or rng.random() < 0.6):
                dims = [self.length(b) if not isinstance(e, int) else e for e in wanted.shape]
                return b.shaped("full", [self.made(b, TensorType(wanted.dtype, ()))], dims)
            shape = [e if isinstance(e, int) else rng.choice((0, 1, 2, 3, 4)) for e in wanted.shape]
            numbers = [rng.choice((0.0, -0.0, 1.0, 2.0, rng.uniform(-3, 3), float("nan"), float("inf")))
                       for _ in range(max(1, int(np.prod(shape))))]  # fmt: skip
            with np.errstate(all="ignore"):
                array = np.resize(np.nan_to_num(numbers) if wanted.dtype.kind in "iub" else numbers, shape)
                return b.constant(np.clip(array, -9, 9) if wanted.dtype.kind in "iu" else array, wanted.dtype)
        if isinstance(wanted, ScalarType):
            numbers = {"int": (0, 1, 2, 3, 4, -1, -2, 7, 1 << 40), "bool": (True, False), "float": (0.5, -1.0, 2.5)}
            return b.scalar(rng.choice(numbers[wanted.kind][:6] if rng.random() < 0.9 else numbers[wanted.kind]))
        if isinstance(wanted, ListType):
            items = [self.value(b, wanted.element) for _ in range(rng.randrange(3))]
            return b.emit("list_new", items, {"type": wanted})
        if isinstance(wanted, TupleType):
            return b.emit("tuple_new", [self.value(b, t) for t in wanted.items])
        assert isinstance(wanted, VariantType)
        tag = rng.randrange(len(wanted.alternatives))
        chosen = wanted.alternatives[tag]
        payload = [] if isinstance(chosen, (UnsetType, ConstType)) else [self.value(b, chosen)]
        return b.emit("variant_new", payload, {"type": wanted, "tag": tag})

    def length(self, b: Builder) -> Value:
        """Return a number that an extent may be: mostly one of a tensor that is at hand."""
        tensors = [v for v in _values(b.block) if isinstance(v.type, TensorType) and v.type.rank]
        if tensors and self.rng.random() < 0.7:
            x = self.rng.choice(tensors)
            return b.emit("dim", [x], {"axis": self.rng.randrange(x.type.rank)})  # type: ignore[union-attr]
        return self.value(b, INT) if self.rng.random() < 0.2 else b.scalar(self.rng.randrange(5))

    # ---- operations ------------------------------------------------------------------------------------------------
    def function(self, name: str, count: int) -> Block:
        b = Builder()
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            b.argument(_whole(b, self.type()))
        self.fill(b, count, 0)
        b.block.results = [v for v in _values(b.block) if self.rng.random() < 0.9]  # what nobody reads is not computed
        return b.block

    def fill(self, b: Builder, count: int, depth: int) -> None:
        """Write operations at the end of a block."""
        for _ in range(count):
            for _ in range(8):
                mark = b.checkpoint()
                try:
                    self.operation(b, depth)
                    break
                except _REFUSED:
                    b.rollback(mark)

    def operation(self, b: Builder, depth: int) -> None:
        choice = self.rng.random()
        if choice < 0.2 and depth < _DEEPEST:
            self.rng.choice((self.cond, self.cond, self.loop, self.loop, self.counted, self.attempt))(b, depth)
        elif choice < 0.25:
            self.effect(b)
        elif choice < 0.28 and self.helper is not None:
            helper = self.helper
            operands = [self.value(b, v.type) for v in helper.arguments]
            types = tuple(changed(v.type, lambda e: e if isinstance(e, int) else None) for v in helper.results)
            b.emit("call", operands, {"function": "helper", "types": types})
        elif choice < 0.42:
            self.container(b)
        elif choice < 0.5:
            self.cast(b)
        else:
            self.plain(b)

    def plain(self, b: Builder) -> None:
        name = self.rng.choice(self.names)
        if not self.known[name]:
            self.container(b)
            return
        wanted, attributes = self.rng.choice(self.known[name])
        dtypes = {t.dtype for t in wanted if isinstance(t, TensorType)}
        if len(dtypes) == 1 and self.rng.random() < 0.5:  # the op on another dtype
            (old,), new = dtypes, self.rng.choice(DTYPES)
            wanted = [TensorType(new, t.shape) if isinstance(t, TensorType) and t.dtype is old else t for t in wanted]
        b.emit(name, [self.value(b, t) for t in wanted], self.varied(attributes))

    def varied(self, attributes: dict[str, Any]) -> dict[str, Any]:
        return {name: self.another(v) if self.rng.random() < 0.1 else v for name, v in attributes.items()}

    def another(self, value: Any) -> Any:
        rng = self.rng
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return rng.choice((value + 1, value - 1, -value, 0, 1, 2, 7, 1 << 31, -(1 << 31), 1 << 61))
        if isinstance(value, float):
            return rng.choice((0.0, -0.0, -1.0, 1e300, 1e-300, float("inf"), float("nan")))
        if isinstance(value, tuple) and value:
            at = rng.randrange(len(value))
            return (*value[:at], self.another(value[at]), *value[at + 1 :])
        return value

    def cast(self, b: Builder) -> None:
        x = self.rng.choice(
            [v for v in _values(b.block) if isinstance(v.type, TensorType)] or [self.made(b, self.type())]
        )
        if isinstance(x.type, TensorType):
            b.emit("cast", [x], {"dtype": self.rng.choice(DTYPES)})

    def effect(self, b: Builder) -> None:
        rng = self.rng
        kind = rng.choice(("assert", "print", "raise", "warn"))
        if kind == "assert":
            b.emit("assert", [self.predicate(b), self.value(b, INT)], {"template": ("x is ", ("", "", ""))})
        elif kind == "print":
            x = self.value(b, self.type())
            part = ("Tensor:True", "", "") if isinstance(x.type, TensorType) else ("", "", "")
            b.emit("print", [x], {"template": (part,), "sep": " ", "end": "\n"})
        elif kind == "warn":
            b.emit("warn", [], {"template": ("careful",), "category": "UserWarning", "at": ("a.py", 3)})
        else:
            then = b.child()
            self.throw(then, rng.randrange(3))
            b.emit("cond", [self.predicate(b)], {}, [then.block, b.child().block])

    def throw(self, b: Builder, label: int, handed: Sequence[Value] = ()) -> None:
        kind = self.rng.choice(("ValueError", "IndexError", "KeyError"))
        b.emit("raise", list(handed), {"kind": kind, "template": ("thrown",), "label": label})

    def predicate(self, b: Builder) -> Value:
        if self.rng.random() < 0.3:
            return b.emit("scalar_lt", [self.value(b, INT), self.value(b, INT)])
        return self.value(b, self.rng.choice((BOOL, BOOL, TensorType(bool_, ()), INT)))

    # ---- control flow ----------------------------------------------------------------------------------------------
    def block(self, b: Builder, taken: Sequence[Type], given: Sequence[Type] | None, depth: int) -> Builder:
        """Return a block that takes values of these types and gives some of those kinds; any where none are asked."""
        inner = Builder(Block(), names=b.names)
        for t in taken:
            inner.argument(self.claimed(t))
        self.fill(inner, self.rng.choice((0, 1, 2, 4)), depth + 1)
        values = _values(inner.block)
        if given is None:
            inner.block.results = self.rng.choices(values, k=self.rng.randrange(4)) if values else []
        else:
            inner.block.results = [self.value(inner, t) for t in given]
        return inner

    def claimed(self, t: Type) -> Type:
        """Return a type with other names of extents, and numbers in the place of some."""

        def claim(e: Any) -> Any:
            if self.rng.random() < 0.8 or e is None or isinstance(e, int):
                return e
            return self.rng.choice((4, 16, symbol("N"), symbol("M"), symbol("Z")))

        return changed(t, claim)

    def captured(self, b: Builder) -> list[Value]:
        values = _values(b.block)
        return [self.rng.choice(values) for _ in range(self.rng.randrange(5))] if values else []

    def cond(self, b: Builder, depth: int) -> None:
        p, given = self.predicate(b), self.captured(b)
        then = self.block(b, [v.type for v in given], None, depth)
        other = self.block(b, [v.type for v in given], [v.type for v in then.block.results], depth)
        b.emit("cond", [p, *given], {}, self.shuffled([then.block, other.block]))

    def shuffled(self, blocks: list[Block]) -> list[Block]:
        return blocks[::-1] if self.rng.random() < 0.5 else blocks

    def loop(self, b: Builder, depth: int) -> None:
        """Write a loop that ends after a few turns, by a count that it carries and by whatever else."""
        given, kept = self.captured(b), self.captured(b)
        body = self.block(b, [INT, *(v.type for v in (*given, *kept))], [v.type for v in given], depth)
        made, i = body.block.results, body.block.arguments[0]
        more = body.emit("scalar_lt", [i, body.scalar(self.rng.randrange(5))])
        if self.rng.random() < 0.4:
            more = body.emit("scalar_and", [more, self.value(body, BOOL)])
        body.block.results = [more, body.scalar_add(i, 1), *made]
        operands = [self.value(b, BOOL), b.scalar(0), *given, *kept]
        b.emit("while_loop", operands, {"carried": 1 + len(given)}, [body.block])

    def counted(self, b: Builder, depth: int) -> None:
        given, kept = self.captured(b), self.captured(b)
        body = self.block(b, [INT, *(v.type for v in (*given, *kept))], [v.type for v in given], depth)
        count = b.scalar(self.rng.randrange(4))
        reverse = self.rng.random() < 0.3
        b.emit("counted_while", [count, *given, *kept], {"carried": len(given), "reverse": reverse}, [body.block])

    def attempt(self, b: Builder, depth: int) -> None:
        """Write a `try` whose body may raise, and hand values over from there."""
        given, label = self.captured(b), self.rng.randrange(3)
        self.labels += 1
        label += 3 * self.labels * (self.rng.random() < 0.8)
        body = self.block(b, [v.type for v in given], None, depth)
        inner = body.child()
        handed = self.captured(body)
        taken = [v.type for v in handed]
        self.throw(inner, label, handed)
        body.emit("cond", [self.predicate(body), *inner.captures], {}, [inner.block, self.same(inner)])
        wanted = [v.type for v in body.block.results]
        handler = self.block(b, [*taken, *(v.type for v in given)], wanted, depth)
        b.emit("try", given, {"label": label, "kinds": ()}, [body.block, handler.block])

    def same(self, b: Builder) -> Block:
        other = Builder(Block(), names=b.names)
        for v in b.block.arguments:
            other.argument(v.type)
        return other.block

    # ---- lists, tuples, variants -----------------------------------------------------------------------------------
    def container(self, b: Builder) -> None:
        name = self.rng.choice(sorted(CONTAINERS))
        wanted = next((t for t in (self.picked(b, kind) for kind in [CONTAINERS[name][0]]) if t is not None), None)
        if wanted is not None:
            CONTAINERS[name][1](self, b, name, wanted)

    def picked(self, b: Builder, kind: str) -> Value | None:
        """Return a value that is a list, a list of slots, a tuple or a variant."""
        fits: dict[str, Callable[[Type], bool]] = {
            "list": lambda t: isinstance(t, ListType), "slots": _is_slots, "any": lambda _: True,
            "tuple": lambda t: isinstance(t, TupleType), "variant": lambda t: isinstance(t, VariantType),
        }  # fmt: skip
        found = [v for v in _values(b.block) if fits[kind](v.type)]
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found)
        inner = _inner(self.type(1))
        makes: dict[str, Type] = {
            "list": ListType(inner), "slots": ListType(VariantType((UNSET, inner))), "any": self.type(),
            "tuple": TupleType((inner, self.type(1))), "variant": VariantType((UNSET, self.type(1))),
        }  # fmt: skip
        return self.made(b, makes[kind])


def _inner(t: Type) -> Type:
    """Return an element type of a list: extents in it are not known."""
    return changed(t, lambda e: e if isinstance(e, int) else None)


def _whole(b: Builder, t: Type) -> Type:
    return b.named(t)


def _is_slots(t: Type) -> bool:
    return isinstance(t, ListType) and isinstance(t.element, VariantType) and t.element.alternatives[0] == UNSET


def _values(block: Block) -> list[Value]:
    return [*block.arguments, *(v for o in block.operations for v in o.results)]
