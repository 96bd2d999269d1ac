"""Random numbers within loops: the functions of philox.py on the elements from some place in a draw on."""

from __future__ import annotations

from dy2st.dtypes import DType, bool_, float64, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType
from dy2st.ops.shape.random import RandomBernoulli, RandomExponential, RandomInt, RandomUniform
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.int_math import minus
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import is_native
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.philox import random_int, random_normal, random_uniform
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

FLOATS = {"float32": "f32", "float64": "f64"}
"""How philox.py names the dtypes that it draws."""


# ---- what a draw takes ----------------------------------------------------------------------------------------------
def numbers_of(operation: Operation) -> list[Value]:
    """Return the numbers that say what is drawn: the seed, which draw it is, and bounds."""
    return operation.operands[: 4 if isinstance(operation.op, RandomInt) else 2]


def probabilities(operation: Operation) -> list[Value]:
    """Return the tensor that a draw reads, if it does; the others are told their shape."""
    return operation.operands[2:] if isinstance(operation.op, RandomBernoulli) else []


def is_drawn(operation: Operation) -> bool:
    """Return whether `member` can write a draw."""
    dtype = tensor_type(operation.results[0]).dtype
    if not isinstance(operation.op, RandomInt):
        return dtype.name in FLOATS
    return is_native(dtype) and all(isinstance(v.type, ScalarType) for v in operation.operands)


# ---- numbers --------------------------------------------------------------------------------------------------------
def member(v: VectorType, operation: Operation, read: list[str], numbers: list[str], place: str) -> str:
    """Write the elements of a draw from some place on; `read` are those of the tensor that it reads."""
    op, dtype = operation.op, tensor_type(operation.results[0]).dtype
    seed, draw, *bounds = numbers
    if isinstance(op, RandomBernoulli):
        return chosen(v, dtype, read[0], seed, draw, place)
    if isinstance(op, RandomInt):
        low, high = bounds
        return whole(v, dtype, seed, draw, low, high, place)
    if isinstance(op, RandomExponential):
        return waited(v, dtype, seed, draw, place)
    make = random_uniform if isinstance(op, RandomUniform) else random_normal
    return drawn(v, make(FLOATS[dtype.name], v.count), dtype, seed, draw, place)


def drawn(v: VectorType, definition: Definition, dtype: DType, *numbers: str) -> str:
    """Write a call of one of philox.py's functions: with the seed, the draw, the place, and what else it takes."""
    return v.call(v.of(dtype), definition, *(f"i64 {n}" for n in numbers))


def chosen(v: VectorType, dtype: DType, limit: str, seed: str, draw: str, place: str) -> str:
    """Write 1 where a uniform number is below the limit, else 0."""
    uniform = drawn(v, random_uniform(FLOATS[dtype.name], v.count), dtype, seed, draw, place)
    below = v.f.value(f"fcmp olt {v.of(dtype)} {uniform}, {limit}")
    return converted(v, below, bool_, dtype)


def whole(v: VectorType, dtype: DType, seed: str, draw: str, low: str, high: str, place: str) -> str:
    """Write whole numbers of a range."""
    made = drawn(v, random_int(v.count), int64, seed, draw, place, low, minus(v.f, high, low))
    return converted(v, made, int64, dtype)


def waited(v: VectorType, dtype: DType, seed: str, draw: str, place: str) -> str:
    """Write numbers of the exponential distribution: -log(1 - u) of uniform float64 numbers."""
    kind = v.of(float64)
    uniform = drawn(v, random_uniform("f64", v.count), float64, seed, draw, place)
    log = v.math("log1p", float64, v.f.value(f"fneg {kind} {uniform}"))
    return converted(v, v.f.value(f"fneg {kind} {log}"), float64, dtype)
