"""1.x's eager mode."""

from dy2st.fluid.dygraph import base, jit, nn
from dy2st.fluid.dygraph.base import (
    disable_dygraph,
    enable_dygraph,
    enabled,
    guard,
    in_dygraph_mode,
    no_grad,
    to_variable,
)
from dy2st.fluid.dygraph.checkpoint import load_dygraph, save_dygraph
from dy2st.fluid.dygraph.jit import ProgramTranslator, declarative, dygraph_to_static_output
from dy2st.fluid.dygraph.nn import (
    FC,
    BatchNorm,
    BilinearTensorProduct,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Dropout,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    Linear,
    Pool2D,
    PRelu,
)
from dy2st.nn.layer import Layer
from dy2st.nn.layers.containers import LayerList, ParameterList, Sequential
from dy2st.runtime.autograd_engine.backward import grad

__all__ = [
    "FC",
    "BatchNorm",
    "BilinearTensorProduct",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "Layer",
    "LayerList",
    "LayerNorm",
    "Linear",
    "PRelu",
    "ParameterList",
    "Pool2D",
    "ProgramTranslator",
    "Sequential",
    "base",
    "declarative",
    "disable_dygraph",
    "dygraph_to_static_output",
    "enable_dygraph",
    "enabled",
    "grad",
    "guard",
    "in_dygraph_mode",
    "jit",
    "load_dygraph",
    "nn",
    "no_grad",
    "save_dygraph",
    "to_variable",
]
