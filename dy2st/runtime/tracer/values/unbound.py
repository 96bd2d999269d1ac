"""The placeholder of a local variable that was not assigned yet."""

from __future__ import annotations


class UnboundLocal:
    """Stand for an unassigned variable; reading it through `_dy.load` raises UnboundLocalError with its name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @property
    def message(self) -> str:
        """What Python says of it."""
        return f"cannot access local variable '{self.name}' where it is not associated with a value"

    def __repr__(self) -> str:
        return f"<undefined {self.name}>"

    def __bool__(self) -> bool:
        raise UnboundLocalError(self.message)
