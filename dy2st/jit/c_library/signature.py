"""The arguments and results of a Program as C has them: fields of a struct, and the words that native code reads.

    a tensor             {const T *data; int64_t shape[rank]; int64_t strides[rank];}, a result without strides
    one without axes     T
    int, float, bool     int64_t, double, bool

Elements of 16 bits are uint16_t in C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register, in_registers, kinds
from dy2st.shapes import Dim, Extent

C_TYPES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip
_NUMBERS = {"int": "int64_t", "float": "double", "bool": "bool"}
_RESERVED = """
alignas alignof and asm auto bool break case catch char class const constexpr continue data default delete do double
else enum explicit export extern false float for friend goto if inline int long mutable namespace new not nullptr
operator or private protected public register restrict return short signed sizeof static struct switch template this
throw true try typedef typename union unsigned using virtual void volatile wchar_t while xor
"""
_WORDS = frozenset(_RESERVED.split())
"""Words of C and C++ that no field may be called."""


class NoFormInC(TypeError):
    """An argument or result of a type that no field of a struct is for."""


@record(frozen=True)
class CValue:
    """An argument or result: what it is called, and what it is of the state, as runtime.c has it (`NONE` of it)."""

    name: str
    field: str
    type: ScalarType | TensorType
    state: str = "NONE"

    @property
    def c_type(self) -> str:
        """The type of an element in C."""
        return _NUMBERS[self.type.kind] if isinstance(self.type, ScalarType) else C_TYPES[self.type.dtype.name]

    @property
    def form(self) -> Literal["NUMBER", "REGISTERS", "MEMORY"]:
        """How it stands in the row of components (value_layout.py)."""
        if isinstance(self.type, ScalarType):
            return "NUMBER"
        return "REGISTERS" if in_register(self.type) or in_registers(self.type) else "MEMORY"

    @property
    def size(self) -> int:
        """The bytes of an element."""
        if isinstance(self.type, ScalarType):
            return 1 if self.type.kind == "bool" else 8
        return self.type.dtype.itemsize

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extents of its axes, or the one that a number is."""
        if isinstance(self.type, TensorType):
            return self.type.shape
        return () if self.type.extent is None else (self.type.extent,)

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return self.type.rank if isinstance(self.type, TensorType) else 0

    @property
    def words(self) -> int:
        """How many components it has."""
        return len(kinds(self.type))

    def declaration(self, *, is_result: bool) -> str:
        """Return its field."""
        if self.rank == 0:
            return f"{self.c_type} {self.field};"
        strides = "" if is_result else f" int64_t strides[{self.rank}];"
        return f"struct {{ const {self.c_type} *data; int64_t shape[{self.rank}];{strides} }} {self.field};"


def values_of(names: Sequence[str], types: Sequence[Type], states: Sequence[str], what: str) -> list[CValue]:
    """Return arguments or results by their names; NoFormInC where no field is for one of them."""
    made: list[CValue] = []
    taken: set[str] = set()
    for name, t, state in zip(names, types, states, strict=True):
        if not isinstance(t, (ScalarType, TensorType)):
            raise NoFormInC(f"{what} '{name}' is {t}: a library takes and gives tensors and numbers")
        made.append(CValue(name, _field(name, taken), t, state))
    return made


def symbols(values: Iterable[CValue]) -> dict[Dim, int]:
    """Return the numbers of the extents that a call tells."""
    found: dict[Dim, int] = {}
    for value in values:
        for extent in value.extents:
            if isinstance(extent, Dim):
                found.setdefault(extent, len(found))
    return found


def identifier(text: str) -> str:
    """Return a text as a name of C.

    >>> identifier("x[0].weight"), identifier("2d"), identifier("int")
    ('x_0_weight', 'x2d', 'int_')
    """
    made = re.sub(r"_+", "_", re.sub(r"\W", "_", text, flags=re.ASCII)).strip("_") or "x"
    made = f"x{made}" if made[0].isdigit() else made
    return f"{made}_" if made in _WORDS else made


def _field(name: str, taken: set[str]) -> str:
    first = made = identifier(name)
    count = 1
    while made in taken:
        count += 1
        made = f"{first}_{count}"
    taken.add(made)
    return made
