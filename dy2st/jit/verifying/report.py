"""What `verify` returns: the differences between a function run eagerly and as a Program, each with its line."""

from __future__ import annotations

from dy2st.errors import Mismatch
from dy2st.ir.location import Location
from dy2st.records import record


@record(frozen=True)
class Difference:
    """One thing that is not the same: what kind of thing, which one, and what each way gave."""

    kind: str
    """One of "exception", "prints", "warnings", "result", "state", "random numbers", "gradients", "conversion"."""
    name: str
    eager: str
    static: str

    def is_of_another_kind(self) -> bool:
        """Return whether the results are of different types, dtypes or shapes."""
        return self.kind == "result" and self.eager.partition(" ")[0] != self.static.partition(" ")[0]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: eager {self.eager}, static {self.static}".replace("  ", " ")


@record(frozen=True)
class Culprit:
    """The first line of the user's code that gives something else in a Program, and how that was found out."""

    location: Location
    reason: str

    def __str__(self) -> str:
        source = self.location.source()
        where = f"{self.location}" + (f", in {self.location.function}" if self.location.function else "")
        return f"{where}\n    {source}\n  {self.reason}" if source else f"{where}\n  {self.reason}"


@record(frozen=True)
class Verification:
    """The outcome of `verify`: true where both ways agree; prints what differs and the first line that does.

    `compared` counts what was compared, by kind; `culprit` is None where both ways agree, or where no line of the
    function gave another value than it does eagerly.
    """

    function: str
    compared: dict[str, int]
    differences: tuple[Difference, ...] = ()
    culprit: Culprit | None = None

    @property
    def agrees(self) -> bool:
        """Whether there is no difference."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.agrees

    def check(self) -> Verification:
        """Return the report itself; raise Mismatch with its text where there is a difference."""
        if self.differences:
            raise Mismatch(str(self))
        return self

    def __str__(self) -> str:
        counted = ", ".join(f"{kind} {count}" for kind, count in self.compared.items())
        if self.agrees:
            return f"{self.function}: eager and static agree ({counted})"
        lines = [f"{self.function}: eager and static differ", *(f"  {d}" for d in self.differences)]
        if self.culprit is not None:
            lines.append(f"first line that differs: {self.culprit}")
        elif any(d.kind in ("result", "gradients") for d in self.differences):
            lines.append("no line differs, operation by operation: it is how the whole Program runs that does")
        return "\n".join(lines)

    __repr__ = __str__
