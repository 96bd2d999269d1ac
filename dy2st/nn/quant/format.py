"""Rounding to integers and back, with scales that are known: what a converted model computes with.

q = clip(round(x / scale * most), -most - 1, most) with most = 2 ** (bit_length - 1) - 1, and back q * scale / most.
Scales are one for a tensor, or one for each index of the axis `quant_axis`; those of a weight in groups are
[groups, outputs].
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.math import round_half_away
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


def frozen(x: Tensor) -> Parameter:
    """Return a tensor as a parameter that is not trained: its extents are known where a function becomes a Program."""
    return Parameter(x, requires_grad=False)


class _Scaled(Layer):
    def __init__(self, scales: Any, zero_point: Any = None, quant_axis: int | None = None, bit_length: int = 8):
        super().__init__()
        found = tensor(scales, type(self).__name__).detach()
        self._scales = frozen(cast_to(found, dtypes.float32).clone())
        if zero_point is not None and bool((tensor(zero_point, type(self).__name__) != 0).any()):
            raise ValueError(f"{type(self).__name__}: integers are symmetric about 0, so that a zero point is 0")
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._bit_length, self._most = bit_length, 2 ** (bit_length - 1) - 1

    @classmethod
    def from_quanter(cls, quanter: Any) -> Any:
        """Return one with the scales of an observer or quanter."""
        return cls(quanter.scales(), quanter.zero_points(), quanter.quant_axis(), quanter.bit_length())

    def _step(self, x: Tensor) -> Tensor:
        """Return what one integer stands for, such that it broadcasts to x."""
        step = self._scales / self._most
        if step.ndim == 2:
            return step.repeat_interleave(x.shape[0] // step.shape[0], 0)
        if self._quant_axis < 0 or step.ndim == 0:
            return step
        return step.reshape([-1 if axis == self._quant_axis else 1 for axis in range(x.ndim)])


class LinearQuanter(_Scaled):
    """The integers that numbers are rounded to, in the dtype of the numbers."""

    def forward(self, input: Tensor) -> Tensor:
        x = floating(input, "LinearQuanter")
        made = round_half_away(cast_to(x, dtypes.float32) / self._step(x)).clip(-self._most - 1, self._most)
        return cast_to(made, x.dtype)


class LinearDequanter(_Scaled):
    """The numbers that integers stand for: float32 of integers, else in the dtype of what is given."""

    def forward(self, input: Tensor) -> Tensor:
        made = cast_to(input, dtypes.float32) * self._step(input)
        return cast_to(made, input.dtype) if input.dtype.is_floating else made


class LinearQuanterDequanter(Layer):
    """Numbers rounded to integers and back; either step may be left out."""

    def __init__(self, quanter: Layer | None, dequanter: Layer | None):
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    @staticmethod
    def from_quanter(quanter: Any) -> LinearQuanterDequanter:
        """Return both steps with the scales of an observer or quanter."""
        return LinearQuanterDequanter(LinearQuanter.from_quanter(quanter), LinearDequanter.from_quanter(quanter))

    def forward(self, input: Tensor) -> Tensor:
        for step in (self._quanter, self._dequanter):
            input = input if step is None else step(input)
        return input


class ConvertibleQuantedLayer(Layer):
    """A layer whose weights and activations are looked at while a model trains or is calibrated, and then converted."""

    def __init__(self) -> None:
        super().__init__()
        self.converted = False

    @abstractmethod
    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """Return the names of weights, each with that of its quanter."""

    @abstractmethod
    def activation_quanters(self) -> list[str]:
        """Return the names of the quanters of activations."""

    def _convert(self, remain_weight: bool = False) -> None:
        """Put integers in the place of weights (not with `remain_weight`), known scales in that of quanters."""
        if self.converted:
            raise ValueError("a layer is converted only once")
        for weight, name in self.weights_to_quanters():
            quanter = getattr(self, name, None)
            if quanter is not None and remain_weight:
                setattr(self, name, LinearQuanterDequanter.from_quanter(quanter))
            elif quanter is not None:
                with no_grad():
                    self._store(weight, name, quanter)
        for name in self.activation_quanters():
            quanter = getattr(self, name, None)
            if quanter is not None:
                setattr(self, name, LinearQuanterDequanter.from_quanter(quanter))
        self.converted = True

    def _store(self, weight: str, name: str, quanter: Any) -> None:
        """Make a weight a parameter of int8 that is not trained, and its quanter what makes numbers of that."""
        integers = cast_to(LinearQuanter.from_quanter(quanter)(getattr(self, weight)), dtypes.int8)
        del self._parameters[weight]
        setattr(self, weight, frozen(integers))
        setattr(self, name, LinearDequanter.from_quanter(quanter))
