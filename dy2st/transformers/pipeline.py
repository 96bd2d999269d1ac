"""The order of the passes, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.transformers import (
    comprehensions,
    generators,
    jumps,
    matches,
    pinned,
    private_names,
    returns,
    rules,
    supers,
    unbound,
    variables,
    withs,
)
from dy2st.transformers.context import Context

Pass = Callable[[Any, Context], None]

PASSES: tuple[tuple[str, Pass], ...] = (
    # Names must be as the compiler sees them before anybody compares them.
    ("private_names", private_names.transform),
    # Reads `super()` where it stands in its own function; later passes may move it.
    ("supers", supers.transform),
    # Makes functions, with the parameters under their own names.
    ("generators", generators.transform),
    # Every later pass then sees one manager at a time.
    ("withs", withs.transform),
    # Makes `if`s, so it comes before everything that knows `if`.
    ("matches", matches.transform),
    # Looks for jumps that must stay, so it comes before jumps are lowered.
    ("pinned", pinned.transform),
    # Follows real jumps: the fewest reads are in doubt while they still are there.
    ("unbound", unbound.transform),
    # Makes loops; its functions have one return at their end.
    ("comprehensions", comprehensions.transform),
    # Makes `break`s.
    ("returns", returns.transform),
    # Makes flags: after this, control flow is structured, and all variables exist.
    ("jumps", jumps.transform),
    # Needs structured control flow, and the statements as the user wrote them.
    ("variables", variables.transform),
    # Puts in the calls of the helper; nothing can analyse the tree after this.
    ("rules", rules.transform),
)
