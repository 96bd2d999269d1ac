"""Adam and its relatives: steps by the ratio of running means of the gradient and of its square.

Kingma and Ba, "Adam", 2015. The powers of beta1 and beta2 are kept as float64 numbers, so that 1 - beta2^t is exact
enough in its first steps whatever the dtype of the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from dy2st.optimizer.optimizer import Optimizer, Slot
from dy2st.regularizer import WeightDecayRegularizer
from dy2st.runtime.eager.tensor import Tensor

Updated = tuple[Any, dict[str, Any]]


class _Betas(Optimizer):
    """What optimizers with beta1, beta2 and epsilon share."""

    def __init__(
        self, learning_rate: Any, beta1: Any, beta2: Any, epsilon: Any, parameters: Any, weight_decay: Any,
        grad_clip: Any, multi_precision: bool, name: str | None, **more: Any,
    ):  # fmt: skip
        betas = {"beta1": float(beta1), "beta2": float(beta2)}
        for what, value in betas.items():
            if not 0.0 <= value < 1.0:
                raise ValueError(f"{type(self).__name__}: {what} must be at least 0 and below 1, not {value}")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, multi_precision, name, **betas,
            epsilon=float(epsilon), **more,
        )  # fmt: skip

    def moments(self, g: Any, state: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Return the running means of the gradient and its square, and the powers of the betas."""
        one, two = options["beta1"], options["beta2"]
        return {
            "moment1": state["moment1"] * one + g * (1.0 - one),
            "moment2": state["moment2"] * two + g * g * (1.0 - two),
            "beta1_pow_acc": state["beta1_pow_acc"] * one,
            "beta2_pow_acc": state["beta2_pow_acc"] * two,
        }

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {
            "moment1": Slot(),
            "moment2": Slot(),
            "beta1_pow_acc": Slot(fill=options["beta1"], scalar=True),
            "beta2_pow_acc": Slot(fill=options["beta2"], scalar=True),
        }


class Adam(_Betas):
    """m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g^2; p = p - lr * m' / (sqrt(v') + epsilon).

    m' and v' are m / (1 - b1^t) and v / (1 - b2^t). With `amsgrad` the largest v so far is used (Reddi et al., 2018).
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, lazy_mode: bool = False,
        multi_precision: bool = False, use_multi_tensor: bool = False, amsgrad: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, multi_precision, name,
            amsgrad=amsgrad,
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        slots = super().slots(options)
        return {**slots, "moment2_max": Slot()} if options["amsgrad"] else slots

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        changed = self.moments(g, state, options)
        v = changed["moment2"]
        if options["amsgrad"]:
            v = changed["moment2_max"] = m.maximum(state["moment2_max"], v)
        root = m.sqrt(1.0 - state["beta2_pow_acc"])
        rate = m.like(lr * root / (1.0 - state["beta1_pow_acc"]), p)
        below = m.sqrt(v) + m.like(root * options["epsilon"], p)
        return p - changed["moment1"] / below * rate, changed


class AdamW(Adam):
    """Adam with decoupled weight decay: p is first multiplied by 1 - lr * weight_decay (Loshchilov and Hutter, 2019).

    `apply_decay_param_fun(name)` says which parameters decay; `lr_ratio(parameter)` is a factor on the learning rate.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        parameters: Any = None, weight_decay: float = 0.01, use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None, grad_clip: Any = None, lazy_mode: bool = False,
        multi_precision: bool = False, amsgrad: bool = False, name: str | None = None,
    ):  # fmt: skip
        if not isinstance(weight_decay, (int, float)):
            raise TypeError(f"AdamW: weight_decay must be a number, not {type(weight_decay).__name__}")
        if use_lowprecision_moment:
            raise ValueError("AdamW: use_lowprecision_moment=True is not supported: moments have the parameter's dtype")
        self._lr_ratio, self._decays = lr_ratio, apply_decay_param_fun
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, lazy_mode, multi_precision,
            amsgrad=amsgrad, name=name,
        )  # fmt: skip
        self._options["weight_decay"] = float(weight_decay)
        for group in self._groups:
            group.pop("weight_decay", None)

    def decay_of(self, p: Tensor, group: dict[str, Any]) -> WeightDecayRegularizer | None:
        return getattr(p, "regularizer", None)

    def options_of(self, group: dict[str, Any]) -> dict[str, Any]:
        options = super().options_of(group)
        return {**options, "weight_decay": float(group.get("weight_decay", options["weight_decay"]))}

    def asked(self, p: Tensor) -> Hashable | None:
        if self._lr_ratio is None and self._decays is None:
            return ()
        return (
            None if self._lr_ratio is None else float(self._lr_ratio(p)),
            None if self._decays is None else bool(self._decays(p.name)),
        )

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        parameter = options["parameter"]
        if self._lr_ratio is not None:
            lr = lr * float(self._lr_ratio(parameter))
        coefficient = options["weight_decay"]
        if coefficient and (self._decays is None or self._decays(parameter.name)):
            p = p * m.like(1.0 - lr * coefficient, p)
        return super().rule(m, p, g, lr, state, options)


class Adamax(_Betas):
    """Adam with the largest gradient, not the mean square: u = max(b2 * u + epsilon, |g|) (Kingma and Ba, 2015)."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, False, name)

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        power = Slot(fill=options["beta1"], scalar=True)
        return {"moment": Slot(), "inf_norm": Slot(), "beta1_pow_acc": power}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        one = options["beta1"]
        moment = state["moment"] * one + g * (1.0 - one)
        largest = m.maximum(m.abs(g), state["inf_norm"] * options["beta2"] + options["epsilon"])
        rate = m.like(lr / (1.0 - state["beta1_pow_acc"]), p)
        changed = {"moment": moment, "inf_norm": largest, "beta1_pow_acc": state["beta1_pow_acc"] * one}
        return p - moment / largest * rate, changed


class Lamb(_Betas):
    """Adam's direction, rescaled for each parameter to |p| / |direction| (You et al., 2020).

    `lamb_weight_decay` is decoupled; parameters for which `exclude_from_weight_decay_fn` is true do not decay, and are
    rescaled only with `always_adapt`.
    """

    def __init__(
        self, learning_rate: Any = 0.001, lamb_weight_decay: float = 0.01, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-6, parameters: Any = None, grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None, multi_precision: bool = False,
        always_adapt: bool = False, name: str | None = None,
    ):  # fmt: skip
        self._excluded = exclude_from_weight_decay_fn
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, multi_precision, name,
            lamb_weight_decay=float(lamb_weight_decay), always_adapt=always_adapt,
        )  # fmt: skip

    def asked(self, p: Tensor) -> Hashable | None:
        return () if self._excluded is None else bool(self._excluded(p))

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        changed = self.moments(g, state, options)
        one = changed["moment1"] / m.like(1.0 - state["beta1_pow_acc"], p)
        two = changed["moment2"] / m.like(1.0 - state["beta2_pow_acc"], p)
        decay = options["lamb_weight_decay"]
        if self._excluded is not None and self._excluded(options["parameter"]):
            decay = 0.0
        away = one / (m.sqrt(two) + options["epsilon"]) + p * decay
        rate = m.like(lr, p)
        if decay or options["always_adapt"]:
            own, length = m.sqrt(m.sum(p * p)), m.sqrt(m.sum(away * away))
            both = (own > 0) & (length > 0)
            rate = m.where(both, own / m.where(both, length, m.like(1.0, p)), m.like(1.0, p)) * rate
        return p - away * rate, changed


class NAdam(_Betas):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    def __init__(
        self, learning_rate: Any = 0.002, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        momentum_decay: float = 0.004, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, False, name,
            momentum_decay=float(momentum_decay),
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        numbers = {"momentum_decay_pow": Slot(fill=1.0, scalar=True), "mu_product": Slot(fill=1.0, scalar=True)}
        return {**super().slots(options), **numbers}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        changed = self.moments(g, state, options)
        one, decay = options["beta1"], options["momentum_decay"]
        power = changed["momentum_decay_pow"] = state["momentum_decay_pow"] * 0.96
        mu = (1.0 - power**decay * 0.5) * one
        after = (1.0 - power**decay * (0.5 * 0.96**decay)) * one
        product = changed["mu_product"] = state["mu_product"] * mu
        ahead = changed["moment1"] * m.like(after / (1.0 - product * after), p)
        ahead = ahead + g * m.like((1.0 - mu) / (1.0 - product), p)
        two = changed["moment2"] / m.like(1.0 - state["beta2_pow_acc"], p)
        return p - ahead / (m.sqrt(two) + options["epsilon"]) * m.like(lr, p), changed


class RAdam(_Betas):
    """Adam that takes plain momentum steps while the variance of its scale is not yet known (Liu et al., 2020)."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
        parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, False, name)

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {**super().slots(options), "rho": Slot(fill=0.0, scalar=True)}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        changed = self.moments(g, state, options)
        one_power, two_power = state["beta1_pow_acc"], state["beta2_pow_acc"]
        steps = changed["rho"] = state["rho"] + 1.0
        limit = 2.0 / (1.0 - options["beta2"]) - 1.0
        rho = limit - steps * 2.0 * two_power / (1.0 - two_power)
        known = rho > 5.0
        safe = m.where(known, rho, rho * 0.0 + 6.0)
        ratio = m.sqrt((safe - 4.0) * (safe - 2.0) * (limit / ((limit - 4.0) * (limit - 2.0))) / safe)
        plain = changed["moment1"] * m.like(lr / (1.0 - one_power), p)
        scaled = m.like(ratio * m.sqrt(1.0 - two_power), p) / (m.sqrt(changed["moment2"]) + options["epsilon"])
        return p - plain * m.where(known, scaled, m.zeros_like(scaled) + 1.0), changed
