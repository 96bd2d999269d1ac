"""1.x's `fluid.framework`: the mode, and the kind of a parameter."""

from dy2st.fluid.dygraph.base import in_dygraph_mode
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor as Variable

__all__ = ["Parameter", "Variable", "in_dygraph_mode"]
