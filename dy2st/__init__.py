"""dy2st: the public face, with Paddle's names. `import dy2st as paddle` is how examples use it.

Functions on tensors are imported here by name. Subpackages, and what lives in them, load on first use, so that
`import dy2st` stays cheap.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from dy2st.dtypes import DType as dtype  # noqa: N813 (Paddle's name of the class)
from dy2st.dtypes import bool_ as bool
from dy2st.dtypes import complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8
from dy2st.functions import methods as _methods
from dy2st.functions.arithmetic import (
    add,
    add_n,
    divide,
    floor_divide,
    floor_mod,
    increment,
    mod,
    multiply,
    neg,
    negative,
    positive,
    pow,
    remainder,
    subtract,
    true_divide,
    trunc,
)  # fmt: skip
from dy2st.functions.assigning import assign, clone
from dy2st.functions.broadcasting import (
    broadcast_shape,
    broadcast_tensors,
    broadcast_to,
    expand,
    expand_as,
    meshgrid,
    repeat_interleave,
    tile,
)  # fmt: skip
from dy2st.functions.comparison import (
    allclose,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    eq,
    equal,
    equal_all,
    ge,
    greater,
    greater_equal,
    greater_than,
    gt,
    is_complex,
    is_empty,
    is_floating_point,
    is_integer,
    is_tensor,
    isclose,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    le,
    less,
    less_equal,
    less_than,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
    not_equal,
    signbit,
    where,
)  # fmt: skip
from dy2st.functions.creation import (
    arange,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    numel,
    ones,
    ones_like,
    range,
    rank,
    shape,
    to_dlpack,
    to_tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)  # fmt: skip
from dy2st.functions.defaults import (
    finfo,
    get_default_dtype,
    get_flags,
    iinfo,
    in_dynamic_mode,
    in_dynamic_or_pir_mode,
    set_default_dtype,
    set_flags,
    set_printoptions,
)  # fmt: skip
from dy2st.functions.diagonals import (
    diag,
    diag_embed,
    diagflat,
    diagonal,
    tril,
    triu,
)  # fmt: skip
from dy2st.functions.gathering import (
    gather,
    gather_nd,
    index_add,
    index_fill,
    index_put,
    index_sample,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    multiplex,
    put_along_axis,
    scatter,
    scatter_add,
    scatter_nd,
    scatter_nd_add,
    scatter_reduce,
    take,
    take_along_axis,
    take_along_dim,
)  # fmt: skip
from dy2st.functions.inplace import INPLACE as _INPLACE
from dy2st.functions.joining import (
    chunk,
    concat,
    crop,
    narrow,
    slice,
    split,
    stack,
    strided_slice,
    tensor_split,
    unbind,
    unstack,
)  # fmt: skip  # fmt: skip
from dy2st.functions.linear_algebra import (
    addmm,
    baddbmm,
    bmm,
    cross,
    dist,
    dot,
    ger,
    inner,
    kron,
    matmul,
    matrix_transpose,
    mm,
    mv,
    norm,
    outer,
    t,
    tensordot,
    trace,
    vecdot,
)  # fmt: skip
from dy2st.functions.manipulation import (
    cast,
    flatten,
    flip,
    moveaxis,
    permute,
    ravel,
    reshape,
    reverse,
    roll,
    rot90,
    squeeze,
    swapaxes,
    swapdims,
    transpose,
    unflatten,
    unsqueeze,
    view,
    view_as,
)  # fmt: skip
from dy2st.functions.math import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clamp,
    clip,
    copysign,
    cos,
    cosh,
    deg2rad,
    digamma,
    erf,
    erfinv,
    exp,
    exp2,
    expm1,
    floor,
    fmax,
    fmin,
    frac,
    frexp,
    gammaln,
    heaviside,
    hypot,
    i0,
    i0e,
    i1,
    i1e,
    ldexp,
    lerp,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logit,
    maximum,
    minimum,
    nan_to_num,
    polygamma,
    rad2deg,
    reciprocal,
    round,
    rsqrt,
    scale,
    sgn,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stanh,
    tan,
    tanh,
)  # fmt: skip
from dy2st.functions.random import (
    bernoulli,
    gaussian,
    log_normal,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    standard_normal,
    uniform,
)  # fmt: skip
from dy2st.functions.reduction import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    cummax,
    cummin,
    cumprod,
    cumsum,
    logcumsumexp,
    logsumexp,
    max,
    mean,
    median,
    min,
    nanmean,
    nansum,
    prod,
    quantile,
    std,
    sum,
    var,
)  # fmt: skip
from dy2st.functions.search import (
    argsort,
    argwhere,
    bincount,
    bucketize,
    kthvalue,
    msort,
    nonzero,
    searchsorted,
    sort,
    topk,
    unique,
    unique_consecutive,
)  # fmt: skip
from dy2st.ir.context import current as _current
from dy2st.ir.program import Program as _Program
from dy2st.missing import no_attribute as _no_attribute
from dy2st.runtime.backward import grad
from dy2st.runtime.generator import get_rng_state, seed, set_rng_state
from dy2st.runtime.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from dy2st.runtime.places import CPUPlace, CUDAPlace, get_device, is_compiled_with_cuda, set_device
from dy2st.runtime.tensor import Tensor

__version__ = "0.1.0"

inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None
float, double, half = float32, float64, float16
int, long, short, cfloat, cdouble = int32, int64, int16, complex64, complex128
get_cuda_rng_state, set_cuda_rng_state = get_rng_state, set_rng_state
manual_seed = seed
cat = concatenate = concat
mul, sub, div = multiply, subtract, divide
div_, mul_, sub_ = _INPLACE["divide_"], _INPLACE["multiply_"], _INPLACE["subtract_"]
globals().update(_INPLACE)  # add_, exp_, ...: the table in functions/inplace.py

_NOT_HERE = ("cinn", "custom_device", "distribute", "ipu", "rocm", "xpu")
_BY_MODULE = {
    "functions.aliases": "as_tensor asarray broadcast_shapes softmax",
    "functions.arrays": "tolist",
    "functions.complex_numbers": """
        angle as_complex as_real complex conj imag isreal polar real view_as_complex view_as_real
    """,
    "functions.differences": """
        cdist cumulative_trapezoid diff gcd isin lcm multigammaln nextafter pdist reduce_as renorm shard_index sinc
        trapezoid vander
    """,
    "functions.einsum": "einsum",
    "functions.histograms": "histogram histogram_bin_edges histogramdd mode nanmedian nanquantile",
    "functions.matrices": "inverse",
    "functions.stacking": """
        as_strided atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack combinations dsplit dstack
        hsplit hstack row_stack unfold vsplit vstack
    """,
    "functions.written_parts": "diagonal_scatter select_scatter slice_scatter",
    "hapi.flops": "flops",
    "hapi.model": "Model",
    "nn.summary": "summary",
    "nn.functional": "adaptive_avg_pool1d conv1d conv2d conv3d group_norm layer_norm",
    "amp": "autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled",
}
# Names that load on first use: name -> module, or "module:name in it". Subpackages are found without an entry.
_LAZY: dict[str, str] = {
    **{name: f"dy2st.{module}:{name}" for module, names in _BY_MODULE.items() for name in names.split()},
    "ParamAttr": "dy2st.nn.param_attr:ParamAttr",
    "DataParallel": "dy2st.distributed:DataParallel",
    "batch": "dy2st.io:batch",
    "create_parameter": "dy2st.nn.create_parameter:create_parameter",
    "disable_static": "dy2st.static:disable_static",
    "enable_static": "dy2st.static:enable_static",
    "load": "dy2st.jit:load_state",
    **{f"is_compiled_with_{what}": f"dy2st.device:is_compiled_with_{what}" for what in _NOT_HERE},
    "save": "dy2st.jit:save_state",
    "vmap": "dy2st.incubate.autograd:vmap",
}
_SUBPACKAGES = [
    "amp",
    "array_api",
    "autograd",
    "base",
    "callbacks",
    "compat",
    "device",
    "distributed",
    "distribution",
    "export",
    "fft",
    "fluid",
    "framework",
    "hapi",
    "hub",
    "incubate",
    "inference",
    "io",
    "jit",
    "linalg",
    "metric",
    "nn",
    "onnx",
    "optimizer",
    "profiler",
    "regularizer",
    "signal",
    "sparse",
    "static",
    "sysconfig",
    "tensor",
    "text",
    "utils",
    "version",
    "vision",
    "viz",
]


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        found = _importlib.import_module(module)
        return getattr(found, attribute) if attribute else found
    if name in _SUBPACKAGES:
        try:
            return _importlib.import_module(f"dy2st.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"dy2st.{name}":
                raise
    raise _no_attribute("dy2st", name, __dir__())


def _picture(program: _Program) -> str:
    return __getattr__("viz").to_svg(program)


_Program.picture = _picture


def _array_namespace(x: Tensor, /, *, api_version: str | None = None) -> _Any:
    """Return the functions of the array API standard that take tensors."""
    found = __getattr__("array_api")
    if api_version is not None and api_version > found.__array_api_version__:
        raise ValueError(f"the array API standard is here in version {found.__array_api_version__}, not {api_version}")
    return found


Tensor.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]


def _to_static(function: _Any) -> _Any:
    return __getattr__("jit").to_static(function, full_graph=True)


_current().process.to_static = _to_static


def __dir__() -> list[str]:
    return sorted({*(n for n in globals() if not n.startswith("_")), *_LAZY, "__version__"})
