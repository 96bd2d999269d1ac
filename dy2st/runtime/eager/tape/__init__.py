"""The tape of eager mode: its nodes, and what an op adds as VJP, JVP and Taylor rule. dispatch.py puts nodes on it."""
