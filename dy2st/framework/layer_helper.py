"""LayerHelper: what functions that were written as Paddle's own are make their parameters with.

`append_op` has no counterpart: operators of Paddle's are not named here. Such a function calls `paddle._C_ops`, or the
public function, in eager and in static mode alike.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.nn import functional
from dy2st.nn.create_parameter import create_parameter, default_dtype
from dy2st.nn.param_attr import as_attr
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.program import default_main_program, default_startup_program


class LayerHelper:
    """The arguments of a function, and what makes its parameters.

    >>> import dy2st as paddle
    >>> helper = LayerHelper("scaled", input=paddle.ones([2]), act="relu")
    >>> helper.create_parameter(None, [2, 3], "float32").shape, helper.append_activation(paddle.to_tensor(-1.0)).item()
    ([2, 3], 0.0)
    """

    def __init__(self, layer_type: str, **kwargs: Any):
        self.layer_type, self.kwargs = layer_type, kwargs
        self.name = kwargs.get("name") or unique_name.generate(layer_type)

    main_program = property(lambda self: default_main_program())
    startup_program = property(lambda self: default_startup_program())

    @property
    def param_attr(self) -> Any:
        """What `param_attr` says."""
        return as_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """What `bias_attr` says."""
        return as_attr(self.kwargs.get("bias_attr"))

    def multiple_input(self, input_param_name: str = "input") -> list[Tensor]:
        """Return the inputs as a list."""
        given = self.kwargs.get(input_param_name, [])
        return list(given) if isinstance(given, (list, tuple)) else [given]

    def input(self, input_param_name: str = "input") -> Tensor:
        """Return the input; ValueError where there are several."""
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} takes one {input_param_name}, not {len(inputs)}")
        return inputs[0]

    def input_dtype(self, input_param_name: str = "input") -> dtypes.DType:
        """Return the dtype of the inputs; ValueError where they differ."""
        found = {x.dtype for x in self.multiple_input(input_param_name)}
        if len(found) != 1:
            raise ValueError(f"{self.layer_type}: inputs of several dtypes: {sorted(t.name for t in found)}")
        return found.pop()

    def create_parameter(
        self, attr: Any, shape: Any, dtype: Any = None, is_bias: bool = False, default_initializer: Any = None,
        stop_gradient: bool = False,
    ) -> Any:  # fmt: skip
        """Return a new parameter; None where `attr` is False."""
        if attr is False:
            return None
        made = create_parameter(shape, dtype or default_dtype(), None, attr, is_bias, default_initializer)
        if made is not None and stop_gradient:
            made.stop_gradient = True
        return made

    def append_activation(self, input_var: Tensor) -> Tensor:
        """Return the input after the activation that `act` names, itself where there is none."""
        act = self.kwargs.get("act")
        return input_var if act is None else getattr(functional, act)(input_var)

    def __getattr__(self, name: str) -> Any:
        hint = "; operators of Paddle's are not named here: call paddle._C_ops, or the function" if "op" in name else ""
        raise AttributeError(f"LayerHelper has no {name!r}{hint}", name=name)
