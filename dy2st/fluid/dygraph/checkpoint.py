"""`save_dygraph` and `load_dygraph`: state dicts under one prefix, parameters and optimizer state in two files.

`prefix.pdparams` holds the parameters, `prefix.pdopt` an optimizer's state; both are in the format of `paddle.save`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dy2st.files import generations, state_files, state_reading
from dy2st.files.state_files import as_array
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


def save_dygraph(state_dict: dict[str, Any], model_path: str) -> None:
    """Write a state dict to `model_path.pdparams`, or to `model_path.pdopt` where it is an optimizer's."""
    if not isinstance(state_dict, dict):
        raise TypeError(f"save_dygraph needs a state dict, not {type(state_dict).__name__}")
    if not os.path.basename(model_path):
        raise ValueError(f"save_dygraph needs a file name at the end of the path, not {model_path!r}")
    of_layer = any(isinstance(value, Parameter) for value in state_dict.values())
    state_files.save(state_dict, model_path + (".pdparams" if of_layer else ".pdopt"), _array)


def load_dygraph(model_path: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the parameters and the optimizer state saved under a prefix, as arrays; None for what was not saved.

    ValueError where neither file is there.
    """
    prefix = model_path.removesuffix(".pdparams").removesuffix(".pdopt")
    found = [prefix + end if os.path.exists(prefix + end) else None for end in (".pdparams", ".pdopt")]
    if found == [None, None]:
        raise ValueError(f"there is neither {prefix}.pdparams nor {prefix}.pdopt")
    if found[1] is not None:
        found[1] = str(generations.second_file(prefix))
    parameters, state = (None if path is None else state_reading.load(path, np.array) for path in found)
    return parameters, state


def _array(value: Any) -> np.ndarray | None:
    return value.numpy() if isinstance(value, Tensor) else as_array(value)
