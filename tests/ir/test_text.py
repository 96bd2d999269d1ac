"""Printer and parser: what is printed reads back the same, and what is no Program gets a line and a caret."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dy2st.errors import ProgramSyntaxError
from dy2st.ir.builder import Builder
from dy2st.ir.equality import same_value, structurally_equal
from dy2st.ir.parser import parse
from dy2st.ir.printer import block_to_text, operation_to_text, to_text, value_names
from dy2st.ir.program import Block, Operation, Program
from dy2st.ir.type_text import check_type, parse_type, print_type
from dy2st.ir.types import ConstType, ScalarType, TensorType
from dy2st.ir.verifier import verify
from dy2st.shapes import symbol
from tests.ir import programs
from tests.ir.programs import MATRIX
from tests.shares import examples

EVERY = programs.every()
LINE = "program main\nfunc main(%x: float32[2]) {\n  %y: float32[2] = neg(%x)\n  return %y\n}\n"


def round_trip(program: Program) -> str:
    text = to_text(program)
    back = parse(text)
    verify(back)
    assert to_text(back) == text
    assert structurally_equal(program, back, locations=True)
    return text


@pytest.mark.parametrize("name", EVERY)
def test_round_trip(name: str) -> None:
    round_trip(EVERY[name])


@given(st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_random_programs_round_trip(seed: int) -> None:
    program = programs.random_program(seed)
    verify(program)
    round_trip(program)
    bare = to_text(program, locations=False)
    assert "net.py" not in bare
    assert to_text(parse(bare)) == bare
    assert structurally_equal(program, parse(bare))


@pytest.mark.parametrize("name", EVERY)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"ir/{name}", to_text(EVERY[name]))


def test_str_of_a_program_is_its_text() -> None:
    assert str(EVERY["branches"]) == to_text(EVERY["branches"])


def test_block_to_text_names_files_by_their_last_part() -> None:
    text = block_to_text(EVERY["branches"].block)
    assert text.startswith("block(%x: float32[N, 4], %p: bool[]) {\n")
    assert "# net.py:12 forward" in text
    assert "models" not in text
    assert "#" not in block_to_text(EVERY["branches"].block, locations=False)


def test_operation_to_text_is_one_line() -> None:
    block = EVERY["branches"].block
    names = value_names(block)
    assert operation_to_text(block.operations[0], names) == "%0: float32[N, 4] = neg(%x)"
    assert operation_to_text(block.operations[1], names) == "%y: float32[N, 4] = cond(%p, %0) {...}"
    assert operation_to_text(block.operations[0]) == "%?: float32[N, 4] = neg(%?x)"


def test_names_are_made_unique() -> None:
    b = Builder()
    x = b.argument(MATRIX, "x")
    for hint in ("x", "x_1", "1a", "a b", None, "é"):
        x = b.neg(x)
        x.name = hint
    b.block.results = [x]
    names = list(value_names(b.block).values())
    assert names == ["x", "x_1", "x_1_1", "_1a", "a_b", "0", "é"]
    round_trip(Program({"main": b.block}))


def test_two_files_of_one_name_stay_apart() -> None:
    b = Builder()
    x = b.argument(MATRIX, "x")
    for file in ("a/net.py", "b/net.py", "a/net.py", "net.py", "<stdin>"):
        b.location = programs.at(1, "f", file)
        x = b.neg(x)
    text = round_trip(Program({"main": b.block}))
    assert '  net.py = "a/net.py"\n  net.py~2 = "b/net.py"\n  net.py~3 = "net.py"\n' in text
    assert "# <stdin>:1 f" in text


def test_comments_and_space_are_free() -> None:
    text = LINE.replace("(%x)", "( %x )  # what the user wrote: nothing").replace("{", "{\n\n   # here\n")
    assert structurally_equal(parse(text), parse(LINE), locations=True)


def test_arrays_are_exact() -> None:
    back = parse(to_text(EVERY["literals"]))
    wanted = [o.attributes["value"] for o in EVERY["literals"].walk() if o.name == "constant"]
    found = [o.attributes["value"] for o in back.walk() if o.name == "constant"]
    assert all(same_value(a, b) for a, b in zip(wanted, found, strict=True))


def test_an_array_that_is_used_twice_is_written_once() -> None:
    b, array = Builder(), np.arange(20.0)
    b.emit("constant", [], {"value": array})
    b.emit("constant", [], {"value": array})
    assert round_trip(Program({"main": b.block})).count("$0: float64 =") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected 'program', line 1, column 1"),
        ("program main\n", "the entry main is not among the functions"),
        (LINE + LINE[13:], "function main is there twice, line 6"),
        (LINE + "}", "expected a function or the end of the Program, line 6"),
        (LINE.replace("neg(%x)", "neg(%z)"), "%z is not defined before this place in its block, line 3, column 24"),
        (LINE.replace("neg(%x)", "neg(%y)"), "%y is not defined before this place in its block"),
        (LINE.replace("%y:", "%x:"), "%x is defined twice in this block"),
        (LINE.replace("neg", "nag"), "no op has this name, line 3, column 20"),
        (LINE.replace("neg(%x)", "neg %x"), "expected '(', line 3"),
        (LINE.replace("neg(%x)", "neg(x)"), "expected a value, such as %x"),
        (LINE.replace("return %y", ""), "expected an op"),
        (LINE.replace("float32[2]", "float33[2]"), "'float33' is not a type"),
        (LINE.replace("float32[2]", "float32[2!]"), "'2!' is not an extent"),
        (LINE.replace("float32[2]", "float32"), "'float32' is not a type"),
        (LINE.replace("float32[2]", "list<" * 70), "types are nested more than 64 deep"),
        (LINE.replace("float32[2]", "const([])"), "expected a string, a number or a word"),
        (LINE.replace("float32[2]", "const(x)"), "not a string, a number or a word"),
        (LINE.replace("neg(%x)", "neg(%x) {a=1, a=2}"), "attribute a is there twice"),
        (LINE.replace("neg(%x)", "neg(%x) {a=[1]}"), "expected a value"),
        (LINE.replace("neg(%x)", "neg(%x) {a=yes}"), "'yes' is not a value"),
        (LINE.replace("neg(%x)", "neg(%x) {a=" + "(" * 70), "tuples are nested more than 64 deep"),
        (LINE.replace("neg(%x)", "neg(%x) {a=float32[2](1.0)}"), "the elements of the array do not fit its type"),
        (LINE.replace("neg(%x)", "neg(%x) {a=float32[N](1.0)}"), "the elements of the array do not fit its type"),
        (LINE.replace("neg(%x)", "neg(%x) {a=int32[1](1.5)}"), "an element is not of type int32"),
        (LINE.replace("neg(%x)", "neg(%x) {a=int32[1](99999999999)}"), "an element is not of type int32"),
        (LINE.replace("neg(%x)", "neg(%x) {a=bool[1](1)}"), "a bool is true or false"),
        (LINE.replace("neg(%x)", "neg(%x) {a=bool[1]($0)}"), "no constant is named $0"),
        (LINE.replace("neg(%x)", "neg(%x) {a=float32[1](,)}"), "expected an element"),
        (LINE.replace("neg(%x)", "neg(%x) {a=" + "9" * 5000 + "}"), "integer string conversion"),
        (LINE + "constants {\n  $0: float32 = 1\n}\n", "expected a string in double quotes"),
        (LINE + 'constants {\n  $0: float32 = "AAA"\n}\n', "constant $0 is damaged"),
        (LINE + 'constants {\n  $0: float32 = "AAAA"\n}\n', "constant $0 is damaged"),
        (LINE + 'constants {\n  $0: floaty = "AAAA"\n}\n', "expected a dtype"),
        (LINE + "files {\n  a = b\n}\n", "expected a string in double quotes"),
        (LINE.replace("neg(%x)", "cond(%x) {" + "then() { cond() {" * 300), "blocks are nested more than 200 deep"),
    ],
)
def test_text_that_is_no_program(text: str, message: str) -> None:
    with pytest.raises(ProgramSyntaxError, match=re.escape(message)):
        parse(text)


def test_blocks_are_read_as_deep_as_is_allowed() -> None:
    text = "return %x"
    for _ in range(199):
        inner = f"then(%x: float32[2], %p: bool) {{ {text} }} else(%x: float32[2], %p: bool) {{ return %x }}"
        text = f"%y: float32[2] = cond(%p, %x, %p) {{ {inner} }} return %y"
    parse(f"program main\nfunc main(%x: float32[2], %p: bool) {{ {text} }}\n")


def test_an_error_points_at_the_place() -> None:
    with pytest.raises(ProgramSyntaxError) as info:
        parse(LINE.replace("neg(%x)", "neg(%z)"))
    assert str(info.value).splitlines()[1:] == ["  " + "  %y: float32[2] = neg(%z)", "  " + " " * 23 + "^"]


@given(st.integers(0, 10**6), st.text(alphabet='%{}()[]<>|=,:!"#$ \n0a-', max_size=3))
@settings(max_examples=examples(200), deadline=None)
def test_damaged_text_is_refused_or_read(at: int, piece: str) -> None:
    text = to_text(EVERY["loops"])
    at %= len(text)
    refused: ProgramSyntaxError | None = None
    try:
        parse(text[:at] + piece + text[at + 1 :])
    except ProgramSyntaxError as error:
        refused = error
    assert refused is None or str(refused).splitlines()[-1].strip() == "^"


@pytest.mark.parametrize(
    "text",
    ["float32[]", "bool[N, 2*N + 1]", "bool", "int(2*N - 3)", "list<tuple<>>", "variant<unset | none | int>",
     'const("a>|")', "const(true)", "const(-0.0)", "const(NaN)", "float32[bcast(N, M - 1), floordiv(N - 1, 2)]",
     "list<float32[None, 2]>"],
)  # fmt: skip
def test_types_round_trip(text: str) -> None:
    assert str(parse_type(text)) == text


def test_type_text_ends_where_the_type_ends() -> None:
    with pytest.raises(ProgramSyntaxError, match="expected the end of the type"):
        parse_type("int int")


def test_a_symbol_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="has an extent or a constant that cannot be written"):
        print_type(TensorType(MATRIX.dtype, (symbol("a b]"),)))


def test_check_type() -> None:
    with pytest.raises(ValueError, match=r"float32\[-1\] has the extent -1"):
        check_type(TensorType(MATRIX.dtype, (-1,)))
    with pytest.raises(ValueError, match=r"float\(N\) is not a scalar type"):
        check_type(ScalarType("float", symbol("N")))
    with pytest.raises(ValueError, match="3 is not a type"):
        check_type(3)  # type: ignore[arg-type]


def test_structural_equality_sees_every_difference() -> None:
    one = parse(LINE)
    assert structurally_equal(one, parse(LINE.replace("%y", "%z")))
    assert not structurally_equal(one, parse(LINE.replace("%y", "%z")), names=True)
    assert not structurally_equal(one, parse(LINE.replace("main", "f")))
    assert not structurally_equal(one, parse(LINE.replace("float32[2]", "float32[3]")))
    assert not structurally_equal(one, parse(LINE.replace("neg", "detach")))
    assert not structurally_equal(one, parse(LINE.replace("return %y", "return %x")))
    assert not structurally_equal(one, one.block)
    located = LINE.replace("(%x)\n", "(%x)  # a.py:1\n")
    assert structurally_equal(one, parse(located))
    assert not structurally_equal(one, parse(located), locations=True)
    assert structurally_equal(one.block, parse(LINE).block)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (float("nan"), float("nan"), True),
        ((1, None), (1, None), True), ((1,), (1, 2), False), (np.zeros(2), np.zeros((2, 1)), False),
        (np.array([0.0]), np.array([-0.0]), False), (ConstType(1), ConstType(True), False),
        (ConstType(float("nan")), ConstType(float("nan")), True), ("a", "a", True), (MATRIX, MATRIX, True),
    ],
)  # fmt: skip
def test_same_value(a: object, b: object, same: bool) -> None:
    assert same_value(a, b) is same


def test_an_attribute_that_has_no_text_is_shown_by_its_type() -> None:
    block = Block()
    operation = Operation(EVERY["branches"].block.operations[0].op, [], {"a": [1]}, [], None)
    block.operations.append(operation)
    assert operation_to_text(operation) == "neg() {a=?list}"
