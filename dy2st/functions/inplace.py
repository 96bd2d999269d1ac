"""In-place forms, generated from one table: `x.add_(y)` computes `add(x, y)` and writes the result into x.

The shape stays (reshape_, squeeze_ and the like change it and share the memory), and so does the dtype, unless the
result is of another kind: `less_than_` leaves bools, `divide_` of integers floats, on memory of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import pi
from types import ModuleType
from typing import Any

from dy2st.functions.core.assigning import write
from dy2st.functions.core.operands import cast_to, number, tensor
from dy2st.functions.linalg import linalg, numerics
from dy2st.functions.math import arithmetic, comparison, math, random, reduction, scatter_views
from dy2st.functions.shape import creation, diagonals, gather_scatter, manipulation
from dy2st.ir.context import current
from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.eager import inplace as writing
from dy2st.runtime.eager.tensor import Tensor, needs_value

# The functions that have an in-place form, by the module that has them.
_NAMES: tuple[tuple[ModuleType, str], ...] = (
    (arithmetic, "add subtract multiply divide floor_divide remainder mod floor_mod pow neg trunc"),
    (math, """
        abs exp expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
        acosh atanh erf erfinv lgamma gammainc gammaincc gammaln digamma square floor ceil round frac scale
        clip clamp lerp hypot ldexp copysign nan_to_num logit polygamma stanh sigmoid i0
    """),
    (comparison, """
        equal not_equal less_than less less_equal greater_than greater_equal logical_and logical_or logical_xor
        logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert bitwise_left_shift
        bitwise_right_shift
    """),
    (reduction, "cumsum cumprod"),
    (diagonals, "tril triu"),
    (numerics, "gcd lcm multigammaln renorm sinc"),
    (linalg, "addmm baddbmm"),
    (gather_scatter, "masked_fill masked_scatter index_add index_fill index_put put_along_axis scatter scatter_add"),
)  # fmt: skip
_SHAPES = ((manipulation, "reshape squeeze unsqueeze flatten transpose"), (linalg, "t"))


def in_place_form(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """Make the in-place form of a function."""

    def in_place(x: Tensor, *args: Any, **keywords: Any) -> Tensor:
        refuse(x)
        old = before(x)
        keywords = {key: old if value is x else value for key, value in keywords.items()}
        new = function(old, *(old if a is x else a for a in args), **keywords)
        return write(x, new) if new.dtype.kind == x.dtype.kind else _recast(x, new, name)

    functools.update_wrapper(in_place, function)
    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__module__ = __name__
    in_place.__doc__ = f"Do what `{name}` does in place: write the result into x; return x."
    return in_place


def _shape_form(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """Make the in-place form of a function that changes the shape: x becomes a view of what it was."""

    def in_place(x: Tensor, *args: Any, **keywords: Any) -> Tensor:
        refuse(x)
        extents = x.shape
        made = function(_moved(x, name), *args, **keywords)
        if not isinstance(made, Tensor):
            raise needs_value(f"the number of axes that {name}_ leaves depends on an extent", needed=extents)
        _become(x, made)
        return x

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"Do what `{name}` does in place: x gets the new shape, on the same memory; return x."
    return in_place


def _moved(x: Tensor, name: str) -> Tensor:
    """Return a tensor that stands for what x is, for x to become another one."""
    twin, trace = Tensor(x.payload, x.stop_gradient), current().trace
    for slot in ("tape_node", "tape_index", "view_of", "seen_base", "storage_version"):
        setattr(twin, slot, getattr(x, slot))
    if trace is not None and not trace.moves(x, twin):
        what = f"{name}_ changes shape or dtype in place, which a Program cannot do"
        raise needs_value(f"{what} to what was made outside of this block", f"use x = x.{name}(...)")
    return twin


def _recast(x: Tensor, new: Tensor, name: str) -> Tensor:
    _moved(x, name)
    if _extents(new) != _extents(x):
        raise ValueError(f"a value of shape {new.shape} cannot be written into a tensor of {x.shape}")
    _become(x, new)
    return x


def _extents(x: Tensor) -> list[Any]:
    """Return the extents of a tensor, symbols where only the run tells them."""
    return list(tensor_type(x.payload).shape) if isinstance(x.payload, Value) else x.shape


def _become(x: Tensor, made: Tensor) -> None:
    for slot in ("payload", "tape_node", "tape_index", "view_of", "seen_base", "storage_version", "stop_gradient"):
        setattr(x, slot, getattr(made, slot))
    if x.view_of is not None and x.storage_version is not None:
        x.storage_version.note(x)


def refuse(x: Tensor) -> None:
    """Raise TypeError for what is no tensor, RuntimeError for a leaf that needs a gradient."""
    if not isinstance(x, Tensor):
        raise TypeError(f"an in-place form needs a Tensor, not {type(x).__name__}")
    if current().trace is None and current().grad:
        writing.refuse_leaf(x)


def before(x: Tensor) -> Tensor:
    """Return x as it is before the write."""
    return x if current().trace is not None else writing.snapshot(x)


def zero_(x: Tensor) -> Tensor:
    """Write zeros into x; return it."""
    refuse(x)
    return write(x, number(0, x.dtype, x))


def fill_(x: Tensor, value: Any) -> Tensor:
    """Write one value into x; return it."""
    refuse(x)
    return write(x, tensor(value, "fill_"))


def copy_(x: Tensor, other: Any, blocking: bool = True) -> Tensor:
    """Write the elements of another tensor, broadcast, into x; return it."""
    refuse(x)
    return write(x, cast_to(tensor(other, "copy_"), x.dtype))


def cast_(x: Tensor, dtype: Any) -> Tensor:
    """Give x another dtype, on memory of its own; return it."""
    refuse(x)
    return _recast(x, manipulation.cast(x, dtype), "cast")


def where_(condition: Any, x: Tensor, y: Any, name: str | None = None) -> Tensor:
    """Write y into x where the condition is false; return x."""
    refuse(x)
    return write(x, comparison.where(condition, before(x), y))


def uniform_(x: Tensor, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Write uniform numbers in [min, max) into x; return it."""
    refuse(x)
    return write(x, random.uniform(x.shape, x.dtype, min, max, seed))


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Tensor:
    """Write normal numbers into x; return it."""
    refuse(x)
    return write(x, random.gaussian(x.shape, mean, std, 0, x.dtype))


def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Write numbers of the exponential distribution into x; return it."""
    refuse(x)
    return write(x, random.exponential(x.shape, lam, x.dtype))


def bernoulli_(x: Tensor, p: Any = 0.5, name: str | None = None) -> Tensor:
    """Write 1 with probability p, else 0, into x; return it."""
    refuse(x)
    return write(x, random.bernoulli(creation.full_like(x, p)))


def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, name: str | None = None) -> Tensor:
    """Write e to the power of normal numbers into x; return it."""
    refuse(x)
    return write(x, math.exp(random.gaussian(x.shape, mean, std, 0, x.dtype)))


def cauchy_(x: Tensor, loc: float = 0, scale: float = 1, name: str | None = None) -> Tensor:
    """Write numbers of the distribution of Cauchy into x; return it."""
    refuse(x)
    return write(x, math.tan((random.rand(x.shape, x.dtype) - 0.5) * pi) * scale + loc)


def geometric_(x: Tensor, probs: Any, name: str | None = None) -> Tensor:
    """Write log(u) / log(1 - probs) of uniform numbers u into x, whose next whole numbers count trials; return it."""
    refuse(x)
    chance = tensor(probs, "geometric_")
    return write(x, math.log(1.0 - random.rand(x.shape, x.dtype)) / math.log1p(-cast_to(chance, x.dtype)))


def fill_diagonal_tensor_(
    x: Tensor, y: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> Tensor:
    """Write y into a diagonal of the planes of two axes of x; return it."""
    refuse(x)
    return write(x, scatter_views.diagonal_scatter(before(x), y, offset, dim1, dim2))


def fill_diagonal_(x: Tensor, value: Any, offset: int = 0, wrap: bool = False, name: str | None = None) -> Tensor:
    """Write one value into a diagonal of a matrix; return it."""
    refuse(x)
    if x.ndim != 2 or wrap:
        raise ValueError(f"fill_diagonal_ needs a matrix and wrap=False, not a tensor of shape {x.shape}, wrap={wrap}")
    ones = creation.ones(x.shape, "int32")
    mask = diagonals.tril(diagonals.triu(ones, offset), offset) != 0
    return write(x, gather_scatter.masked_fill(before(x), mask, value))


INPLACE: dict[str, Callable[..., Tensor]] = {}
for _module, _names in _NAMES:
    for _name in _names.split():
        INPLACE[f"{_name}_"] = in_place_form(getattr(_module, _name), _name)
for _module, _names in _SHAPES:
    for _name in _names.split():
        INPLACE[f"{_name}_"] = _shape_form(getattr(_module, _name), _name)
for _made in (zero_, fill_, copy_, cast_, where_, uniform_, normal_, exponential_, bernoulli_, fill_diagonal_,
              fill_diagonal_tensor_, log_normal_, cauchy_, geometric_):  # fmt: skip
    INPLACE[_made.__name__] = _made
