"""From a call to the Program that answers it: cache, inline cache, retrace, fallback to eager mode. No tracing."""
