"""Programs as bytes for this package itself: exact, with places and names, and read back in microseconds an operation.

Files that others may have written have a form of their own (serialize.py), which is checked. This one is for what a
process keeps for a later one of the same version, where only the same user can have written.

A Program that was derived from another one has that one's places (its user's lines, and the calls that led there). So
they are kept as numbers of operations of the source.

What native code was kept for is run without its operations: so these are read when they are asked for.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.location import Location
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.type_text import DTYPES
from dy2st.ir.types import (
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    UnsetType,
    VariantType,
)
from dy2st.shapes import Dim, Extent, Terms

_PLAIN = (type(None), bool, int, float, complex, str)
Places = Sequence[Location | None]


class CannotPack(Exception):
    """A Program holds what no bytes stand for, or comes from elsewhere than its source."""


def places_of(program: Program) -> list[Location | None]:
    """Return the place of every operation, in order."""
    return [operation.location for operation in program.walk()]


class LazyProgram(Program):
    """A Program whose operations are read when they are asked for; what it takes and gives is known."""

    def __init__(self, entry: str, signature: tuple[list[Type], list[Type], int], read: Callable[[], dict[str, Block]]):
        # `functions` is not set: the first one to ask for it reads them
        self.entry, self.renewed, self.kept, self.made_as = entry, (), None, None
        self._signature, self._read = signature, read
        self._places: Places = ()

    def __getattr__(self, name: str) -> Any:
        if name == "functions":
            functions = self._read()
            self._places = places_of(Program(functions, self.entry))
            return self.__dict__.setdefault("functions", functions)  # all threads have the same
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def places(self) -> Places:
        """Return the place of every operation, in order, as they were read."""
        self.functions  # noqa: B018 (reads)
        return self._places

    @property
    def is_read(self) -> bool:
        """Whether somebody has asked for the operations, and may have changed them."""
        return "functions" in self.__dict__

    @property
    def argument_types(self) -> list[Type]:
        return super().argument_types if self.is_read else self._signature[0]

    @property
    def result_types(self) -> list[Type]:
        return super().result_types if self.is_read else self._signature[1]

    @property
    def count(self) -> int:
        return super().count if self.is_read else self._signature[2]


def numbered(places: Places) -> dict[int, int]:
    """Return the number of the first operation at each place, by the identity of the place."""
    first: dict[int, int] = {}
    for number, place in enumerate(places):
        first.setdefault(id(place), number)
    return first


def pack(programs: Sequence[Program], notes: Sequence[int], places: Places) -> bytes:
    """Return Programs and numbers as bytes; CannotPack where they hold objects, or have other places than these."""
    packer = _Packer(numbered(places))
    made: list[Any] = []
    for p in programs:
        functions = marshal.dumps([(name, packer.block(block)) for name, block in p.functions.items()])
        signature = [packer.kind(t) for t in p.argument_types], [packer.kind(t) for t in p.result_types], p.count
        made.append((p.entry, signature, (p.renewed, p.kept), functions))
    return marshal.dumps((packer.kinds, made, tuple(notes)))


def unpack(data: bytes, places: Callable[[], Places]) -> tuple[list[Program], tuple[int, ...]]:
    """Return what `pack` was given; ValueError, TypeError, KeyError, IndexError or EOFError for other bytes.

    The Programs ask for `places` when they read their operations.
    """
    kinds, made, notes = marshal.loads(data)
    reader = _Reader(kinds, places)
    return [reader.late(*one) for one in made], notes


# ---- writing -------------------------------------------------------------------------------------------------------
class _Packer:
    def __init__(self, first: Mapping[int, int]):
        self.kinds: list[Any] = []
        self._numbers: dict[Type, int] = {}
        self._first = first

    def block(self, block: Block) -> Any:
        numbers: dict[Value, int] = {}
        arguments = [self._defined(v, numbers) for v in block.arguments]
        operations = [self._operation(operation, numbers) for operation in block.operations]
        return arguments, operations, [numbers[v] for v in block.results]

    def _operation(self, operation: Operation, numbers: dict[Value, int]) -> Any:
        if not type(operation.op).__module__.startswith("dy2st."):
            raise CannotPack(f"{operation.name} is an op from elsewhere")
        place = operation.location
        at = None if place is None else self._first.get(id(place))
        if place is not None and at is None:
            raise CannotPack(f"{operation} has a place of its own")
        return (
            operation.name,
            [numbers[v] for v in operation.operands],
            _attributes(operation.attributes),
            [self.block(inner) for inner in operation.blocks],
            at,
            [self._defined(v, numbers) for v in operation.results],
        )

    def _defined(self, value: Value, numbers: dict[Value, int]) -> tuple[int, str | None]:
        numbers[value] = len(numbers)
        return self.kind(value.type), value.name

    def kind(self, t: Type) -> int:
        """Return the number of a type among `kinds`."""
        found = self._numbers.get(t)
        if found is None:
            found = self._numbers[t] = len(self.kinds)
            self.kinds.append(_type_data(t))
        return found


def _attributes(attributes: Mapping[str, Any]) -> Any:
    """Return attributes as they are where they are plain, else as pairs of a name and what `_coded` gives."""
    if all(_is_plain(value) for value in attributes.values()):
        return dict(attributes)
    return [(name, _coded(value)) for name, value in attributes.items()]


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, cast("tuple[Any, ...]", value)))
    return type(value) in _PLAIN


def _coded(value: Any) -> tuple[Any, ...]:
    if _is_plain(value):
        return "plain", value
    if type(value) is tuple or type(value) is list:
        return type(cast(object, value)).__name__, list(map(_coded, cast(Iterable[Any], value)))
    if type(value) is dict:
        return "dict", [(key, _coded(item)) for key, item in cast("dict[str, Any]", value).items()]
    if isinstance(value, DType):
        return "dtype", value.name
    if isinstance(value, Type):
        return "type", _type_data(value)
    if isinstance(value, Dim):
        return "extent", value.terms
    if type(value) is np.ndarray and not value.dtype.hasobject:
        array = cast("np.ndarray[Any, Any]", value)
        return "array", (array.dtype.str, array.shape, array.tobytes(), array.flags.writeable)
    raise CannotPack(f"an attribute is {value!r:.60}")


def _type_data(kind: Type) -> tuple[Any, ...]:
    if isinstance(kind, TensorType):
        return "tensor", kind.dtype.name, [_extent_data(extent) for extent in kind.shape]
    if isinstance(kind, ScalarType):
        return "scalar", kind.kind, _extent_data(kind.extent)
    if isinstance(kind, ListType):
        return "list", _type_data(kind.element)
    if isinstance(kind, TupleType):
        return "tuple", [_type_data(item) for item in kind.items]
    if isinstance(kind, VariantType):
        return "variant", [_type_data(item) for item in kind.alternatives]
    if isinstance(kind, ConstType):
        return "const", kind.value
    if isinstance(kind, UnsetType):
        return ("unset",)
    raise CannotPack(f"a type is {kind}")


def _extent_data(extent: Extent | None) -> Any:
    return extent.terms if isinstance(extent, Dim) else extent


# ---- reading -------------------------------------------------------------------------------------------------------
class _Reader:
    def __init__(self, kinds: Sequence[Any], places: Callable[[], Places]):
        self._kinds: Any = _Kinds(kinds)  # numbers come from data, of which nothing is known
        self._ask = places
        self._places: Any = ()

    def late(self, entry: str, signature: Any, marks: Any, functions: bytes) -> LazyProgram:
        taken, given, count = signature
        types = [self._kinds[kind] for kind in taken], [self._kinds[kind] for kind in given]
        made = LazyProgram(entry, (*types, int(count)), lambda: self.functions(functions))
        made.renewed, made.kept = marks
        return made

    def functions(self, data: bytes) -> dict[str, Block]:
        """Return the functions of a Program."""
        self._places = self._ask()
        return {name: self.block(block) for name, block in marshal.loads(data)}

    def block(self, data: Any) -> Block:
        arguments, operations, results = data
        block, kinds, places = Block(), self._kinds, self._places
        values = block.arguments = [Value(kinds[kind], block, None, name) for kind, name in arguments]
        values = values.copy()
        for name, operands, attributes, blocks, at, made in operations:
            operation = Operation(
                REGISTRY[name],
                [values[number] for number in operands],
                _decoded_attributes(attributes),
                [self.block(inner) for inner in blocks],
                None if at is None else places[at],
            )
            operation.results = [Value(kinds[kind], block, operation, name) for kind, name in made]
            values += operation.results
            block.operations.append(operation)
        block.results = [values[number] for number in results]
        return block


class _Kinds(dict[int, Type]):
    """Types by their numbers, made of their data when they are asked for."""

    def __init__(self, data: Any):
        super().__init__()
        self._data = data

    def __missing__(self, number: int) -> Type:
        found = self[number] = _type(self._data[number])
        return found


def _decoded_attributes(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {key: _decoded(item) for key, item in data}  # pyright: ignore[reportUnknownVariableType] (of data)


def _decoded(coded: Any) -> Any:
    match coded:
        case "plain", data:
            return data
        case "tuple", data:
            return tuple([_decoded(item) for item in data])
        case "list", data:
            return [_decoded(item) for item in data]
        case "dict", data:
            return {key: _decoded(item) for key, item in data}
        case "dtype", data:
            return DTYPES[data]
        case "type", data:
            return _type(data)
        case "extent", data:
            return _extent(data)
        case "array", (dtype, shape, content, writeable):
            made = np.frombuffer(content, np.dtype(dtype)).reshape(shape).copy()
            made.setflags(write=writeable)
            return made
        case _:
            raise ValueError(f"no attribute: {coded!r:.60}")


def _type(data: Any) -> Type:
    match data:
        case "tensor", dtype, shape:
            return TensorType(DTYPES[dtype], tuple([_extent(extent) for extent in shape]))
        case "scalar", kind, extent:
            return ScalarType(kind, _extent(extent))
        case "list", element:
            return ListType(_type(element))
        case "tuple", items:
            return TupleType(tuple([_type(item) for item in items]))
        case "variant", items:
            return VariantType(tuple([_type(item) for item in items]))
        case "const", value:
            return ConstType(value)
        case ("unset",):
            return UNSET
        case _:
            raise ValueError(f"no type: {data!r:.60}")


def _extent(data: Any) -> Any:
    return Dim(cast("Terms", data)) if type(data) is tuple else data
