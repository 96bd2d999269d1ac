"""A group as a native function: loops over the space, vectors along its rows.

Outside stand loops over the first axes of the space, one an axis; inside, a row is run through in sweeps. A sweep
computes elements in vectors, and the last few under a mask. A reduction of a row ends its sweep: what depends on its
result is computed in the next one, from the group's operands again or from a copy of the row (`scratch`) where that
is dear.

    void @dy2st.k.<key>(<pointers and numbers read>, <pointers written>, <scratch>, <extents>)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.runtime.cpu.elementwise import DEAR, Lanes, compute, converted
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.grouping import REDUCTIONS, Group, even
from dy2st.runtime.cpu.reductions import Accumulator, combined, identity
from dy2st.runtime.cpu.representation import element_kind, in_register
from dy2st.runtime.cpu.target import Target


@dataclass
class Layout:
    """How a group's values are told apart and ordered, before a line of code is written."""

    group: Group
    outer: int
    sweeps: int = 1
    at: dict[Value, int] = field(default_factory=dict[Value, int])
    """The sweep that first computes a value; for one that is the same along a row, that before which it is known."""
    kept: list[Value] = field(default_factory=list[Value])
    """Rows that are copied to scratch memory."""
    reads: dict[Value, int] = field(default_factory=dict[Value, int])
    """The last sweep that reads an operand."""
    strides: dict[Value, tuple[str, ...]] = field(default_factory=dict[Value, tuple[str, ...]])
    """How many elements the axes are apart of operands that have gaps; a literal where code is to know it."""

    @property
    def read(self) -> list[Value]:
        return [
            v for v in self.group.operands
            if isinstance(v.type, TensorType) and (v in self.group.maps or in_register(v.type))
        ]  # fmt: skip

    def is_row(self, value: Value) -> bool:
        """Say whether a value is the same along a row."""
        return value not in self.group.maps or self.group.is_row(value)


def layout(group: Group) -> Layout:
    """Order the members of a group into sweeps."""
    space = group.space
    outer = group.outer
    if outer is None:
        outer = len(space)
        while outer and all(even(m, outer - 1, space) for m in group.maps.values()):
            outer -= 1
        outer = min(outer, len(space) - 1)
    made = Layout(group, outer)
    group.outer = outer
    makers = {v: o for o in group.members for v in o.results}
    for operation in group.members:
        (result,) = operation.results
        stage = max((made.at[v] for v in operation.operands if v in makers), default=0)
        made.at[result] = stage + (operation.op.name in REDUCTIONS and result not in group.columns)
    made.sweeps = max((made.at[v] for o in group.members for v in o.results if not made.is_row(v)), default=-1) + 1
    made.sweeps = max(made.sweeps, *(made.at[v] for o in group.members if _ends_row(o, group) for v in o.results), 0)
    made.sweeps = max(made.sweeps, *(made.at[v] + 1 for v in group.columns), 0)
    _keep(made, makers)
    return made


def _ends_row(operation: Operation, group: Group) -> bool:
    return operation.op.name in REDUCTIONS and operation.results[0] not in group.columns


def _keep(made: Layout, makers: dict[Value, Operation]) -> None:
    """Decide which rows are copied: those that a later sweep needs and that are dear; note when operands are read."""
    group = made.group

    def needs(value: Value, sweep: int) -> None:
        if value not in makers:
            made.reads[value] = max(made.reads.get(value, 0), sweep)
            return
        if made.is_row(value):
            return
        operation = makers[value]
        stored = value in group.results or value in made.kept
        if made.at[value] < sweep:
            if stored:
                return
            if operation.op.name in DEAR:
                made.kept.append(value)
                needs(value, made.at[value])
                return
        for operand in operation.operands:
            needs(operand, sweep)

    for operation in group.members:
        (result,) = operation.results
        if operation.op.name in REDUCTIONS:
            sweep = made.at[result] - (result not in group.columns)
            needs(operation.operands[0], sweep)
        elif not made.is_row(result) and (result in group.results):
            needs(result, made.at[result])
        elif made.is_row(result):
            for operand in operation.operands:
                if operand not in makers:
                    made.reads[operand] = max(made.reads.get(operand, 0), made.at[result])


def kernel(module: Module, target: Target, made: Layout) -> str:
    """Return the name of the function that runs a group; groups that do the same share one."""
    text = _Kernel(module, target, made).text()
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"dy2st.k.{key}"
    module.add(name, text.replace("@dy2st.kernel(", f"@{name}(", 1))
    return name


class _Kernel:
    def __init__(self, module: Module, target: Target, made: Layout):
        self.module, self.made, self.group = module, made, made.group
        self.count = _lanes(made, target)
        self.reading = {v: f"%r{i}" for i, v in enumerate(made.read)}
        self.writing = {v: f"%w{i}" for i, v in enumerate(made.group.results)}
        self.scratch = {v: f"%c{i}" for i, v in enumerate(made.kept)}
        self.extents = [f"%e{i}" for i in range(len(made.group.space))]
        parameters = [
            *(
                (element_kind(tensor_type(v).dtype) if in_register(v.type) else "ptr", r)
                for v, r in self.reading.items()
            ),
            *(("ptr", r) for r in self.writing.values()),
            *(("ptr", r) for r in self.scratch.values()),
            *(("i64", e) for e in self.extents),
            *(("i64", s) for strides in self._strides(made).values() for s in strides if not s.isdigit()),
        ]
        self.f = Function("dy2st.kernel", parameters, also="nounwind")
        self.makers = {v: o for o in self.group.members for v in o.results}
        self.row: dict[Value, str] = {}
        """Registers of values that are the same along the row that is being written."""
        self.base: dict[Value, str] = {}
        """Addresses of the row in memory."""
        self.mask: str | None = None
        self.tail: str = ""

    def _strides(self, made: Layout) -> dict[Value, tuple[str, ...]]:
        """Return strides as the function names them: literals, and parameters for the others."""
        self.strides = {
            v: tuple(s if s.isdigit() else f"%t{i}.{j}" for j, s in enumerate(strides))
            for i, (v, strides) in enumerate(made.strides.items())
        }
        return self.strides

    def text(self) -> str:
        """Write the function."""
        f, made = self.f, self.made
        self.length = self._product([e for e, s in zip(self.extents, self.group.space, strict=True)][made.outer :])
        for value in self.group.columns:
            self._fill_column(value)
        self._outside(0, [])
        for value in self.group.columns:
            self._finish_column(value)
        f.ret()
        return f.text()

    # ---- places ----------------------------------------------------------------------------------------------------
    def _product(self, factors: list[str]) -> str:
        total = "1"
        for factor in factors:
            total = factor if total == "1" else self.f.value(f"mul nsw i64 {total}, {factor}")
        return total

    def _extent(self, axis: int) -> str:
        known = self.group.space[axis]
        return str(known) if isinstance(known, int) else self.extents[axis]

    def _outside(self, axis: int, counters: list[str]) -> None:
        """Write the loops over the axes outside of rows."""
        if axis == self.made.outer:
            self._row(counters)
            return
        with self.f.loop(self._extent(axis), hint="outer") as i:
            self._outside(axis + 1, [*counters, i])

    def _row_address(self, value: Value, counters: list[str], pointer: str) -> str:
        """Write the address of a value's row (or of its one element in this row)."""
        f, at = self.f, "0"
        if value in self.strides:
            for axis, stride in zip(self.group.maps[value], self.strides[value], strict=True):
                if axis is not None and axis < self.made.outer:
                    step = f.value(f"mul nsw i64 {counters[axis]}, {stride}")
                    at = step if at == "0" else f.value(f"add nsw i64 {at}, {step}")
            size = tensor_type(value).dtype.itemsize
            return f.offset(pointer, at if at == "0" else f.value(f"mul nsw i64 {at}, {size}"))
        for axis in self.group.maps[value]:
            if axis is None:
                continue
            step = counters[axis] if axis < self.made.outer else "0"
            scaled = "0" if at == "0" else f.value(f"mul nsw i64 {at}, {self._extent(axis)}")
            at = step if scaled == "0" else scaled if step == "0" else f.value(f"add nsw i64 {scaled}, {step}")
        size = tensor_type(value).dtype.itemsize
        return f.offset(pointer, at if at == "0" else f.value(f"mul nsw i64 {at}, {size}"))

    # ---- a row -----------------------------------------------------------------------------------------------------
    def _row(self, counters: list[str]) -> None:
        f, made, group = self.f, self.made, self.group
        self.row, self.base = {}, dict(self.scratch)
        for value, register in self.reading.items():
            if in_register(value.type):
                self.row[value] = register
            else:
                self.base[value] = self._row_address(value, counters, register)
        for value, register in self.writing.items():
            self.base[value] = self._row_address(value, counters, register)
        for sweep in range(made.sweeps + 1):
            self._row_values(sweep)
            if sweep < made.sweeps:
                self._sweep(sweep)
        for value, register in self.row.items():
            if value in self.writing and value not in group.columns:
                self._store_one(value, register, self.base[value])
        del f

    def _row_values(self, sweep: int) -> None:
        """Write the values of the row that are known before a sweep."""
        lanes = Lanes(self.f, self.module, 1)
        for operation in self.group.members:
            (result,) = operation.results
            if result in self.row or result in self.group.columns or not self.made.is_row(result):
                continue
            if self.made.at[result] == sweep and operation.op.name not in REDUCTIONS:
                self.row[result] = self._member(
                    lanes, operation, [self._row_value(v) for v in operation.operands[: _read(operation)]]
                )

    def _row_value(self, value: Value) -> str:
        if value not in self.row:
            dtype = tensor_type(value).dtype
            if dtype.is_bool:
                self.row[value] = self.f.value(f"icmp ne i8 {self.f.load('i8', self.base[value])}, 0")
            else:
                self.row[value] = self.f.load(element_kind(dtype), self.base[value])
        return self.row[value]

    def _store_one(self, value: Value, register: str, address: str) -> None:
        dtype = tensor_type(value).dtype
        if dtype.is_bool:
            self.f.store("i8", self.f.value(f"zext i1 {register} to i8"), address)
        else:
            self.f.store(element_kind(dtype), register, address)

    # ---- a sweep ---------------------------------------------------------------------------------------------------
    def _sweep(self, sweep: int) -> None:
        """Write one run through the row: full vectors, then the rest under a mask."""
        f, made, group = self.f, self.made, self.group
        ends = [o for o in group.members if _ends_row(o, group) and made.at[o.results[0]] == sweep + 1]
        columns = [o for o in group.members if o.results[0] in group.columns and made.at[o.results[0]] == sweep]
        stores = [
            v for v in [*group.results, *made.kept]
            if v not in group.columns and not made.is_row(v) and made.at[v] == sweep
        ]  # fmt: skip
        if not (ends or columns or stores):
            return
        sums = {o.results[0]: Accumulator(f, self.module, self.count, o) for o in ends}
        for o in ends:  # values of the row that the sweep needs stand before its loops
            self._prepare(o.operands[0], sweep)
        for o in columns:
            self._prepare(o.operands[0], sweep)
        for v in stores:
            self._prepare(v, sweep)
        whole = self.length
        if self.count > 1:
            whole = f.value(f"and i64 {self.length}, {-self.count}")
        with f.loop(whole, self.count, hint="sweep") as i:
            self._body(sweep, i, ends, columns, stores, sums)
        if self.count > 1:
            with f.when(f.value(f"icmp slt i64 {whole}, {self.length}"), "rest"):
                left = f.value(f"trunc i64 {f.value(f'sub i64 {self.length}, {whole}')} to i32")
                n = self.count
                numbers = ", ".join(f"i32 {k}" for k in range(n))
                first = f.value(f"insertelement <{n} x i32> poison, i32 {left}, i64 0")
                limit = f.value(f"shufflevector <{n} x i32> {first}, <{n} x i32> poison, <{n} x i32> zeroinitializer")
                self.mask = f.value(f"icmp ult <{n} x i32> <{numbers}>, {limit}")
                self._body(sweep, whole, ends, columns, stores, sums)
                self.mask = None
        for o in ends:
            self.row[o.results[0]] = sums[o.results[0]].total(self.length)

    def _prepare(self, value: Value, sweep: int) -> None:
        """Load what a value needs that is the same along the row, so that loops find it in a register."""
        if self.made.is_row(value):
            if value not in self.makers:
                self._row_value(value)
            return
        if value in self.makers and not (self.made.at[value] < sweep and value in self.base):
            for operand in self.makers[value].operands[: _read(self.makers[value])]:
                self._prepare(operand, sweep)

    def _body(self, sweep: int, i: str, ends: list[Operation], columns: list[Operation], stores: list[Value],
              sums: dict[Value, Accumulator]) -> None:  # fmt: skip
        memo: dict[Value, str] = {}
        made: list[tuple[Value, str]] = []
        lanes = Lanes(self.f, self.module, self.count)
        for operation in self.group.members:
            (result,) = operation.results
            if result in stores:
                made.append((result, self._vector(lanes, result, sweep, i, memo)))
            elif operation in ends:
                sums[result].add(self._vector(lanes, operation.operands[0], sweep, i, memo), self.mask)
            elif operation in columns:
                self._add_to_column(lanes, operation, self._vector(lanes, operation.operands[0], sweep, i, memo), i)
        for result, register in made:  # last: a result may stand in the memory of an operand that others read
            self._store(result, register, i)

    def _vector(self, lanes: Lanes, value: Value, sweep: int, i: str, memo: dict[Value, str]) -> str:
        """Write the elements of a value at place `i` of the row."""
        if value in memo:
            return memo[value]
        dtype = tensor_type(value).dtype
        if self.made.is_row(value):
            made = lanes.spread(self._row_value(value), dtype)
        elif value not in self.makers or (self.made.at[value] < sweep and value in self.base):
            made = self._load(value, i)
        else:
            operation = self.makers[value]
            read = operation.operands[: _read(operation)]
            made = self._member(lanes, operation, [self._vector(lanes, v, sweep, i, memo) for v in read])
        memo[value] = made
        return made

    def _member(self, lanes: Lanes, operation: Operation, registers: list[str]) -> str:
        """Write one member on registers."""
        name = operation.op.name
        if name in ("broadcast", "full", "reshape", "expand_dims", "squeeze"):
            return registers[0]
        return compute(lanes, operation, registers)

    # ---- memory ----------------------------------------------------------------------------------------------------
    def _row_stride(self, value: Value) -> str:
        """Return how many elements neighbours of a row are apart."""
        if value not in self.strides:
            return "1"
        along = [
            s for axis, s in zip(self.group.maps[value], self.strides[value], strict=True)
            if axis is not None and axis >= self.made.outer and self.group.space[axis] != 1
        ]  # fmt: skip
        return along[0] if along else "1"

    def _apart(self, value: Value, i: str, stride: str) -> str:
        """Return the addresses of elements that are apart."""
        f, dtype, n = self.f, tensor_type(value).dtype, self.count
        first = f.offset(self.base[value], f.value(f"mul nsw i64 {i}, {stride}"), f"[{dtype.itemsize} x i8]")
        if n == 1:
            return first
        step = Lanes(f, self.module, n).spread(f.value(f"mul nsw i64 {stride}, {dtype.itemsize}"), int64)
        numbers = ", ".join(f"i64 {j}" for j in range(n))
        places = f.value(f"mul nsw <{n} x i64> {step}, <{numbers}>")
        return f.value(f"getelementptr i8, ptr {first}, <{n} x i64> {places}")

    def _scattered(self, value: Value, register: str, i: str, stride: str) -> None:
        """Store elements that are apart."""
        f, dtype, n = self.f, tensor_type(value).dtype, self.count
        addresses, kind = self._apart(value, i, stride), "i8" if dtype.is_bool else element_kind(dtype)
        full, masks = kind if n == 1 else f"<{n} x {kind}>", f"<{n} x i1>"
        if dtype.is_bool:
            register = f.value(f"zext {'i1' if n == 1 else masks} {register} to {full}")
        if n == 1:
            f.store(kind, register, addresses)
            return
        name = f"llvm.masked.scatter.v{n}{_short(kind)}.v{n}p0"
        self.module.add(name, f"declare void @{name}({full}, <{n} x ptr>, i32, {masks})")
        f.call("void", f"@{name}", f"{full} {register}", f"<{n} x ptr> {addresses}", f"i32 {dtype.itemsize}",
               f"{masks} {self.mask or 'splat (i1 true)'}")  # fmt: skip

    def _gathered(self, value: Value, i: str, stride: str) -> str:
        """Load elements that are apart."""
        f, dtype, n = self.f, tensor_type(value).dtype, self.count
        addresses, kind = self._apart(value, i, stride), "i8" if dtype.is_bool else element_kind(dtype)
        if n == 1:
            loaded = f.load(kind, addresses)
            return f.value(f"icmp ne i8 {loaded}, 0") if dtype.is_bool else loaded
        full, masks = f"<{n} x {kind}>", f"<{n} x i1>"
        name = f"llvm.masked.gather.v{n}{_short(kind)}.v{n}p0"
        self.module.add(name, f"declare {full} @{name}(<{n} x ptr>, i32, {masks}, {full})")
        mask = self.mask or "splat (i1 true)"
        loaded = f.call(full, f"@{name}", f"<{n} x ptr> {addresses}", f"i32 {dtype.itemsize}", f"{masks} {mask}",
                        f"{full} zeroinitializer")  # fmt: skip
        return f.value(f"icmp ne {full} {loaded}, zeroinitializer") if dtype.is_bool else loaded

    def _address(self, value: Value, i: str) -> str:
        kind = f"[{tensor_type(value).dtype.itemsize} x i8]"
        return self.f.offset(self.base[value], i, kind)

    def _load(self, value: Value, i: str) -> str:
        stride = self._row_stride(value)
        if stride != "1":
            return self._gathered(value, i, stride)
        return self._load_from(self._address(value, i), tensor_type(value).dtype)

    def _load_from(self, address: str, dtype: DType) -> str:
        f, kind = self.f, "i8" if dtype.is_bool else element_kind(dtype)
        full = kind if self.count == 1 else f"<{self.count} x {kind}>"
        if self.mask is None:
            loaded = f.value(f"load {full}, ptr {address}, align {dtype.itemsize}")
        else:
            name = f"llvm.masked.load.v{self.count}{_short(kind)}.p0"
            masks = f"<{self.count} x i1>"
            self.module.add(name, f"declare {full} @{name}(ptr, i32, {masks}, {full})")
            loaded = f.call(full, f"@{name}", f"ptr {address}", f"i32 {dtype.itemsize}", f"{masks} {self.mask}",
                            f"{full} zeroinitializer")  # fmt: skip
        if not dtype.is_bool:
            return loaded
        return f.value(f"icmp ne {full} {loaded}, {'0' if self.count == 1 else 'zeroinitializer'}")

    def _store(self, value: Value, register: str, i: str) -> None:
        stride = self._row_stride(value)
        if stride != "1":
            self._scattered(value, register, i, stride)
            return
        self._store_to(self._address(value, i), tensor_type(value).dtype, register)

    def _store_to(self, address: str, dtype: DType, register: str) -> None:
        f, kind = self.f, "i8" if dtype.is_bool else element_kind(dtype)
        full = kind if self.count == 1 else f"<{self.count} x {kind}>"
        if dtype.is_bool:
            source = "i1" if self.count == 1 else f"<{self.count} x i1>"
            register = f.value(f"zext {source} {register} to {full}")
        if self.mask is None:
            f.do(f"store {full} {register}, ptr {address}, align {dtype.itemsize}")
            return
        name = f"llvm.masked.store.v{self.count}{_short(kind)}.p0"
        masks = f"<{self.count} x i1>"
        self.module.add(name, f"declare void @{name}({full}, ptr, i32, {masks})")
        f.call(
            "void", f"@{name}", f"{full} {register}", f"ptr {address}", f"i32 {dtype.itemsize}", f"{masks} {self.mask}"
        )

    # ---- columns ---------------------------------------------------------------------------------------------------
    def _column_loop(self, value: Value, write: Any) -> None:
        """Write one run through a column result, element by element of its row."""
        f, pointer = self.f, self.writing[value]
        self.base[value] = pointer
        whole = self.length if self.count == 1 else f.value(f"and i64 {self.length}, {-self.count}")
        count = self.count
        with f.loop(whole, count, hint="column") as i:
            write(i)
        if count > 1:
            self.count = 1
            with f.loop(self.length, 1, whole, hint="rest") as i:
                write(i)
            self.count = count

    def _fill_column(self, value: Value) -> None:
        operation, dtype = self.makers[value], tensor_type(value).dtype

        def write(i: str) -> None:
            constant = Lanes(self.f, self.module, self.count).constant(identity(operation.op.name, dtype), dtype)
            self._store(value, constant, i)

        self._column_loop(value, write)

    def _add_to_column(self, lanes: Lanes, operation: Operation, register: str, i: str) -> None:
        (result,) = operation.results
        dtype, source = tensor_type(result).dtype, tensor_type(operation.operands[0]).dtype
        so_far = self._load(result, i)
        total = combined(lanes, operation.op.name, dtype, so_far, converted(lanes, register, source, dtype))
        self._store(result, total, i)

    def _finish_column(self, value: Value) -> None:
        operation = self.makers[value]
        if operation.op.name != "mean":
            return
        dtype = tensor_type(value).dtype
        rows = self._product([self._extent(axis) for axis in range(self.made.outer)])
        divisor = self.f.value(f"sitofp i64 {rows} to {element_kind(dtype)}")

        def write(i: str) -> None:
            lanes = Lanes(self.f, self.module, self.count)
            mean = self.f.value(f"fdiv {lanes.of(dtype)} {self._load(value, i)}, {lanes.spread(divisor, dtype)}")
            self._store(value, mean, i)

        self._column_loop(value, write)


def _read(operation: Operation) -> int:
    """Return how many operands are read as elements; the others are extents."""
    if operation.op.name in ("broadcast", "full", "reshape", "expand_dims", "squeeze"):
        return 1
    return 0 if operation.op.name in ("zeros_like", "ones_like") else len(operation.operands)


def _short(kind: str) -> str:
    return {"float": "f32", "double": "f64"}.get(kind, kind)


def _lanes(made: Layout, target: Target) -> int:
    """Return how many elements a register has: those of the narrowest number, but no more than a row has."""
    sizes = [tensor_type(v).dtype.itemsize for v in made.group.maps if not tensor_type(v).dtype.is_bool]
    lanes = target.lanes(max(4, min(sizes, default=4)))
    row = 1
    for extent in made.group.space[made.outer :]:
        if not isinstance(extent, int):
            return lanes
        row *= extent
    while lanes > 1 and lanes // 2 >= row:
        lanes //= 2
    return lanes
