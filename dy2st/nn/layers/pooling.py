"""Pooling layers."""

from __future__ import annotations

from typing import Any

from dy2st.nn.functional import adaptive_pooling as A
from dy2st.nn.functional import fractional_pooling as R
from dy2st.nn.functional import pooling as F
from dy2st.nn.functional import unpooling as U
from dy2st.nn.layers.from_function import REQUIRED, layer_of


def _pool(name: str, function: Any, **options: Any) -> Any:
    doc = f"{function.__doc__.splitlines()[0]}"
    return layer_of(name, function, doc, __name__, kernel_size=REQUIRED, stride=None, padding=0, **options)


def _adaptive(name: str, function: Any, **options: Any) -> Any:
    return layer_of(name, function, f"{function.__doc__.splitlines()[0]}", __name__, output_size=REQUIRED, **options)


MaxPool1D = _pool("MaxPool1D", F.max_pool1d, return_mask=False, ceil_mode=False)
MaxPool2D = _pool("MaxPool2D", F.max_pool2d, return_mask=False, ceil_mode=False, data_format="NCHW")
MaxPool3D = _pool("MaxPool3D", F.max_pool3d, return_mask=False, ceil_mode=False, data_format="NCDHW")
AvgPool1D = _pool("AvgPool1D", F.avg_pool1d, exclusive=True, ceil_mode=False)
AvgPool2D = _pool("AvgPool2D", F.avg_pool2d, ceil_mode=False, exclusive=True, divisor_override=None, data_format="NCHW")
AvgPool3D = _pool(
    "AvgPool3D", F.avg_pool3d, ceil_mode=False, exclusive=True, divisor_override=None, data_format="NCDHW"
)
LPPool1D = layer_of(
    "LPPool1D", F.lp_pool1d, "Return p-norms of windows of [batch, channels, length].", __name__, norm_type=REQUIRED,
    kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, data_format="NCL",
)  # fmt: skip
LPPool2D = layer_of(
    "LPPool2D", F.lp_pool2d, "Return p-norms of windows of images.", __name__, norm_type=REQUIRED,
    kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, data_format="NCHW",
)  # fmt: skip
AdaptiveAvgPool1D = _adaptive("AdaptiveAvgPool1D", A.adaptive_avg_pool1d)
AdaptiveAvgPool2D = _adaptive("AdaptiveAvgPool2D", A.adaptive_avg_pool2d, data_format="NCHW")
AdaptiveAvgPool3D = _adaptive("AdaptiveAvgPool3D", A.adaptive_avg_pool3d, data_format="NCDHW")
AdaptiveMaxPool1D = _adaptive("AdaptiveMaxPool1D", A.adaptive_max_pool1d, return_mask=False)
AdaptiveMaxPool2D = _adaptive("AdaptiveMaxPool2D", A.adaptive_max_pool2d, return_mask=False)
AdaptiveMaxPool3D = _adaptive("AdaptiveMaxPool3D", A.adaptive_max_pool3d, return_mask=False)
MaxUnPool1D = _pool("MaxUnPool1D", U.max_unpool1d, data_format="NCL", output_size=None)
MaxUnPool2D = _pool("MaxUnPool2D", U.max_unpool2d, data_format="NCHW", output_size=None)
MaxUnPool3D = _pool("MaxUnPool3D", U.max_unpool3d, data_format="NCDHW", output_size=None)
FractionalMaxPool2D = _adaptive(
    "FractionalMaxPool2D", R.fractional_max_pool2d, kernel_size=None, random_u=None, return_mask=False
)
FractionalMaxPool3D = _adaptive(
    "FractionalMaxPool3D", R.fractional_max_pool3d, kernel_size=None, random_u=None, return_mask=False
)
