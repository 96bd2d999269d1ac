"""Programs that are built by hand: statements in static mode append to a Program, the Executor runs it."""

from dy2st.metric import accuracy
from dy2st.missing import missing_in
from dy2st.nn.create_parameter import create_parameter
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.static import io, nn
from dy2st.static.auc import auc
from dy2st.static.compiled_program import BuildStrategy, CompiledProgram, ExecutionStrategy
from dy2st.static.derivatives import append_backward, gradients
from dy2st.static.executor import Executor
from dy2st.static.input import create_global_var, data
from dy2st.static.model_files import (
    load,
    load_inference_model,
    load_program_state,
    save,
    save_inference_model,
    set_program_state,
)
from dy2st.static.moving_average import ExponentialMovingAverage
from dy2st.static.places import cpu_places, cuda_places, device_guard, name_scope
from dy2st.static.program import (
    Block,
    Program,
    default_main_program,
    default_startup_program,
    disable_static,
    enable_static,
    program_guard,
)
from dy2st.static.py_func import py_func
from dy2st.static.scope import Scope, global_scope, scope_guard
from dy2st.static.serialized import (
    deserialize_persistables,
    deserialize_program,
    load_from_file,
    normalize_program,
    save_to_file,
    serialize_persistables,
    serialize_program,
)
from dy2st.static.showing import Print
from dy2st.static.variable import Variable

__getattr__ = missing_in(__name__)

__all__ = [
    "Block",
    "BuildStrategy",
    "CPUPlace",
    "CUDAPlace",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "ExponentialMovingAverage",
    "InputSpec",
    "Print",
    "Program",
    "Scope",
    "Variable",
    "accuracy",
    "append_backward",
    "auc",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "deserialize_persistables",
    "deserialize_program",
    "device_guard",
    "disable_static",
    "enable_static",
    "global_scope",
    "gradients",
    "io",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "name_scope",
    "nn",
    "normalize_program",
    "program_guard",
    "py_func",
    "save",
    "save_inference_model",
    "save_to_file",
    "scope_guard",
    "serialize_persistables",
    "serialize_program",
    "set_program_state",
]
