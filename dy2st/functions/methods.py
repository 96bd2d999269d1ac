"""The methods of Tensor: one table, name -> function of the tensor. Importing this module attaches them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from dy2st import dtypes
from dy2st.functions import aliases, device_transfer, gradients, reshaping_in_place
from dy2st.functions.core import assigning
from dy2st.functions.core.operands import cast_to, op
from dy2st.functions.inplace import INPLACE
from dy2st.functions.linalg import decompositions, linalg, matrix_functions, numerics
from dy2st.functions.math import (
    arithmetic,
    comparison,
    complex_numbers,
    histograms,
    math,
    random,
    random_laws,
    reduction,
    scatter_views,
    search,
)
from dy2st.functions.operators import OPERATORS
from dy2st.functions.shape import (
    broadcasting,
    concat_split,
    creation,
    diagonals,
    gather_scatter,
    indexing,
    manipulation,
    stacking,
)
from dy2st.missing import no_tensor_attribute
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.lazy_init import payload_of
from dy2st.runtime.eager.tensor import Tensor

# The functions that are methods as they are, by the module that has them.
_NAMES: tuple[tuple[ModuleType, str], ...] = (
    (arithmetic, """
        add add_n divide floor_divide floor_mod increment mod multiply neg negative pow remainder subtract trunc
    """),
    (math, """
        abs acos acosh asin asinh atan atan2 atanh ceil clamp clip copysign cos cosh deg2rad digamma erf erfinv exp
        expm1 floor fmax fmin frac frexp gammainc gammaincc gammaln heaviside hypot i0 i0e i1 i1e ldexp lerp lgamma
        log log10 log1p log2 logaddexp logit maximum minimum nan_to_num polygamma rad2deg reciprocal round rsqrt scale
        sgn sigmoid sign sin sinh sqrt square stanh tan tanh
    """),
    (comparison, """
        allclose bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor eq equal equal_all ge greater greater_equal greater_than gt is_complex is_empty
        is_floating_point is_integer is_tensor isclose isfinite isinf isnan isneginf isposinf le less less_equal
        less_than logical_and logical_not logical_or logical_xor lt ne not_equal signbit
    """),
    (complex_numbers, "angle as_complex as_real conj imag isreal polar real view_as_complex view_as_real"),
    (reduction, """
        all amax amin any argmax argmin count_nonzero cummax cummin cumprod cumsum logcumsumexp logsumexp max mean
        median min nanmean nansum prod quantile std sum var
    """),
    (linalg, """
        addmm baddbmm bmm cross dist dot inner kron matmul matrix_power matrix_transpose mm mv norm outer t
        tensordot trace vecdot
    """),
    (manipulation, """
        cast flatten flip moveaxis permute ravel reshape roll rot90 squeeze swapaxes swapdims transpose unflatten
        unsqueeze view view_as
    """),
    (concat_split, "chunk concat narrow slice split stack strided_slice tensor_split unbind unstack"),
    (broadcasting, "broadcast_to expand expand_as repeat_interleave tile"),
    (diagonals, "diag diag_embed diagflat diagonal tril triu"),
    (search, "argsort argwhere bincount bucketize kthvalue msort nonzero sort topk unique unique_consecutive"),
    (gather_scatter, """
        gather gather_nd index_add index_fill index_put index_sample index_select masked_fill masked_scatter
        masked_select multiplex put_along_axis scatter scatter_add scatter_nd_add scatter_reduce take
        take_along_axis
    """),
    (random, "bernoulli multinomial"),
    (random_laws, "random_ top_p_sampling"),
    (stacking, """
        as_strided atleast_1d atleast_2d atleast_3d block_diag cartesian_prod combinations dsplit hsplit unfold vsplit
    """),
    (numerics, """
        cdist cumulative_trapezoid diff gcd isin lcm multigammaln nextafter reduce_as renorm shard_index sinc
        trapezoid vander
    """),
    (histograms, "histogram histogram_bin_edges histogramdd mode nanmedian nanquantile"),
    (scatter_views, "diagonal_scatter fill_diagonal_tensor select_scatter slice_scatter"),
    (decompositions, "householder_product lu lu_unpack ormqr pca_lowrank svd_lowrank"),
    (matrix_functions, """
        cholesky cholesky_inverse cholesky_solve cond corrcoef cov eig eigvals eigvalsh inverse lstsq pinv qr slogdet
        solve
    """),
    (aliases, """
        broadcast_shapes get_device is_same_shape new_empty repeat requires_grad_ softmax split_with_sizes stride
    """),
    (reshaping_in_place, "resize_ set_"),
)  # fmt: skip
_TWINS = {
    "div": arithmetic.divide, "div_": INPLACE["divide_"], "sub": arithmetic.subtract, "sub_": INPLACE["subtract_"],
    "mul": arithmetic.multiply, "mul_": INPLACE["multiply_"], "true_divide": arithmetic.true_divide,
    "broadcast_shape": broadcasting.broadcast_shape, "broadcast_tensors": broadcasting.broadcast_tensors,
    "multi_dot": linalg.multi_dot, "reverse": manipulation.reverse, "scatter_nd": gather_scatter.scatter_nd,
    "take_along_dim": gather_scatter.take_along_dim, "where": comparison.where,
}  # fmt: skip


def astype(x: Tensor, dtype: Any) -> Tensor:
    """Return x in another dtype, a copy also where it is the same."""
    return manipulation.cast(x, dtype)


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


def absent(x: Tensor, name: str) -> Any:
    """Raise AttributeError, with a hint, for an attribute that a tensor has not (values may come late)."""
    if name == "payload":
        return payload_of(x)
    if name.startswith("__"):
        raise AttributeError(name)
    raise no_tensor_attribute(name, lambda: METHODS)


def _yes(x: Tensor) -> bool:
    """Return True."""
    return True


def _no(x: Tensor) -> bool:
    """Return False."""
    return False


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
    found: dict[str, Any] = {name: getattr(module, name) for module, names in _NAMES for name in names.split()}
    found.update(INPLACE)
    found.update(_TWINS)
    for name, dtype in (
        ("float", dtypes.float32), ("double", dtypes.float64), ("half", dtypes.float16), ("int", dtypes.int32),
        ("long", dtypes.int64), ("bool", dtypes.bool_), ("byte", dtypes.uint8), ("char", dtypes.int8),
        ("short", dtypes.int16),
        ("cfloat", dtypes.complex64), ("cdouble", dtypes.complex128),
        *((t.name, t) for t in dtypes.ALL if t is not dtypes.bool_),
    ):  # fmt: skip
        found[name] = _caster(dtype)
    return found


METHODS: dict[str, Any] = {
    **_tables(),
    **OPERATORS,
    "__getattr__": absent,
    "__getitem__": indexing.getitem,
    "__setitem__": indexing.setitem,
    "T": property(transposed),
    "mT": property(linalg.matrix_transpose),
    "apply": apply_to,
    "apply_": apply_,
    "astype": astype,
    "backward": gradients.backward,
    "clear_grad": gradients.clear_grad,
    "clear_gradient": gradients.clear_gradient,
    "clone": assigning.clone,
    "contiguous": device_transfer.contiguous,
    "cpu": device_transfer.cpu,
    "cuda": device_transfer.cuda,
    "data": property(_get_data, _set_data),
    "data_ptr": device_transfer.data_ptr,
    "detach": assigning.detach,
    "detach_": gradients.detach_,
    "element_size": device_transfer.element_size,
    "get_strides": device_transfer.get_strides,
    "get_tensor": _get_tensor,
    "is_contiguous": device_transfer.is_contiguous,
    "itemsize": property(device_transfer.element_size),
    "new_full": new_full,
    "new_ones": new_ones,
    "new_zeros": new_zeros,
    "numel": creation.numel,
    "rank": creation.rank,
    "pin_memory": device_transfer.pin_memory,
    "device": property(aliases.device),
    "grad_": property(reshaping_in_place.grad_of),
    "grad_fn": property(reshaping_in_place.grad_fn),
    "layout": property(reshaping_in_place.layout),
    "offset": property(reshaping_in_place.offset),
    "type": property(reshaping_in_place.type_of),
    "is_dense": _yes,
    **dict.fromkeys(("is_sparse", "is_sparse_coo", "is_sparse_csr", "is_dist"), _no),
    "is_cuda": property(aliases.is_cuda),
    "requires_grad": property(aliases.requires_grad, aliases.set_requires_grad),
    "register_hook": gradients.register_hook,
    "retain_grads": gradients.retain_grads,
    "set_value": assigning.set_value,
    "strides": property(device_transfer.get_strides),
    "to": device_transfer.to,
    "to_dense": _get_tensor,
    "to_device": device_transfer.to_device,
    "type_as": lambda self, other: cast_to(self, other.dtype),
    "value": _get_tensor,
}


for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
