"""Paddle 1.x's names, as thin faces over what the other parts have. `import dy2st.fluid as fluid`.

Values follow the rest of the package: a full reduction is a 0-D tensor, and eager mode is on unless
`paddle.enable_static()` was called.
"""

from __future__ import annotations

from dy2st.fluid import (
    backward,
    clip,
    core,
    dygraph,
    framework,
    initializer,
    layers,
    optimizer,
    regularizer,
    unique_name,
)
from dy2st.fluid.dygraph.base import (
    disable_dygraph,
    disable_imperative,
    enable_dygraph,
    enable_imperative,
    in_dygraph_mode,
)
from dy2st.fluid.dygraph.checkpoint import load_dygraph, save_dygraph
from dy2st.fluid.inputs import embedding, one_hot
from dy2st.nn.param_attr import ParamAttr
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace, is_compiled_with_cuda
from dy2st.static import (
    Executor,
    Program,
    Scope,
    data,
    default_main_program,
    default_startup_program,
    global_scope,
    gradients,
    program_guard,
    scope_guard,
)

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "Executor",
    "ParamAttr",
    "Program",
    "Scope",
    "backward",
    "clip",
    "core",
    "data",
    "default_main_program",
    "default_startup_program",
    "disable_dygraph",
    "disable_imperative",
    "dygraph",
    "embedding",
    "enable_dygraph",
    "enable_imperative",
    "framework",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "initializer",
    "is_compiled_with_cuda",
    "layers",
    "load_dygraph",
    "one_hot",
    "optimizer",
    "program_guard",
    "regularizer",
    "save_dygraph",
    "scope_guard",
    "unique_name",
]
