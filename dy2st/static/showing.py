"""`Print`: a tensor is shown each time the Program runs."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import assign
from dy2st.functions.core.operands import tensor
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins.builtins import print_


def Print(
    input: Any,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Tensor:
    """Return the input; print `message` and the tensor, as `print(tensor)` does, each time this is reached.

    What is printed has shape, dtype and place always, so `summarize` and the flags of parts change nothing. Gradients
    are not printed: `print_phase` "both" and "forward" are the same. `first_n` must be -1, for every time.

    >>> import dy2st as paddle
    >>> x = paddle.static.Print(paddle.to_tensor([1.0]), message="x is")
    x is Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
           [1.])
    """
    x = tensor(input, "Print")
    if first_n != -1:
        raise NotImplementedError(f"Print: first_n={first_n} is not supported; -1 prints every time")
    if print_phase not in ("both", "forward"):
        raise NotImplementedError(f"Print: print_phase must be 'both' or 'forward', not {print_phase!r}")
    shown = [x] if message is None else [message, x]
    trace = current().trace
    if trace is None:
        print(*shown)
    else:
        print_(trace, *shown)
    return assign(x)
