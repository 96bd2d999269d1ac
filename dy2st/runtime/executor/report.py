"""How a Program runs: as native code or operation by operation, what that took, and what it still asks of Python."""

from __future__ import annotations

from collections import Counter

from dy2st.records import field, record


@record(frozen=True)
class Report:
    """How one Program runs.

    >>> print(Report(versions=1, seconds=0.084, peak=1_250_000, host_calls=Counter(print=1)))
    native code, made in 84 ms; at most 1.2 MB beside the inputs; Python for print
    """

    versions: int = 0
    """How many versions of native code there are; none where the interpreter runs it."""
    cached: int = 0
    """How many of them an earlier run had made."""
    seconds: float = 0.0
    """What making or loading them took."""
    host_calls: Counter[str] = field(default_factory=Counter[str])
    """How many operations of the text each run leaves to Python, by op."""
    elsewhere: int = 0
    """How many runs the interpreter took over."""
    peak: int = 0
    """The most bytes that the last run held at a time, beside its inputs; of the interpreter's first run, about."""
    is_being_made: bool = False
    """Whether code that is as good as it gets is being made beside."""

    def __str__(self) -> str:
        if not self.versions:
            held = f"; about {_bytes(self.peak)} beside the inputs" if self.peak else ""
            return f"operation by operation{held}"
        how = (
            "made"
            if not self.cached
            else "kept from before, loaded"
            if self.cached == self.versions
            else "made or loaded"
        )
        parts = [f"native code{f' in {self.versions} versions' if self.versions > 1 else ''}, {how} in {self._time()}"]
        if self.peak:
            parts.append(f"at most {_bytes(self.peak)} beside the inputs")
        if self.host_calls:
            counted = (f"{n} {op}" if n > 1 else op for op, n in sorted(self.host_calls.items()))
            parts.append(f"Python for {', '.join(counted)}")
        if self.is_being_made:
            parts.append("better code is being made")
        if self.elsewhere:
            parts.append(f"{self.elsewhere} {'run' if self.elsewhere == 1 else 'runs'} operation by operation")
        return "; ".join(parts)

    def _time(self) -> str:
        return f"{self.seconds:.1f} s" if self.seconds >= 1 else f"{self.seconds * 1e3:.0f} ms"


def _bytes(count: float) -> str:
    """Return a number of bytes for reading.

    >>> _bytes(512), _bytes(40_000), _bytes(3.2e9)
    ('512 B', '40.0 kB', '3.2 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
