"""`paddle.amp`: float16 where it pays, float32 where it matters, and gradients scaled so that float16 holds them."""

from dy2st.amp.auto_cast import (
    auto_cast,
    autocast,
    decorate,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_enabled,
    is_bfloat16_supported,
    is_float16_supported,
)
from dy2st.amp.grad_scaler import AmpScaler, GradScaler
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)
