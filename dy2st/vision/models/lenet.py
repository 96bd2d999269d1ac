"""LeNet for digits. Y. LeCun et al., "Gradient-based learning applied to document recognition" (1998)."""

from __future__ import annotations

from dy2st.functions.shape.manipulation import flatten
from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import ReLU
from dy2st.nn.layers.containers import Sequential
from dy2st.nn.layers.conv import Conv2D
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.pooling import MaxPool2D
from dy2st.runtime.eager.tensor import Tensor


class LeNet(Layer):
    """Scores of `num_classes` classes for images [n, 1, 28, 28]; the features alone where there are no classes.

    >>> import dy2st as paddle
    >>> paddle.vision.models.LeNet()(paddle.ones([1, 1, 28, 28])).shape
    [1, 10]
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.num_classes = num_classes
        self.features = Sequential(
            Conv2D(1, 6, 3, stride=1, padding=1), ReLU(), MaxPool2D(2, 2),
            Conv2D(6, 16, 5, stride=1, padding=0), ReLU(), MaxPool2D(2, 2),
        )  # fmt: skip
        if num_classes > 0:
            self.fc = Sequential(Linear(400, 120), Linear(120, 84), Linear(84, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.features(inputs)
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x
