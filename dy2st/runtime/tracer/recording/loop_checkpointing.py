"""What the gradients of loops keep: the public choice, and how loops and functions take it over."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dy2st.ir.checkpoint import KEEP_ALL, wrong_checkpoint
from dy2st.ir.context import current, replaced, switch

Policy = str | int


class checkpoint_policy:  # noqa: N801 (it reads as a statement: `with checkpoint_policy("sqrt"):`)
    """Choose what gradients keep of the iterations of loops that become part of a Program in this `with`.

    Parameters
    ----------
    policy
        "all": what gradients need of every iteration; "sqrt": the loop's variables at about sqrt(2 t) of t iterations;
        a number n: the variables at every n-th iteration. What was not kept is computed again when gradients need it,
        so that each turn runs twice. Values are the same to the bit, random numbers included. A loop whose iterations
        call Python functions out of the Program keeps all.

    A Python loop on eager tensors is no loop of a Program; there `recompute` does the same, and
    `static.nn.while_loop(..., checkpoint=)`.

    Raises
    ------
    ValueError
        When `policy` is none of these.

    >>> import dy2st as paddle
    >>> @paddle.jit.to_static
    ... def grow(x, n):
    ...     with paddle.autograd.checkpoint_policy("sqrt"):
    ...         while n > 0:
    ...             x, n = paddle.sin(x) + x, n - 1
    ...     return x
    >>> x = paddle.to_tensor(0.5, stop_gradient=False)
    >>> grow(x, paddle.to_tensor(100)).backward()
    >>> "checkpoint" in str(grow.concrete_program.main_program)
    True
    """

    def __init__(self, policy: Policy):
        self.policy = valid_policy(policy)
        self._before: list[Policy] = []

    def __enter__(self) -> None:
        self._before.append(current().checkpoint)
        switch(checkpoint=self.policy)

    def __exit__(self, *error: object) -> None:
        switch(checkpoint=self._before.pop())


def valid_policy(policy: Policy) -> Policy:
    """Return the policy; ValueError where it is none."""
    if (reason := wrong_checkpoint(policy)) is not None:
        raise ValueError(reason)
    return policy


def chosen_policy(policy: Policy | None) -> AbstractContextManager[Any]:
    """Return what makes a policy the current one for the length of a `with`; None leaves the current one."""
    return nullcontext() if policy is None else replaced(checkpoint=policy)


def under_policy(policy: Policy | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a policy in force while it runs."""
    if policy is None:
        return function

    def call(*args: Any, **keywords: Any) -> Any:
        with replaced(checkpoint=policy):
            return function(*args, **keywords)

    return call


def loop_attributes(policy: Policy | None) -> dict[str, Policy]:
    """Return the attribute of a loop that has a policy of its own, or the current one."""
    chosen = current().checkpoint if policy is None else policy
    return {} if chosen == KEEP_ALL else {"checkpoint": chosen}
