"""Programs as plain data for files, and back from data that nobody vouches for.

    program    {"entry": "main", "functions": {"main": block, ...}}
    block      {"arguments": [[name, type], ...], "operations": [operation, ...], "results": [n, ...]}
    operation  {"op": name, "operands": [n, ...], "attributes": {...}, "results": [[name, type], ...],
                "blocks": [block, ...], "at": null or [file, line, function]}

Values are numbered from 0 in each block: its arguments, then the results of its operations in order. Types are their
text. An attribute is null, true, a number, a string, a list (for a tuple), or an object with one key:
{"float": "nan"}, {"dtype": "float32"}, {"type": "list<int>"}, {"literal": "float32[2](1.0, 2.0)"} for a small array and
{"tensor": "constant:0"} for one that stands among the arrays. Of a source file only the last part of its name is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeGuard

from dy2st.dtypes import DType
from dy2st.errors import FileFormatError, InvalidProgram, ProgramSyntaxError, located
from dy2st.ir.checker.check import check
from dy2st.ir.literals import Array, is_array, parse_inline, write_inline
from dy2st.ir.location import Location
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.type_text import DTYPES, parse_type, print_type
from dy2st.ir.types import ListType, TensorType, TupleType, Type, VariantType
from dy2st.ir.verifier import verify
from dy2st.shapes import Dim

CONSTANT = "constant:"
MAX_BLOCK_DEPTH = 100
MAX_ATTRIBUTE_DEPTH = 16
MAX_STRING = 1 << 20
MAX_TYPE_TEXT = 20_000
MAX_RANK = 64
MAX_TERMS = 4096
"""How many terms the product of a type's extents may have: a few extents of many terms could take forever."""
_MOST_REASON = 700
_BASE_NAME = re.compile(r"[^\\/]*$")

Json = Any


def to_json(program: Program) -> tuple[dict[str, Json], dict[str, Array]]:
    """Return a Program as data that `json` can write, and the large constants by name.

    ValueError for an op that cannot stand in a file; InvalidProgram for a Program that breaks a rule of the IR.
    """
    verify(program)
    writer = _Writer()
    functions = {name: writer.block(block, 0) for name, block in program.functions.items()}
    return {"entry": program.entry, "functions": functions}, writer.arrays


def from_json(data: Json, arrays: Mapping[str, Array], called: Collection[str] | None = None) -> Program:
    """Return the Program that `to_json` wrote; FileFormatError says where the data are not one.

    Nothing in it is taken for true: `ir/checker` types it anew. The verifier comes second, because ops infer types from
    attributes that somebody has to have looked at. `called` are the functions that something outside of
    the Program may call; all of them where it is None.
    """
    reader = _Reader(arrays)
    try:
        program = reader.program(data)
        check(program, called)
        verify(program)
    except InvalidProgram as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines())
        raise FileFormatError(f"the Program in the file breaks a rule: {reason:.{_MOST_REASON}}") from error
    except RecursionError as error:
        raise FileFormatError("the Program in the file is nested too deeply") from error
    return program


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.references: dict[int, str] = {}
        self.types: set[str] = set()
        """The texts of types that were looked at."""

    def block(self, block: Block, depth: int) -> Json:
        if depth > MAX_BLOCK_DEPTH:
            raise ValueError(f"a Program with blocks nested more than {MAX_BLOCK_DEPTH} deep cannot be saved")
        numbers: dict[Value, int] = {}
        arguments = [self.define(v, numbers) for v in block.arguments]
        operations = [self.operation(operation, numbers, depth) for operation in block.operations]
        return {"arguments": arguments, "operations": operations, "results": [numbers[v] for v in block.results]}

    def define(self, value: Value, numbers: dict[Value, int]) -> Json:
        numbers[value] = len(numbers)
        return [value.name, self.type(value.type)]

    def type(self, t: Type) -> str:
        text = str(t)
        if text not in self.types:
            self.types.add(print_type(t))
        return text

    def operation(self, operation: Operation, numbers: dict[Value, int], depth: int) -> Json:
        at = operation.location
        if not operation.op.saveable:
            reason = f"{operation.name} calls back into this process and cannot be saved"
            raise ValueError(located(reason, at.file if at else None, at.line if at else None))
        attributes = dict(operation.attributes)
        if operation.op.place:
            file, line = attributes[operation.op.place]
            attributes[operation.op.place] = (_base_name(file), line)
        return {
            "op": operation.name,
            "operands": [numbers[v] for v in operation.operands],
            "attributes": {name: self.attribute(value) for name, value in attributes.items()},
            "blocks": [self.block(block, depth + 1) for block in operation.blocks],
            "results": [self.define(v, numbers) for v in operation.results],
            "at": None if at is None else [_base_name(at.file), max(at.line, 0), at.function],
        }

    def attribute(self, value: Any) -> Json:
        if isinstance(value, tuple):
            return [self.attribute(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, DType):
            return {"dtype": value.name}
        if isinstance(value, Type):
            return {"type": self.type(value)}
        if is_array(value):
            literal = write_inline(value)
            return {"tensor": self.store(value)} if literal is None else {"literal": literal}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        return value

    def store(self, array: Array) -> str:
        name = self.references.setdefault(id(array), f"{CONSTANT}{len(self.arrays)}")
        self.arrays[name] = array
        return name


class _Reader:
    def __init__(self, arrays: Mapping[str, Array]):
        self.arrays = arrays
        self.types: dict[str, Type] = {}

    def program(self, data: Json) -> Program:
        entry, functions = _object(data, ("entry", "functions"), "the Program")
        if not _is_object(functions):
            raise FileFormatError("functions of the Program: an object is expected")
        blocks = {_string(n, "a function's name"): self.block(b, f"function {n!r}", 0) for n, b in functions.items()}
        return Program(blocks, _string(entry, "the entry"))

    def block(self, data: Json, where: str, depth: int) -> Block:
        if depth > MAX_BLOCK_DEPTH:
            raise FileFormatError(f"{where}: blocks are nested more than {MAX_BLOCK_DEPTH} deep")
        arguments, operations, results = _object(data, ("arguments", "operations", "results"), where)
        block = Block()
        values: list[Value] = []
        block.arguments = self.define(arguments, block, f"{where}, arguments")
        values.extend(block.arguments)
        for i, operation in enumerate(_list(operations, f"{where}, operations")):
            block.operations.append(self.operation(operation, block, values, f"{where}, operation {i}", depth))
            values.extend(block.operations[-1].results)
        block.results = _numbered(results, values, f"{where}, results")
        return block

    def define(self, data: Json, block: Block, where: str) -> list[Value]:
        made: list[Value] = []
        for pair in _list(data, where):
            if not _is_list(pair) or len(pair) != 2:
                raise FileFormatError(f"{where}: a name and a type are expected")
            name = None if pair[0] is None else _string(pair[0], f"{where}, a name")
            made.append(Value(self.of_type(pair[1], where), block, None, name))
        return made

    def operation(self, data: Json, block: Block, values: list[Value], where: str, depth: int) -> Operation:
        keys = ("op", "operands", "attributes", "blocks", "results", "at")
        name, operands, attributes, blocks, results, at = _object(data, keys, where)
        op = REGISTRY.get(name) if type(name) is str else None
        if op is None or not op.saveable:
            raise FileFormatError(f"{where}: {name!r:.60} is no op that may stand in a file")
        if not _is_object(attributes) or not set(attributes) <= set(op.attributes):
            raise FileFormatError(f"{where}: the attributes of {name} are {', '.join(op.attributes) or 'none'}")
        used = _numbered(operands, values, f"{where}, operands")
        read = {key: self.attribute(value, f"{where}, attribute {key}", 0) for key, value in attributes.items()}
        inner = [self.block(b, f"{where}, block {i}", depth + 1) for i, b in enumerate(_list(blocks, where))]
        made = Operation(op, used, read, inner, _location(at, where))
        made.results = self.define(results, block, f"{where}, results")
        for value in made.results:
            value.operation = made
        return made

    def of_type(self, data: Json, where: str) -> Type:
        text = _string(data, f"{where}, a type", MAX_TYPE_TEXT)
        found = self.types.get(text)
        if found is None:
            try:
                found = self.types[text] = parse_type(text)
            except ProgramSyntaxError as error:
                raise FileFormatError(f"{where}: {str(error).splitlines()[0]}") from error
            _check_size(found, where)
        return found

    def attribute(self, data: Json, where: str, depth: int) -> Any:
        if depth > MAX_ATTRIBUTE_DEPTH:
            raise FileFormatError(f"{where}: nested more than {MAX_ATTRIBUTE_DEPTH} deep")
        if data is None or type(data) in (bool, int, float):
            return data
        if type(data) is str:
            return _string(data, where)
        if _is_list(data):
            return tuple(self.attribute(item, where, depth + 1) for item in data)
        if not _is_object(data) or len(data) != 1:
            raise FileFormatError(f"{where}: an attribute is expected")
        ((kind, content),) = data.items()
        read = self.kinds.get(kind)
        if read is None:
            raise FileFormatError(f"{where}: {kind!r:.60} is no kind of attribute")
        return read(self, _string(content, where), where)

    def of_float(self, content: str, where: str) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise FileFormatError(f"{where}: {content!r:.60} is not nan, inf or -inf")
        return float(content)

    def of_dtype(self, content: str, where: str) -> DType:
        if content not in DTYPES:
            raise FileFormatError(f"{where}: {content!r:.60} is no dtype")
        return DTYPES[content]

    def of_literal(self, content: str, where: str) -> Array:
        try:
            return parse_inline(content)
        except ProgramSyntaxError as error:
            raise FileFormatError(f"{where}: {str(error).splitlines()[0]}") from error

    def of_tensor(self, content: str, where: str) -> Array:
        if content not in self.arrays:
            raise FileFormatError(f"{where}: no tensor is named {content!r:.60}")
        return self.arrays[content]

    kinds: dict[str, Callable[[Any, str, str], Any]] = {
        "float": of_float, "dtype": of_dtype, "type": of_type, "literal": of_literal, "tensor": of_tensor,
    }  # fmt: skip


def _is_object(data: Json) -> TypeGuard[dict[str, Json]]:
    return type(data) is dict


def _is_list(data: Json) -> TypeGuard[list[Json]]:
    return type(data) is list


def _object(data: Json, keys: tuple[str, ...], where: str) -> tuple[Json, ...]:
    """Return the values under exactly these keys."""
    if not _is_object(data):
        raise FileFormatError(f"{where}: an object is expected")
    if len(data) != len(keys) or not all(key in data for key in keys):
        raise FileFormatError(f"{where}: the keys {', '.join(keys)} are expected, there are {', '.join(data)!r:.100}")
    return tuple(data[key] for key in keys)


def _list(data: Json, where: str) -> list[Json]:
    if not _is_list(data):
        raise FileFormatError(f"{where}: a list is expected")
    return data


def _string(data: Json, where: str, limit: int = MAX_STRING) -> str:
    if type(data) is not str:
        raise FileFormatError(f"{where}: a string is expected")
    if len(data) > limit:
        raise FileFormatError(f"{where}: a string of {len(data)} characters, the limit is {limit}")
    return data


def _numbered(data: Json, values: list[Value], where: str) -> list[Value]:
    found: list[Value] = []
    for number in _list(data, where):
        if type(number) is not int or not 0 <= number < len(values):
            raise FileFormatError(f"{where}: {number!r:.60} is not the number of a value that is defined there")
        found.append(values[number])
    return found


def _location(data: Json, where: str) -> Location | None:
    if data is None:
        return None
    if not _is_list(data) or len(data) != 3 or type(data[1]) is not int or not 0 <= data[1] < 1 << 31:
        raise FileFormatError(f"{where}: a location is a file, a line and a function")
    return Location(_base_name(_string(data[0], where)), data[1], _string(data[2], where))


def _base_name(file: str) -> str:
    found = _BASE_NAME.search(file)
    return found.group() if found else ""


def _check_size(t: Type, where: str) -> None:
    """Refuse types that would take forever to compute with."""
    if isinstance(t, TensorType):
        terms = math.prod(len(e.terms) for e in t.shape if isinstance(e, Dim))
        too_large = any(isinstance(e, int) and e >= 1 << 63 for e in t.shape)
        if t.rank > MAX_RANK or terms > MAX_TERMS or too_large:
            raise FileFormatError(f"{where}: a tensor type of {t.rank} axes and {terms} terms is too large")
    elif isinstance(t, ListType):
        _check_size(t.element, where)
    elif isinstance(t, (TupleType, VariantType)):
        for part in t.items if isinstance(t, TupleType) else t.alternatives:
            _check_size(part, where)
