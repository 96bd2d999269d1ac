"""What `input_spec` declares: bound to the parameters, by the names of leaves, and as sample tensors to trace with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.jit.guards.call_signature import bind
from dy2st.kinds import is_dict, is_sequence, type_of
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.input_spec import InputSpec


def flat_specs(signature: Any, declared: Sequence[Any]) -> dict[str, InputSpec]:
    """Return the declarations by the names that leaves have."""
    found: dict[str, InputSpec] = {}

    def visit(x: Any, name: str) -> None:
        if isinstance(x, InputSpec):
            found[name] = x
        elif is_sequence(x):
            for i, item in enumerate(x):
                visit(item, f"{name}_{i}")
        elif is_dict(x):
            for k, item in x.items():
                visit(item, f"{name}_{k}")

    for name, x in bind_specs(signature, declared).items():
        visit(x, name)
    return found


def bind_specs(signature: Any, declared: Sequence[Any]) -> dict[str, Any]:
    """Bind declarations to parameters in order; defaults fill the rest."""
    if not isinstance(declared, (list, tuple)):
        raise TypeError(f"input_spec is a list of what the parameters take, not {type(declared).__name__}")
    try:
        return bind(signature, tuple(declared), {})
    except TypeError as error:
        raise TypeError(f"input_spec does not fit the parameters {signature}: {error}") from None


def sample_of(x: Any) -> Any:
    """Return a tensor of one element an axis that fits a declaration."""
    if isinstance(x, InputSpec):
        return Tensor(np.ones([1 if e < 0 else e for e in x.shape], x.dtype.numpy), x.stop_gradient)
    if is_sequence(x):
        return type_of(x)(map(sample_of, x))
    return {k: sample_of(v) for k, v in x.items()} if is_dict(x) else x
