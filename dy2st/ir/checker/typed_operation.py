"""One operation as type rules see it: operands and attributes that say what they are, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

from dy2st.dtypes import DType
from dy2st.ir.checker.scope import Scope
from dy2st.ir.checker.type_join import Known, changed, same_kind
from dy2st.ir.program import Operation
from dy2st.ir.types import ListType, ScalarType, TensorType, Type, VariantType

LARGEST = 2**62
"""Numbers in attributes are smaller, so that sums of two fit into 64 bits."""
Place = tuple[int, int]
_FLAGS = """approximate causal ceil_mode descending exclusive inverse keepdim largest reverse sorted transpose_x
            transpose_y wrap"""
KINDS = {
    **dict.fromkeys(_FLAGS.split(), (bool,)),
    **dict.fromkeys(("beta", "epsilon", "threshold"), (int, float)),
    **dict.fromkeys(("function", "logger", "message", "sep", "end", "whose"), (str,)),
}
"""Attributes that are of one kind in all ops."""


class Refused(Exception):
    """What is wrong with an operation, in a few words."""


class TypedOperation:
    """An operation with what is known of its operands."""

    def __init__(self, operation: Operation, scope: Scope):
        self.scope = scope
        self.operation, self.name = operation, operation.op.name
        self.types: list[Type] = [v.type for v in operation.operands]
        self.attributes = operation.attributes
        self.wanted: list[tuple[int, list[int | Place]]] = []
        """Operands whose shape is to be checked by the run: each extent is a number, or that of another operand."""

    def refuse(self, reason: str) -> NoReturn:
        raise Refused(f"{self.name}: {reason}")

    def require(self, condition: bool, reason: str) -> None:
        if not condition:
            self.refuse(reason)

    # ---- operands --------------------------------------------------------------------------------------------------
    def count(self, least: int, most: int | None = None) -> None:
        """Refuse other numbers of operands."""
        n = len(self.types)
        most = least if most is None else most
        self.require(least <= n and (n <= most or most < 0), f"{n} operands")

    def operand(self, i: int) -> Type:
        return self.types[i] if i < len(self.types) else self.refuse(f"operand {i} is missing")

    def tensor(self, i: int, kinds: str = "biufc", rank: int | None = None, least: int = 0) -> TensorType:
        """Return the type of operand i, a tensor of one of these kinds of elements."""
        t = self.operand(i)
        if not isinstance(t, TensorType) or t.dtype.kind not in kinds:
            self.refuse(f"operand {i} is {t}")
        if (rank is not None and len(t.shape) != rank) or len(t.shape) < least:
            self.refuse(f"operand {i} has rank {len(t.shape)}")
        return t

    def tensors(self, start: int = 0, kinds: str = "biufc") -> list[TensorType]:
        """Return the types of operands from one on, tensors of one dtype."""
        found = [self.tensor(i, kinds) for i in range(start, len(self.types))]
        self.require(bool(found) and all(t.dtype is found[0].dtype for t in found), "operands of several dtypes")
        return found

    def like(self, i: int, dtype: DType, rank: int | None = None) -> TensorType:
        """Return the type of operand i, a tensor of this dtype."""
        t = self.tensor(i, rank=rank)
        self.require(t.dtype is dtype, f"operand {i} is {t.dtype.name}, not {dtype.name}")
        return t

    def number(self, i: int, *kinds: str) -> ScalarType:
        """Return the type of operand i, a number; an int where no kinds are given."""
        t = self.operand(i)
        if not isinstance(t, ScalarType) or t.kind not in (kinds or ("int",)):
            self.refuse(f"operand {i} is {t}")
        return t

    def numbers(self, first: int, behind: int, *kinds: str) -> None:
        """Refuse operands, from one on and in front of another, that are no numbers of these kinds."""
        for i in range(first, behind):
            self.number(i, *kinds)

    def items(self, i: int) -> ListType:
        """Return the type of operand i, a list."""
        t = self.operand(i)
        return t if isinstance(t, ListType) else self.refuse(f"operand {i} is {t}, no list")

    def variant(self, i: int) -> VariantType:
        """Return the type of operand i, a variant."""
        t = self.operand(i)
        return t if isinstance(t, VariantType) else self.refuse(f"operand {i} is {t}, no variant")

    def alike(self, found: Type, wanted: Type, what: str) -> None:
        """Refuse a type that differs from another in more than extents."""
        if not same_kind(found, wanted):
            self.refuse(f"{what} is {found}, not {wanted}")

    # ---- extents ---------------------------------------------------------------------------------------------------
    def equal(self, a: Known, b: Known, what: str = "extents") -> None:
        """Refuse two extents that are known to differ; what only a run tells is for the run to check."""
        if isinstance(a, int) and isinstance(b, int) and a != b:
            self.refuse(f"{what} {a} and {b} differ")

    def equals(self, a: Sequence[Known], b: Sequence[Known]) -> None:
        """Refuse two shapes of which extents are known to differ, or of two ranks."""
        self.require(len(a) == len(b), f"ranks {len(a)} and {len(b)} differ")
        for one, other in zip(a, b, strict=True):
            self.equal(one, other)

    def fits(self, small: Sequence[Known], large: Sequence[Known]) -> None:
        """Refuse a shape that cannot be broadcast to another one."""
        self.require(len(small) <= len(large), f"rank {len(small)} to {len(large)}")
        for one, other in zip(reversed(small), reversed(large), strict=False):
            if one != 1:
                self.equal(one, other)

    def shaped(self, i: int, places: Sequence[int | Place]) -> None:
        """Say that operand i has these extents: numbers, or (operand, axis); where that is no fact, the run checks."""
        own = self.tensor(i, rank=len(places)).shape
        wanted = [p if isinstance(p, int) else self.tensor(p[0]).shape[p[1]] for p in places]
        for a, b in zip(own, wanted, strict=True):
            self.equal(a, b)
        if own != tuple(wanted):
            self.wanted.append((i, list(places)))

    def same_shape(self, i: int, other: int = 0) -> None:
        """Say that operand i has the shape of another one."""
        if self.tensor(i).shape == self.tensor(other).shape:
            return
        self.shaped(i, [(other, axis) for axis in range(self.tensor(other).rank)])

    def stacked(self, i: int, *, square: bool = False) -> None:
        """Say that operand i is as many matrices as the first operand is, which are square or of any extents."""
        rank = self.tensor(i, rank=self.tensor(0).rank, least=2).rank
        batch: list[Place] = [(0, axis) for axis in range(rank - 2)]
        self.shaped(i, [*batch, (i, rank - 2), (i, rank - 2 if square else rank - 1)])

    def fill(self, name: str, first: int) -> list[Known]:
        """Return the extents of a shape template; those left out are the operands from number `first` on, ints."""
        shape = self.sequence(name)
        dims = iter([self.number(i) for i in range(first, len(self.types))])
        found: list[Known] = []
        for e in shape:
            if e is None:
                dim = next(dims, None)
                found.append(self.refuse(f"too few extents for {name}") if dim is None else dim.extent)
            else:
                found.append(self.small(e, name))
        self.require(next(dims, None) is None, f"too many extents for {name}")
        return found

    def shape(self, name: str, first: int, rank: int | None = None) -> list[Known]:
        """Return a shape template, whose numbers are not negative."""
        found = self.fill(name, first)
        self.require(rank in (None, len(found)), f"{name} has {len(found)} extents")
        self.require(not any(isinstance(e, int) and e < 0 for e in found), f"a negative extent in {name}")
        return found

    # ---- attributes ------------------------------------------------------------------------------------------------
    def attribute(self, name: str) -> Any:
        return self.attributes[name]

    def small(self, value: Any, name: str, least: int = -LARGEST, most: int = LARGEST) -> int:
        """Return an attribute, or an item of one, that is an int in a range."""
        if type(value) is not int or not least <= value <= most:
            self.refuse(f"{name} is {value!r:.40}")
        return value

    def whole(self, name: str, least: int = -LARGEST, most: int = LARGEST) -> int:
        return self.small(self.attributes[name], name, least, most)

    def axis(self, name: str, rank: int) -> int:
        """Return an attribute that is an axis of a tensor, counted from the front."""
        return self.whole(name, 0, rank - 1)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Return an attribute that is different axes of a tensor."""
        found = self.wholes(name, 0, rank - 1)
        self.require(len(set(found)) == len(found), f"{name} has an axis twice")
        return found

    def sequence(self, name: str) -> tuple[Any, ...]:
        value = self.attributes[name]
        if type(value) is not tuple:
            self.refuse(f"{name} is no tuple")
        return cast("tuple[Any, ...]", value)

    def wholes(self, name: str, least: int = -LARGEST, most: int = LARGEST, count: int = -1) -> tuple[int, ...]:
        found = tuple(self.small(v, name, least, most) for v in self.sequence(name))
        self.require(count in (-1, len(found)), f"{name} has {len(found)} items")
        return found

    def pairs(self, name: str, count: int) -> tuple[tuple[int, int], ...]:
        """Return an attribute that is a pair (low, high) for each of so many axes."""
        found = self.sequence(name)
        self.require(
            len(found) == count and all(type(p) is tuple and len(p) == 2 for p in found), f"{name} is no pairs"
        )
        return tuple((self.small(a, name, 0, 2**31), self.small(b, name, 0, 2**31)) for a, b in found)

    def named(self) -> None:
        """Refuse attributes that are not of the kind that all of their name are of."""
        for name, value in self.attributes.items():
            if name in KINDS and type(value) not in KINDS[name]:
                self.refuse(f"{name} is {value!r:.40}")

    def text(self, name: str, *choices: str) -> str:
        value = self.attributes[name]
        if type(value) is not str or (choices and value not in choices):
            self.refuse(f"{name} is {value!r:.40}")
        return value

    def dtype(self, name: str = "dtype", kinds: str = "biufc") -> DType:
        value = self.attributes[name]
        if not isinstance(value, DType) or value.kind not in kinds:
            self.refuse(f"{name} is {value!r:.40}")
        return value

    def type(self, name: str = "type") -> Type:
        """Return an attribute that is a type; extents in symbols that are not known here are unknown."""
        value = self.attributes[name]
        if not isinstance(value, Type):
            self.refuse(f"{name} is no type")
        return changed(value, lambda e: e if self.scope.sees(e) else None)

    def list_type(self, name: str = "type") -> ListType:
        value = self.type(name)
        return value if isinstance(value, ListType) else self.refuse(f"{name} is {value}, no list")

    def variant_type(self, name: str = "type") -> VariantType:
        value = self.type(name)
        return value if isinstance(value, VariantType) else self.refuse(f"{name} is {value}, no variant")

    def replace(self, name: str, value: Any) -> None:
        """Set an attribute that says more than is known to what is known."""
        if self.attributes[name] != value:
            self.attributes[name] = value


Rule = Callable[[TypedOperation], Sequence[Type]]
RULES: dict[str, tuple[Rule, int | None]] = {}
"""The type rule of each op, and how many operands it takes; None where the rule looks at that."""


def rule(names: str, count: int | None = None) -> Callable[[Rule], Rule]:
    """Enter a function as the type rule of these ops, which take `count` operands; `name:3` says it of one op."""

    def enter(function: Rule) -> Rule:
        for entry in names.split():
            name, _, own = entry.partition(":")
            if name in RULES:
                raise ValueError(f"two type rules for {name!r}")
            RULES[name] = function, int(own) if own else count
        return function

    return enter
