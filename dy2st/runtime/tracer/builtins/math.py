"""Functions of `math` on numbers known only at run time: float64 operations, with the errors of `math`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dy2st import dtypes
from dy2st.runtime.tracer.builtins.builtins import BUILTINS
from dy2st.runtime.tracer.control_flow.conditional import if_exp
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar


def _of(op: str, refused: Callable[[Any], Any] | None = None, error: Callable[[], None] | None = None) -> Any:
    """Return the function that an op stands for; `refused` says for which numbers `math` raises `error`."""

    def function(trace: Trace, x: Any) -> Any:
        number = BUILTINS[float](trace, x)
        if not isinstance(number, Scalar):
            return getattr(math, op)(number)
        if refused is not None:
            if_exp(trace, refused(number), error or _outside, lambda: None)
        given = trace.emit("scalar_to_tensor", [number.value], {"dtype": dtypes.float64})
        return Scalar(trace.emit("item", [trace.emit(op, [given])]))

    return function


def _outside() -> None:
    raise ValueError("math domain error")


def _too_large() -> None:
    raise OverflowError("math range error")


def _is_infinite(x: Any) -> Any:
    return abs(x) == math.inf


def _whole(op: str) -> Callable[..., Any]:
    """Return `math.floor` or `math.ceil`: an int."""
    rounded = _of(op)

    def function(trace: Trace, x: Any) -> Any:
        is_whole = isinstance(x, Scalar) and x.kind != "float"
        return BUILTINS[int](trace, x if is_whole else rounded(trace, x))

    return function


def fabs(trace: Trace, x: Any) -> Any:
    """Return `math.fabs(x)`."""
    return abs(BUILTINS[float](trace, x))


def isnan(trace: Trace, x: Any) -> Any:
    """Return `math.isnan(x)`."""
    number = BUILTINS[float](trace, x)
    return number != number if isinstance(number, Scalar) else math.isnan(number)


def isinf(trace: Trace, x: Any) -> Any:
    """Return `math.isinf(x)`."""
    number = BUILTINS[float](trace, x)
    return abs(number) == math.inf if isinstance(number, Scalar) else math.isinf(number)


def isfinite(trace: Trace, x: Any) -> Any:
    """Return `math.isfinite(x)`."""
    number = BUILTINS[float](trace, x)
    return abs(number) < math.inf if isinstance(number, Scalar) else math.isfinite(number)


LARGEST = 709.782712893384  # exp of more is no float64
LARGEST_HALVED = 710.4758600739439  # nor half of exp of more
MATH: dict[Any, Callable[..., Any]] = {
    math.sqrt: _of("sqrt", lambda x: x < 0),
    math.exp: _of("exp", lambda x: (x > LARGEST) & (x < math.inf), _too_large),
    math.expm1: _of("expm1", lambda x: (x > LARGEST) & (x < math.inf), _too_large),
    math.log: _of("log", lambda x: x <= 0),
    math.log2: _of("log2", lambda x: x <= 0),
    math.log10: _of("log10", lambda x: x <= 0),
    math.log1p: _of("log1p", lambda x: x <= -1),
    math.sin: _of("sin", _is_infinite),
    math.cos: _of("cos", _is_infinite),
    math.tan: _of("tan", _is_infinite),
    math.atan: _of("atan"),
    math.tanh: _of("tanh"),
    math.erf: _of("erf"),
    math.lgamma: _of("lgamma", lambda x: (x <= 0) & (x == x // 1)),
    math.asin: _of("asin", lambda x: abs(x) > 1),
    math.acos: _of("acos", lambda x: abs(x) > 1),
    math.sinh: _of("sinh", lambda x: (abs(x) > LARGEST_HALVED) & (abs(x) < math.inf), _too_large),
    math.cosh: _of("cosh", lambda x: (abs(x) > LARGEST_HALVED) & (abs(x) < math.inf), _too_large),
    math.asinh: _of("asinh"),
    math.acosh: _of("acosh", lambda x: x < 1),
    math.atanh: _of("atanh", lambda x: abs(x) >= 1),
    math.fabs: fabs,
    math.isnan: isnan,
    math.isinf: isinf,
    math.isfinite: isfinite,
    math.floor: _whole("floor"),
    math.ceil: _whole("ceil"),
}
"""What stands for a function of `math` in a trace."""
