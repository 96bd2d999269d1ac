"""Residual networks. K. He et al., "Deep residual learning for image recognition" (2016)."""

from __future__ import annotations

from typing import Any

from dy2st.functions.shape.manipulation import flatten
from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import ReLU
from dy2st.nn.layers.containers import Sequential
from dy2st.nn.layers.conv import Conv2D
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.norm import BatchNorm2D
from dy2st.nn.layers.pooling import AdaptiveAvgPool2D, MaxPool2D
from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.models.pretrained import refuse_pretrained

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


class BasicBlock(Layer):
    """Two convolutions and the way around them."""

    expansion = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Layer | None = None, width: int = 64):
        super().__init__()
        if width != 64:
            raise ValueError("resnet18 and resnet34 have no other width")
        self.conv1 = Conv2D(inplanes, planes, 3, padding=1, stride=stride, bias_attr=False)
        self.bn1 = BatchNorm2D(planes)
        self.relu = ReLU()
        self.conv2 = Conv2D(planes, planes, 3, padding=1, bias_attr=False)
        self.bn2 = BatchNorm2D(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + around)


class BottleneckBlock(Layer):
    """A convolution between two that make its channels few and many, and the way around them."""

    expansion = 4

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Layer | None = None, width: int = 64):
        super().__init__()
        inner = int(planes * width / 64)
        self.conv1 = Conv2D(inplanes, inner, 1, bias_attr=False)
        self.bn1 = BatchNorm2D(inner)
        self.conv2 = Conv2D(inner, inner, 3, padding=1, stride=stride, bias_attr=False)
        self.bn2 = BatchNorm2D(inner)
        self.conv3 = Conv2D(inner, planes * self.expansion, 1, bias_attr=False)
        self.bn3 = BatchNorm2D(planes * self.expansion)
        self.relu = ReLU()
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + around)


class ResNet(Layer):
    """Scores of `num_classes` classes for images [n, 3, h, w].

    Parameters
    ----------
    block
        BasicBlock or BottleneckBlock.
    depth
        18, 34, 50, 101 or 152.
    width
        Channels of a bottleneck, in proportion to 64.
    num_classes
        Without classes (0) the features are returned.
    with_pool
        Whether features are averaged over the image.
    """

    def __init__(
        self, block: Any, depth: int = 50, width: int = 64, num_classes: int = 1000, with_pool: bool = True,
        groups: int = 1,
    ):  # fmt: skip
        super().__init__()
        if depth not in DEPTHS:
            raise ValueError(f"ResNet: depth must be one of {', '.join(map(str, DEPTHS))}, not {depth}")
        if groups != 1:
            raise NotImplementedError(f"ResNet: groups={groups} is not supported")
        self.num_classes, self.with_pool, self._width = num_classes, with_pool, width
        self.inplanes = 64
        self.conv1 = Conv2D(3, 64, kernel_size=7, stride=2, padding=3, bias_attr=False)
        self.bn1 = BatchNorm2D(64)
        self.relu = ReLU()
        self.maxpool = MaxPool2D(kernel_size=3, stride=2, padding=1)
        counts = DEPTHS[depth]
        self.layer1 = self._stage(block, 64, counts[0], 1)
        self.layer2 = self._stage(block, 128, counts[1], 2)
        self.layer3 = self._stage(block, 256, counts[2], 2)
        self.layer4 = self._stage(block, 512, counts[3], 2)
        if with_pool:
            self.avgpool = AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = Linear(512 * block.expansion, num_classes)

    def _stage(self, block: Any, planes: int, count: int, stride: int) -> Sequential:
        out = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != out:
            downsample = Sequential(Conv2D(self.inplanes, out, 1, stride=stride, bias_attr=False), BatchNorm2D(out))
        blocks = [block(self.inplanes, planes, stride, downsample, self._width)]
        self.inplanes = out
        blocks += [block(out, planes, width=self._width) for _ in range(1, count)]
        return Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x) if self.with_pool else x
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x


def _maker(depth: int, block: Any) -> Any:
    def make(pretrained: bool = False, **kwargs: Any) -> ResNet:
        refuse_pretrained(pretrained, f"resnet{depth}")
        return ResNet(block, depth, **kwargs)

    make.__name__ = make.__qualname__ = f"resnet{depth}"
    make.__doc__ = f"Return a residual network of {depth} layers; the other arguments are those of ResNet."
    return make


resnet18, resnet34 = _maker(18, BasicBlock), _maker(34, BasicBlock)
resnet50, resnet101, resnet152 = (_maker(depth, BottleneckBlock) for depth in (50, 101, 152))
