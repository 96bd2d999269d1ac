"""Programs as data: they come back the same, and data that are no Program are refused with the place."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dy2st.errors import FileFormatError, InvalidProgram
from dy2st.ir.builder import Builder
from dy2st.ir.checker.check import check
from dy2st.ir.clone import clone_program
from dy2st.ir.equality import structurally_equal
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program, Value
from dy2st.ir.serialize import from_json, to_json
from tests.ir import programs
from tests.ir.programs import MATRIX
from tests.shares import examples

EVERY = programs.every()


def through_json(program: Program) -> Program:
    data, arrays = to_json(program)
    return from_json(json.loads(json.dumps(data, allow_nan=False)), arrays)


@pytest.mark.parametrize("name", EVERY)
def test_round_trip(name: str) -> None:
    typed = clone_program(EVERY[name])
    check(typed)
    assert structurally_equal(through_json(EVERY[name]), typed, names=True)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(30), deadline=None)
def test_random_programs_round_trip(seed: int) -> None:
    program = programs.random_program(seed)
    assert structurally_equal(through_json(program), program, names=True)


def test_large_constants_are_arrays_and_small_ones_are_text() -> None:
    data, arrays = to_json(EVERY["literals"])
    assert [array.size for array in arrays.values()] == [40, 1]
    assert list(arrays) == ["constant:0", "constant:1"]
    assert '{"literal": "float32[](0.1)"}' in json.dumps(data)


def test_files_keep_only_the_last_part_of_their_name() -> None:
    b = Builder()
    x = b.argument(MATRIX, "x")
    for file in ("/home/someone/net.py", "C:\\Users\\someone\\net.py"):
        b.location = programs.at(5, "f", file)
        b.neg(x)
    data, _ = to_json(Program({"main": b.block}))
    assert "someone" not in json.dumps(data)
    back = from_json(data, {})
    assert [str(o.location) for o in back.walk()] == ["net.py:5", "net.py:5"]


def test_an_invalid_program_is_not_written() -> None:
    program = programs.branches()
    program.block.results = [Value(MATRIX, program.block)]
    with pytest.raises(InvalidProgram, match="result 0 of the function is defined by no operation"):
        to_json(program)


def test_a_host_call_is_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data, arrays = to_json(EVERY["branches"])
    monkeypatch.setattr(type(REGISTRY["neg"]), "saveable", False)
    with pytest.raises(
        ValueError, match=r"neg calls back into this process and cannot be saved\n  at models/net.py:12"
    ):
        to_json(EVERY["branches"])
    with pytest.raises(FileFormatError, match="operation 0: 'neg' is no op that may stand in a file"):
        from_json(data, arrays)


@pytest.mark.parametrize("depth", [60, 100])
def test_programs_as_deep_as_may_be_are_written_and_read(depth: int) -> None:
    b = Builder()
    _nest(b, b.argument(programs.PREDICATE, "p"), depth)
    made = Program({"main": b.block})
    assert structurally_equal(through_json(made), made)
    assert structurally_equal(parse(to_text(made)), made)


def test_deep_programs_are_not_written() -> None:
    b = Builder()
    p = b.argument(programs.PREDICATE, "p")
    _nest(b, p, 101)
    with pytest.raises(ValueError, match="blocks nested more than 100 deep cannot be saved"):
        to_json(Program({"main": b.block}))


def _nest(b: Builder, p: Value, depth: int) -> None:
    if not depth:
        return
    then, other = b.child(), b.child()
    inner = then.argument(p.type, "p")
    other.argument(p.type, "p")
    _nest(then, inner, depth - 1)
    b.emit("cond", [p, p], {}, [then.block, other.block])


Place = tuple[Any, ...]
MAIN = ("functions", "main")
NEG, COND = (*MAIN, "operations", 0), (*MAIN, "operations", 1)
CONSTANT = (*COND, "blocks", 1, "operations", 0)
VALUE = (*CONSTANT, "attributes", "value")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((), [], "the Program: an object is expected"),
        (("extra",), 1, "the Program: the keys entry, functions are expected"),
        (("entry",), 1, "the entry: a string is expected"),
        (("entry",), "start", "the entry 'start' is no function"),
        (("functions",), [], "functions of the Program: an object is expected"),
        (("functions",), {}, "the entry 'main' is no function"),
        (MAIN, 1, "function 'main': an object is expected"),
        ((*MAIN, "arguments"), 1, "function 'main', arguments: a list is expected"),
        ((*MAIN, "arguments", 0), ["x"], "arguments: a name and a type are expected"),
        ((*MAIN, "arguments", 0), [1, "int"], "arguments, a name: a string is expected"),
        ((*MAIN, "arguments", 0, 1), 1, "arguments, a type: a string is expected"),
        ((*MAIN, "arguments", 0, 1), "float31[2]", "'float31' is not a type"),
        ((*MAIN, "arguments", 0, 1), "list<" * 100, "types are nested more than 64 deep"),
        ((*MAIN, "arguments", 0, 1), "x" * 30_000, "a string of 30000 characters, the limit is 20000"),
        ((*MAIN, "arguments", 0, 1), f"float32[{', '.join('1' * 65)}]", "a tensor type of 65 axes"),
        ((*MAIN, "arguments", 0, 1), f"float32[{', '.join(['A + B'] * 60)}]", "a tensor type of 60 axes and 1152921"),
        ((*MAIN, "arguments", 0, 1), f"list<tuple<variant<float32[{1 << 63}]>>>", "is too large"),
        (
            (*MAIN, "arguments", 0, 1),
            "float32[-1]",
            "the Program in the file breaks a rule: an argument has the extent -1",
        ),
        ((*MAIN, "results"), [99], "results: 99 is not the number of a value"),
        ((*MAIN, "results"), [-1], "results: -1 is not the number of a value"),
        ((*MAIN, "results"), [True], "results: True is not the number of a value"),
        ((*NEG, "operands"), [2], "operation 0, operands: 2 is not the number of a value"),
        ((*NEG, "operands"), ["0"], "operation 0, operands: '0' is not the number of a value"),
        ((*NEG, "op"), "exec", "'exec' is no op that may stand in a file"),
        ((*NEG, "op"), ["neg"], r"\['neg'\] is no op that may stand in a file"),
        ((*NEG, "attributes"), {"a": 1}, "the attributes of neg are none"),
        ((*NEG, "attributes"), [], "the attributes of neg are none"),
        ((*NEG, "results"), [], "operation 1, operands: 2 is not the number of a value"),
        ((*NEG, "results", 0, 1), "int", "result 0 is declared int, and is float32"),
        ((*NEG, "at"), "net.py", "a location is a file, a line and a function"),
        ((*NEG, "at"), ["net.py", -1, "f"], "a location is a file, a line and a function"),
        ((*NEG, "at"), [1, 1, "f"], "operation 0: a string is expected"),
        ((*NEG, "more"), 1, "the keys op, operands, attributes, blocks, results, at are expected"),
        ((*COND, "blocks"), [], "cond: 0 blocks"),
        ((*CONSTANT, "attributes"), {}, "constant: lacks 'value'"),
        (VALUE, {"literal": "float32[](1.0"}, "attribute value: expected ','"),
        (VALUE, {"literal": "3"}, "attribute value: expected an array"),
        (VALUE, {"literal": 3}, "attribute value: a string is expected"),
        (VALUE, {"tensor": "w"}, "attribute value: no tensor is named 'w'"),
        (VALUE, {"float": "1.0"}, "'1.0' is not nan, inf or -inf"),
        (VALUE, {"dtype": "object"}, "'object' is no dtype"),
        (VALUE, {"type": "object"}, "'object' is not a type"),
        (VALUE, {"code": "print()"}, "'code' is no kind of attribute"),
        (VALUE, {}, "an attribute is expected"),
        (VALUE, [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], "attribute value: nested more than 16 deep"),
        (VALUE, "x" * (1 << 21), "a string of 2097152 characters"),
        (VALUE, 3, "constant: value is no array"),
    ],
)
def test_data_that_are_no_program(place: Place, value: Any, message: str) -> None:
    data, arrays = to_json(EVERY["branches"])
    data = copy.deepcopy(data)
    inner = data
    for step in place[:-1]:
        inner = inner[step]
    if place:
        inner[place[-1]] = value
    with pytest.raises(FileFormatError, match=message):
        from_json(data if place else value, arrays)


def test_blocks_nested_too_deep_are_refused() -> None:
    block: dict[str, Any] = {"arguments": [], "operations": [], "results": []}
    for _ in range(101):
        keys = {"op": "cond", "operands": [], "attributes": {}, "results": [], "at": None}
        block = {"arguments": [], "operations": [{**keys, "blocks": [block]}], "results": []}
    with pytest.raises(FileFormatError, match="blocks are nested more than 100 deep"):
        from_json({"entry": "main", "functions": {"main": block}}, {})


def test_a_stack_that_is_too_small_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    data, arrays = to_json(EVERY["branches"])
    monkeypatch.setattr("dy2st.ir.serialize.check", deep)
    with pytest.raises(FileFormatError, match="the Program in the file is nested too deeply"):
        from_json(data, arrays)


def test_a_constant_of_another_type_is_refused() -> None:
    data, arrays = to_json(EVERY["literals"])
    for wrong in (np.zeros((5, 8)), np.zeros((8, 5), np.float32), np.array([["a"]])):
        with pytest.raises(FileFormatError, match="breaks a rule"):
            from_json(data, {**arrays, "constant:0": wrong})


JUNK = st.sampled_from([None, True, -1, 0, 3, 1.5, "", "x", "float32[2]", [], [[]], {}, {"tensor": "constant:0"}])


@given(st.integers(0, 10**6), JUNK)
@settings(max_examples=examples(200), deadline=None)
def test_any_replaced_part_gives_a_program_or_one_error(which: int, junk: Any) -> None:
    data, arrays = to_json(EVERY["loops"])
    places: list[Callable[[Any], None]] = []
    _places(data, places)
    places[which % len(places)](junk)
    refused: FileFormatError | None = None
    try:
        from_json(data, arrays)
    except FileFormatError as error:
        refused = error
    assert refused is None or "\n" not in str(refused)


def _places(node: Any, found: list[Callable[[Any], None]]) -> None:
    for key, inner in list(node.items() if isinstance(node, dict) else enumerate(node)):
        found.append(lambda value, node=node, key=key: node.__setitem__(key, value))
        if isinstance(inner, (dict, list)):
            _places(inner, found)
