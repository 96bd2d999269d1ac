"""1.x's optimizers: `parameter_list` for the parameters, `regularization` for weight decay, `minimize` to step.

`minimize` (and `clear_gradients`) are those of `optimizer.Optimizer`; only the constructors differ.
"""

from __future__ import annotations

from typing import Any

from dy2st import optimizer as modern
from dy2st.optimizer import Optimizer


class SGDOptimizer(modern.SGD):
    """p = p - learning_rate * g."""

    def __init__(
        self, learning_rate: Any, parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name=name)


class MomentumOptimizer(modern.Momentum):
    """v = momentum * v + g; p = p - learning_rate * v."""

    def __init__(
        self, learning_rate: Any, momentum: float, parameter_list: Any = None, use_nesterov: bool = False,
        regularization: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, momentum, parameter_list, use_nesterov, regularization, grad_clip, name=name
        )  # fmt: skip


class AdagradOptimizer(modern.Adagrad):
    """s = s + g^2; p = p - learning_rate * g / (sqrt(s) + epsilon)."""

    def __init__(
        self, learning_rate: Any, epsilon: float = 1e-6, parameter_list: Any = None, regularization: Any = None,
        grad_clip: Any = None, name: str | None = None, initial_accumulator_value: float = 0.0,
    ):  # fmt: skip
        super().__init__(
            learning_rate, epsilon, parameter_list, regularization, grad_clip, name, initial_accumulator_value
        )  # fmt: skip


class AdamOptimizer(modern.Adam):
    """Adam; see `paddle.optimizer.Adam`."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None,
        lazy_mode: bool = False,
    ):  # fmt: skip
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, lazy_mode, name=name
        )  # fmt: skip


class AdamaxOptimizer(modern.Adamax):
    """Adamax; see `paddle.optimizer.Adamax`."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, name)


class AdadeltaOptimizer(modern.Adadelta):
    """Adadelta; see `paddle.optimizer.Adadelta`."""

    def __init__(
        self, learning_rate: Any, epsilon: float = 1e-6, rho: float = 0.95, parameter_list: Any = None,
        regularization: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, epsilon, rho, parameter_list, regularization, grad_clip, name)


class RMSPropOptimizer(modern.RMSProp):
    """RMSProp; see `paddle.optimizer.RMSProp`."""

    def __init__(
        self, learning_rate: Any, rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0,
        centered: bool = False, parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, rho, epsilon, momentum, centered, parameter_list, regularization, grad_clip, name
        )  # fmt: skip


class LambOptimizer(modern.Lamb):
    """Lamb; see `paddle.optimizer.Lamb`."""

    def __init__(
        self, learning_rate: Any = 0.001, lamb_weight_decay: float = 0.01, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float = 1e-6, parameter_list: Any = None, grad_clip: Any = None,
        exclude_from_weight_decay_fn: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, lamb_weight_decay, beta1, beta2, epsilon, parameter_list, grad_clip,
            exclude_from_weight_decay_fn, name=name,
        )  # fmt: skip


SGD, Momentum, Adagrad, Adam = SGDOptimizer, MomentumOptimizer, AdagradOptimizer, AdamOptimizer
Adamax, Adadelta = AdamaxOptimizer, AdadeltaOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "LambOptimizer",
    "Momentum",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "SGDOptimizer",
]
