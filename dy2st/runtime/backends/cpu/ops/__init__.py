"""How operations become native code, a file a family. An op without a rule is a call of its `eval`."""

from dy2st.runtime.backends.cpu.ops.registry import AS_THEY_ARE, STRIDED, rule_of

__all__ = ["AS_THEY_ARE", "STRIDED", "rule_of"]
