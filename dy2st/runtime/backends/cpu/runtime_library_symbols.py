"""Where the kernels of the library stand in this process; their code is made, or read from the cache, on first use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from dy2st import config
from dy2st.runtime.aot_cache.artifacts import Artifact, cached, made
from dy2st.runtime.backends.cpu.compile_link.code_loader import LoadedCode, load, shared_object
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.opt_level import Haste
from dy2st.runtime.backends.cpu.python_abi import ufunc_loops


def address(name: str, strict: bool = False, *, haste: Haste = "none") -> int:
    """Return where a kernel, or a loop of NumPy's, stands; KeyError for a name that is none."""
    if name.startswith(ufunc_loops.PREFIX):
        return ufunc_loops.address(name)
    return code(family(name), strict, haste).address(f"dy2st.{name}")


def families(names: Iterable[str]) -> list[str]:
    """Return, each once, which kernels are to be made for those of these names; loops of NumPy's are there.

    >>> families(["gemm.f32.nt", "ufunc.linalg.inv.d->d.loop", "gemm.f32.nt.scratch"])
    ['gemm.f32.nt']
    """
    return list(dict.fromkeys(family(name) for name in names if not name.startswith(ufunc_loops.PREFIX)))


def jobs(names: Iterable[str], strict: bool, haste: Haste) -> list[Callable[[], object]]:
    """Return what makes the code of the families of these names that is not there: functions that may run together."""
    from dy2st.runtime.backends.cpu.runtime_library import parts

    target, missing = current_target(strict), [of for of in families(names) if cached(_recipe(of, strict)) is None]
    made = dict.fromkeys((part.text, part.level(haste)) for of in missing for part in parts(of, target))
    return [lambda one=one: shared_object(one[0], target, one[1]) for one in made]


def family(name: str) -> str:
    """Return which kernels are made together with one.

    >>> family("gemm.f32.nt.scratch"), family("max_pool.f32.values"), family("random.uniform.f64.fill")
    ('gemm.f32.nt', 'max_pool.f32', 'random.uniform.f64')
    """
    words = name.removesuffix(".scratch").split(".")
    return ".".join(words[: {"gemm": 4, "random": 3}.get(words[0], 2)])


def code(of: str, strict: bool = False, haste: Haste = "none") -> LoadedCode:
    """Return the code of a family, loaded; where it is made in `haste`, that, unless there is better."""
    return _code(of, strict, haste, config.forced_cpu())


@functools.cache
def _code(of: str, strict: bool, haste: Haste, forced: str | None) -> LoadedCode:
    """Return the code for the CPU that `DY2ST_CPU` forces."""
    best = _recipe(of, strict)
    if haste != "none" and cached(best) is not None:
        return _code(of, strict, "none", forced)
    recipe = best if haste == "none" else f"{best} without {haste}"

    def make() -> Artifact:
        from dy2st.runtime.backends.cpu.runtime_library import binary

        return Artifact(binary(of, current_target(strict), haste))

    product, _ = made(recipe, make)
    return load(product.binary)


def _recipe(of: str, strict: bool) -> str:
    return f"library {of}{' strict' * strict}"
