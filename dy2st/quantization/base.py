"""What observers and quanters are: layers that know the scales of what passes through them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class BaseQuanter(Layer):
    """A layer that rounds what passes through it, or looks at it, and knows the scales of that."""

    @abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """Return the input, rounded or as it is."""

    @abstractmethod
    def scales(self) -> Any:
        """Return the largest magnitude that is represented: one number, or one for each channel."""

    @abstractmethod
    def zero_points(self) -> Any:
        """Return which integers stand for 0; None where that is 0."""

    @abstractmethod
    def quant_axis(self) -> int:
        """Return the axis that has a scale for each index; -1 where there is one scale."""

    @abstractmethod
    def bit_length(self) -> int:
        """Return how many bits an integer has."""


class BaseObserver(BaseQuanter):
    """A quanter that looks at what passes, and changes nothing."""

    @abstractmethod
    def cal_thresholds(self) -> None:
        """Compute the scales of what was seen."""
