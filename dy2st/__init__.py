"""dy2st: the public face, with Paddle's names. `import dy2st as paddle` is how examples use it.

The functions on tensors are those of `functions/face.py`. Subpackages, and what lives in them, load on first use, so
that `import dy2st` stays cheap; what every call of a `to_static` function needs is there from the start, what loads
its native code included. A name that is imported as itself is one that type checkers take to be public.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from dy2st.runtime.gc_pause import kept as _kept

with _kept():  # what modules are made of
    from dy2st.dtypes import DType as _DType
    from dy2st.dtypes import bfloat16 as bfloat16
    from dy2st.dtypes import bfloat16 as uint16
    from dy2st.dtypes import bool_ as _bool
    from dy2st.dtypes import complex64 as complex64
    from dy2st.dtypes import complex128 as complex128
    from dy2st.dtypes import float16 as float16
    from dy2st.dtypes import float32 as float32
    from dy2st.dtypes import float64 as float64
    from dy2st.dtypes import int8 as int8
    from dy2st.dtypes import int16 as int16
    from dy2st.dtypes import int32 as int32
    from dy2st.dtypes import int64 as int64
    from dy2st.dtypes import uint8 as uint8
    from dy2st.functions import methods as _methods
    from dy2st.functions.face import *  # noqa: F403 (the file lists them)
    from dy2st.ir.context import current as _current
    from dy2st.ir.program import Program as _Program
    from dy2st.jit.api import to_static as _to_static
    from dy2st.jit.dispatch.op_code import OpCode as _OpCode
    from dy2st.jit.static_function import LibraryFunction as _LibraryFunction
    from dy2st.jit.tracing.conversion_cache import look_around as _look_around
    from dy2st.missing import no_attribute as _no_attribute
    from dy2st.paths import submodule as _submodule
    from dy2st.runtime.autograd_engine.backward import grad as grad
    from dy2st.runtime.backends.cpu import shape_specialization as _versions
    from dy2st.runtime.eager.device import CPUPlace as CPUPlace
    from dy2st.runtime.eager.device import CUDAPlace as CUDAPlace
    from dy2st.runtime.eager.device import get_device as get_device
    from dy2st.runtime.eager.device import is_compiled_with_cuda as is_compiled_with_cuda
    from dy2st.runtime.eager.device import set_device as set_device
    from dy2st.runtime.eager.rng import get_rng_state as get_rng_state
    from dy2st.runtime.eager.rng import seed as seed
    from dy2st.runtime.eager.rng import set_rng_state as set_rng_state
    from dy2st.runtime.eager.tape.grad_mode import enable_grad as enable_grad
    from dy2st.runtime.eager.tape.grad_mode import is_grad_enabled as is_grad_enabled
    from dy2st.runtime.eager.tape.grad_mode import no_grad as no_grad
    from dy2st.runtime.eager.tape.grad_mode import set_grad_enabled as set_grad_enabled
    from dy2st.runtime.eager.tensor import Tensor as Tensor

    _look_around()

_VERSION, _PADDLE = "0.1.0", "3.3.0"

dtype = _DType
bool = _bool
inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None
float, double, half = float32, float64, float16
int, long, short, cfloat, cdouble = int32, int64, int16, complex64, complex128
get_cuda_rng_state, set_cuda_rng_state = get_rng_state, set_rng_state
manual_seed = seed

_NOT_HERE = ("cinn", "custom_device", "distribute", "ipu", "rocm", "xpu")
_BY_MODULE = {
    "functions.aliases": "as_tensor asarray broadcast_shapes softmax",
    "functions.shape.tensor_arrays": "tolist",
    "functions.typed_tensors": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor Size
    """,
    "framework.switches": "LazyGuard check_shape disable_compat disable_signal_handler enable_compat use_compat_guard",
    "functions.math.complex_numbers": """
        angle as_complex as_real complex conj imag isreal polar real view_as_complex view_as_real
    """,
    "functions.linalg.numerics": """
        cdist cumulative_trapezoid diff gcd isin lcm multigammaln nextafter pdist reduce_as renorm shard_index sinc
        trapezoid vander
    """,
    "functions.linalg.einsum": "einsum",
    "functions.math.histograms": "histogram histogram_bin_edges histogramdd mode nanmedian nanquantile",
    "functions.linalg.matrix_functions": "inverse",
    "functions.shape.stacking": """
        as_strided atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack combinations dsplit dstack
        hsplit hstack row_stack unfold vsplit vstack
    """,
    "functions.math.random_laws": "binomial poisson standard_gamma",
    "functions.math.scatter_views": "diagonal_scatter select_scatter slice_scatter",
    "linalg": """
        cholesky cholesky_solve cond corrcoef cov det eig eigh eigvals eigvalsh householder_product lstsq lu lu_unpack
        matrix_power matrix_rank multi_dot pinv qr slogdet solve svd triangular_solve
    """,
    "framework": "disable_dygraph enable_dygraph in_dygraph_mode",
    "framework.core": "Generator",
    "hapi.flops": "flops",
    "hapi.model": "Model",
    "hapi.summary": "summary",
    "runtime.backends.cpu.thread_pool.pool": "get_num_threads set_num_threads",
    "nn.functional": "adaptive_avg_pool1d conv1d conv2d conv3d group_norm layer_norm",
    "amp": "autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled",
}
# Names that load on first use: name -> module, or "module:name in it". Subpackages are found without an entry.
_LAZY: dict[str, str] = {
    **{name: f"dy2st.{module}:{name}" for module, names in _BY_MODULE.items() for name in names.split()},
    "ParamAttr": "dy2st.nn.param_attr:ParamAttr",
    "paddle": "dy2st",
    "Event": "dy2st.device.streams:Event",
    "Stream": "dy2st.device.streams:Stream",
    "CUDAPinnedPlace": "dy2st.runtime.eager.device:CPUPlace",
    "device_guard": "dy2st.static.places:device_guard",
    "get_cudnn_version": "dy2st.device:get_cudnn_version",
    "__git_commit__": "dy2st.version:commit",
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
    "audio",
    "autograd",
    "callbacks",
    "device",
    "distributed",
    "distribution",
    "export",
    "fft",
    "fleets",
    "fluid",
    "framework",
    "geometric",
    "hapi",
    "incubate",
    "inference",
    "interop",
    "io",
    "jit",
    "linalg",
    "metric",
    "nn",
    "onnx",
    "optimizer",
    "paddle_files",
    "profiler",
    "quantization",
    "regularizer",
    "scaling",
    "serving",
    "signal",
    "sparse",
    "static",
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
        return _importlib.import_module(f"dy2st.{name}")
    if (found := _submodule("dy2st", name)) is not None:
        return found
    if name == "__version__":  # whoever calls this module `paddle` asks for the release whose interface it is
        return _PADDLE if _sys._getframe(1).f_globals.get("paddle") is _sys.modules[__name__] else _VERSION
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


def _block(x: Tensor) -> _Any:
    """Return the block of static mode's main Program, which initializers are handed and do not read."""
    return __getattr__("static").default_main_program().global_block()


Tensor.block = property(_block)  # type: ignore[attr-defined]
Tensor.__array_namespace__ = _array_namespace  # type: ignore[attr-defined]


def _late_method(module: str, name: str) -> _Any:
    def method(x: Tensor, *args: _Any, **keywords: _Any) -> _Any:
        return getattr(__getattr__(module), name)(x, *args, **keywords)

    method.__name__, method.__doc__ = name, f"Do what `paddle.{module}.{name}` does."
    return method


for _module, _name in (
    ("signal", "stft"),
    ("signal", "istft"),
    ("sparse", "to_sparse_coo"),
    ("sparse", "to_sparse_csr"),
):
    setattr(Tensor, _name, _late_method(_module, _name))


def _whole(function: _Any) -> _Any:
    return _to_static(function, full_graph=True)


_current().process.to_static, _current().process.library_program = _whole, _LibraryFunction
_current().process.op_code = _OpCode
_current().process.paddle_files = lambda: __getattr__("paddle_files")


def __dir__() -> list[str]:
    return sorted({*(n for n in globals() if not n.startswith("_")), *_LAZY, "__version__"})
