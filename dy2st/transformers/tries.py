r"""The body of a `try` with handlers says so to the helper: what a branch in it raises only in a run cannot be caught.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    try:\n        g(x)\n    except ValueError:\n        pass"))
def f(x):
    try:
        with _dy.trying(ValueError):
            _dy.call(g)(x)
    except ValueError:
        pass
"""

from __future__ import annotations

import copy
from typing import Any

from dy2st.pysrc import origin, templates
from dy2st.transformers.rewriter import Rewriter


def lower_try(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `try`."""
    rw.children(node)
    if node.handlers and node not in rw.context.native:
        spot = origin.header(node)
        kinds = [_kind(handler) for handler in node.handlers]
        trying = rw.make(spot, "DY.trying(*KINDS)", KINDS=kinds)
        node.body = templates.statements(spot, "with TRYING:\n    BODY", TRYING=trying, BODY=node.body)
    return [node]


def _kind(handler: Any) -> Any:
    """Return what a handler catches, to be evaluated before the `try`."""
    if handler.type is None:
        return templates.name(origin.header(handler.body[0]), "BaseException")
    return copy.deepcopy(handler.type)
