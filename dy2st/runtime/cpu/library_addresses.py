"""Where the kernels of the library stand in this process; their code is made, or read from the cache, on first use."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable

from dy2st.runtime import cpu
from dy2st.runtime.cpu import ufuncs
from dy2st.runtime.cpu.engine import Code, load
from dy2st.runtime.cpu.products import Product, kept, made
from dy2st.runtime.cpu.target import current_target


def address(name: str, strict: bool = False, *, quick: bool = False) -> int:
    """Return where a kernel, or a loop of NumPy's, stands; KeyError for a name that is none."""
    if name.startswith(ufuncs.PREFIX):
        return ufuncs.address(name)
    return code(family(name), strict, quick=quick).address(f"dy2st.{name}")


def families(names: Iterable[str]) -> list[str]:
    """Return, each once, which kernels are to be made for those of these names; loops of NumPy's are there.

    >>> families(["gemm.f32.nt", "ufunc.linalg.inv.d->d.loop", "gemm.f32.nt.scratch"])
    ['gemm.f32']
    """
    return list(dict.fromkeys(family(name) for name in names if not name.startswith(ufuncs.PREFIX)))


def jobs(names: Iterable[str], strict: bool, *, quick: bool) -> list[Callable[[], object]]:
    """Return what makes the code of the families of these names that is not there: functions that may run together."""
    target, missing = current_target(strict), [of for of in families(names) if kept(_recipe(of, strict)) is None]
    texts = dict.fromkeys(text for of in missing for text in cpu.library_function("texts")(of, target))
    return [lambda text=text: cpu.library_function("object_of")(text, target, int(not quick)) for text in texts]


def family(name: str) -> str:
    """Return which kernels are made together with one.

    >>> family("gemm.f32.nt.scratch"), family("random.uniform.f64.fill")
    ('gemm.f32', 'random.uniform.f64')
    """
    words = name.split(".")
    return ".".join(words[: 3 if words[0] == "random" else 2])


def code(of: str, strict: bool = False, *, quick: bool = False) -> Code:
    """Return the code of a family, loaded; where it is `quick`, that of level 0, unless there is the other."""
    return (_quick_code if quick else _code)(of, strict, os.environ.get("DY2ST_CPU"))


@functools.cache
def _code(of: str, strict: bool, forced: str | None) -> Code:
    """Return the code for the CPU that `DY2ST_CPU` forces."""
    product, _ = made(_recipe(of, strict), lambda: Product(cpu.library_function("binary")(of, current_target(strict))))
    return load(product.binary)


@functools.cache
def _quick_code(of: str, strict: bool, forced: str | None) -> Code:
    recipe = _recipe(of, strict)
    if kept(recipe) is not None:
        return _code(of, strict, forced)
    binary = cpu.library_function("binary")
    product, _ = made(f"{recipe} quick", lambda: Product(binary(of, current_target(strict), level=0)))
    return load(product.binary)


def _recipe(of: str, strict: bool) -> str:
    return f"library {of}{' strict' * strict}"
