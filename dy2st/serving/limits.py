"""How much one server takes."""

from __future__ import annotations

from dy2st.records import record


@record(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    max_rows: int = 32
    """Of one batch; 1 turns batching off. A request with more rows runs by itself."""
    max_delay: float = 0.001
    """How long a request waits for others that its batch has room for."""
    max_queue: int = 256
    """Requests that wait for a model; more get the status 503."""
    max_bytes: int = 64 << 20
    """Of the body of a request; more gets 413."""
    max_seconds: float = 30.0
    """From the first byte of a request to its answer; to read it takes longer: 408, to run it: 504."""
    max_connections: int = 1024
    """Open at one time; more get 503."""

    def check(self) -> None:
        """Raise ValueError where a limit would let nothing through."""
        counts = (self.max_rows, self.max_queue, self.max_bytes, self.max_connections)
        if min(counts) < 1 or self.max_delay < 0 or not self.max_seconds > 0:
            raise ValueError(f"limits are positive numbers, and a delay is not negative: {self}")
