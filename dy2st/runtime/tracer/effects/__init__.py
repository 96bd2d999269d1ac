"""Side effects of a trace: the log of writes, aliases, escapes, and the barrier before code that is not converted."""
