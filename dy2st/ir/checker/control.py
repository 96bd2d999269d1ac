"""Type rules of what has blocks, and of calls: what enters a block is what its arguments are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dy2st.ir.checker.effects import exceptions
from dy2st.ir.checker.type_join import Known, changed, extents_of, join, plain_name
from dy2st.ir.checker.typed_operation import TypedOperation
from dy2st.ir.program import Block, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type

if TYPE_CHECKING:
    from dy2st.ir.checker.check import Function

Control = Callable[["Function", TypedOperation], Sequence[Type]]


def _blocks(g: TypedOperation, count: int) -> list[Block]:
    g.require(len(g.operation.blocks) == count, f"{len(g.operation.blocks)} blocks")
    return g.operation.blocks


def _predicate(g: TypedOperation, t: Type) -> None:
    g.require(isinstance(t, (TensorType, ScalarType)), f"the predicate is {t}")


def _alike(g: TypedOperation, arguments: Sequence[Value], given: Sequence[Type], what: str) -> None:
    g.require(len(arguments) == len(given), f"{len(given)} values for {len(arguments)} {what}s")
    for i, (argument, t) in enumerate(zip(arguments, given, strict=True)):
        g.alike(t, argument.type, f"{what} {i}")


def _unknown(t: Type) -> Type:
    return changed(t, lambda _: None)


def _joined(g: TypedOperation, one: Sequence[Type], other: Sequence[Type]) -> list[Type]:
    g.require(len(one) == len(other), f"blocks of {len(one)} and {len(other)} results")
    for i, (a, b) in enumerate(zip(one, other, strict=True)):
        g.alike(b, a, f"result {i} of the second block")
    return list(map(join, one, other))


def _enter(f: Function, g: TypedOperation, block: Block, given: Sequence[Type]) -> list[Type]:
    """Check a block that runs once, on values of these types."""
    _alike(g, block.arguments, given, "argument")
    return f.inner(block, lambda: f.scope.entered(block.arguments, given, {}))


def _cond(f: Function, g: TypedOperation) -> Sequence[Type]:
    g.count(1, -1)
    _predicate(g, g.types[0])
    then, other = _blocks(g, 2)
    return _joined(g, _enter(f, g, then, g.types[1:]), _enter(f, g, other, g.types[1:]))


def _attempt(f: Function, g: TypedOperation) -> Sequence[Type]:
    """Check `try`: the handler takes the last operands of each `raise` with the label in front of the others."""
    body, handler = _blocks(g, 2)
    label, handed = g.attribute("label"), len(handler.arguments) - len(g.types)
    exceptions(g, "kinds")
    g.require(handed >= 0, "the handler takes too few values")
    if label is None:
        g.require(handed == 0, "a handler takes values from a raise without a label")
    else:
        g.small(label, "label", 0)
        g.require(handed == 0 or not g.sequence("kinds"), "a handler of kinds takes values from a raise")
        for operation in f.whole.raised.get(label, ()):
            given = [v.type for v in operation.operands]
            g.require(len(given) >= handed, f"a raise hands over {len(given)} values, not {handed}")
            _alike(g, handler.arguments[:handed], given[len(given) - handed :], "value handed over")
    taken = [_unknown(v.type) for v in handler.arguments[:handed]]
    return _joined(g, _enter(f, g, body, g.types), _enter(f, g, handler, [*taken, *g.types]))


def _loop(f: Function, g: TypedOperation) -> Sequence[Type]:
    """Check a loop until the types of what it carries hold for every iteration."""
    g.count(1, -1)
    counter = (INT,) if g.name == "counted_while" else ()
    if counter:
        g.number(0)
    _predicate(g, g.types[0])
    count, (body,) = g.whole("carried", 0, len(g.types) - 1), _blocks(g, 1)
    policy = g.attributes.get("checkpoint", "all")
    g.require(policy in ("all", "sqrt") or (type(policy) is int and policy > 0), f"checkpoint is {policy!r:.40}")
    given = g.types[1:]
    _alike(g, body.arguments, [*counter, *given], "argument")
    g.require(len(body.results) == count + (not counter), f"{len(body.results)} results carry {count} values")
    first, carried = body.arguments[: len(counter)], body.arguments[len(counter) : len(counter) + count]
    others = body.arguments[len(counter) + count :]
    local: dict[str, Known] = {}

    def enter() -> None:
        local.clear()
        f.scope.entered(first, counter, local)
        f.scope.entered(others, given[count:], local)
        fixed.clear()
        fixed.update(local)
        f.scope.entered(carried, given[:count], local)

    fixed: dict[str, Known] = {}
    while True:
        made = f.inner(body, enter)
        if not counter:
            _predicate(g, made[0])
            made = made[1:]
        _alike(g, carried, made, "carried value")
        own = local.keys() - fixed.keys()
        names = {plain_name(e) for v in carried for e in extents_of(v.type)}
        own |= names - {None} - f.scope.visible
        own -= fixed.keys()
        if f.scope.fits(carried, made, {}, own):  # type: ignore[arg-type]
            break
    return [changed(v.type, lambda e: e if f.scope.sees(e) else None) for v in carried]


CONTROL: dict[str, Control] = {
    "cond": _cond, "try": _attempt, "while_loop": _loop, "counted_while": _loop, "call": lambda f, g: f.call(g),
}  # fmt: skip
