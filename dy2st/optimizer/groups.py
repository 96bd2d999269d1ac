"""Parameter groups: what an optimizer trains, as the user may write it, checked and in one form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dy2st.ir.context import current
from dy2st.regularizer import L2Decay, WeightDecayRegularizer
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settings


def groups_of(parameters: Any) -> list[dict[str, Any]]:
    """Return the groups of what an optimizer was given as its parameters; one where they are a list of Tensors."""
    if parameters is None:
        if current().trace is None:
            raise AttributeError("in eager mode an optimizer needs its parameters: parameters=model.parameters()")
        return []
    if isinstance(parameters, (Tensor, dict)) or not isinstance(parameters, Iterable):
        raise TypeError(f"parameters must be a list of Tensors (or of groups), not a {type(parameters).__name__}")
    listed = list(parameters)
    if listed and isinstance(listed[0], dict):
        groups = [group_of(group) for group in listed]
        if len({id(p) for g in groups for p in g["params"]}) != sum(len(g["params"]) for g in groups):
            raise ValueError("a parameter appears in more than one parameter group")
        return groups
    return [Settings(params=_checked(listed))]


def group_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return a group from the dict that the user wrote: "params", the factor on the rate, and the rule's options."""
    if "params" not in given:
        raise ValueError("a parameter group needs the key 'params'")
    params = given["params"]
    group = Settings(params=_checked([params] if isinstance(params, Tensor) else list(params)))
    options = dict(given)
    del options["params"]
    group["learning_rate"] = float(options.pop("learning_rate", 1.0))
    if "weight_decay" in options:
        group["weight_decay"] = regularizer_of(options["weight_decay"])
    if "grad_clip" in options:
        group["grad_clip"] = options.pop("grad_clip")
    group["options"] = Settings(options)
    return group


def factor_of(p: Tensor, group: dict[str, Any]) -> float:
    """Return what the learning rate is multiplied by for a parameter."""
    return group.get("learning_rate", 1.0) * getattr(p, "optimize_attr", {}).get("learning_rate", 1.0)


def regularizer_of(weight_decay: Any) -> WeightDecayRegularizer | None:
    """Return the regularizer that a weight decay stands for: a number means L2Decay."""
    if weight_decay is None or isinstance(weight_decay, WeightDecayRegularizer):
        return weight_decay
    if isinstance(weight_decay, (int, float)):
        return L2Decay(float(weight_decay)) if weight_decay else None
    raise TypeError(f"weight_decay must be a number or a regularizer, not {type(weight_decay).__name__}")


def _checked(parameters: list[Any]) -> list[Tensor]:
    for p in parameters:
        if not isinstance(p, Tensor):
            raise TypeError(f"an optimizer trains Tensors, not {type(p).__name__}")
    return list({id(p): p for p in parameters}.values())


class Alone:
    """How steps are spread over processes where they are not: this one updates all (distributed/spread_steps.py)."""

    def own(self, optimizer: Any, pairs: Any, clip: Any) -> tuple[Any, Any]:
        """Return the pairs (parameter, gradient) that this process updates, and what clips them yet."""
        return pairs, clip

    def own_parameters(self, optimizer: Any, parameters: list[Tensor]) -> list[Tensor]:
        """Return the parameters whose state this process keeps."""
        return parameters

    def agreed(self, finite: Any) -> Any:
        """Return whether the gradients of all processes are finite."""
        return finite

    def give_out(self, optimizer: Any) -> None:
        """Give all processes the parameters that one has updated."""

    def whole(self, optimizer: Any, state_dict: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the state that this process keeps, by name."""
        return state_dict(optimizer)

    def own_state(self, optimizer: Any, state: dict[str, Any]) -> dict[str, Any]:
        """Return what this process keeps of a state."""
        return state
