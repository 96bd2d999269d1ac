"""Parameters that a function makes: made while tracing, they are state of the Program where the function keeps them.

A layer that is made at the first call and kept in an attribute is made once. One that is made and forgotten is another
at each call, with other random numbers, which no Program can do.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from dy2st.kinds import is_dict
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.side_effect_log import SideEffectLog


class CreatedParameters:
    """The parameters which were made in a trace."""

    def __init__(self, log: SideEffectLog) -> None:
        self._log = log
        self._made: list[tuple[Parameter, tuple[int, int]]] = []
        """Each with the state of the generator before it was made."""

    def note(self, p: Parameter, before: tuple[int, int]) -> None:
        """Note a parameter, and the state of the generator before it was made."""
        self._made.append((p, before))

    def refuse_passing(self, read: Container[int]) -> None:
        """Refuse a function that reads a parameter which it makes and does not keep; take its random numbers back."""
        if not any(id(p) in read for p, _ in self._made):
            return
        kept = {id(p) for overlay in self._log.overlays for x in overlay.values() for p in _parameters(x)}
        if all(id(p) in kept for p, _ in self._made if id(p) in read):
            return
        default_generator().set_state(self._made[0][1])
        raise refusal(
            "a parameter is made at each call, with initial values of its own, which a Program cannot do",
            "make the layer or parameter outside of the function, or keep it in an attribute",
        )


def _parameters(x: Any, depth: int = 0) -> Iterator[Parameter]:
    """Go through the parameters in what was written."""
    if isinstance(x, Parameter):
        yield x
    elif isinstance(x, Layer):
        yield from x.parameters()
    elif isinstance(x, (*CONTAINERS, tuple)) and depth < 8:
        for item in x.values() if is_dict(x) else x:
            yield from _parameters(item, depth + 1)
