"""MobileNetV2. M. Sandler et al., "MobileNetV2: Inverted residuals and linear bottlenecks" (2018)."""

from __future__ import annotations

from typing import Any

from dy2st.functions.shape.manipulation import flatten
from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import ReLU6
from dy2st.nn.layers.containers import Sequential
from dy2st.nn.layers.conv import Conv2D
from dy2st.nn.layers.dropout import Dropout
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.norm import BatchNorm2D
from dy2st.nn.layers.pooling import AdaptiveAvgPool2D
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.models.pretrained import refuse_pretrained

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""(factor by which channels grow inside, channels, blocks, stride of the first)"""


def _normed(before: int, after: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> Sequential:
    conv = Conv2D(before, after, kernel, stride, (kernel - 1) // 2, groups=groups, bias_attr=False)
    return Sequential(conv, BatchNorm2D(after), ReLU6())


class InvertedResidual(Layer):
    """Many channels between few, a filter each, and the way around where shapes allow."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int):
        super().__init__()
        inner = round(inp * expand_ratio)
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[Layer] = [] if expand_ratio == 1 else [_normed(inp, inner, 1)]
        layers += [_normed(inner, inner, 3, stride, inner), Conv2D(inner, oup, 1, bias_attr=False), BatchNorm2D(oup)]
        self.conv = Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(Layer):
    """Scores of `num_classes` classes for images [n, 3, h, w]; `scale` multiplies the channels.

    >>> import dy2st as paddle
    >>> model = paddle.vision.models.MobileNetV2(scale=0.25, num_classes=4)
    >>> model(paddle.ones([2, 3, 32, 32])).shape
    [2, 4]
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True):
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        before, last = divisible(32 * scale), divisible(1280 * max(1.0, scale))
        layers: list[Layer] = [_normed(3, before, stride=2)]
        for factor, channels, count, stride in STAGES:
            after = divisible(channels * scale)
            for i in range(count):
                layers.append(InvertedResidual(before, after, stride if i == 0 else 1, factor))
                before = after
        self.features = Sequential(*layers, _normed(before, last, 1))
        if with_pool:
            self.pool2d_avg = AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = Sequential(Dropout(0.2), Linear(last, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.pool2d_avg(x) if self.with_pool else x
        return self.classifier(flatten(x, 1)) if self.num_classes > 0 else x


def divisible(channels: float, by: int = 8) -> int:
    """Return a number of channels near this one that divides by 8, not below 90 % of it."""
    near = max(by, int(channels + by / 2) // by * by)
    return near + by if near < 0.9 * channels else near


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """Return a MobileNetV2; the other arguments are those of the class."""
    refuse_pretrained(pretrained, "mobilenet_v2")
    return MobileNetV2(scale, **kwargs)
