"""`check(program)`: types every operation of a Program anew, from what enters it, by rules that share nothing with ops.

What a file declares is taken for a name, never for a fact. Kinds (dtypes, ranks, what is in lists, tuples and variants)
must be what the rules derive, else the Program is refused. Extents that it declares and the rules cannot derive are
forgotten; where an op needs two extents to be equal and they cannot be proved to be, a `broadcast` is put in front of
it, which the run checks. So the types that native code relies on follow from those of the inputs, which a call checks.

Functions are checked until nothing changes: claims on what they take and give hold for every call, or are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from dy2st.errors import InvalidProgram, located
from dy2st.ir.checker import collectives, containers, effects, elementwise, gather_scatter, getitem, matrices, shapes
from dy2st.ir.checker.control import CONTROL
from dy2st.ir.checker.derivatives import with_gradient
from dy2st.ir.checker.scope import Scope, Site, walk
from dy2st.ir.checker.type_join import Known, changed, extents_of, join, names_in, plain_name, same_kind
from dy2st.ir.checker.typed_operation import RULES, Refused, TypedOperation
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type
from dy2st.shapes import Shape, substituted

_FAMILIES = (getitem, collectives, containers, effects, elementwise, matrices, gather_scatter, shapes)
"""The files that fill the table of rules."""
_MOST_TEXT = 240


def check(program: Program, called: Collection[str] | None = None) -> None:
    """Type a Program anew, in place; InvalidProgram names the function, the op and the line of what does not fit.

    `called` are the functions that something outside of the Program may call; all of them where it is None. What such a
    call checks of its inputs are the extents of tensors, but not of those in lists, and no numbers.
    """
    if program.entry not in program.functions:
        raise InvalidProgram(f"the entry {program.entry!r:.60} is no function")
    whole = _Whole(program, called)
    functions = [Function(whole, name, block) for name, block in program.functions.items()]
    whole.functions = {f.name: f for f in functions}
    whole.changed = True
    while whole.changed:
        whole.changed = False
        for function in functions:
            function.run()


class _Whole:
    """What the functions of a Program share."""

    def __init__(self, program: Program, called: Collection[str] | None):
        self.program = program
        self.called = {program.entry, *(program.functions if called is None else called)}
        self.functions: dict[str, Function] = {}
        self.changed = False
        self.raised: dict[int, list[Operation]] = {}
        count = 0
        for operation in program.walk():
            count += 1
            label = operation.attributes.get("label")
            if operation.op.is_raise and type(label) is int:
                self.raised.setdefault(label, []).append(operation)
        self.left = 5000 + 40 * count
        """How many operations may still be looked at: claims that fail one after the other in nested loops cost."""


class Function:
    """One function of a Program while it is checked."""

    def __init__(self, whole: _Whole, name: str, block: Block):
        self.whole, self.name, self.block = whole, name, block
        self.scope = Scope()
        self.at: Operation | None = None
        self.declared = [v.type for v in block.arguments]
        names = {plain_name(e) for t in self.declared for e in extents_of(t)}
        self.results = [changed(v.type, lambda e: e if plain_name(e) in names else None) for v in block.results]
        """What is known of the results, in symbols of the arguments."""

    def run(self) -> None:
        """Check the function once, with what is known of all functions."""
        try:
            self._arguments()
            self.body(self.block)
            self._results()
        except Refused as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> NoReturn:
        text = reason if len(reason) <= _MOST_TEXT else reason[:_MOST_TEXT] + "..."
        at = self.at.location if self.at is not None else None
        message = f"{text}\n  in function {self.name:.60}"
        raise InvalidProgram(located(message, at.file if at else None, at.line if at else None))

    def _arguments(self) -> None:
        scope, seen = self.scope, set[str]()
        scope.begin()
        entry = self.name in self.whole.called

        def choose(site: Site, declared: Known, _: Known, may: bool) -> Known:
            if site in scope.weak or (entry and (may or len(site[1]) > 1)):
                return None if may else scope.born(site, None)
            if not may and isinstance(declared, int) and declared < 0:
                raise Refused(f"an argument has the extent {declared}")
            name = plain_name(declared)
            if name in seen or isinstance(declared, int):
                return declared
            if name is None or not scope.is_free(name, site):
                return None if may else scope.born(site, None)
            seen.add(name)
            return scope.born(site, declared)

        for argument, t in zip(self.block.arguments, self.declared, strict=True):
            argument.type = walk(choose, argument, t, t)

    def _results(self) -> None:
        names = {plain_name(e) for v in self.block.arguments for e in extents_of(v.type)} - {None}
        for i, value in enumerate(self.block.results):
            found = changed(value.type, lambda e: e if e is None or names.issuperset(names_in(e)) else None)
            known = join(self.results[i], found)
            if known != self.results[i]:
                self.results[i], self.whole.changed = known, True

    # ---- blocks and operations -------------------------------------------------------------------------------------
    def body(self, block: Block) -> None:
        """Check the operations of a block whose arguments have their types."""
        operations, block.operations = block.operations, []
        for operation in operations:
            self.at = operation
            self._operation(operation, block)
            block.operations.append(operation)

    def inner(self, block: Block, enter: Callable[[], None]) -> list[Type]:
        """Check a sub-block, whose arguments `enter` gives types; return the types of its results outside of it."""
        outside, around = set(self.scope.visible), self.at
        enter()
        self.body(block)
        self.at, self.scope.visible = around, outside
        return [changed(v.type, lambda e: e if self.scope.sees(e) else None) for v in block.results]

    def _operation(self, operation: Operation, block: Block) -> None:
        self.whole.left -= 1
        if self.whole.left < 0:
            raise Refused("claims on extents that fail one after the other")
        name = operation.op.name
        if REGISTRY.get(name) is not operation.op or not operation.op.saveable:
            raise Refused(f"{name!r:.60} is no op")
        given = TypedOperation(operation, self.scope)
        self._attributes(given)
        control, (rule, count) = CONTROL.get(name), RULES.get(name, (None, None))
        if name == "with_gradient":
            found = with_gradient(check, given)
        elif control is not None:
            found = control(self, given)
        elif rule is None or operation.blocks:
            given.refuse("no op that takes this" if rule is not None else "an op without a type rule")
        else:
            if count is not None and len(given.types) != count:
                given.refuse(f"{len(given.types)} operands, not {count}")
            found = rule(given)
        if given.wanted:
            self._checks(given, block)
        self._give(given, found)

    def _attributes(self, g: TypedOperation) -> None:
        op, found = g.operation.op, g.attributes.keys()
        for name in found - set(op.attributes):
            g.refuse(f"unknown attribute {name!r:.60}")
        for name in set(op.attributes) - found - set(op.may_lack):
            g.refuse(f"lacks {name!r}")
        g.named()

    def _give(self, g: TypedOperation, found: Sequence[Type]) -> None:
        results = g.operation.results
        g.require(len(results) == len(found), f"{len(results)} results, not {len(found)}")
        for i, (value, t) in enumerate(zip(results, found, strict=True)):
            if isinstance(t, TensorType) and any(isinstance(e, int) and e < 0 for e in t.shape):
                g.refuse(f"result {i} is {t}")
            if value.type == t:
                continue
            pairs = zip(extents_of(value.type), extents_of(t), strict=False)
            if not same_kind(value.type, t) or any(type(a) is type(b) is int and a != b for a, b in pairs):
                g.refuse(f"result {i} is declared {value.type}, and is {t}")
            value.type = self.scope.settled(value, t)
        if "type" in g.attributes:
            g.replace("type", results[0].type)
        elif "types" in g.attributes:
            g.replace("types", tuple(v.type for v in results))

    def _checks(self, g: TypedOperation, block: Block) -> None:
        """Put in front of an operation what lets the run check the shapes of operands."""
        operation = g.operation
        for i, extents in g.wanted:
            dims: list[Value] = []
            shape: list[Known] = []
            for place in extents:
                extent = place if isinstance(place, int) else _shape(operation.operands[place[0]].type)[place[1]]
                shape.append(extent)
                if not isinstance(place, int) and not isinstance(extent, int):
                    dim = _add(block, "dim", [operation.operands[place[0]]], {"axis": place[1]}, operation)
                    dim.type = ScalarType("int", extent)
                    dims.append(dim)
            template = tuple(e if isinstance(e, int) else None for e in shape)
            made = _add(block, "broadcast", [operation.operands[i], *dims], {"shape": template}, operation)
            made.type = TensorType(operation.operands[i].type.dtype, tuple(shape))  # type: ignore[union-attr, arg-type]
            operation.operands[i] = made

    # ---- calls -----------------------------------------------------------------------------------------------------
    def call(self, g: TypedOperation) -> Sequence[Type]:
        """Check a call, and say to the function that is called what its callers do not prove."""
        name = g.attributes["function"]
        called = self.whole.functions.get(name)
        if called is None:
            g.refuse(f"{name!r:.60} is no function")
        arguments = called.block.arguments
        g.require(len(arguments) == len(g.types), f"{len(g.types)} operands for {len(arguments)}")
        for i, (argument, t) in enumerate(zip(arguments, g.types, strict=True)):
            g.alike(t, argument.type, f"operand {i}")
        local: dict[str, Known] = {}
        own = {name for v in arguments for e in extents_of(v.type) if (name := plain_name(e))}
        if not called.scope.fits(arguments, g.types, local, own):
            self.whole.changed = True
        known = {name: e for name, e in local.items() if e is not None}

        def outside(e: Known) -> Known:
            return None if e is None or not known.keys() >= names_in(e) else substituted(e, known)

        return [changed(t, outside) for t in called.results]


def _shape(t: Type) -> Shape:
    return t.shape if isinstance(t, TensorType) else ()


def _add(block: Block, name: str, operands: list[Value], attributes: dict[str, Any], near: Operation) -> Value:
    """Append an operation with one result to a block."""
    made = Operation(REGISTRY[name], operands, attributes, [], near.location)
    made.results.append(Value(INT, block, made))
    block.operations.append(made)
    return made.results[0]
