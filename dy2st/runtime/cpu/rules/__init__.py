"""How operations become native code, a file a family. An op without a rule is a call of its `eval`."""

from dy2st.runtime.cpu.rules import control, lists, numbers, products, tensors, tuples, variants, views, zero_rank  # noqa: F401
from dy2st.runtime.cpu.rules.registry import RULES, STRIDED

__all__ = ["RULES", "STRIDED"]
