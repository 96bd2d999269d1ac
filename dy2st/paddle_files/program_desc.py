"""`.pdmodel`: a ProgramDesc, the protobuf message that PaddlePaddle before 3.0 saves, as a Graph.

Its blocks refer to each other by number, as `sub_block` of an operation; a block that contains itself, or one that
stands in two operations, is refused. What holds for one value at one time holds for a name here: an operation may
write a name again, so blocks are run in order.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import FileFormatError
from dy2st.paddle_files.graph import (
    BY_NUMBER,
    MOST_DEPTH,
    MOST_OPERATIONS,
    WIDTHS,
    Block,
    Graph,
    Input,
    Operation,
    Weight,
    checked_shape,
)
from dy2st.paddle_files.legacy import translated
from dy2st.paddle_files.wire import parse

_SCALAR = {1: ("type", "int"), 2: ("b", "bool"), 3: ("i", "int"), 4: ("r", "double")}
_ATTRIBUTE = {
    1: ("name", "text"), 2: ("type", "int"), 3: ("i", "int"), 4: ("f", "float"), 5: ("s", "text"), 6: ("ints", "int*"),
    7: ("floats", "float*"), 8: ("strings", "text*"), 10: ("b", "bool"), 11: ("bools", "bool*"), 12: ("block", "int"),
    13: ("l", "int"), 14: ("blocks", "int*"), 15: ("longs", "int*"), 16: ("float64s", "double*"), 17: ("var", "text"),
    18: ("vars", "text*"), 19: ("float64", "double"), 20: ("scalar", _SCALAR), 21: ("scalars", (_SCALAR,)),
}  # fmt: skip
_SLOT = {1: ("slot", "text"), 2: ("names", "text*")}
_OPERATION = {
    1: ("inputs", (_SLOT,)),
    2: ("outputs", (_SLOT,)),
    3: ("type", "text"),
    4: ("attributes", (_ATTRIBUTE,)),
}
_TENSOR = {1: ("dtype", "int"), 2: ("dims", "int*")}
_KIND = {1: ("kind", "int"), 3: ("tensor", {1: ("tensor", _TENSOR)})}
_VARIABLE = {
    1: ("name", "text"),
    2: ("type", _KIND),
    3: ("persistable", "bool"),
    6: ("stop_gradient", "bool"),
}
_BLOCK = {1: ("number", "int"), 2: ("parent", "int"), 3: ("variables", (_VARIABLE,)), 4: ("operations", (_OPERATION,))}
_PROGRAM = {1: ("blocks", (_BLOCK,))}
_FIELD_OF_TYPE = (
    "i", "f", "s", "ints", "floats", "strings", "b", "bools", "block", "l", "blocks", "longs", "float64s", "var",
    "vars", "float64", "scalar", "scalars",
)  # fmt: skip
_LOD_TENSOR, _ARRAY = 7, 13


def read_program_desc(data: bytes) -> Graph:
    """Return the model that the bytes of a `.pdmodel` file are."""
    return _Reader(parse(data, _PROGRAM)["blocks"]).graph()


class _Reader:
    def __init__(self, blocks: list[dict[str, Any]]):
        if not blocks:
            raise FileFormatError("it has no block")
        self.blocks, self.seen = blocks, {0}
        self.left = MOST_OPERATIONS

    def graph(self) -> Graph:
        variables = {v["name"]: v for v in self.blocks[0]["variables"] if "name" in v}
        feeds: dict[int, str] = {}
        fetches: dict[int, str] = {}
        kept: list[dict[str, Any]] = []
        for one in self.blocks[0]["operations"]:
            if one.get("type") not in ("feed", "fetch"):
                kept.append(one)
                continue
            into, side = (feeds, "outputs") if one["type"] == "feed" else (fetches, "inputs")
            names = [name for slot in one[side] for name in slot["names"]]
            column = _attributes(one).get("col")
            if len(names) != 1 or type(column) is not int or column in into:
                raise FileFormatError(f"an operation {one['type']} without one name and one place")
            into[column] = names[0]
        inputs = [self.input(name, variables.get(name)) for _, name in sorted(feeds.items())]
        block = self.block(kept, 1)
        block.results = [name for _, name in sorted(fetches.items())]
        stored = sorted(name for name, v in variables.items() if v.get("persistable") and _is_tensor(v))
        weights = [self.weight(name, variables[name]) for name in stored]
        every = [v for one in self.blocks for v in one["variables"]]
        arrays = [v["name"] for v in every if "name" in v and v.get("type", {}).get("kind") == _ARRAY]
        return Graph(inputs, [str(name) for name in block.results], weights, block, arrays)

    def input(self, name: str, variable: Any) -> Input:
        if variable is None:
            raise FileFormatError(f"the input {name!r:.60} is not described")
        dtype, shape = _described(name, variable)
        return Input(name, shape, dtype)

    def weight(self, name: str, variable: dict[str, Any]) -> Weight:
        dtype, shape = _described(name, variable)
        trainable = dtype.startswith(("float", "bfloat")) and not variable.get("stop_gradient", False)
        return Weight(name, name, shape, dtype, trainable)

    def block(self, operations: list[dict[str, Any]], depth: int) -> Block:
        if depth > MOST_DEPTH:
            raise FileFormatError(f"blocks stand more than {MOST_DEPTH} deep in each other")
        self.left -= len(operations)
        if self.left < 0:
            raise FileFormatError(f"more than {MOST_OPERATIONS:,} operations")
        return Block([], [self.operation(one, depth) for one in operations], [])

    def operation(self, said: dict[str, Any], depth: int) -> Operation:
        kind, attributes = said.get("type"), _attributes(said)
        if kind is None:
            raise FileFormatError("an operation without a type")
        inner: list[Block] = []
        number = attributes.pop("sub_block", None)
        if number is not None:
            if type(number) is not int or not 0 <= number < len(self.blocks) or number in self.seen:
                raise FileFormatError(f"{kind!r:.60} has the block {number}, which is none, or another operation's")
            self.seen.add(number)
            inner.append(self.block(self.blocks[number]["operations"], depth + 1))
        slots = [{s.get("slot", ""): s["names"] for s in said[side] if s["names"]} for side in ("inputs", "outputs")]
        return translated(kind, slots[0], slots[1], attributes, inner)


def _attributes(operation: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for one in operation["attributes"]:
        kind = one.get("type", -1)
        if "name" not in one or not 0 <= kind < len(_FIELD_OF_TYPE):
            raise FileFormatError(f"{operation.get('type')!r:.60} has an attribute without a name or of no known type")
        value = one.get(_FIELD_OF_TYPE[kind])
        if kind in (16, 17):
            value = _number(value) if kind == 16 else [_number(v) for v in one["scalars"]]
        made[one["name"]] = value
    return made


def _number(scalar: dict[str, Any] | None) -> Any:
    found = {1: "b", 2: "i", 3: "r"}.get((scalar or {}).get("type", -1), "")
    if scalar is None or found not in scalar:
        raise FileFormatError("a scalar attribute that is no number")
    return scalar[found]


def _is_tensor(variable: dict[str, Any]) -> bool:
    return variable.get("type", {}).get("kind") == _LOD_TENSOR


def _described(name: str, variable: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and the shape of a variable that is a tensor."""
    tensor = variable.get("type", {}).get("tensor", {}).get("tensor")
    dtype = BY_NUMBER.get((tensor or {}).get("dtype", -1))
    if tensor is None or not _is_tensor(variable) or dtype not in WIDTHS:
        raise FileFormatError(f"the variable {name!r:.60} is no tensor of a known dtype")
    return dtype, checked_shape(tensor["dims"], f"the variable {name!r:.60}")
