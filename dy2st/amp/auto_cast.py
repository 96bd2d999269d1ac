"""`auto_cast`: for the length of a `with`, ops that gain from it run in 16 bits; `decorate` makes models for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dy2st import dtypes
from dy2st.amp.autocast_policy import HIGH, LOW, AutoCast
from dy2st.dtypes import DType
from dy2st.ir.context import current, replaced
from dy2st.ir.opdef import REGISTRY
from dy2st.nn import layer_to
from dy2st.nn.layer import Layer
from dy2st.nn.layers.norm import (
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
)
from dy2st.optimizer.optimizer import Optimizer

_KEPT = (BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, InstanceNorm1D, InstanceNorm2D, InstanceNorm3D)
_PADDLES = {
    "conv1d": "conv", "conv2d": "conv", "conv3d": "conv", "conv2d_transpose": "conv_input_grad",
    "cross_entropy": "softmax_cross_entropy", "elementwise_add": "add", "elementwise_div": "div",
    "elementwise_mul": "mul", "elementwise_pow": "pow", "elementwise_sub": "sub", "linear": "matmul",
    "matmul_v2": "matmul", "mul": "matmul", "reduce_mean": "mean", "reduce_sum": "sum",
    "softmax_with_cross_entropy": "softmax_cross_entropy",
}  # fmt: skip


@contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Iterable[str] | None = None,
    custom_black_list: Iterable[str] | None = None,
    level: str = "O1",
    dtype: Any = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Run ops in 16 bits where that pays, in float32 where they would lose, for the length of a `with`.

    Parameters
    ----------
    custom_white_list, custom_black_list
        Names of ops (Paddle's or dy2st's) that run in 16 bits, or that never do; ValueError for unknown ones.
    level
        "O1": products and convolutions in 16 bits; "O2": all but what loses in it; "OD": the same products, and
        everything else in float32; "O0": nothing.
    dtype
        "float16" or "bfloat16".
    use_promote
        Must be True: operands of several dtypes meet in the widest.

    >>> import dy2st as paddle
    >>> x = paddle.ones([2, 2])
    >>> with paddle.amp.auto_cast():
    ...     y = x @ x
    >>> y.dtype
    paddle.float16
    """
    low_dtype = checked_dtype(dtype, "auto_cast")
    if level not in ("O0", "O1", "O2", "OD"):
        raise ValueError(f"auto_cast: level must be 'O0', 'O1', 'O2' or 'OD', not {level!r}")
    if not use_promote:
        raise NotImplementedError("auto_cast: use_promote=False is not supported: dtypes always meet in the widest")
    white, black = _names(custom_white_list), _names(custom_black_list)
    if both := sorted(white & black):
        raise ValueError(f"auto_cast: {', '.join(both)} cannot be in both lists")
    low, high = (set(LOW) | white) - black, (set(HIGH) | black) - white
    setting = AutoCast(level, low_dtype.name, tuple(sorted(low)), tuple(sorted(high)))
    with replaced(amp=setting if enable and level != "O0" else None):
        yield


def autocast(
    device_type: str, dtype: Any = "float16", enabled: bool = True, cache_enabled: bool = True
) -> AbstractContextManager[None]:
    """Do what `auto_cast(enabled, dtype=dtype)` does, under the name and with the arguments of other libraries."""
    return auto_cast(enabled, dtype=dtype)


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O1",
    dtype: Any = "float16",
    master_weight: bool | None = None,
    save_dtype: Any = None,
    master_grad: bool = False,
    excluded_layers: Any = None,
) -> Any:
    """Return models and optimizers ready for `auto_cast` of this level.

    For "O2" the parameters of the models are cast to `dtype`, but for batch and instance norms and `excluded_layers`
    (layers or classes), and the optimizers keep float32 copies of them (unless master_weight is False). For "O1"
    nothing changes. `save_dtype` and `master_grad` raise NotImplementedError.
    """
    low = checked_dtype(dtype, "decorate")
    if level not in ("O1", "O2"):
        raise ValueError(f"decorate: level must be 'O1' or 'O2', not {level!r}")
    if save_dtype is not None or master_grad:
        raise NotImplementedError("decorate: save_dtype and master_grad are not supported")
    layers, steps = _listed(models, Layer, "models"), _listed(optimizers, Optimizer, "optimizers")
    if level == "O2":
        left = _KEPT if excluded_layers is None else (*_KEPT, *_as_tuple(excluded_layers))
        for layer in layers:
            _to_low(layer, low, left)
        for optimizer in steps:
            optimizer._multi_precision = master_weight is not False
    return models if optimizers is None else (models, optimizers)


def is_float16_supported(device: Any = None) -> bool:
    """Return True: float16 is computed everywhere (on the CPU with float32 inside)."""
    return True


def is_bfloat16_supported(device: Any = None) -> bool:
    """Return True: bfloat16 is computed everywhere (with float32 inside)."""
    return True


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether `auto_cast` is on."""
    return current().amp is not None


def get_autocast_dtype(device_type: str | None = None) -> DType:
    """Return the dtype to which `auto_cast` casts now, or would by default."""
    setting = current().amp
    return dtypes.float16 if setting is None else dtypes.dtype(setting.dtype)


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


def checked_dtype(dtype: Any, name: str) -> DType:
    """Return the dtype of low precision; ValueError for others."""
    found = dtypes.dtype(dtype)
    if found not in (dtypes.float16, dtypes.bfloat16):
        raise ValueError(f"{name}: dtype must be float16 or bfloat16, not {found.name}")
    return found


def _names(listed: Iterable[str] | None) -> set[str]:
    found = {_PADDLES.get(name, name) for name in listed or ()}
    if unknown := sorted(name for name in found if name not in REGISTRY):
        raise ValueError(f"auto_cast: no op is named {', '.join(unknown)}")
    return found


def _listed(given: Any, kind: type, what: str) -> list[Any]:
    listed = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    for item in listed:
        if not isinstance(item, kind):
            raise TypeError(f"decorate: {what} must be {kind.__name__}s, not {type(item).__name__}")
    return listed


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def _to_low(layer: Layer, dtype: DType, left: tuple[Any, ...]) -> None:
    if any(isinstance(layer, x) if isinstance(x, type) else layer is x for x in left):
        return
    layer_to.move_own(layer, dtype)
    for child in layer.children():
        _to_low(child, dtype, left)
