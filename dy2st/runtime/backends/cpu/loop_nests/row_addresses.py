"""Where the elements of a group stand: what a function takes that runs through its rows, and addresses made of that."""

from __future__ import annotations

from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register, kinds
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, lanes_of
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition


class RowAddresses:
    """Names the parameters of a function and writes addresses into it."""

    def __init__(self, module: LLVMModule, target: Target, made: NestLayout):
        self.module, self.made, self.group = module, made, made.group
        self.count = lanes_of(made, target)
        self.vector_bytes = target.vector_bytes
        self.reading = {v: f"%r{i}" for i, v in enumerate(made.read)}
        self.writing = {v: f"%w{i}" for i, v in enumerate(made.group.results)}
        self.scratch = {v: f"%c{i}" for i, v in enumerate(made.kept)}
        self.extents = [f"%e{i}" for i in range(len(made.group.space) if made.outer else 1)]
        """Those of the space; of rows alone how long they are, so that nests share code whose spaces differ."""
        self.strides = {
            v: tuple(s if s.isdigit() else f"%t{i}.{j}" for j, s in enumerate(strides))
            for i, (v, strides) in enumerate(made.strides.items())
        }
        """Literals, and parameters for the others."""
        self.tables = {
            v: apart.renamed([n if n.isdigit() else f"%a{i}.{j}" for j, n in enumerate(apart.numbers)])
            for i, (v, apart) in enumerate(made.tables.items())
        }
        """How tensors stand that are read at places."""
        self.parameters = [
            *((kinds(v.type)[0] if in_register(v.type) else "ptr", r) for v, r in self.reading.items()),
            *(("ptr", r) for r in self.writing.values()),
            *(("ptr", r) for r in self.scratch.values()),
            *(("i64", e) for e in self.extents),
            *(("i64", s) for strides in self.strides.values() for s in strides if not s.isdigit()),
            *(("i64", n) for apart in self.tables.values() for n in apart.numbers if not n.isdigit()),
        ]
        self.base: dict[Value, str] = {}
        """Addresses of the row in memory."""
        self.counters: list[str] = []
        """The row's places along the axes outside of it."""
        self.begin(LLVMFunction("dy2st.kernel", self.parameters, also="nounwind"))

    def begin(self, f: LLVMFunction) -> None:
        """Go on in another function, for whole rows."""
        self.f, self.elements = f, ElementAccess(f, self.module, self.count, self.vector_bytes)
        self.length = self.product(self.extents[self.made.outer :])
        self.first, self.stop = "0", self.length
        """The elements of rows that are written: other ones are somebody else's."""
        self.picked: dict[Value, str] = {}
        """Where rows begin that are read at places."""

    def product(self, factors: list[str]) -> str:
        """Write a product of extents."""
        total = "1"
        for factor in factors:
            total = factor if total == "1" else self.f.value(f"mul nsw i64 {total}, {factor}")
        return total

    def extent(self, axis: int) -> str:
        """Return how long an axis of the space is."""
        known = self.group.space[axis]
        return str(known) if isinstance(known, int) else self.extents[axis]

    def row_address(self, value: Value, counters: list[str], pointer: str) -> str:
        """Write the address of a value's row (or of its one element in this row)."""
        f = self.f
        at = self._by_strides(value, counters) if value in self.strides else self._without_gaps(value, counters)
        size = tensor_type(value).dtype.itemsize
        return f.offset(pointer, at if at == "0" else f.value(f"mul nsw i64 {at}, {size}"))

    def _by_strides(self, value: Value, counters: list[str]) -> str:
        """Write the number of a row's first element in memory with strides."""
        f, at = self.f, "0"
        for axis, stride in zip(self.group.maps[value], self.strides[value], strict=True):
            if axis is not None and axis < self.made.outer:
                step = f.value(f"mul nsw i64 {counters[axis]}, {stride}")
                at = step if at == "0" else f.value(f"add nsw i64 {at}, {step}")
        return at

    def _without_gaps(self, value: Value, counters: list[str]) -> str:
        """Write the number of a row's first element in memory where elements follow one another."""
        f, at = self.f, "0"
        for axis in self.group.maps[value]:
            if axis is None:
                continue
            step = counters[axis] if axis < self.made.outer else "0"
            scaled = "0" if at == "0" else f.value(f"mul nsw i64 {at}, {self.extent(axis)}")
            at = step if scaled == "0" else scaled if step == "0" else f.value(f"add nsw i64 {scaled}, {step}")
        return at

    def row_number(self, counters: list[str]) -> str:
        """Write how many elements stand in front of a row."""
        if not counters:
            return "0"
        row = counters[0]
        for axis, counter in enumerate(counters[1:], 1):
            row = plus(self.f, times(self.f, row, self.extent(axis)), counter)
        return times(self.f, row, self.length)

    def place(self, value: Value, i: str) -> RowPosition:
        """Return where the elements from number `i` of a value's row on stand."""
        along = ["1"]
        if value in self.strides:
            along = [
                s for axis, s in zip(self.group.maps[value], self.strides[value], strict=True)
                if axis is not None and axis >= self.made.outer and self.group.space[axis] != 1
            ]  # fmt: skip
        return RowPosition(self.base[value], i, tensor_type(value).dtype, along[0] if along else "1")

    def one(self) -> ElementAccess:
        """Return what reads and writes one element."""
        return ElementAccess(self.f, self.module, 1)
