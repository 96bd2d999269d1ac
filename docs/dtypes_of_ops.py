"""The page dtypes-of-ops.md: which op takes which kinds of dtypes, as the op classes say it (`Op.defined_on`)."""

from __future__ import annotations

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.ir.opdef import EVERY_KIND, REGISTRY
from dy2st.ops.core.base import Op

KINDS = {"b": "bool", "i": "integers", "f": "floats", "c": "complex"}
HEAD = """# Which op is defined on what

An op says in `defined_on` which kinds of dtypes it takes. Others are refused with one TypeError, "relu is not defined
on complex64 tensors", by eager mode, when a Program is built, and when one is loaded from a file: so the interpreter
and native code meet none. Functions cast before they apply an op (integers become the default float for `exp`).

Complex numbers have no order, so what compares (`relu`, `clip`, `max`, `sort`, `topk`, `median`, `<`) refuses them, and
so do functions that are computed on real numbers only (`erf`, `lgamma`, `gelu`, `softmax`, normalisations).

What is not in the table takes every kind, or checks more than kinds (bits of integers, indices) in its type rule.

"""


def page() -> str:
    """Return the page as Markdown."""
    rows = [f"| op | {' | '.join(KINDS.values())} |", f"|---|{'---|' * len(KINDS)}"]
    for name, op in sorted(REGISTRY.items()):
        if isinstance(op, Op) and op.defined_on is not EVERY_KIND:
            kinds = op.defined_on if isinstance(op.defined_on, str) else op.defined_on[0]
            rows.append(f"| `{name}` | {' | '.join('yes' if kind in kinds else '' for kind in KINDS)} |")
    return HEAD + "\n".join(rows) + "\n"
