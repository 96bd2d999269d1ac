"""Where the kernels of the library stand in this process; their code is made, or read from the cache, on first use."""

from __future__ import annotations

import functools

from dy2st.runtime import cpu
from dy2st.runtime.cpu.engine import Code, load
from dy2st.runtime.cpu.products import Product, made
from dy2st.runtime.cpu.target import current_target


def address(name: str) -> int:
    """Return where a kernel stands; KeyError for a name that is none."""
    return code(family(name)).address(f"dy2st.{name}")


def family(name: str) -> str:
    """Return which kernels are made together with one.

    >>> family("gemm.f32.nt.scratch"), family("random.uniform.f64.fill")
    ('gemm.f32', 'random.uniform.f64')
    """
    words = name.split(".")
    return ".".join(words[: 3 if words[0] == "random" else 2])


@functools.cache
def code(of: str) -> Code:
    """Return the code of a family, loaded."""
    product, _ = made(f"library {of}", lambda: Product(cpu.library_binary(of, current_target())))
    return load(product.binary)
