"""Weight decay by a term in the loss: what it adds to a parameter's gradient."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.eager.tracked_settings import Settable


class WeightDecayRegularizer(Settable):
    """Base of the regularizers: what `term` returns is added to a parameter's gradient."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def term(self, parameter: Any, maths: Any) -> Any:
        """Return the gradient of the penalty; `parameter` is an array or a tensor, `maths` the arithmetic for it."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it adds to a gradient: define `term`")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(coeff={self.coeff})"


class L1Decay(WeightDecayRegularizer):
    """The penalty coeff * sum |w|, which adds coeff * sign(w) to the gradient."""

    def term(self, parameter: Any, maths: Any) -> Any:
        return maths.sign(parameter) * self.coeff


class L2Decay(WeightDecayRegularizer):
    """The penalty coeff / 2 * sum w^2, which adds coeff * w to the gradient."""

    def term(self, parameter: Any, maths: Any) -> Any:
        return parameter * self.coeff
