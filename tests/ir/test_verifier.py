"""The verifier: one test for each rule that a Program can break."""

from collections.abc import Callable

import numpy as np
import pytest

from dy2st.dtypes import float32, int32
from dy2st.errors import InvalidProgram
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import OpDef
from dy2st.ir.parser import parse
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import BOOL, INT, ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.ir.verifier import agrees, verify
from dy2st.shapes import symbol
from tests.ir import programs
from tests.ir.programs import MATRIX, N, at

EVERY = programs.every()
VECTOR = TensorType(float32, (2,))


class Unregistered(OpDef):
    name = "unregistered"


def program(body: str, functions: str = "") -> Program:
    return parse(f"program main\nfunc main(%x: float32[2], %p: bool, %n: int) {{\n{body}\n}}\n{functions}")


@pytest.mark.parametrize("name", EVERY)
def test_valid_programs(name: str) -> None:
    before = str(EVERY[name])
    verify(EVERY[name])
    assert str(EVERY[name]) == before


def test_an_error_names_function_operation_and_line() -> None:
    bad = program("  %y: float32[3] = neg(%x)  # a/net.py:7 f\n  return %y")
    with pytest.raises(InvalidProgram) as info:
        verify(bad)
    assert str(info.value) == (
        "result 0 is declared float32[3], neg gives float32[2]\n"
        "  in function main: %y: float32[3] = neg(%x)\n"
        "  at a/net.py:7"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%y: float32[2] = neg(%x) {a=1}\n return %y", "neg has no attribute a"),
        ("%y: float32[2] = reshape(%x)\n return %y", "reshape lacks the attribute shape"),
        ("%y: float32[2] = neg(%x, %x)\n return %y", "neg does not take 2 operands"),
        ("%y: float64[2] = neg(%x)\n return %y", r"result 0 is declared float64\[2\], neg gives float32\[2\]"),
        ("%y: float32[2], %z: int = neg(%x)\n return %y", "neg has 1 results, not 2"),
        ("neg(%x)\n return", "neg has 1 results, not 0"),
        ("%y: float32[-2] = neg(%x)\n return %y", r"result 0 has no whole type: float32\[-2\] has the extent -2"),
        ("%y: float32[None] = neg(%x)\n return %y", r"float32\[None\] has the extent None"),
        ("%y: float32[3, 2] = transpose(%x) {perm=(1, 0)}\n return %y",
         r"transpose does not take float32\[2\]: perm \[1, 0\] is not a permutation"),
        ("%y: int = dim(%n) {axis=0}\n return %y", "dim does not take int: AttributeError"),
        ("%y: float32[2] = cond(%p, %x) {\n then(%a: float32[2]) { return %a }\n }\n return %y",
         "cond has 2 sub-blocks, not 1"),
        ("%y: float32[2] = neg(%x) {\n b() { return }\n }\n return %y", "neg has 0 sub-blocks, not 1"),
        ("%y: float32[2] = cond(%p, %x) {\n then(%a: float32[2]) { return %a }\n else() { return }\n }\n return %y",
         "cond: 1 operands for a block of 0 arguments"),
        ("%y: float32[2] = cond(%p, %x) {\n then(%a: float32[2]) { return %a }\n"
         " else(%a: float32[2]) { return }\n }\n return %y", "cond: one branch has 1 results, the other 0"),
        ("%y: float32[2] = cond(%p, %x) {\n then(%a: float32[2]) { return %a }\n"
         " else(%a: float32[3]) { return %a }\n }\n return %y",
         r"argument 0 of a block of cond is float32\[3\], given float32\[2\]"),
        ("cond() {\n then() { return }\n else() { return }\n }\n return", "cond needs a predicate"),
        ("counted_while() {carried=0, reverse=false} {\n body() { return }\n }\n return",
         "counted_while needs a count"),
        ("counted_while(%x) {carried=0, reverse=false} {\n body(%i: int) { return }\n }\n return",
         r"the count of counted_while is an int, not float32\[2\]"),
        ("%l: list<int> = list_new() {type=!list<int>}\n"
         " cond(%l) {\n then() { return }\n else() { return }\n }\n return",
         "the predicate of cond is a tensor or a number, not list<int>"),
        ("while_loop(%p) {carried=-1} {\n body() { return }\n }\n return", "while_loop carries -1 of its 0 values"),
        ("while_loop(%p) {carried=1} {\n body() { return }\n }\n return", "while_loop carries 1 of its 0 values"),
        ("while_loop(%p) {carried=true} {\n body() { return }\n }\n return", "while_loop carries True of its 0"),
        ('while_loop(%p) {carried=0, checkpoint="often"} {\n body() { return }\n }\n return',
         r"while_loop: checkpoint is \"all\", \"sqrt\" or the number of turns between checkpoints, not 'often'"),
        ("counted_while(%n) {carried=0, reverse=false, checkpoint=0} {\n body(%i: int) { return }\n }\n return",
         "counted_while: checkpoint is .* or the number of turns between checkpoints, not 0"),
        ("while_loop(%p) {carried=0} {\n body() { return }\n }\n return",
         "the body of while_loop gives the next predicate, bool, first"),
        ("%y: float32[2] = while_loop(%p, %x, %p) {carried=1} {\n"
         " body(%a: float32[2], %q: bool) { return %q }\n }\n return %y",
         "while_loop: the block gives 0 carried values, not 1"),
        ("%y: float32[3] = counted_while(%n, %x) {carried=1, reverse=false} {\n body(%i: int, %a: float32[2]) {\n"
         " %c: float32[3] = constant() {value=float32[3](1.0, 2.0, 3.0)}\n return %c }\n }\n return %y",
         r"carried value 0 of counted_while enters as float32\[2\], leaves as float32\[3\]"),
        ('call(%x) {function="f", types=()}\n return', "call names 'f', which is no function of this Program"),
        ("call(%x) {function=3, types=()}\n return", "call names 3, which is no function of this Program"),
        ('call(%x) {function="g", types=()}\n return', "function g has 2 operands, the call 1"),
        ('call(%n, %n) {function="g", types=()}\n return',
         r"operand 0 of the call of g: int does not fit float32\[3\]"),
        ('call(%x, %n) {function="g", types=()}\n return',
         r"operand 0 of the call of g: float32\[2\] does not fit float32\[3\]"),
        ('%c: float32[3] = constant() {value=float32[3](1.0, 2.0, 3.0)}\n'
         'call(%c, %n) {function="g", types=()}\n return', "function g has 1 results, the call 0"),
        ('%c: float32[3] = constant() {value=float32[3](1.0, 2.0, 3.0)}\n'
         '%d: float32[3] = call(%c, %n) {function="g", types=(!float32[3],)}\n return',
         r"result 0 of the call of g: int does not fit float32\[3\]"),
    ],
)  # fmt: skip
def test_broken_rules_in_text(body: str, message: str) -> None:
    with pytest.raises(InvalidProgram, match=message):
        verify(program(body, "func g(%a: float32[3], %b: int) {\n  return %b\n}\n"))


def changed(change: Callable[[Program], None]) -> Program:
    made = programs.branches()
    change(made)
    return made


def unknown_op(p: Program) -> None:
    p.block.operations[0].op = Unregistered()


def imitated_op(p: Program) -> None:
    p.block.operations[0].op = type("Neg", (OpDef,), {"name": "neg"})()


def used_too_early(p: Program) -> None:
    p.block.operations.reverse()


def never_defined(p: Program) -> None:
    p.block.operations[0].operands[0] = Value(MATRIX, p.block, None, "lost")


def value_of_the_block_around(p: Program) -> None:
    inner = p.block.operations[1].blocks[0]
    inner.operations[0].operands[0] = p.block.arguments[0]


def value_of_an_inner_block(p: Program) -> None:
    p.block.results = [p.block.operations[1].blocks[0].arguments[0]]


def result_not_defined(p: Program) -> None:
    p.block.results = [Value(MATRIX, p.block)]


def same_argument_twice(p: Program) -> None:
    p.block.arguments.append(p.block.arguments[0])


def foreign_argument(p: Program) -> None:
    p.block.arguments.append(Value(MATRIX, Block()))


def argument_without_whole_type(p: Program) -> None:
    p.block.arguments.append(Value(TensorType(float32, (None,)), p.block))  # type: ignore[arg-type]


def result_defined_twice(p: Program) -> None:
    first = p.block.operations[0]
    again = Operation(first.op, [p.block.arguments[0]], {}, [], None)
    again.results = first.results
    p.block.operations.append(again)


def result_of_another(p: Program) -> None:
    first = p.block.operations[0]
    p.block.operations.append(Operation(first.op, [p.block.arguments[0]], {}, [], None))
    p.block.operations[-1].results = [Value(MATRIX, p.block, first)]


def block_in_two_places(p: Program) -> None:
    cond = p.block.operations[1]
    cond.blocks[1] = cond.blocks[0]


def block_inside_itself(p: Program) -> None:
    p.block.operations[1].blocks[1] = p.block


def attribute_of_a_kind_that_is_none(p: Program) -> None:
    p.block.operations[1].blocks[1].operations[0].attributes["value"] = ([1],)


def array_of_a_kind_that_is_none(p: Program) -> None:
    p.block.operations[1].blocks[1].operations[0].attributes["value"] = np.array(["a"])


def numpy_scalar(p: Program) -> None:
    p.block.operations[1].blocks[1].operations[0].attributes["value"] = np.float64(1)


def one_attribute_more(p: Program) -> None:
    next(o for o in p.walk() if not o.attributes and not o.op.attributes).attributes["a"] = 1


def no_attribute(p: Program) -> None:
    next(o for o in p.walk() if o.name == "scalar_constant" or o.name == "constant").attributes.clear()


def no_entry(p: Program) -> None:
    p.entry = "start"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (unknown_op, "unknown op 'unregistered'"),
        (imitated_op, "unknown op 'neg'"),
        (used_too_early, "operand 1 is used before it is defined"),
        (never_defined, "operand 0 is defined by no operation of the block"),
        (value_of_the_block_around, "operand 0 is a value of another block; a block is closed"),
        (value_of_an_inner_block, "result 0 of the function is a value of another block"),
        (result_not_defined, "result 0 of the function is defined by no operation of the block"),
        (same_argument_twice, "argument 2 of the function is there twice"),
        (foreign_argument, "argument 2 of the function is a value of another block"),
        (argument_without_whole_type, "argument 2 of the function has no whole type"),
        (result_defined_twice, "result 0 is defined twice"),
        (result_of_another, "result 0 is a value of another operation or block"),
        (block_in_two_places, "block else is a block that stands in another place too"),
        (block_inside_itself, "block else is a block that stands in another place too"),
        (attribute_of_a_kind_that_is_none, "attribute value of constant is of type list"),
        (array_of_a_kind_that_is_none, "attribute value of constant is an array of <U1"),
        (numpy_scalar, "attribute value of constant is of type float64"),
        (one_attribute_more, "has no attribute a"),
        (no_attribute, "constant lacks the attribute value"),
        (no_entry, "the entry 'start' is not among the functions main"),
    ],
)
def test_broken_rules(change: Callable[[Program], None], message: str) -> None:
    with pytest.raises(InvalidProgram, match=message):
        verify(changed(change))


def test_functions_share_no_block() -> None:
    made = programs.branches()
    made.functions["again"] = made.block
    with pytest.raises(InvalidProgram, match="the function is a block that stands in another place too"):
        verify(made)


def test_an_extent_that_the_op_does_not_know_may_be_anything() -> None:
    b = Builder()
    x = b.argument(ListType(VECTOR), "x")
    stacked = b.list_stack(x)
    assert str(stacked.type) == "float32[n0, 2]"
    verify(Program({"main": b.block}))
    stacked.type = TensorType(float32, (7, 2))
    verify(Program({"main": b.block}))
    stacked.type = TensorType(float32, (7, 3))
    with pytest.raises(InvalidProgram, match=r"is declared float32\[7, 3\], list_stack gives float32\[\?, 2\]"):
        verify(Program({"main": b.block}))


@pytest.mark.parametrize(
    ("declared", "inferred", "same"),
    [
        (MATRIX, MATRIX, True),
        (MATRIX, TensorType(float32, (3, 4)), True),
        (MATRIX, TensorType(float32, (3, 5)), False),
        (MATRIX, TensorType(int32, (N, 4)), False),
        (MATRIX, TensorType(float32, (N,)), False),
        (MATRIX, INT, False),
        (ScalarType("int", N), INT, True),
        (ScalarType("int", 3), ScalarType("int", symbol("M")), True),
        (ScalarType("int", 3), ScalarType("int", 4), False),
        (INT, BOOL, False),
        (ListType(MATRIX), ListType(INT), False),
        (TupleType((MATRIX, INT)), TupleType((MATRIX, INT)), True),
        (TupleType((MATRIX,)), TupleType((MATRIX, INT)), False),
        (VariantType((MATRIX, INT)), VariantType((MATRIX, BOOL)), False),
        (VariantType((MATRIX,)), VariantType((TensorType(float32, (N, N)),)), True),
    ],
)
def test_agrees(declared: Type, inferred: Type, same: bool) -> None:
    assert agrees(declared, inferred) is same


def test_an_operation_deep_inside_is_named() -> None:
    made = programs.loops()
    turn = next(made.walk()).results[0].block.operations[2].blocks[0].operations[0].blocks[0]
    turn.operations[1].results[0].type = INT
    turn.operations[1].location = at(99)
    with pytest.raises(InvalidProgram, match=r"in function main: %5: int = mul\(%x, %x\)\n  at models/net.py:99"):
        verify(made)
