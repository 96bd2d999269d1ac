"""Rules that scale each element by the size of its past gradients: Adagrad, Adadelta, RMSProp."""

from __future__ import annotations

from typing import Any

from dy2st.optimizer.optimizer import Optimizer, Slot

Updated = tuple[Any, dict[str, Any]]


class Adagrad(Optimizer):
    """s = s + g^2; p = p - lr * g / (sqrt(s) + epsilon) (Duchi et al., 2011)."""

    def __init__(
        self, learning_rate: Any, epsilon: float = 1e-6, parameters: Any = None, weight_decay: Any = None,
        grad_clip: Any = None, name: str | None = None, initial_accumulator_value: float = 0.0,
    ):  # fmt: skip
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, False, name, epsilon=float(epsilon),
            initial_accumulator_value=float(initial_accumulator_value),
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {"moment": Slot(fill=options["initial_accumulator_value"])}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        s = state["moment"] + g * g
        return p - g * m.like(lr, p) / (m.sqrt(s) + options["epsilon"]), {"moment": s}


class Adadelta(Optimizer):
    """Steps in the units of the parameter (Zeiler, 2012).

    s = rho * s + (1 - rho) * g^2; d = g * sqrt((u + epsilon) / (s + epsilon)); u = rho * u + (1 - rho) * d^2;
    p = p - lr * d.
    """

    def __init__(
        self, learning_rate: Any = 0.001, epsilon: float = 1e-6, rho: float = 0.95, parameters: Any = None,
        weight_decay: Any = None, grad_clip: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, False, name, epsilon=float(epsilon), rho=float(rho)
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {"_avg_squared_grad": Slot(), "_avg_squared_update": Slot()}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        rho, epsilon = options["rho"], options["epsilon"]
        u = state["_avg_squared_update"]
        s = state["_avg_squared_grad"] * rho + g * g * (1.0 - rho)
        d = g * m.sqrt((u + epsilon) / (s + epsilon))
        u = u * rho + d * d * (1.0 - rho)
        return p - d * m.like(lr, p), {"_avg_squared_grad": s, "_avg_squared_update": u}


class RMSProp(Optimizer):
    """s = rho * s + (1 - rho) * g^2; v = momentum * v + lr * g / sqrt(s + epsilon); p = p - v.

    With `centered` the square of the mean gradient is taken from s under the root (Graves, 2013).
    """

    def __init__(
        self, learning_rate: Any, rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0,
        centered: bool = False, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, False, name, rho=float(rho), epsilon=float(epsilon),
            momentum=float(momentum), centered=centered,
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        slots = {"momentum": Slot(), "mean_square": Slot()}
        return {**slots, "mean_grad": Slot()} if options["centered"] else slots

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        rho = options["rho"]
        changed = {"mean_square": state["mean_square"] * rho + g * g * (1.0 - rho)}
        under = changed["mean_square"] + options["epsilon"]
        if options["centered"]:
            changed["mean_grad"] = state["mean_grad"] * rho + g * (1.0 - rho)
            under = under - changed["mean_grad"] * changed["mean_grad"]
        changed["momentum"] = state["momentum"] * options["momentum"] + g * m.like(lr, p) / m.sqrt(under)
        return p - changed["momentum"], changed
