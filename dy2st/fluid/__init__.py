"""Paddle 1.x's names, as thin faces over what the other parts have. `import dy2st.fluid as fluid`.

Values follow the rest of the package: a full reduction is a 0-D tensor, and eager mode is on unless
`paddle.enable_static()` was called.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from dy2st.fluid import clip, core, dygraph, framework, initializer, io, layers, optimizer, regularizer, unique_name
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
from dy2st.runtime.places import CPUPlace, CUDAPlace, is_compiled_with_cuda

# What hand-built Programs need loads on first use: name -> module, or "module:name in it".
_LAZY: dict[str, str] = {
    "Executor": "dy2st.static:Executor",
    "Program": "dy2st.static:Program",
    "Scope": "dy2st.static:Scope",
    "backward": "dy2st.fluid.backward",
    "data": "dy2st.static:data",
    "default_main_program": "dy2st.static:default_main_program",
    "default_startup_program": "dy2st.static:default_startup_program",
    "global_scope": "dy2st.static:global_scope",
    "gradients": "dy2st.static:gradients",
    "program_guard": "dy2st.static:program_guard",
    "scope_guard": "dy2st.static:scope_guard",
}

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "ParamAttr",
    "clip",
    "core",
    "disable_dygraph",
    "disable_imperative",
    "dygraph",
    "embedding",
    "enable_dygraph",
    "enable_imperative",
    "framework",
    "in_dygraph_mode",
    "initializer",
    "io",
    "is_compiled_with_cuda",
    "layers",
    "load_dygraph",
    "one_hot",
    "optimizer",
    "regularizer",
    "save_dygraph",
    "unique_name",
    *_LAZY,  # pyright: ignore[reportUnsupportedDunderAll]  # names that load on first use
]


def __getattr__(name: str) -> _Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'dy2st.fluid' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    found = _importlib.import_module(module)
    return getattr(found, attribute) if attribute else found
