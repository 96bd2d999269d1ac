"""Random numbers within loops: the functions of philox.py on the elements from some place in a draw on."""

from __future__ import annotations

from dy2st.dtypes import DType, bool_
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.elementwise import converted
from dy2st.runtime.cpu.lanes import Lanes, define
from dy2st.runtime.cpu.philox import random_uniform

FLOATS = {"float32": "f32", "float64": "f64"}
"""How philox.py names the dtypes that it draws."""


def drawn(v: Lanes, definition: Definition, dtype: DType, *numbers: str) -> str:
    """Write a call of one of philox.py's functions: with the seed, the draw, the place, and what else it takes."""
    define(v.module, definition)
    return v.f.call(v.of(dtype), f"@{definition.name}", *(f"i64 {n}" for n in numbers))


def chosen(v: Lanes, dtype: DType, limit: str, seed: str, draw: str, place: str) -> str:
    """Write 1 where a uniform number is below the limit, else 0."""
    uniform = drawn(v, random_uniform(FLOATS[dtype.name], v.count), dtype, seed, draw, place)
    below = v.f.value(f"fcmp olt {v.of(dtype)} {uniform}, {limit}")
    return converted(v, below, bool_, dtype)
