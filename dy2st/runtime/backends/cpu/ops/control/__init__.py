"""Native code of control flow: cond, loops and what makes them fast, calls, safepoints."""
