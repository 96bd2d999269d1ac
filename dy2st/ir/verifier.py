"""The rules of the IR, checked: `verify(program)` raises InvalidProgram at the first one that is broken.

1. A block is closed: an operand is an argument of its own block or a result of an operation that stands before it.
2. Each value is defined once, by the block and operation that it names; no block stands in two places.
3. An operation's op is registered; it has as many operands and sub-blocks as the op takes, and exactly its attributes.
4. The types of results are what the op infers from its operands (an extent that it does not know may be anything;
   two different numbers never agree). The arguments and results of sub-blocks fit.
5. `call` names a function of the Program and fits its arguments and results.

The order of effects is the order of the operations in a block; there is nothing else to check about it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn, cast

from dy2st.dtypes import DType
from dy2st.errors import InvalidProgram, located
from dy2st.ir.checkpoint import KEEP_ALL, wrong_checkpoint
from dy2st.ir.literals import is_array
from dy2st.ir.opdef import REGISTRY, OpDef
from dy2st.ir.printer import label, operation_to_text, value_names
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.type_text import DTYPES, check_type
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.shapes import Extent

_PLAIN = frozenset((type(None), bool, int, float, str))


def verify(program: Program) -> None:
    """Raise InvalidProgram, with the function, the operation and the user's line, when a rule of the IR is broken."""
    if program.entry not in program.functions:
        raise InvalidProgram(f"the entry {program.entry!r} is not among the functions {', '.join(program.functions)}")
    seen: set[Block] = set()
    whole: set[int] = set()
    for name, block in program.functions.items():
        _Verifier(program, name, seen, whole).block(block, None, "the function")


class _Verifier:
    def __init__(self, program: Program, function: str, seen: set[Block], whole: set[int]):
        self.program, self.function, self.seen = program, function, seen
        self.whole = whole  # the types, by identity, that were looked at: many values share one

    def refuse(self, reason: str, operation: Operation | None) -> NoReturn:
        """Raise InvalidProgram for the operation, or for the function where there is none."""
        message = f"{reason}\n  in function {self.function}"
        if operation is None:
            raise InvalidProgram(message)
        names = value_names(self.program.functions[self.function])
        message += f": {operation_to_text(operation, names)}"
        at = operation.location
        raise InvalidProgram(located(message, at.file if at else None, at.line if at else None))

    # ---- blocks ----------------------------------------------------------------------------------------------------
    def block(self, block: Block, around: Operation | None, title: str) -> None:
        """Check a block; `around` is the operation that it belongs to."""
        if block in self.seen:
            self.refuse(f"{title} is a block that stands in another place too", around)
        self.seen.add(block)
        defined: set[Value] = set()
        for i, argument in enumerate(block.arguments):
            if argument in defined:
                self.refuse(f"argument {i} of {title} is there twice", around)
            if argument.block is not block or argument.operation is not None:
                self.refuse(f"argument {i} of {title} is a value of another block", around)
            self.type(argument, f"argument {i} of {title}", around)
            defined.add(argument)
        for operation in block.operations:
            self.operation(operation, block, defined)
            defined.update(operation.results)
        for i, result in enumerate(block.results):
            if result not in defined:
                self.refuse(f"result {i} of {title} is {self.undefined(result, block)}", around)

    def undefined(self, value: Value, block: Block) -> str:
        if value.block is not block:
            return "a value of another block; a block is closed, what it uses is an argument"
        if value.operation is not None and any(o is value.operation for o in block.operations):
            return "used before it is defined"
        return "defined by no operation of the block"

    # ---- operations ------------------------------------------------------------------------------------------------
    def operation(self, operation: Operation, block: Block, defined: set[Value]) -> None:
        if REGISTRY.get(operation.name) is not operation.op:
            self.refuse(f"unknown op {operation.name!r}", operation)
        for i, operand in enumerate(operation.operands):
            if operand not in defined:
                self.refuse(f"operand {i} is {self.undefined(operand, block)}", operation)
        fewest, most = arity(operation.op)
        if not fewest <= len(operation.operands) <= most:
            self.refuse(f"{operation.name} does not take {len(operation.operands)} operands", operation)
        self.attributes(operation)
        wanted = operation.op.blocks
        if len(operation.blocks) != wanted:
            self.refuse(f"{operation.name} has {wanted} sub-blocks, not {len(operation.blocks)}", operation)
        for i, inner in enumerate(operation.blocks):
            self.block(inner, operation, f"block {label(operation, i)}")
        self.control(operation)
        self.results(operation, block, defined)
        if operation.op.is_call:
            self.call(operation)

    def attributes(self, operation: Operation) -> None:
        if not operation.attributes and not operation.op.attributes:
            return
        declared, found = set(operation.op.attributes), operation.attributes.keys()
        if declared != found:
            if missing := sorted(declared - found - set(operation.op.may_lack)):
                self.refuse(f"{operation.name} lacks the attribute {', '.join(missing)}", operation)
            if extra := sorted(found - declared):
                self.refuse(f"{operation.name} has no attribute {', '.join(extra)}", operation)
        for name, value in operation.attributes.items():
            if (reason := unfit(value)) is not None:
                self.refuse(f"attribute {name} of {operation.name} {reason}", operation)

    def results(self, operation: Operation, block: Block, defined: set[Value]) -> None:
        inferred = self.inferred(operation)
        results = operation.results
        if len(inferred) != len(results):
            self.refuse(f"{operation.name} has {len(inferred)} results, not {len(results)}", operation)
        for i, (value, type) in enumerate(zip(results, inferred, strict=True)):
            if value in defined or value in results[:i]:
                self.refuse(f"result {i} is defined twice", operation)
            if value.block is not block or value.operation is not operation:
                self.refuse(f"result {i} is a value of another operation or block", operation)
            self.type(value, f"result {i}", operation)
            if not agrees(value.type, type):
                self.refuse(f"result {i} is declared {value.type}, {operation.name} gives {unknown(type)}", operation)

    def inferred(self, operation: Operation) -> Sequence[Type]:
        types = [v.type for v in operation.operands]
        try:
            found = operation.op.infer_operation(types, operation.attributes, operation.blocks)
        except Exception as error:
            # a type rule expects what the language allows; whatever it raises on something else is the finding
            reason = str(error) if isinstance(error, (TypeError, ValueError)) else repr(error)
            given = ", ".join(map(str, types)) or "nothing"
            try:
                self.refuse(f"{operation.name} does not take {given}: {reason}", operation)
            except InvalidProgram as refusal:
                raise refusal from error
        return cast("tuple[Type, ...]", found) if isinstance(found, tuple) else (found,)

    def type(self, value: Value, title: str, operation: Operation | None) -> None:
        if id(value.type) in self.whole:
            return
        try:
            check_type(value.type)
        except ValueError as error:
            self.refuse(f"{title} has no whole type: {error}", operation)
        self.whole.add(id(value.type))

    # ---- control flow ----------------------------------------------------------------------------------------------
    def control(self, operation: Operation) -> None:
        """Check what the type rules of control flow take for granted: predicates, counts, carried values."""
        name, op = operation.name, operation.op
        if op.is_try:
            self.attempt(operation)
        if not (op.is_branch or op.is_loop):
            return
        if not operation.operands:
            self.refuse(f"{name} needs a {'count' if op.is_counted else 'predicate'}", operation)
        first = operation.operands[0].type
        if op.is_counted and not (isinstance(first, ScalarType) and first.kind == "int"):
            self.refuse(f"the count of counted_while is an int, not {first}", operation)
        if not op.is_counted and not isinstance(first, (ScalarType, TensorType)):
            self.refuse(f"the predicate of {name} is a tensor or a number, not {first}", operation)
        iteration = [ScalarType("int")] if op.is_counted else []
        for block in operation.blocks:
            self.enters([*iteration, *(v.type for v in operation.operands[1:])], block, operation)
        if op.is_loop:
            self.loop(operation, first)

    def attempt(self, operation: Operation) -> None:
        """Check what a `try` catches, and what enters its blocks."""
        caught, kinds = operation.attributes["label"], operation.attributes["kinds"]
        if not (caught is None or type(caught) is int) or type(kinds) is not tuple:
            self.refuse(f"try catches a label (an int) and kinds (a tuple), not {caught!r} and {kinds!r}", operation)
        if operation.operands and len(operation.blocks[1].arguments) < len(operation.operands):
            return
        for block in operation.blocks:
            first = len(block.arguments) - len(operation.operands)
            given = [v.type for v in [*block.arguments[: max(first, 0)], *operation.operands]]
            self.enters(given, block, operation)

    def enters(self, given: list[Type], block: Block, operation: Operation) -> None:
        """Check that what enters a sub-block agrees with its arguments; their number is for the type rule."""
        for i, (type, argument) in enumerate(zip(given, block.arguments, strict=False)):
            if not agrees(argument.type, type):
                self.refuse(f"argument {i} of a block of {operation.name} is {argument.type}, given {type}", operation)

    def loop(self, operation: Operation, first: Type) -> None:
        name, counted = operation.name, operation.op.is_counted
        carried, body = operation.attributes["carried"], operation.blocks[0]
        if type(carried) is not int or not 0 <= carried < len(operation.operands):
            self.refuse(f"{name} carries {carried!r} of its {len(operation.operands) - 1} values", operation)
        if (reason := wrong_checkpoint(operation.attributes.get("checkpoint", KEEP_ALL))) is not None:
            self.refuse(f"{name}: {reason}", operation)
        results = [v.type for v in body.results]
        if not counted and not (results and type(results[0]) is type(first)):
            self.refuse(f"the body of while_loop gives the next predicate, {first}, first", operation)
        arguments = body.arguments[1:] if counted else body.arguments
        leaving = results if counted else results[1:]
        for i, (argument, result) in enumerate(zip(arguments[:carried], leaving, strict=False)):
            if not agrees(argument.type, result):
                self.refuse(f"carried value {i} of {name} enters as {argument.type}, leaves as {result}", operation)

    def call(self, operation: Operation) -> None:
        name = operation.attributes["function"]
        called = self.program.functions.get(name) if isinstance(name, str) else None
        if called is None:
            self.refuse(f"call names {name!r}, which is no function of this Program", operation)
        self.fits("operand", [v.type for v in called.arguments], [v.type for v in operation.operands], operation)
        self.fits("result", [v.type for v in operation.results], [v.type for v in called.results], operation)

    def fits(self, what: str, wanted: list[Type], given: list[Type], operation: Operation) -> None:
        name = operation.attributes["function"]
        if len(wanted) != len(given):
            taken, found = (len(wanted), len(given)) if what == "operand" else (len(given), len(wanted))
            self.refuse(f"function {name} has {taken} {what}s, the call {found}", operation)
        for i, (declared, found) in enumerate(zip(wanted, given, strict=True)):
            if not agrees(declared, found):
                self.refuse(f"{what} {i} of the call of {name}: {found} does not fit {declared}", operation)


@cache
def arity(op: OpDef) -> tuple[int, float]:
    """Return the smallest and the largest number of operands that an op states, or that its `eval` takes."""
    stated, meaning = getattr(op, "arity", None), getattr(op, "eval", None)
    if isinstance(stated, int):
        return stated, stated
    if meaning is None:
        return 0, math.inf
    taken = [p for p in inspect.signature(meaning).parameters.values() if p.kind is not p.KEYWORD_ONLY][1:]
    plain = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in taken)
    return sum(p.default is p.empty for p in plain), math.inf if open_ended else len(plain)


def agrees(declared: Type, inferred: Any) -> bool:
    """Return whether a declared type is one that was inferred: extents that are not known (None) agree with any.

    Two symbolic extents, or a symbol and a number, may be equal at run time and agree; two numbers must be the same.
    """
    if declared is inferred:
        return True
    if type(declared) is not type(inferred):
        return False
    if isinstance(declared, TensorType):
        same = declared.dtype is inferred.dtype and declared.rank == inferred.rank
        return same and all(map(_extents_agree, declared.shape, inferred.shape))
    if isinstance(declared, ScalarType):
        return declared.kind == inferred.kind and _extents_agree(declared.extent, inferred.extent)
    if isinstance(declared, ListType):
        return agrees(declared.element, inferred.element)
    if isinstance(declared, TupleType):
        return len(declared.items) == len(inferred.items) and all(map(agrees, declared.items, inferred.items))
    if isinstance(declared, VariantType):
        mine, other = declared.alternatives, inferred.alternatives
        return len(mine) == len(other) and all(map(agrees, mine, other))
    return declared == inferred or str(declared) == str(inferred)


def _extents_agree(a: Extent | None, b: Extent | None) -> bool:
    return a == b or not (isinstance(a, int) and isinstance(b, int))


def unfit(value: Any) -> str | None:
    """Say why `value` cannot be an attribute, None when it can."""
    if type(value) in _PLAIN or isinstance(value, (DType, Type)):
        return None
    if is_array(value):
        return None if value.dtype.name in DTYPES and value.dtype.isnative else f"is an array of {value.dtype}"
    if type(value) is tuple:
        items = cast("tuple[Any, ...]", value)
        return next((reason for v in items if (reason := unfit(v)) is not None), None)
    return f"is of type {type(value).__name__}, which attributes cannot have"


def unknown(t: Type) -> str:
    """Return the text of an inferred type; extents that are not known are question marks."""
    return str(t).replace("None", "?")
