"""`paddle.framework`, and what projects take from `paddle.base`: modes, checks of arguments, how layers are written."""

from dy2st.fluid.dygraph.base import disable_dygraph, enable_dygraph, guard, in_dygraph_mode, to_variable
from dy2st.framework import core
from dy2st.framework.checks import (
    check_dtype,
    check_type,
    check_variable_and_dtype,
    convert_dtype,
    convert_np_dtype_to_dtype_,
    dygraph_only,
    static_only,
)
from dy2st.framework.layer_helper import LayerHelper
from dy2st.functions.core.defaults import get_default_dtype, in_dynamic_mode, in_dynamic_or_pir_mode, set_default_dtype
from dy2st.jit.serialization.io import load_state as load
from dy2st.jit.serialization.io import save_state as save
from dy2st.missing import missing_in
from dy2st.nn.initializer import set_global_initializer
from dy2st.nn.param_attr import ParamAttr
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace
from dy2st.runtime.eager.device import current_place as _current_expected_place
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.rng import get_rng_state, seed, set_rng_state
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor as Variable
from dy2st.utils.deprecation import deprecated, get_logger

EagerParamBase = ParamBase = Parameter
_non_static_mode = _in_eager_mode_ = in_dynamic_mode
_global_flags = core.globals


def in_pir_mode() -> bool:
    """Return whether a Program is built in Paddle's new representation: here there is one, that of `static`."""
    return not in_dynamic_mode()


def use_pir_api() -> bool:
    """Return whether `in_pir_mode` may be: as for it."""
    return True


__getattr__ = missing_in(__name__)

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "EagerParamBase",
    "LayerHelper",
    "ParamAttr",
    "ParamBase",
    "Parameter",
    "Variable",
    "_current_expected_place",
    "check_dtype",
    "check_type",
    "check_variable_and_dtype",
    "convert_dtype",
    "convert_np_dtype_to_dtype_",
    "core",
    "deprecated",
    "disable_dygraph",
    "dygraph_only",
    "enable_dygraph",
    "get_default_dtype",
    "get_logger",
    "get_rng_state",
    "guard",
    "in_dygraph_mode",
    "in_dynamic_mode",
    "in_dynamic_or_pir_mode",
    "in_pir_mode",
    "load",
    "no_grad",
    "save",
    "seed",
    "set_default_dtype",
    "set_global_initializer",
    "set_rng_state",
    "static_only",
    "to_variable",
    "unique_name",
    "use_pir_api",
]
