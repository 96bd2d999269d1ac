"""Find the reads that may find no value, and all local variables (the tree stays; the context is filled).

Looked at while `break`, `continue` and `return` still are jumps, as then the most reads are proven.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc.definite import Definite
from dy2st.pysrc.scopes import Scopes
from dy2st.transformers.core.context import Context


def transform(root: Any, context: Context) -> None:
    """Mark reads of variables of the own function; `variables` marks those of inner functions."""
    scopes = Scopes(root)
    for scope in scopes.functions():
        context.unbound.update(Definite(scopes, scope).unproven)
        context.locals[scope.node] = [name for name in scope.local if scope.resolve(name) is scope]
