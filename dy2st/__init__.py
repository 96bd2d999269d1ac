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
from dy2st.functions.face import *  # noqa: F403 (the file lists them)
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
