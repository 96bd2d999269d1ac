"""Values on the way between Python and native code: objects read where they stand, and objects made of components.

A value that is not as its type says sends the run to `other`; where Python cannot make an object, its error is set, and
the run goes to `failed`.
"""

from __future__ import annotations

from dy2st.dtypes import DType, bfloat16
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register, in_registers, is_small, kinds
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.vector_ops.load_store import elements_of, store_element
from dy2st.shapes import Dim, Extent

API = api.PLACE
"""Where the addresses of Python's functions stand on the plate, in bytes."""
_LARGE = 4096
"""Results of more bytes keep their memory; smaller ones are copied, which takes less time than giving it away."""


def is_plain(t: Type) -> bool:
    """Return whether a type is a number or a tensor of elements that are read and made here."""
    return isinstance(t, ScalarType) or (isinstance(t, TensorType) and t.dtype.name in api.ELEMENTS)


class ObjectConversions:
    """Writes reads of Python's objects and makes of them."""

    def __init__(self, f: LLVMFunction, kernels: LLVMModule):
        self.f, self._kernels = f, kernels
        self.table = f.load("ptr", f.offset("%plate", api.DATA))
        self.other, self.failed = f.label("other"), f.label("failed")

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

    # ---- objects read ----------------------------------------------------------------------------------------------
    def _plain(self, t: Type, value: str, place: str, bound: dict[Dim, str]) -> None:
        """Write a read of a number or array into a row of components; `bound` knows the extents that were read."""
        if isinstance(t, ScalarType):
            self._number(t, value, place, bound)
        elif isinstance(t, TensorType):
            self._array(t, value, place, bound)

    def _number(self, t: ScalarType, value: str, place: str, bound: dict[Dim, str]) -> None:
        f, kind = self.f, t.kind
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
        if t.extent is not None:
            self._extent(t.extent, number, bound)
        f.store("i64", number, place)

    def _extent(self, extent: Extent, found: str, bound: dict[Dim, str]) -> None:
        """Write a check that an extent is what the type says, the same wherever its symbol stands."""
        wanted = str(extent) if isinstance(extent, int) else bound.setdefault(extent, found)
        if wanted != found:
            self._only(self.f.value(f"icmp eq i64 {found}, {wanted}"))

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
            self._extent(extent, found, bound)
        row = ["null", data, *extents]
        if is_small(t):
            row = elements_of(f, t, ("null", data))
        for i, (kind, component) in enumerate(zip(kinds(t), row, strict=True)):
            f.store(kind, component, f.offset(place, 8 * i))

    # ---- objects made ----------------------------------------------------------------------------------------------
    def _object(self, t: Type, context: str, place: str, old: str = "null") -> str:
        """Write an object for a number or tensor whose components stand in a row, and give up what the row holds.

        It is the array `old` where the tensor stands in the memory of that.
        """
        return self._array_of(t, context, place, old) if isinstance(t, TensorType) else self._object_of(t, place)

    def _sure(self, made: str) -> str:
        """Go on where Python has made an object; else its error is set."""
        self._fine(self.f.value(f"icmp ne ptr {made}, null"))
        return made

    def _fine(self, condition: str) -> None:
        """Go on where a condition holds; else Python's error is set."""
        on = self.f.label("on")
        self.f.branch(condition, on, self.failed)
        self.f.start(on)

    def _object_of(self, t: Type, place: str) -> str:
        f, kind = self.f, kinds(t)[0]
        number = f.load(kind, place)
        if kind == "i1":
            return self._call("ptr", "PyBool_FromLong", f"i64 {f.value(f'zext i1 {number} to i64')}")
        if kind == "double":
            return self._call("ptr", "PyFloat_FromDouble", f"double {number}")
        return self._call("ptr", "PyLong_FromLongLong", f"i64 {number}")

    def _new(self, number: str, rank: str, shape: str, data: str) -> str:
        flags = api.OWN_FLAGS if data != "null" else 0
        return self._call(
            "ptr", "PyArray_New", f"ptr {self._address('PyArray_Type')}", f"i32 {rank}", f"ptr {shape}",
            f"i32 {number}", "ptr null", f"ptr {data}", "i32 0", f"i32 {flags}", "ptr null",
        )  # fmt: skip

    def _type_number(self, dtype: DType) -> str:
        """Return NumPy's number of a dtype, which of one that NumPy has not itself is another in each process."""
        if dtype is not bfloat16:
            return str(api.type_number(dtype))
        return self.f.load("i32", self.f.offset(self._address(dtype.name), api.TYPE_NUMBER))

    def _array_of(self, t: TensorType, context: str, place: str, old: str) -> str:
        """Write a call of the function that makes arrays (`array_function`)."""
        if in_registers(t):
            return self._array_of_registers(t, place)
        number, size = self._type_number(t.dtype), t.dtype.itemsize
        given = f"ptr {context}", f"ptr {place}", f"i64 {t.rank}", f"i64 {size}", f"i32 {number}", f"ptr {old}"
        return self.f.call("ptr", f"@{array_function(self._kernels)}", "ptr %plate", *given)

    def _array_of_registers(self, t: TensorType, place: str) -> str:
        f, extents = self.f, f"[{t.rank} x i64]"
        shape = f.slot(extents) if t.rank else "null"
        for axis, extent in enumerate(t.shape):
            f.store("i64", str(extent), f.offset(shape, 8 * axis))
        made = self._sure(self._new(self._type_number(t.dtype), str(t.rank), shape, "null"))
        data = f.load("ptr", f.offset(made, api.DATA))
        for i, kind in enumerate(kinds(t)):
            number = f.load(kind, f.offset(place, 8 * i))
            store_element(f, t.dtype, number, f.offset(data, i * t.dtype.itemsize))
        return made


_MAKES_ARRAYS = "dy2st.entry.array"


def array_function(kernels: LLVMModule) -> str:
    """Add the function `ptr (plate, context, place, rank, itemsize, type number, old)` that makes an array.

    The array is what the row at `place` says: a block, an address and extents, and takes what the row holds. Its memory
    is the block's where nobody else holds that and it is large. Where it stands in the memory of the array `old`, that
    is returned, held once more. Null where Python could not make it: its error is set.
    """
    if _MAKES_ARRAYS in kernels:
        return _MAKES_ARRAYS
    parameters = [("ptr", "%plate"), ("ptr", "%context"), ("ptr", "%place"), ("i64", "%rank"), ("i64", "%itemsize"),
                  ("i32", "%number"), ("ptr", "%old")]  # fmt: skip
    f = LLVMFunction(_MAKES_ARRAYS, parameters, "ptr", also="nounwind")
    _Arrays(f, kernels).write()
    return kernels.add(_MAKES_ARRAYS, f.text())


class _Arrays(ObjectConversions):
    def write(self) -> None:
        f = self.f
        block, data, shape = f.load("ptr", "%place"), f.load("ptr", f.offset("%place", 8)), f.offset("%place", 16)
        self._old_one(block, data)
        rank, total = f.value("trunc i64 %rank to i32"), f.slot("i64")
        f.store("i64", "%itemsize", total)
        with f.loop("%rank", hint="axes") as axis:
            f.store("i64", times(f, f.load("i64", total), f.load("i64", f.offset(shape, axis, "i64"))), total)
        size = f.load("i64", total)
        large = f.value(f"icmp sgt i64 {size}, {_LARGE}")
        alone = f.value(f"and i1 {large}, {f.call('i1', '@dy2st.unique', f'ptr {block}')}")
        give, copy = f.label("give"), f.label("copy")
        f.branch(alone, give, copy)
        f.start(give)
        whole = self._sure(self._new("%number", rank, shape, data))
        f.call("void", "@dy2st.leave", "ptr %context", f"ptr {block}")
        given_back = f.load("ptr", f.offset(self.table, API + 8 * len(api.NAMES)))
        capsule = self._sure(self._call("ptr", "PyCapsule_New", f"ptr {block}", "ptr null", f"ptr {given_back}"))
        self._call("i32", "PyArray_SetBaseObject", f"ptr {whole}", f"ptr {capsule}")
        f.ret("ptr", whole)
        f.start(copy)
        apart = self._sure(self._new("%number", rank, shape, "null"))
        target = f.load("ptr", f.offset(apart, api.DATA))
        f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {data}", f"i64 {size}", "i1 false")
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
        f.ret("ptr", apart)
        f.start(self.failed)
        f.ret("ptr", "null")

    def _old_one(self, block: str, data: str) -> None:
        """Write a return of the old array where the tensor is somebody else's memory, and that array's."""
        f, look, same, new = self.f, self.f.label("look"), self.f.label("same"), self.f.label("new")
        foreign = f.value(f"icmp eq ptr {block}, null")
        f.branch(f.value(f"and i1 {foreign}, {f.value('icmp ne ptr %old, null')}"), look, new)
        f.start(look)
        f.branch(f.value(f"icmp eq ptr {f.load('ptr', f.offset('%old', api.DATA))}, {data}"), same, new)
        f.start(same)
        self._call("void", "Py_IncRef", "ptr %old")
        f.ret("ptr", "%old")
        f.start(new)
