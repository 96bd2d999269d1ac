"""Hooks of a layer: called around `forward`, in the order in which they were registered, until removed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dy2st.ir.context import current

if TYPE_CHECKING:
    from dy2st.nn.layer import Layer

_numbers = itertools.count()


class HookRemoveHelper:
    """What registering a hook returns; `remove()` takes the hook out again."""

    def __init__(self, hooks: dict[int, Any], hook: Callable[..., Any], first: bool = False):
        self._hooks, self._number = hooks, next(_numbers)
        later = dict(hooks) if first else {}
        if first:
            hooks.clear()
        hooks[self._number] = hook
        hooks.update(later)

    def remove(self) -> None:
        """Take the hook out; doing it twice is no error."""
        self._hooks.pop(self._number, None)


def run_pre_hooks(layer: Layer, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """Run the hooks before `forward`; what a hook returns, unless None, replaces the positional inputs."""
    for hook in tuple(layer._forward_pre_hooks.values()):
        changed = _converted(hook)(layer, inputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
    return inputs


def run_post_hooks(layer: Layer, inputs: tuple[Any, ...], outputs: Any) -> Any:
    """Run the hooks after `forward`; what a hook returns, unless None, replaces the output."""
    for hook in tuple(layer._forward_post_hooks.values()):
        changed = _converted(hook)(layer, inputs, outputs)
        if changed is not None:
            outputs = changed
    return outputs


def _converted(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return what to call in place of a hook: what it writes is written when the Program runs."""
    trace = current().trace
    return hook if trace is None or not trace.of_function else trace.callable(hook)
