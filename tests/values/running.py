"""How a row runs: arrays become tensors of the variant's dtype and layout, the name is called, results are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from tests.values.row import Of, Row

APART = 37
LOWERED = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}


def resolve(name: str, module: Any) -> Any:
    """Return what a dotted name stands for in dy2st, or in Paddle."""
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def mapped(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """Change the arrays in nested lists and tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        return change(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, change) for v in value)
    return value


def lowered(array: np.ndarray) -> np.ndarray:
    """Return a float64 or complex128 array in half the precision, any other as it is."""
    return array.astype(LOWERED.get(array.dtype, array.dtype))


def strided(array: np.ndarray, module: Any) -> Any:
    """Return a tensor of these elements that lie far apart in memory, as views of larger tensors do."""
    if array.ndim == 0:
        return module.to_tensor(np.stack([array, array]))[1]
    wide = np.zeros((*array.shape[:-1], APART * array.shape[-1]), array.dtype)
    wide[..., ::APART] = array
    return module.to_tensor(wide)[..., ::APART]


def operands(row: Row, variant: str, module: Any) -> tuple[Any, ...]:
    """Return the arguments of a row as a variant has them."""
    change: Callable[[np.ndarray], Any] = module.to_tensor
    if variant == "float32":
        change = lambda array: module.to_tensor(lowered(array))
    if variant == "strided":
        change = lambda array: strided(array, module)
    return mapped(row.args, change)


def call(row: Row, args: tuple[Any, ...], module: ModuleType | Any, lower: bool = False) -> Any:
    """Use a name as its row says."""
    change = lambda array: module.to_tensor(lowered(array) if lower else array)
    keywords = {k: v.make(module) if isinstance(v, Of) else mapped(v, change) for k, v in row.keywords.items()}
    if row.form == "attribute":
        return getattr(args[0], row.name.split(".")[-1])
    if row.form == "method":
        return getattr(args[0], row.name.split(".")[-1])(*args[1:], **keywords)
    if row.form == "layer":
        return made(row, module, keywords, lower)(*args)
    if row.form == "in place":
        return written(row, args, module, keywords)
    return resolve(row.name, module)(*args, **keywords)


def made(row: Row, module: Any, keywords: dict[str, Any], lower: bool) -> Any:
    """Make the layer of a row, in the dtype of the variant, with its state."""
    before = module.get_default_dtype()
    module.set_default_dtype("float32" if lower else "float64")
    try:
        found = resolve(row.name, module)(*row.made_with, **keywords)
    finally:
        module.set_default_dtype(before)
    held = found.state_dict() if row.state else {}
    for name, array in row.state.items():
        held[name].set_value(module.to_tensor(lowered(array) if lower else array))
    found.eval()
    return found


def written(row: Row, args: tuple[Any, ...], module: Any, keywords: dict[str, Any]) -> Any:
    """Call an in-place form; what it returns must be the tensor that it wrote into."""
    x = args[0]
    last = row.name.split(".")[-1]
    form = getattr(x, last) if row.name.startswith("Tensor.") else partial(resolve(row.name, module), x)
    assert form(*args[1:], **keywords) is x
    return x


def check(got: Any, want: Any, rtol: float, lower: bool = False) -> None:
    """Assert that a result has the shape, the dtype and the values that are wanted."""
    if isinstance(want, tuple) and not isinstance(got, tuple) and not isinstance(got, list):
        raise AssertionError(f"one result, not {len(want)}")
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            if w is not None:
                check(g, w, rtol, lower)
        return
    if not hasattr(got, "numpy"):
        assert not isinstance(want, np.ndarray), f"{type(got).__name__}, not a tensor"
        assert got == want
        return
    array = np.asarray(want)
    array = lowered(array) if lower else array
    found = got.numpy()
    assert found.shape == array.shape
    assert found.dtype == array.dtype
    if array.dtype.kind in "fc":
        np.testing.assert_allclose(found, array, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(found, array)


def shown(row: Row) -> str:
    """Return the arguments of a row in a few words."""
    parts = [f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a) for a in (*row.made_with, *row.args)]
    return f"({', '.join([*parts, *(f'{k}={v!r}' for k, v in row.keywords.items())])})"[:100]
