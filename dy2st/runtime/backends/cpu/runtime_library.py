"""Kernels that do not depend on a Program: made on first use, in modules that share what they have in common.

gemm.f32.nt            c = a @ b, a as it stands, b transposed (see gemm/)
gemm.f32.nt.scratch    how many bytes it needs beside
gemm.f32.quantized8    a times a weight of integers of 8 bits (4), with its scratch
gemm.f32.pack_b.t      lays b out for many products; gemm.f32.packed.n is one of them
attention.f32          softmax(q k^T + mask) v, see attention/; attention_grad.f32 its VJP,
                       attention_mask_grad.f32 that to the mask; attention_dropped.f32 ... where weights are dropped
conv.f32, max_pool.f64, avg_pool_grad.f32 ...     see conv/
random.uniform.f32.fill                           a draw of random numbers into memory, see random_fill.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

from dy2st.records import record
from dy2st.runtime.aot_cache.code_image import Binary
from dy2st.runtime.backends.cpu import attention, conv, gemm
from dy2st.runtime.backends.cpu.compile_link.code_loader import linked, shared_object
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm import matmul_kernel, packed_kernel, packing_kernel, scratch_kernel
from dy2st.runtime.backends.cpu.gemm.dot_product import dot_product
from dy2st.runtime.backends.cpu.gemm.gemv import packed_row
from dy2st.runtime.backends.cpu.gemm.packing import packing
from dy2st.runtime.backends.cpu.gemm.panels import panels, whole_kernels
from dy2st.runtime.backends.cpu.gemm.parallel import shared_panels
from dy2st.runtime.backends.cpu.gemm.tiling import tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, exported, gathered
from dy2st.runtime.backends.cpu.loop_nests.random_fill import fill
from dy2st.runtime.backends.cpu.opt_level import Haste


@record(frozen=True)
class LibraryModule:
    """A module of the library. `is_inner`: it has the loops in which kernels are most of their time."""

    text: str
    is_inner: bool

    def level(self, haste: Haste) -> int:
        """Return the level of LLVM that makes it."""
        return int(haste == "none" or (haste == "outer" and self.is_inner))


def binary(family: str, target: Target, haste: Haste = "none") -> Binary:
    """Return the code of the kernels whose names begin with `family`; KeyError for no family."""
    return linked([shared_object(part.text, target, part.level(haste)) for part in parts(family, target)])


def parts(family: str, target: Target) -> list[LibraryModule]:
    """Return the modules of a family; KeyError for no family."""
    name, *rest = family.split(".")
    if name == "random":
        return _parts((fill(rest[0], rest[1], target),))
    dtype = rest[0] if rest else ""
    if name == "gemm" and ".".join(rest[1:]) in _FORMS:
        return _parts(_FORMS[".".join(rest[1:])](dtype, target), _products(dtype, target))
    if (plain := name.removesuffix("_dropped")) in _ATTENTION:
        makers = [getattr(attention, maker) for maker in _ATTENTION[plain]]  # they load on first use
        return _parts(tuple(make(dtype, target, plain != name) for make in makers), _products(dtype, target))
    if name in _WINDOWS:
        own = _made(conv, _WINDOWS[name], dtype, target)
        shared = name.startswith("conv")
        in_common = (*_products(dtype, target), *conv.windows_in_common(dtype, target)) if shared else ()
        return _parts(own, in_common)
    raise KeyError(family)


_Module = tuple[Definition, ...]


def _made(package: ModuleType, names: Sequence[str], dtype: str, target: Target) -> _Module:
    """Return what functions of a package write, which load on first use."""
    return tuple(getattr(package, name)(dtype, target) for name in names)


def _parts(own: _Module, in_common: Sequence[_Module] = ()) -> list[LibraryModule]:
    """Return a module with what is needed of others, which may call what those before them define.

    The first of `in_common` has inner loops.
    """
    needed = _reached(own)
    found: list[LibraryModule] = []
    known: set[str] = set()
    for module in (*in_common, own):
        if module is own or any(definition.name in needed for definition in module):
            is_inner = bool(in_common) and module is in_common[0]
            found.append(LibraryModule(gathered(map(exported, module), known), is_inner))
            known |= {definition.name for definition in module}
    return found


def _reached(module: _Module) -> set[str]:
    """Return the names of definitions and of all that they need."""
    pending, seen = list(module), set[str]()
    while pending:
        definition = pending.pop()
        if definition.name not in seen:
            seen.add(definition.name)
            pending += definition.needs
    return seen


@functools.cache
def _products(dtype: str, target: Target) -> tuple[_Module, ...]:
    """Return what products of matrices have in common, the kernels of whole tiles first."""
    t = tile(dtype, target)
    return (
        whole_kernels(t), (panels(t), shared_panels(t)), (dot_product(t),), (packing(t, False),), (packing(t, True),),
        (packed_row(t),),
    )  # fmt: skip


def _form(a: bool, b: bool) -> Callable[[str, Target], _Module]:
    """Return what makes the product of matrices that are transposed or not."""
    return lambda dtype, target: (matmul_kernel(dtype, a, b, target), scratch_kernel(dtype, a, b, target))


def _quantized(bits: int) -> Callable[[str, Target], _Module]:
    """Return what makes the product with a weight of integers."""
    return lambda dtype, target: (
        gemm.quantized_kernel(dtype, bits, target),  # they load on first use
        gemm.quantized_scratch(dtype, bits, target),
    )


def _kept(make: Callable[[str, bool, Target], Definition], swap: bool) -> Callable[[str, Target], _Module]:
    """Return what makes a kernel for a right operand that is packed once."""
    return lambda dtype, target: (make(dtype, swap, target),)


_FORMS = {
    **{f"{'nt'[a]}{'nt'[b]}": _form(a, b) for a in (False, True) for b in (False, True)},
    **{f"packed.{'nt'[swap]}": _kept(packed_kernel, swap) for swap in (False, True)},
    **{f"quantized{bits}": _quantized(bits) for bits in (4, 8)},
    **{f"pack_b.{'nt'[swap]}": _kept(packing_kernel, swap) for swap in (False, True)},
}
_ATTENTION = {
    "attention": ("attention_kernel", "attention_scratch"),
    "attention_grad": ("attention_gradient_kernel", "attention_gradient_scratch"),
    "attention_mask_grad": ("mask_gradient_kernel", "mask_gradient_scratch"),
}
_WINDOWS = {
    "conv": ("convolution_kernel", "convolution_scratch"),
    "conv_input_grad": ("input_gradient_kernel",),
    "conv_weight_grad": ("weight_gradient_kernel",),
    "max_pool": ("max_pool_kernel", "max_values_kernel"),
    "avg_pool": ("mean_pool_kernel",),
    "avg_pool_grad": ("mean_pool_gradient_kernel",),
}
