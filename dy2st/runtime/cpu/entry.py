"""The native function that Python calls: it reads arguments where they stand and makes arrays of the results.

    PyObject *dy2st.call(PyObject *plate, PyObject **arguments, Py_ssize_t count)

It gives a list of results; False when arguments are not as they must be for this path (the caller converts them, or
lets the interpreter run); an int, 4 * number of the run + status, when the run ended otherwise. `plate` is an array
of addresses: how many contexts are free, where they stand, and `python_api.NAMES`. All of it runs under the
interpreter's lock, but for kernels that take long: those give it away until the Program has run.

Memory of a large result goes over to the array, which gives it back when it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.program import Program, Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.elements import elements_of, store_element
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.memory import INTERRUPTED, OK, RUN, TURN
from dy2st.runtime.cpu.representation import in_register, in_registers, is_native, is_small, kinds
from dy2st.shapes import Dim

FREE_COUNT, FREE_CONTEXTS, API = 0, 8, 16
"""Where the fields of the plate stand, in bytes."""
_LARGE = 4096
"""Results of more bytes keep their memory; smaller ones are copied, which takes less time than giving it away."""


def takes(program: Program) -> bool:
    """Say whether the arguments and results of a Program are numbers and tensors of native elements only."""
    return all(map(_is_plain, [v.type for v in (*program.block.arguments, *program.block.results)]))


def _is_plain(t: Type) -> bool:
    return isinstance(t, ScalarType) or (isinstance(t, TensorType) and is_native(t.dtype))


class Entry:
    """Writes the function that Python calls."""

    def __init__(self, module: Module, program: Program, takes_long: bool):
        self.module, self.program, self.takes_long = module, program, takes_long
        parameters = [("ptr", "%plate"), ("ptr", "%arguments"), ("i64", "%count")]
        self.f = Function("dy2st.call", parameters, "ptr", also="nounwind")
        self.table = self.f.load("ptr", self.f.offset("%plate", api.DATA))
        self.other = self.f.label("other")
        self.failed = self.f.label("failed")

    def write(self) -> None:
        """Add the function to the module."""
        f, block = self.f, self.program.block
        given = f.slot("i64", max(1, sum(len(kinds(v.type)) for v in block.arguments)))
        made = f.slot("i64", max(1, sum(len(kinds(v.type)) for v in block.results)))
        self._read(given, [v.type for v in block.arguments])
        free = f.load("i64", f.offset(self.table, FREE_COUNT))
        self._only(f.value(f"icmp sgt i64 {free}, 0"))
        left = f.value(f"sub i64 {free}, 1")
        f.store("i64", left, f.offset(self.table, FREE_COUNT))
        place = f.offset(f.load("ptr", f.offset(self.table, FREE_CONTEXTS)), left, "ptr")
        context = f.load("ptr", place)
        turn = f.offset(context, TURN)
        f.store("i64", f.value(f"add i64 {f.load('i64', turn)}, 1"), turn)
        status = f.call("i32", f"@dy2st.f.{self.program.entry}", f"ptr {context}", f"ptr {given}", f"ptr {made}")
        if self.takes_long:
            self.module.add("dy2st.take_lock", "declare void @dy2st.take_lock()")
            f.call("void", "@dy2st.take_lock")
        good, bad = f.label("good"), f.label("bad")
        f.branch(f.value(f"icmp eq i32 {status}, {OK}"), good, bad)
        f.start(bad)
        number = f.load("i64", f.offset(context, RUN))
        status = f.call("i32", "@llvm.umin.i32", f"i32 {status}", f"i32 {INTERRUPTED}")
        shown = f.value(f"add i64 {f.value(f'shl i64 {number}, 2')}, {f.value(f'zext i32 {status} to i64')}")
        f.ret("ptr", self._call("ptr", "PyLong_FromLongLong", f"i64 {shown}"))
        f.start(good)
        results = self._results(context, made, block.results)
        now = f.load("i64", f.offset(self.table, FREE_COUNT))  # another thread may have run during a call into Python
        f.store("ptr", context, f.offset(f.load("ptr", f.offset(self.table, FREE_CONTEXTS)), now, "ptr"))
        f.store("i64", f.value(f"add i64 {now}, 1"), f.offset(self.table, FREE_COUNT))
        f.ret("ptr", results)
        f.start(self.other)
        f.ret("ptr", self._call("ptr", "PyBool_FromLong", "i64 0"))
        f.start(self.failed)
        f.ret("ptr", "null")
        self.module.add("dy2st.call", f.text())

    # ---- small things ----------------------------------------------------------------------------------------------
    def _address(self, name: str) -> str:
        return self.f.load("ptr", self.f.offset(self.table, API + 8 * api.NAMES.index(name)))

    def _call(self, result: str, name: str, *arguments: str) -> str:
        return self.f.call(result, self._address(name), *arguments)

    def _only(self, condition: str) -> None:
        """Go on where a condition holds; else let the caller do it."""
        on = self.f.label("on")
        self.f.branch(condition, on, self.other)
        self.f.start(on)

    def _is(self, value: str, name: str) -> str:
        return self.f.value(f"icmp eq ptr {value}, {self._address(name)}")

    # ---- arguments -------------------------------------------------------------------------------------------------
    def _read(self, row: str, types: Sequence[Type]) -> None:
        f = self.f
        self._only(f.value(f"icmp eq i64 %count, {len(types)}"))
        at, bound = 0, dict[Dim, str]()
        for i, t in enumerate(types):
            value = f.load("ptr", f.offset("%arguments", 8 * i))
            place = f.offset(row, 8 * at)
            if isinstance(t, ScalarType):
                self._number(t.kind, value, place)
            elif isinstance(t, TensorType):
                self._array(t, value, place, bound)
            at += len(kinds(t))

    def _number(self, kind: str, value: str, place: str) -> None:
        f = self.f
        if kind == "bool":
            true = self._is(value, "True")
            self._only(f.value(f"or i1 {true}, {self._is(value, 'False')}"))
            f.store("i1", true, place)
            return
        self._only(self._is(f.load("ptr", f.offset(value, api.TYPE)), kind))
        if kind == "float":
            f.store("double", self._call("double", "PyFloat_AsDouble", f"ptr {value}"), place)
            return
        over = f.slot("i32")
        number = self._call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {value}", f"ptr {over}")
        self._only(f.value(f"icmp eq i32 {f.load('i32', over)}, 0"))
        f.store("i64", number, place)

    def _array(self, t: TensorType, value: str, place: str, bound: dict[Dim, str]) -> None:
        f = self.f
        self._only(self._is(f.load("ptr", f.offset(value, api.TYPE)), "PyArray_Type"))
        fine = self._is(f.load("ptr", f.offset(value, api.DESCRIPTOR)), t.dtype.name)
        rank = f.load("i32", f.offset(value, api.RANK))
        fine = f.value(f"and i1 {fine}, {f.value(f'icmp eq i32 {rank}, {t.rank}')}")
        flags = f.value(f"and i32 {f.load('i32', f.offset(value, api.FLAGS))}, {api.BEHAVED}")
        self._only(f.value(f"and i1 {fine}, {f.value(f'icmp eq i32 {flags}, {api.BEHAVED}')}"))
        data = f.load("ptr", f.offset(value, api.DATA))
        if in_register(t):
            kind = kinds(t)[0]
            f.store(
                kind, f.value(f"icmp ne i8 {f.load('i8', data)}, 0") if t.dtype.is_bool else f.load(kind, data), place
            )
            return
        shape = f.load("ptr", f.offset(value, api.SHAPE))
        extents = [f.load("i64", f.offset(shape, 8 * axis)) for axis in range(t.rank)]
        for extent, found in zip(t.shape, extents, strict=True):
            wanted = str(extent) if isinstance(extent, int) else bound.setdefault(extent, found)
            if wanted != found:
                self._only(f.value(f"icmp eq i64 {found}, {wanted}"))
        row = ["null", data, *extents]
        if is_small(t):
            row = elements_of(f, t, ("null", data))
        for i, (kind, component) in enumerate(zip(kinds(t), row, strict=True)):
            f.store(kind, component, f.offset(place, 8 * i))

    # ---- results ---------------------------------------------------------------------------------------------------
    def _results(self, context: str, row: str, values: Sequence[Value]) -> str:
        f, at = self.f, 0
        results = self._sure(self._call("ptr", "PyList_New", f"i64 {len(values)}"))
        for i, value in enumerate(values):
            t, place, given = value.type, f.offset(row, 8 * at), self._given(value)
            if given is not None:
                made = f.load("ptr", f.offset("%arguments", 8 * given))
                self._call("void", "Py_IncRef", f"ptr {made}")
            elif isinstance(t, TensorType):
                made = self._array_of(t, context, place)
            else:
                made = self._object_of(t, place)
            self._call("i32", "PyList_SetItem", f"ptr {results}", f"i64 {i}", f"ptr {self._sure(made)}")
            at += len(kinds(t))
        return results

    def _given(self, value: Value) -> int | None:
        """Return which argument a result is, as an array and not a copy of one, as a plan gives it; None for others."""
        while value.operation is not None and value.operation.op.name == "detach":
            (value,) = value.operation.operands
        if not isinstance(value.type, TensorType) or value not in self.program.block.arguments:
            return None
        return self.program.block.arguments.index(value)

    def _sure(self, made: str) -> str:
        """Go on where Python has made an object; else its error is set."""
        on = self.f.label("on")
        self.f.branch(self.f.value(f"icmp ne ptr {made}, null"), on, self.failed)
        self.f.start(on)
        return made

    def _object_of(self, t: Type, place: str) -> str:
        f, kind = self.f, kinds(t)[0]
        number = f.load(kind, place)
        if kind == "i1":
            return self._call("ptr", "PyBool_FromLong", f"i64 {f.value(f'zext i1 {number} to i64')}")
        if kind == "double":
            return self._call("ptr", "PyFloat_FromDouble", f"double {number}")
        return self._call("ptr", "PyLong_FromLongLong", f"i64 {number}")

    def _new(self, dtype: DType, rank: int, shape: str, data: str) -> str:
        flags = api.OWN_FLAGS if data != "null" else 0
        return self._call(
            "ptr", "PyArray_New", f"ptr {self._address('PyArray_Type')}", f"i32 {rank}", f"ptr {shape}",
            f"i32 {api.type_number(dtype)}", "ptr null", f"ptr {data}", "i32 0", f"i32 {flags}", "ptr null",
        )  # fmt: skip

    def _array_of(self, t: TensorType, context: str, place: str) -> str:
        f = self.f
        if in_registers(t):
            return self._array_of_registers(t, place)
        block, data, shape = f.load("ptr", place), f.load("ptr", f.offset(place, 8)), f.offset(place, 16)
        size = str(t.dtype.itemsize)
        for axis in range(t.rank):
            size = f.value(f"mul i64 {size}, {f.load('i64', f.offset(shape, 8 * axis))}")
        large = f.value(f"icmp sgt i64 {size}, {_LARGE}")
        alone = f.value(f"and i1 {large}, {f.call('i1', '@dy2st.unique', f'ptr {block}')}")
        kept, give, copy, join = f.slot("ptr"), f.label("give"), f.label("copy"), f.label("join")
        f.branch(alone, give, copy)
        f.start(give)
        whole = self._sure(self._new(t.dtype, t.rank, shape, data))
        f.call("void", "@dy2st.leave", f"ptr {context}", f"ptr {block}")
        capsule = self._sure(
            self._call("ptr", "PyCapsule_New", f"ptr {block}", "ptr null", f"ptr {self._given_back()}")
        )
        self._call("i32", "PyArray_SetBaseObject", f"ptr {whole}", f"ptr {capsule}")
        f.store("ptr", whole, kept)
        f.jump(join)
        f.start(copy)
        apart = self._sure(self._new(t.dtype, t.rank, shape, "null"))
        target = f.load("ptr", f.offset(apart, api.DATA))
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {data}", f"i64 {size}", "i1 false")
        f.call("void", "@dy2st.release", f"ptr {context}", f"ptr {block}")
        f.store("ptr", apart, kept)
        f.start(join)
        return f.load("ptr", kept)

    def _array_of_registers(self, t: TensorType, place: str) -> str:
        f, extents = self.f, f"[{t.rank} x i64]"
        shape = f.slot(extents) if t.rank else "null"
        for axis, extent in enumerate(t.shape):
            f.store("i64", str(extent), f.offset(shape, 8 * axis))
        made = self._sure(self._new(t.dtype, t.rank, shape, "null"))
        data = f.load("ptr", f.offset(made, api.DATA))
        for i, kind in enumerate(kinds(t)):
            number = f.load(kind, f.offset(place, 8 * i))
            store_element(f, t.dtype, number, f.offset(data, i * t.dtype.itemsize))
        return made

    def _given_back(self) -> str:
        return self.f.load("ptr", self.f.offset(self.table, API + 8 * len(api.NAMES)))
