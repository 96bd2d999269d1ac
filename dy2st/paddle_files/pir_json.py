"""`.json`: a program of PIR, as PaddlePaddle 3 saves it, as a Graph.

    {"base_code": {"magic": "pir", "version": 4},
     "program": {"regions": [{"blocks": [{"args": [{"#": -1, ...}], "ops": [operation, ...]}]}]}}

    operation    {"#": "1.add", "I": [{"%": 12}, {"%": 14}], "O": [{"%": 15, "TT": type}],
                  "A": [{"N": "axis", "AT": {"#": "0.a_i32", "D": 1}}], "regions": [...]}
    parameter    {"#": "p", "A": [0, 1, 1, "fc.w_0"], "O": {"%": 1, "TT": type}, "OA": [1, stop_gradient, trainable]}
    type         {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [-1, 4], ...]}

The number in front of a name is that of its dialect. Values are numbered; that of a block's argument is negative.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import FileFormatError
from dy2st.files import strict_json
from dy2st.paddle_files.graph import (
    MOST_DEPTH,
    MOST_OPERATIONS,
    Block,
    Graph,
    Input,
    Operation,
    Weight,
    checked_shape,
)

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf"}
_DTYPES = {
    "t_bool": "bool", "t_ui8": "uint8", "t_i8": "int8", "t_i16": "int16", "t_i32": "int32", "t_i64": "int64",
    "t_f16": "float16", "t_bf16": "bfloat16", "t_f32": "float32", "t_f64": "float64", "t_c64": "complex64",
    "t_c128": "complex128",
}  # fmt: skip
_FLOATS = ("a_f32", "a_f64")
_VERSIONS = range(1, 5)


def read_pir(text: str) -> Graph:
    """Return the model that the text of a `.json` file is."""
    data = strict_json.loads(text, "the program")
    base = _dict(_dict(data).get("base_code"))
    if base.get("magic") != "pir" or base.get("version") not in _VERSIONS:
        raise FileFormatError(f"it is no program of PIR in a version up to {_VERSIONS[-1]}: {base!r:.80}")
    regions = _list(_dict(_dict(data).get("program")).get("regions"))
    if len(regions) != 1:
        raise FileFormatError(f"a program has one region, not {len(regions)}")
    return _Reader().graph(regions[0])


class _Reader:
    def __init__(self) -> None:
        self.left = MOST_OPERATIONS
        self.defined: set[int] = set()

    def graph(self, region: Any) -> Graph:
        block, ends = self.block(region, 1)
        inputs: list[Input] = []
        weights: list[Weight] = []
        absent: list[Weight] = []
        fetches: dict[int, tuple[str, Any]] = {}
        kept: list[Operation] = []
        for one in block.operations:
            if one.name == "parameter":
                into = weights if one.attributes["stored"] else absent
                into.append(one.attributes["weight"])
            elif one.name == "data":
                name, dtype = one.attributes.get("name"), one.attributes.get("dtype")
                if type(name) is not str or type(dtype) is not str:
                    raise FileFormatError(f"an input with the name {name!r:.60} and the dtype {dtype!r:.60}")
                inputs.append(Input(name, checked_shape(one.attributes.get("shape"), f"the input {name!r:.60}"), dtype))
                kept.append(one)
            elif one.name == "fetch":
                column, name = one.attributes.get("col"), one.attributes.get("name")
                if type(column) is not int or column in fetches or len(one.operands) != 1 or type(name) is not str:
                    raise FileFormatError("an operation fetch without a value, a name and a place of its own")
                fetches[column] = name, one.operands[0]
            else:
                kept.append(one)
        if ends:
            raise FileFormatError("the block of the program yields values")
        in_order = [fetches[column] for column in sorted(fetches)]
        block.operations, block.results = kept, [value for _, value in in_order]
        weights.sort(key=lambda w: w.name)
        if len({w.name for w in weights}) != len(weights):
            raise FileFormatError("two weights have one name")
        return Graph(inputs, [name for name, _ in in_order], weights, block, absent=[w.value for w in absent])

    def block(self, region: Any, depth: int) -> tuple[Block, bool]:
        """Return the block of a region, and whether it ends with a yield."""
        blocks = _list(_dict(region).get("blocks"))
        if depth > MOST_DEPTH or len(blocks) != 1:
            raise FileFormatError(f"a region of {len(blocks)} blocks, {depth} deep in others")
        found = _dict(blocks[0])
        arguments = [self.define(_dict(a).get("#")) for a in _list(found.get("args"))]
        said = _list(found.get("ops"))
        self.left -= len(said)
        if self.left < 0:
            raise FileFormatError(f"more than {MOST_OPERATIONS:,} operations")
        operations = [self.operation(_dict(one), depth) for one in said]
        if operations and operations[-1].name == "cf.yield":
            return Block(arguments, operations[:-1], operations[-1].operands), True
        return Block(arguments, operations, []), False

    def define(self, number: Any) -> int:
        if type(number) is not int or number in self.defined:
            raise FileFormatError(f"a value with the number {number!r:.40}, which is none or another one's")
        self.defined.add(number)
        return number

    def operation(self, said: dict[str, Any], depth: int) -> Operation:
        name = said.get("#")
        if type(name) is not str:
            raise FileFormatError(f"an operation with the name {name!r:.60}")
        if name == "p":
            return self.parameter(said)
        dialect, _, rest = name.partition(".")
        full = f"{_DIALECTS.get(dialect, dialect)}.{rest}"
        operands = [self.operand(_dict(one).get("%"), full) for one in _list(said.get("I"))]
        blocks = [self.block(region, depth + 1)[0] for region in _list(said.get("regions", []))]
        results = [self.define(_dict(one).get("%")) for one in _list(said.get("O"))]
        attributes = {}
        for one in _list(said.get("A")):
            attributes[str(_dict(one).get("N"))] = _attribute(_dict(one).get("AT"), 0)
        return Operation(full.removeprefix("pd_op.").rstrip("_"), full, operands, results, attributes, blocks)

    def operand(self, number: Any, full: str) -> int | None:
        if number == 0:
            return None
        if type(number) is not int or number not in self.defined:
            raise FileFormatError(f"{full!r:.60} reads the value {number!r:.40}, which nothing before it defines")
        return number

    def parameter(self, said: dict[str, Any]) -> Operation:
        facts, flags, result = _list(said.get("A")), _list(said.get("OA")), _dict(said.get("O"))
        if len(facts) != 4 or type(facts[3]) is not str or len(flags) != 3:
            raise FileFormatError(f"a parameter that says {facts!r:.80}")
        name, value = facts[3], self.define(result.get("%"))
        dtype, shape = _tensor_type(result.get("TT"), f"the parameter {name!r:.60}")
        weight = Weight(value, name, shape, dtype, bool(flags[2]) and dtype.startswith(("float", "bfloat")))
        return Operation("parameter", "builtin.parameter", [], [value], {"weight": weight, "stored": bool(flags[0])})


def _tensor_type(said: Any, what: str) -> tuple[str, tuple[int, ...]]:
    parts = _dict(said).get("D")
    if type(parts) is not list or len(parts) < 2 or str(_dict(said).get("#")).rpartition(".")[2] != "t_dtensor":
        raise FileFormatError(f"{what} is no tensor")
    code = str(_dict(parts[0]).get("#")).rpartition(".")[2]
    if code not in _DTYPES:
        raise FileFormatError(f"{what} has the dtype {code!r:.40}")
    return _DTYPES[code], checked_shape(parts[1], what)


def _attribute(said: Any, depth: int) -> Any:
    """Return an attribute as Python has it."""
    if said is None:
        return None
    found = _dict(said)
    value, kind = found.get("D"), str(found.get("#")).rpartition(".")[2]
    if depth > MOST_DEPTH:
        raise FileFormatError("an attribute of lists that are too deep in each other")
    if kind == "a_array":
        return [_attribute(one, depth + 1) for one in _list(value)]
    if kind in _FLOATS and type(value) is str:
        return float(value)
    return value


def _dict(x: Any) -> dict[str, Any]:
    if type(x) is not dict:
        raise FileFormatError(f"an object is expected, not {x!r:.60}")
    return x


def _list(x: Any) -> list[Any]:
    if type(x) is not list:
        raise FileFormatError(f"a list is expected, not {x!r:.60}")
    return x
