"""`load_torch_state`: a state dict of torch goes into a Layer, all of it or an error that names every mismatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dy2st.dtypes import of_array
from dy2st.interop.torch_layouts import UNUSED, Source, sources
from dy2st.kinds import is_dict
from dy2st.nn.layer import Layer
from dy2st.nn.layer_state import set_values
from dy2st.records import record
from dy2st.runtime.eager import device
from dy2st.runtime.eager.lazy_init import dtype_of, shape_of
from dy2st.runtime.eager.tensor import Tensor

Rename = Mapping[str, "str | None"] | Callable[[str], "str | None"]
_MOST_LINES = 40
"""How many mismatches an error lists."""


@record(frozen=True)
class LoadedState:
    """What became of a state: the layer's names with those they came from, the missing ones, and what was left over."""

    taken: dict[str, str]
    missing: list[str]
    left_over: list[str]

    def __str__(self) -> str:
        lines = [f"{len(self.taken)} tensors were taken"]
        lines += [f"missing in the state: {name}" for name in self.missing]
        lines += [f"left over in the state: {name}" for name in self.left_over]
        return "\n".join(lines)


def load_torch_state(
    layer: Layer, state: Mapping[str, Any], rename: Rename | None = None, strict: bool = True
) -> LoadedState:
    """Copy the state dict of a torch module into a Layer of the same structure; return what became of each name.

    Names and layouts that differ are known by the kind of layer: weights of `Linear` are transposed, `running_mean`
    becomes `_mean`, `in_proj_weight` of attention becomes three. Values take the dtype that the layer has.

    Parameters
    ----------
    layer
        Whose parameters and persistable buffers are set.
    state
        Tensors or arrays by name, as `paddle.load("weights.pt")` returns them.
    rename
        What is done to the state's names first: a function, or a dict from leading parts of names to what stands in
        their place: `{"module": ""}` drops `module.`, `{"": "net"}` puts `net.` in front. None drops a tensor.
    strict
        Whether a name that is missing or left over is an error. Shapes and dtypes that do not fit always are.

    ValueError lists all that does not fit; the layer then is as it was. `num_batches_tracked` is left out silently.

    >>> import numpy as np
    >>> import dy2st as paddle
    >>> linear = paddle.nn.Linear(3, 2)
    >>> state = {"module.weight": np.arange(6.0).reshape(2, 3), "module.bias": np.zeros(2)}
    >>> print(paddle.interop.load_torch_state(linear, state, rename={"module": ""}))
    2 tensors were taken
    >>> linear(paddle.to_tensor([1.0, 0.0, 0.0])).tolist()
    [0.0, 3.0]
    """
    if not isinstance(layer, Layer):
        raise TypeError(f"a state is loaded into a Layer, not into {type(layer).__name__}")
    arrays = _renamed(_arrays(state), rename)
    parts = {name[:at] for name in arrays for at in range(len(name)) if name[at] == "."}
    taken: dict[str, str] = {}
    pairs: list[tuple[Tensor, Any]] = []
    missing: list[str] = []
    problems: list[str] = []
    for name, tensor, source in sources(layer, lambda said: said in arrays or said in parts):
        if source.name not in arrays:
            missing.append(name if source.name == name else f"{name} (in torch {source.name})")
            continue
        taken[name] = source.name
        value = _converted(name, tensor, source, arrays[source.name], problems)
        pairs.append((tensor, value))
    used = set(taken.values())
    left_over = [name for name in arrays if name not in used and name.split(".")[-1] != UNUSED]
    found = LoadedState(taken, missing, left_over)
    if strict:
        problems += [f"missing in the state: {name}" for name in missing]
        problems += [f"left over in the state: {name}" for name in left_over]
    if problems:
        raise ValueError(_listed(problems, type(layer).__name__))
    set_values(pairs)
    return found


def _arrays(state: Any) -> dict[str, np.ndarray]:
    """Return the tensors of a state as arrays; an error says what else it holds."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state dict maps names to tensors, it is not {type(state).__name__} {state!r:.40}")
    found: dict[str, np.ndarray] = {}
    for name, value in state.items():
        if is_dict(value):
            raise TypeError(f"the state has a dict under {name!r:.60}: give that one, state[{name!r:.60}]")
        if not isinstance(name, str) or not isinstance(value, (Tensor, np.ndarray)):
            raise TypeError(f"the state has a {type(value).__name__} under {name!r:.60}, which is no tensor")
        found[name] = device.move(value.array("load_torch_state"), device.CPU) if isinstance(value, Tensor) else value
    return found


def _renamed(arrays: dict[str, np.ndarray], rename: Rename | None) -> dict[str, np.ndarray]:
    """Return the arrays under their new names, of which each is there once."""
    if rename is None:
        return arrays
    if not callable(rename) and not isinstance(rename, Mapping):
        raise TypeError(f"rename is a function or a dict of leading parts of names, not {type(rename).__name__}")
    found: dict[str, np.ndarray] = {}
    before: dict[str, str] = {}
    for name, array in arrays.items():
        new: Any = rename(name) if callable(rename) else _with_other_start(name, rename)
        if new is None:
            continue
        if not isinstance(new, str):
            raise TypeError(f"rename made {new!r:.60} of {name!r:.60}: a name or None is expected")
        if new in found:
            raise ValueError(f"rename makes {new!r:.60} of two names: {before[new]!r:.60} and {name!r:.60}")
        found[new], before[new] = array, name
    return found


def _with_other_start(name: str, starts: Mapping[str, str | None]) -> str | None:
    """Return a name whose longest leading part among `starts` is replaced."""
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        start = ".".join(parts[:count])
        if start in starts:
            new = starts[start]
            return None if new is None else ".".join([*([new] if new else []), *parts[count:]])
    return name


def _converted(name: str, tensor: Tensor, source: Source, array: np.ndarray, problems: list[str]) -> Any:
    """Return the array as the layer has it; what does not fit is added to the problems."""
    try:
        made = source.convert(array)
    except ValueError as error:
        problems.append(f"{name} comes from {source.name}: {error}")
        return None
    given, wanted = of_array(made), dtype_of(tensor)
    if list(made.shape) != list(shape_of(tensor)):
        here = "" if made.shape == array.shape else f", here {list(made.shape)}"
        problems.append(f"{name} has the shape {shape_of(tensor)}: {source.name} has {list(array.shape)}{here}")
    elif (given.is_floating, given.is_complex) != (wanted.is_floating, wanted.is_complex):
        problems.append(f"{name} has the dtype {wanted.name}: {source.name} has {given.name}")
    return made


def _listed(problems: list[str], kind: str) -> str:
    shown = problems[:_MOST_LINES]
    rest = [f"and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
    return "\n  ".join([f"the state does not fit the {kind}:", *shown, *rest])
