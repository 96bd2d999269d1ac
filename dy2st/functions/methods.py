"""The methods of Tensor: one table, name -> function of the tensor. Importing this module attaches them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions import arithmetic, assigning, comparison, creation, indexing, linear_algebra, manipulation, math, random, reduction, search
from dy2st.functions.inplace import INPLACE
from dy2st.functions.operands import cast_to, op
from dy2st.functions.operators import OPERATORS
from dy2st.ir.context import current
from dy2st.runtime import backward as tape_walk
from dy2st.runtime import places
from dy2st.runtime.convert_if import switch
from dy2st.runtime.dispatch import apply
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.variant import Variant

_MATH = [
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clamp",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "divide",
    "erf",
    "erfinv",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "floor_mod",
    "fmax",
    "fmin",
    "frac",
    "gammaln",
    "heaviside",
    "hypot",
    "increment",
    "ldexp",
    "lerp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logit",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "neg",
    "negative",
    "polygamma",
    "pow",
    "rad2deg",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "scale",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stanh",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]
_COMPARISON = [
    "allclose",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "equal_all",
    "ge",
    "greater",
    "greater_equal",
    "greater_than",
    "gt",
    "is_complex",
    "is_empty",
    "is_floating_point",
    "is_integer",
    "is_tensor",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "less",
    "less_equal",
    "less_than",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
]
_REDUCTION = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "logcumsumexp",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "nanmean",
    "nansum",
    "prod",
    "quantile",
    "std",
    "sum",
    "var",
]
_LINEAR = [
    "addmm",
    "baddbmm",
    "bmm",
    "cov",
    "cross",
    "dist",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "mm",
    "mv",
    "norm",
    "outer",
    "t",
    "tensordot",
    "trace",
    "vecdot",
]
_MANIPULATION = [
    "broadcast_to",
    "cast",
    "chunk",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "moveaxis",
    "permute",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "swapdims",
    "tensor_split",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unflatten",
    "unsqueeze",
    "unstack",
    "view",
    "view_as",
    "concat",
    "ravel",
]
_SEARCH = [
    "argsort",
    "argwhere",
    "bincount",
    "bucketize",
    "gather",
    "gather_nd",
    "index_add",
    "index_fill",
    "index_put",
    "index_sample",
    "index_select",
    "kthvalue",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "msort",
    "narrow",
    "nonzero",
    "put_along_axis",
    "scatter",
    "scatter_add",
    "scatter_nd_add",
    "scatter_reduce",
    "slice",
    "sort",
    "strided_slice",
    "take",
    "take_along_axis",
    "topk",
    "unique",
    "unique_consecutive",
    "multiplex",
]
_RANDOM = ("bernoulli", "multinomial")
_TWINS = {"div": arithmetic.divide, "div_": INPLACE["divide_"], "sub": arithmetic.subtract, "sub_": INPLACE["subtract_"],
          "mul": arithmetic.multiply, "mul_": INPLACE["multiply_"]}  # fmt: skip
_hook_numbers = itertools.count()


class HookHandle:
    """What `register_hook` returns; `remove()` takes the hook away."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Any], number: int):
        self._hooks, self._number = hooks, number

    def remove(self) -> bool:
        """Take the hook away; say whether it was still there."""
        return self._hooks.pop(self._number, None) is not None


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call `hook` with the gradient of x in every backward; what it returns, if not None, replaces the gradient.

    Raises RuntimeError where x needs no gradient.
    """
    if x.stop_gradient:
        raise RuntimeError(
            "a hook on a tensor that needs no gradient (its stop_gradient is True) would never be called"
        )
    if current().trace is not None:
        return current().trace.register_hook(x, hook)
    if x._node is None:
        if x._hooks is None:
            x._hooks = {}
        hooks = x._hooks
    else:
        if x._node.hooks is None:
            x._node.hooks = {}
        hooks = x._node.hooks.setdefault(x._index, {})
    number = next(_hook_numbers)
    hooks[number] = hook
    return HookHandle(hooks, number)


def retain_grads(x: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in `grad` too."""
    if x._node is not None and not x.stop_gradient:

        def keep(gradient: Tensor) -> None:
            so_far = x._grad
            x._grad = gradient if so_far is None else so_far + gradient

        register_hook(x, keep)


def backward(x: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False) -> None:
    """Sum the gradients of x, starting from `grad_tensor` (ones when None), into the `grad` of the leaves.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([2.0], stop_gradient=False)
    >>> (x * x).backward()
    >>> x.grad.tolist()
    [4.0]
    """
    tape_walk.backward([x], [grad_tensor], retain_graph)


def clear_grad(x: Tensor) -> None:
    """Forget the gradient."""
    x.grad = None


def clear_gradient(x: Tensor, set_to_zero: bool = True) -> None:
    """Set the gradient to zeros, or forget it."""
    grad = x.grad
    if set_to_zero and isinstance(grad, Variant):  # in a trace: there or not, the run will tell
        trace = current().trace
        trace.write_grad(x, switch(trace, grad, lambda g: None if g is None else creation.zeros_like(g)))
        return
    x.grad = creation.zeros_like(grad) if set_to_zero and grad is not None else None


def astype(x: Tensor, dtype: Any) -> Tensor:
    """Return x in another dtype, a copy also where it is the same."""
    return manipulation.cast(x, dtype)


def detach_(x: Tensor) -> Tensor:
    """Cut x off from its history; return it."""
    if current().trace is not None:
        current().trace.write(x, assigning.detach(x))
        return x
    x._node, x._index, x.stop_gradient = None, 0, True
    return x


def to(x: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """Return x on another device, in another dtype, or both: `x.to("gpu")`, `x.to("float64")`, `x.to(y)`."""
    device, dtype = keywords.pop("device", None), keywords.pop("dtype", None)
    keywords.pop("blocking", None)
    keywords.pop("copy", None)
    if keywords:
        raise TypeError(f"to() does not know {', '.join(keywords)}")
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.place, arg.dtype
        elif isinstance(arg, bool) or arg is None:
            continue
        elif isinstance(arg, places.Place) or (
            isinstance(arg, str) and arg.partition(":")[0] in ("cpu", "gpu", "cuda")
        ):
            device = arg
        else:
            dtype = arg
    if device is not None:
        x = _moved(x, places.parse(device))
    return x if dtype is None else cast_to(x, as_dtype(dtype))


def _moved(x: Tensor, place: places.Place) -> Tensor:
    """Return x on a place, itself when it is there; its gradient comes back to where x is."""
    if current().trace is not None or x.place == place:
        return x
    here, start = x.place, assigning.clone(x)
    made = assigning.clone(start)
    made._payload = places.move(x.array(), place)
    if not start.stop_gradient:
        register_hook(start, lambda gradient: _moved(gradient, here))
    return made


def cpu(x: Tensor) -> Tensor:
    """Return x on the CPU."""
    return _moved(x, places.CPU)


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """Return x on a CUDA device."""
    return _moved(x, places.CUDAPlace(device_id or 0))


def pin_memory(x: Tensor, blocking: bool = True) -> Tensor:
    """Return x; memory is not pinned."""
    return x


def contiguous(x: Tensor) -> Tensor:
    """Return x with its elements in row-major order in memory."""
    return x if current().trace is not None or x.array().flags.c_contiguous else assigning.clone(x)


def is_contiguous(x: Tensor) -> bool:
    """Say whether the elements lie in row-major order."""
    return bool(x.array("its layout").flags.c_contiguous)


def element_size(x: Tensor) -> int:
    """Return the size of an element in bytes."""
    return x.dtype.itemsize


def data_ptr(x: Tensor) -> int:
    """Return the address of the first element."""
    array = x.array("its address")
    return int(array.__array_interface__["data"][0] if hasattr(array, "__array_interface__") else array.data.ptr)


def get_strides(x: Tensor) -> list[int]:
    """Return how many elements lie between neighbours along each axis."""
    array = x.array("its strides")
    return [s // array.itemsize for s in array.strides]


def apply_(x: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """Write func(x) into x; return it."""
    return assigning.write(x, func(x))


def apply_to(x: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """Return func(x)."""
    return func(x)


def new_full(x: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of this shape filled with one value, in the dtype of x unless one is given."""
    return creation.full(size, fill_value, x.dtype if dtype is None else dtype)


def new_zeros(x: Tensor, size: Any, *, dtype: Any = None) -> Tensor:
    """Return zeros in the dtype of x unless one is given."""
    return new_full(x, size, 0, dtype=dtype)


def new_ones(x: Tensor, size: Any, *, dtype: Any = None) -> Tensor:
    """Return ones in the dtype of x unless one is given."""
    return new_full(x, size, 1, dtype=dtype)


def transposed(x: Tensor) -> Tensor:
    """The tensor with its axes in reverse order."""
    return apply(op("transpose"), x, perm=tuple(reversed(range(x.ndim))))


def _get_tensor(x: Tensor) -> Tensor:
    return x


def _get_data(x: Tensor) -> Tensor:
    return assigning.detach(x)


def _set_data(x: Tensor, value: Any) -> None:
    assigning.set_value(x, value)


def _caster(dtype: dtypes.DType) -> Callable[[Tensor], Tensor]:
    def method(x: Tensor) -> Tensor:
        return cast_to(x, dtype)

    method.__doc__ = f"Return x in {dtype.name}, itself when it has it."
    return method


def _tables() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module, names in (
        (math, _MATH), (comparison, _COMPARISON), (reduction, _REDUCTION), (linear_algebra, _LINEAR),
        (manipulation, _MANIPULATION), (search, _SEARCH), (random, _RANDOM),
    ):  # fmt: skip
        found.update({name: getattr(module, name) for name in names})
    found.update(INPLACE)
    found.update(_TWINS)
    for name, dtype in (
        ("float", dtypes.float32), ("double", dtypes.float64), ("half", dtypes.float16), ("int", dtypes.int32),
        ("long", dtypes.int64), ("bool", dtypes.bool_), ("byte", dtypes.uint8), ("char", dtypes.int8),
        ("short", dtypes.int16), *((t.name, t) for t in dtypes.ALL if t is not dtypes.bool_),
    ):  # fmt: skip
        found[name] = _caster(dtype)
    return found


METHODS: dict[str, Any] = {
    **_tables(),
    **OPERATORS,
    "__getitem__": indexing.getitem,
    "__setitem__": indexing.setitem,
    "T": property(transposed),
    "mT": property(linear_algebra.matrix_transpose),
    "apply": apply_to,
    "apply_": apply_,
    "astype": astype,
    "backward": backward,
    "clear_grad": clear_grad,
    "clear_gradient": clear_gradient,
    "clone": assigning.clone,
    "contiguous": contiguous,
    "cpu": cpu,
    "cuda": cuda,
    "data": property(_get_data, _set_data),
    "data_ptr": data_ptr,
    "detach": assigning.detach,
    "detach_": detach_,
    "element_size": element_size,
    "get_strides": get_strides,
    "get_tensor": _get_tensor,
    "is_contiguous": is_contiguous,
    "itemsize": property(element_size),
    "new_full": new_full,
    "new_ones": new_ones,
    "new_zeros": new_zeros,
    "numel": creation.numel,
    "pin_memory": pin_memory,
    "register_hook": register_hook,
    "retain_grads": retain_grads,
    "set_value": assigning.set_value,
    "strides": property(get_strides),
    "to": to,
    "type_as": lambda self, other: cast_to(self, other.dtype),
    "value": _get_tensor,
}

for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
