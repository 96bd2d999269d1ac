"""Rules that follow the gradient or its running sum: SGD, Momentum, ASGD, Rprop."""

from __future__ import annotations

from typing import Any

from dy2st.optimizer.optimizer import Optimizer, Slot

Updated = tuple[Any, dict[str, Any]]


class SGD(Optimizer):
    """Stochastic gradient descent: p = p - lr * g."""

    def __init__(
        self, learning_rate: Any = 0.001, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
        multi_precision: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, multi_precision, name)

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        return p - g * m.like(lr, p), {}


class Momentum(Optimizer):
    """Gradient descent with a velocity: v = momentum * v + g; p = p - lr * v.

    With `use_nesterov`, p = p - lr * (g + momentum * v). Gradients are multiplied by `rescale_grad` first.
    """

    def __init__(
        self, learning_rate: Any = 0.001, momentum: float = 0.9, parameters: Any = None, use_nesterov: bool = False,
        weight_decay: Any = None, grad_clip: Any = None, multi_precision: bool = False, rescale_grad: float = 1.0,
        use_multi_tensor: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, multi_precision, name, momentum=float(momentum),
            use_nesterov=use_nesterov, rescale_grad=float(rescale_grad),
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {"velocity": Slot()}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        if options["rescale_grad"] != 1.0:
            g = g * options["rescale_grad"]
        v = state["velocity"] * options["momentum"] + g
        away = g + v * options["momentum"] if options["use_nesterov"] else v
        return p - away * m.like(lr, p), {"velocity": v}


class ASGD(Optimizer):
    """Averaged gradient descent over the last `batch_num` batches: d = d - y_i + g; y_i = g; p = p - lr / n * d.

    n is the number of batches seen so far, at most `batch_num` (Schmidt et al., "Minimizing finite sums with the
    stochastic average gradient", 2017).
    """

    def __init__(
        self, learning_rate: Any = 0.001, batch_num: int = 1, parameters: Any = None, weight_decay: Any = None,
        grad_clip: Any = None, multi_precision: bool = False, name: str | None = None,
    ):  # fmt: skip
        if not isinstance(batch_num, int) or batch_num < 1:
            raise ValueError(f"ASGD: batch_num must be a positive int, not {batch_num!r}")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, multi_precision, name, batch_num=batch_num
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {"d": Slot(), "y": Slot(extent=options["batch_num"]), "m": Slot(scalar=True)}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        y, count = state["y"], state["m"] + 1.0  # y has the newest gradient first; the oldest falls out
        d = state["d"] - y[-1] + g
        n = m.minimum(count, float(options["batch_num"]))
        return p - d * m.like(lr / n, p), {"d": d, "y": m.concat([g[None], y[:-1]]), "m": count}


class Rprop(Optimizer):
    """Resilient propagation: a step for each element, grown while the gradient keeps its sign, shrunk when it turns.

    Riedmiller and Braun, 1993. Steps begin at the learning rate and stay within `learning_rate_range`.
    """

    def __init__(
        self, learning_rate: Any = 0.001, learning_rate_range: tuple[float, float] = (1e-5, 50.0),
        parameters: Any = None, etas: tuple[float, float] = (0.5, 1.2), grad_clip: Any = None,
        multi_precision: bool = False, name: str | None = None,
    ):  # fmt: skip
        low, high = learning_rate_range
        if not 0.0 < low <= high:
            raise ValueError(f"Rprop: learning_rate_range must be 0 < low <= high, not {learning_rate_range}")
        shrink, grow = etas
        if not 0.0 < shrink < 1.0 < grow:
            raise ValueError(f"Rprop: etas must be 0 < shrink < 1 < grow, not {etas}")
        super().__init__(
            learning_rate, parameters, None, grad_clip, multi_precision, name, low=float(low), high=float(high),
            shrink=float(shrink), grow=float(grow),
        )  # fmt: skip

    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        return {"prevs": Slot(), "learning_rates": Slot(fill=self._rate_now())}

    def rule(self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]) -> Updated:
        turned = g * state["prevs"]
        step = state["learning_rates"]
        grown = m.minimum(step * options["grow"], options["high"])
        shrunk = m.maximum(step * options["shrink"], options["low"])
        step = m.where(turned > 0, grown, m.where(turned < 0, shrunk, step))
        g = m.where(turned < 0, m.zeros_like(g), g)
        return p - m.sign(g) * step, {"prevs": g, "learning_rates": step}
