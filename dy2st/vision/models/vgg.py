"""VGG networks. K. Simonyan and A. Zisserman, "Very deep convolutional networks" (2015)."""

from __future__ import annotations

from typing import Any

from dy2st.functions.shape.manipulation import flatten
from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import ReLU
from dy2st.nn.layers.containers import Sequential
from dy2st.nn.layers.conv import Conv2D
from dy2st.nn.layers.dropout import Dropout
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.norm import BatchNorm2D
from dy2st.nn.layers.pooling import AdaptiveAvgPool2D, MaxPool2D
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.models.pretrained import refuse_pretrained

COUNTS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
CHANNELS = (64, 128, 256, 512, 512)


class VGG(Layer):
    """Scores of `num_classes` classes for images, from `features` with 512 channels; without classes, the features."""

    def __init__(self, features: Layer, num_classes: int = 1000, with_pool: bool = True):
        super().__init__()
        self.features, self.num_classes, self.with_pool = features, num_classes, with_pool
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = Sequential(
                Linear(512 * 7 * 7, 4096), ReLU(), Dropout(), Linear(4096, 4096), ReLU(), Dropout(),
                Linear(4096, num_classes),
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = self.avgpool(x) if self.with_pool else x
        return self.classifier(flatten(x, 1)) if self.num_classes > 0 else x


def features(depth: int, batch_norm: bool) -> Sequential:
    """Return the convolutions of a VGG network: five stages that each end in pooling."""
    layers: list[Layer] = []
    before = 3
    for channels, count in zip(CHANNELS, COUNTS[depth], strict=True):
        for _ in range(count):
            layers.append(Conv2D(before, channels, kernel_size=3, padding=1))
            layers += [BatchNorm2D(channels), ReLU()] if batch_norm else [ReLU()]
            before = channels
        layers.append(MaxPool2D(kernel_size=2, stride=2))
    return Sequential(*layers)


def _maker(depth: int) -> Any:
    def make(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
        refuse_pretrained(pretrained, f"vgg{depth}")
        return VGG(features(depth, batch_norm), **kwargs)

    make.__name__ = make.__qualname__ = f"vgg{depth}"
    make.__doc__ = f"Return a VGG network of {depth} layers; the other arguments are those of VGG."
    return make


vgg11, vgg13, vgg16, vgg19 = map(_maker, (11, 13, 16, 19))
