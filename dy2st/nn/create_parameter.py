"""How a parameter comes to be: eager with its initial values, or as an entry of a hand-built Program.

Which initializer it is: the attribute's own, else the global one (`set_global_initializer`), else the layer's default,
else Xavier uniform for weights and zeros for biases.
"""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.functions.core.operands import default_dtype
from dy2st.ir.context import current, replaced
from dy2st.nn.initializer.base import Initializer
from dy2st.nn.initializer.constant import Constant
from dy2st.nn.initializer.defaults import global_initializer
from dy2st.nn.initializer.xavier import XavierUniform
from dy2st.nn.param_attr import as_attr
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.device import namespace
from dy2st.runtime.eager.lazy_init import postpone
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.side_effect_check import in_trace

LATE_FROM = 1 << 15
"""Parameters of so many elements get their initial values when somebody first asks for them."""


def create_parameter(
    shape: Any,
    dtype: Any = None,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter | None:
    """Return a new parameter that belongs to no layer.

    >>> import dy2st as paddle
    >>> paddle.create_parameter([2, 3], "float32").shape
    [2, 3]
    """
    dtype = default_dtype() if dtype is None else dtypes.dtype(dtype)
    return make_parameter(shape, attr, dtype, is_bias, default_initializer, name=name)


def make_parameter(
    shape: Any,
    attr: Any,
    dtype: DType,
    is_bias: bool,
    default_initializer: Initializer | None,
    owner: str = "create_parameter_0",
    name: str | None = None,
) -> Parameter | None:
    """Return a new parameter with its initial values; None where `attr` is False.

    In a hand-built Program the Program keeps it and the startup program gives it its values.
    """
    attribute = as_attr(attr)
    if attribute is None:
        return None
    shape = _checked_shape(shape)
    initializer = attribute.initializer or global_initializer(is_bias) or default_initializer
    initializer = initializer or (Constant(0.0) if is_bias else XavierUniform())
    name = attribute.name or name or unique_name.generate(f"{owner}.{'b' if is_bias else 'w'}")
    trace = current().trace
    if trace is not None and hasattr(trace, "create_parameter"):
        return trace.create_parameter(shape, dtype, initializer, attribute, name)
    before = default_generator().get_state() if in_trace() else None
    with replaced(trace=None, grad=False):
        if _may_wait(initializer, shape):
            made = Parameter(None, name=name, **attribute.settings())
            postpone(made, shape, dtype, partial(copy.copy(initializer).value, shape, dtype))
        else:
            made = Parameter(initializer.value(shape, dtype), name=name, **attribute.settings())
    if trace is not None and before is not None:
        trace.parameters.note(made, before)
    return made


def _may_wait(initializer: Initializer, shape: tuple[int, ...]) -> bool:
    """Return whether initial values are many random numbers on the CPU, by a rule that is known to draw once."""
    ours = type(initializer).__module__.startswith("dy2st.")
    return ours and initializer.draws_once and math.prod(shape) >= LATE_FROM and namespace() is np


def _checked_shape(shape: Any) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    try:
        checked = tuple(int(extent.__index__()) for extent in extents)
    except AttributeError:
        raise TypeError(f"the shape of a parameter must be ints, not {shape!r}") from None
    if any(extent < 0 for extent in checked):
        raise ValueError(f"the shape of a parameter must be known and not negative, not {list(checked)}")
    return checked
