"""From a call to the Program that answers it: cache, inline cache, retrace, fallback, `explain()`. Traces: tracing/."""
