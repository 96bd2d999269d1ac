"""The elementary functions by name: `function("exp", "f32", 16)` is IR that computes e**x in 16 lanes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from dy2st.runtime.backends.cpu.libm.core.double_double_emitter import WideEmitter
from dy2st.runtime.backends.cpu.libm.core.emitter import Emitter, Lanes
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

Formula = Callable[..., Lanes]

_BY_MODULE = {
    "formulas.exp": "exp exp2 expm1",
    "formulas.log": "log log2 log10 log1p",
    "formulas.activations": "sigmoid silu log_sigmoid softplus gelu_tanh",
    "formulas.erf": "erf gelu erfinv",
    "formulas.gamma": "lgamma digamma",
    "formulas.bessel": "i0e i1e",
    "formulas.hyperbolic": "sinh cosh tanh asinh acosh atanh",
    "formulas.trigonometric": "sin cos tan",
    "formulas.inverse_trigonometric": "asin acos atan atan2",
    "formulas.pow": "pow hypot sqrt rsqrt reciprocal square",
    "formulas.division": "fmod mod floordiv",
    "formulas.rounding": "floor ceil trunc rint round sign nextafter",
}
FORMULAS: Mapping[str, str] = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
"""The functions, each with the module that has its formula: that is loaded with the first Program that needs it."""


def _formula(name: str) -> Formula:
    return getattr(import_module(f"dy2st.runtime.backends.cpu.libm.{FORMULAS[name]}"), name)


@functools.cache
def function(name: str, dtype: str, lanes: int) -> Definition:
    """Return IR for the function `name` on vectors of `lanes` elements (plain numbers where that is 1).

    Parameters
    ----------
    name
        One of `FORMULAS`; binary functions (`pow`, `atan2`, ...) take two vectors.
    dtype
        "f32" or "f64".
    lanes
        1 or a power of two; more than a register holds is cut up by LLVM. Results do not depend on it.

    Raises
    ------
    KeyError
        For a name that is none of `FORMULAS`.

    Examples
    --------
    >>> square_root = function("sqrt", "f32", 4)
    >>> square_root.name
    'dy2st.sqrt.f32.4'
    """
    e = Emitter(lanes)
    return _finished(e, f"dy2st.{name}.{dtype}.{lanes}", dtype, _operands(e, name, dtype), _formula(name))


@functools.cache
def strict_function(name: str, dtype: str, lanes: int) -> Definition:
    """Return IR for a function right to 1 unit in the last place: in float64 for float32, in two parts for float64.

    >>> strict_function("tanh", "f64", 4).name
    'dy2st.strict.tanh.f64.4'
    """
    formula, symbol = _formula(name), f"dy2st.strict.{name}.{dtype}.{lanes}"
    if name in EXACT:
        e = Emitter(lanes)
        return _finished(e, symbol, dtype, _operands(e, name, dtype), formula)
    if dtype == "f64":
        wide = WideEmitter(lanes)
        operands = _operands(wide, name, dtype)
        return _finished(wide, symbol, dtype, operands, lambda e, *x: wide.rounded(formula(e, *x)))
    e = Emitter(lanes)
    operands = _operands(e, name, dtype)
    return _finished(
        e, symbol, dtype, operands, lambda e, *x: e.convert(formula(e, *(e.convert(v, "f64") for v in x)), "f32")
    )


EXACT = frozenset(
    {
        *("fmod", "mod", "floordiv", "floor", "ceil", "trunc", "rint", "round", "sign", "nextafter"),
        *("sqrt", "reciprocal", "square"),
    }
)
"""The functions that are correctly rounded as they are."""


def _operands(e: Emitter, name: str, dtype: str) -> list[Lanes]:
    names = list(inspect.signature(_formula(name)).parameters)[1:]  # the first is the emitter
    return [Lanes(e, dtype, f"%{x}") for x in names]


def _finished(e: Emitter, symbol: str, dtype: str, operands: Sequence[Lanes], formula: Formula) -> Definition:
    result, t = formula(e, *operands), e.type(dtype)
    arguments = ", ".join(f"{t} {x.text}" for x in operands)
    head = f"define internal {t} @{symbol}({arguments}) alwaysinline nounwind {{"
    text = "\n".join([head, "entry:", *e.lines, f"  ret {t} {result.text}", "}"])
    return Definition(symbol, text, tuple(e.needs.values()))
