"""Definitions that a target has better ones for: the same functions by instructions of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.libm.core.ldexp import scaled_with_avx512
from dy2st.runtime.backends.cpu.libm.piecewise_polynomials import BY_PIECES, by_pieces
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

Better = Callable[[str], Definition | None]


def better_definitions(target: Target) -> Better:
    """Return what tells the better definition of a name; None where there is none.

    >>> from dy2st.runtime.backends.cpu.compile_link.target import host_target
    >>> better_definitions(host_target("avx512"))("dy2st.tanh.f32.16").name
    'dy2st.tanh.f32.16'
    >>> better_definitions(host_target("avx2"))("dy2st.tanh.f32.8")
    """
    return _with_avx512 if target.vector_bytes >= 64 else lambda name: None


@functools.cache
def _with_avx512(name: str) -> Definition | None:
    words = name.split(".")
    if len(words) != 4:
        return None
    _, what, kind, lanes = words
    if what == "scaled" and int(lanes) >= (16 if kind == "f32" else 8):
        return scaled_with_avx512(kind, int(lanes))
    return by_pieces(what, int(lanes)) if what in BY_PIECES and kind == "f32" else None
