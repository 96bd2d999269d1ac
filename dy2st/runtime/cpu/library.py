"""Kernels that do not depend on a Program: made on first use, in modules that share what they have in common.

gemm.f32.nt            c = a @ b, a as it stands, b transposed (see gemm/)
gemm.f32.nt.scratch    how many bytes it needs beside
gemm.f32.pack_b.t      lays b out for many products; gemm.f32.packed.n is one of them
attention.f32          softmax(q k^T + mask) v, see attention/; attention_grad.f32 its pull-back
conv.f32, max_pool.f64, avg_pool_grad.f32 ...     see conv/
random.uniform.f32.fill                           a draw of random numbers into memory, see draws.py
"""

from __future__ import annotations

import functools

from dy2st.runtime.cpu.attention import (
    attention_gradient_kernel,
    attention_gradient_scratch,
    attention_kernel,
    attention_scratch,
)
from dy2st.runtime.cpu.conv import (
    convolution_kernel,
    convolution_scratch,
    input_gradient_kernel,
    max_pool_kernel,
    max_values_kernel,
    mean_pool_gradient_kernel,
    mean_pool_kernel,
    weight_gradient_kernel,
)
from dy2st.runtime.cpu.conv.columns import gather
from dy2st.runtime.cpu.conv.direct import direct
from dy2st.runtime.cpu.conv.places import permutes
from dy2st.runtime.cpu.conv.sliding import sliding
from dy2st.runtime.cpu.conv.winograd import winograd
from dy2st.runtime.cpu.definition import Definition, exported, gathered
from dy2st.runtime.cpu.draws import fill
from dy2st.runtime.cpu.engine import linked, made_object
from dy2st.runtime.cpu.gemm import matmul_kernel, packed_kernel, packing_kernel, scratch_kernel
from dy2st.runtime.cpu.gemm.panels import panels
from dy2st.runtime.cpu.gemm.tile import tile
from dy2st.runtime.cpu.image import Binary
from dy2st.runtime.cpu.target import Target


def binary(family: str, target: Target, level: int = 1) -> Binary:
    """Return the code of the kernels whose names begin with `family` (library_addresses.py); KeyError for no family."""
    return linked([object_of(text, target, level) for text in texts(family, target)])


@functools.cache
def object_of(text: str, target: Target, level: int) -> bytes:
    """Return the object file of a module; families have modules in common."""
    return made_object(text, target, level)


def texts(family: str, target: Target) -> list[str]:
    """Return the modules of a family; KeyError for no family."""
    name, *rest = family.split(".")
    if name == "gemm":
        return _modules(*_products(rest[0], target))
    if name == "random":
        return [gathered([fill(rest[0], rest[1], target)])]
    if name in _ATTENTION:
        kernels = tuple(make(rest[0], target) for make in _ATTENTION[name])
        return _modules(*_products(rest[0], target), kernels)
    if name in _WINDOWS:
        return _windows(name, rest[0], target)
    raise KeyError(family)


def _modules(*modules: tuple[Definition, ...]) -> list[str]:
    """Return the texts of modules of which one may call what those before it define."""
    found: list[str] = []
    known: set[str] = set()
    for definitions in modules:
        found.append(gathered(map(exported, definitions), known))
        known |= {definition.name for definition in definitions}
    return found


@functools.cache
def _products(dtype: str, target: Target) -> tuple[tuple[Definition, ...], ...]:
    """Return products of matrices of all forms, behind the kernels that they have in common."""
    forms = [(a, b) for a in (False, True) for b in (False, True)]
    products = [make(dtype, *form, target) for make in (matmul_kernel, scratch_kernel) for form in forms]
    kept = [make(dtype, swap, target) for make in (packing_kernel, packed_kernel) for swap in (False, True)]
    return (panels(tile(dtype, target)),), (*products, *kept)


@functools.cache
def _windows_in_common(dtype: str, target: Target) -> tuple[Definition, ...]:
    """Return what convolutions and their gradients have in common."""
    t = tile(dtype, target)
    return (gather(t), *((direct(t), winograd(t)) if permutes(target) else (sliding(t),)))


_ATTENTION = {
    "attention": (attention_kernel, attention_scratch),
    "attention_grad": (attention_gradient_kernel, attention_gradient_scratch),
}
_WINDOWS = {
    "conv": (convolution_kernel, convolution_scratch),
    "conv_input_grad": (input_gradient_kernel,),
    "conv_weight_grad": (weight_gradient_kernel,),
    "max_pool": (max_pool_kernel, max_values_kernel),
    "avg_pool": (mean_pool_kernel,),
    "avg_pool_grad": (mean_pool_gradient_kernel,),
}


def _windows(family: str, dtype: str, target: Target) -> list[str]:
    """Return the modules of a convolution or pooling."""
    own = tuple(make(dtype, target) for make in _WINDOWS[family])
    if not family.startswith("conv"):
        return _modules(own)
    return _modules(*_products(dtype, target), _windows_in_common(dtype, target), own)
