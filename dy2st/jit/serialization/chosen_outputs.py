"""`jit.save(output_spec=...)`: some of the outputs of a function in place of all."""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import Any

from dy2st.jit.static_function import StaticFunction
from dy2st.kinds import is_dict, is_list, is_sequence, is_tuple
from dy2st.runtime.eager.tensor import Tensor


def checked_positions(given: Any) -> list[int] | None:
    """Return an `output_spec` as a list; TypeError where it is no list of ints, ValueError where it is empty."""
    if given is None:
        return None
    if not is_sequence(given) or not all(type(one) is int for one in given):
        raise TypeError(f"output_spec is a list of positions among the outputs of forward, not {given!r:.60}")
    if not given:
        raise ValueError("output_spec names no output")
    return list(given)


def of_chosen_outputs(static: StaticFunction, positions: Sequence[int]) -> StaticFunction:
    """Return a function that does what `static` does and returns the outputs at these positions."""
    function, instance = static.python_function, static.instance
    call = function if instance is None else MethodType(function, instance)

    def forward(*args: Any, **keywords: Any) -> Any:
        return chosen(call(*args, **keywords), positions)

    forward.__signature__ = static.signature
    return StaticFunction(forward, static.input_spec, True, checkpoint=static.checkpoint)


def chosen(outputs: Any, positions: Sequence[int]) -> Any:
    """Return the tensors at some positions among all in a structure: a list, or the tensor where it is one.

    >>> import dy2st as paddle
    >>> one, two = paddle.ones([1]), paddle.zeros([2])
    >>> chosen({"b": one, "a": [two]}, [0]) is two
    True
    """
    found: list[Tensor] = []
    _add(outputs, found)
    for position in positions:
        if not 0 <= position < len(found):
            raise ValueError(f"output_spec names the output {position}, forward has {len(found)}")
    picked = [found[position] for position in positions]
    return picked[0] if len(picked) == 1 else picked


def _add(outputs: Any, found: list[Tensor]) -> None:
    if isinstance(outputs, Tensor):
        if not any(outputs is one for one in found):
            found.append(outputs)
        return
    if is_dict(outputs):
        outputs = [outputs[key] for key in sorted(outputs)]
    if is_list(outputs) or is_tuple(outputs):
        for one in outputs:
            _add(one, found)
