"""The elementary functions by name: `function("exp", "f32", 16)` is IR that computes e**x in 16 lanes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from dy2st.ir.opdef import REGISTRY
from dy2st.runtime.backends.cpu.libm.core.double_double_emitter import DoubleDoubleEmitter
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.registry import EXACT, FORMULAS, Formula
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

_FORMULAS = "dy2st.runtime.backends.cpu.libm.formulas"


def _formula(name: str) -> Formula:
    """Return a formula; its module is loaded with the first Program that needs it."""
    module, _, plain = name.rpartition(".")
    if plain not in FORMULAS:
        import_module(f"{_FORMULAS}.{module or REGISTRY[plain].formula}")
    return FORMULAS[plain]


def load_formulas() -> dict[str, Formula]:
    """Load all modules of formulas and return what they have."""
    for module in iter_modules(import_module(_FORMULAS).__path__):
        import_module(f"{_FORMULAS}.{module.name}")
    return FORMULAS


@functools.cache
def function(name: str, dtype: str, lanes: int) -> Definition:
    """Return IR for the function `name` on vectors of `lanes` elements (plain numbers where that is 1).

    Parameters
    ----------
    name
        An op that has a `formula`, or module and name of another one ("activations.gelu_tanh"); binary functions
        (`pow`, `atan2`, ...) take two vectors.
    dtype
        "f32" or "f64".
    lanes
        1 or a power of two; more than a register holds is cut up by LLVM. Results do not depend on it.

    Raises
    ------
    KeyError
        For a name of which there is no formula.

    Examples
    --------
    >>> inverse_root = function("rsqrt", "f32", 4)
    >>> inverse_root.name
    'dy2st.rsqrt.f32.4'
    """
    e, made = FormulaEmitter(lanes), _formula(name)
    return _finished(e, f"dy2st.{made.__name__}.{dtype}.{lanes}", dtype, _operands(e, made, dtype), made)


@functools.cache
def strict_function(name: str, dtype: str, lanes: int) -> Definition:
    """Return IR for a function right to 1 unit in the last place: in float64 for float32, in two parts for float64.

    >>> strict_function("tanh", "f64", 4).name
    'dy2st.strict.tanh.f64.4'
    """
    made = _formula(name)
    symbol = f"dy2st.strict.{made.__name__}.{dtype}.{lanes}"
    if made.__name__ in EXACT:
        e = FormulaEmitter(lanes)
        return _finished(e, symbol, dtype, _operands(e, made, dtype), made)
    if dtype == "f64":
        wide = DoubleDoubleEmitter(lanes)
        operands = _operands(wide, made, dtype)
        return _finished(wide, symbol, dtype, operands, lambda e, *x: wide.rounded(made(e, *x)))
    e = FormulaEmitter(lanes)
    operands = _operands(e, made, dtype)
    return _finished(
        e, symbol, dtype, operands, lambda e, *x: e.convert(made(e, *(e.convert(v, "f64") for v in x)), "f32")
    )


def _operands(e: FormulaEmitter, made: Formula, dtype: str) -> list[VectorValue]:
    names = list(inspect.signature(made).parameters)[1:]  # the first is the emitter
    return [VectorValue(e, dtype, f"%{x}") for x in names]


def _finished(
    e: FormulaEmitter, symbol: str, dtype: str, operands: Sequence[VectorValue], formula: Formula
) -> Definition:
    result, t = formula(e, *operands), e.type(dtype)
    arguments = ", ".join(f"{t} {x.text}" for x in operands)
    head = f"define internal {t} @{symbol}({arguments}) alwaysinline nounwind {{"
    text = "\n".join([head, "entry:", *e.lines, f"  ret {t} {result.text}", "}"])
    return Definition(symbol, text, tuple(e.needs.values()))
