"""Python becomes a Program: what converted code calls. What a whole call reads and leaves is jit/tracing/."""
