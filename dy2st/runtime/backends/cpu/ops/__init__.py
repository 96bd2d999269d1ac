"""How operations become native code, a file a family. An op without a rule is a call of its `eval`."""

from dy2st.runtime.backends.cpu.ops.registry import carries, reads_gaps, rule_of

__all__ = ["carries", "reads_gaps", "rule_of"]
