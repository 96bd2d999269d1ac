"""The order of the passes, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.transformers.canonicalize import (
    break_continue,
    carried_variables,
    comprehensions,
    generators,
    keep_native,
    match_to_if,
    private_names,
    returns,
    super_calls,
    unbound_reads,
)
from dy2st.transformers.core.context import Context
from dy2st.transformers.lowering import rules, with_

Pass = Callable[[Any, Context], None]

PASSES: tuple[tuple[str, Pass], ...] = (
    # Names must be as the compiler sees them before anybody compares them.
    ("private_names", private_names.transform),
    # Reads `super()` where it stands in its own function; later passes may move it.
    ("supers", super_calls.transform),
    # Makes functions, with the parameters under their own names.
    ("generators", generators.transform),
    # Every later pass then sees one manager at a time.
    ("withs", with_.transform),
    # Makes `if`s, so it comes before everything that knows `if`.
    ("matches", match_to_if.transform),
    # Looks for jumps that must stay, so it comes before jumps are lowered.
    ("pinned", keep_native.transform),
    # Follows real jumps: the fewest reads are in doubt while they still are there.
    ("unbound", unbound_reads.transform),
    # Makes loops; its functions have one return at their end.
    ("comprehensions", comprehensions.transform),
    # Makes `break`s.
    ("returns", returns.transform),
    # Makes flags: after this, control flow is structured, and all variables exist.
    ("jumps", break_continue.transform),
    # Needs structured control flow, and the statements as the user wrote them.
    ("variables", carried_variables.transform),
    # Puts in the calls of the helper; nothing can analyse the tree after this.
    ("rules", rules.transform),
)
