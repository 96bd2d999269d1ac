"""Integer tensors that loops carry into each other, and loops that count by them."""

from tests.generator.expressions import Expressions

COUNTS = ("c", "e")
"""Names of 0-D integer tensors, which start as numbers of the source."""


class Numbers(Expressions):
    """Writes statements on counts."""

    def count(self) -> str:
        """An expression that is a small integer, as tensor or as Python number."""
        return self.one_of((*COUNTS, *COUNTS, "1", "2", "-1", "n", *self.loops))

    def carry(self) -> list[str]:
        """Give a count a value that depends on counts: constant steps, doubling, each other's values."""
        a, b = COUNTS if self.chance(2) else COUNTS[::-1]
        return [
            self.form(
                (
                    lambda: f"{a} = {a} + {self.count()}",
                    lambda: f"{a} = {self.count()} + {a}",
                    lambda: f"{a} = {a} - {self.count()}",
                    lambda: f"{a} = {self.count()} - {a}",
                    lambda: f"{a} = {a} + {a}",
                    lambda: f"{a} = {a} * 2 - {self.count()}",
                    lambda: f"{a} = {self.count()} * 1",
                    lambda: f"{a} = {b} + 0",
                    lambda: f"{a}, {b} = {b}, {a}",
                    lambda: f"{a}, {b} = {b}, {a} + {b}",
                    lambda: f"{a} += {self.count()}",
                    lambda: f"{a} = {a} % 3 + {self.count()}",
                )
            )
        ]

    def counted(self, depth: int) -> tuple[list[str], str, str]:
        """Return the head of a loop that a tensor counts, the counter, and the line that goes on."""
        k = f"k{depth}"
        start = self.one_of(("paddle.to_tensor(0)", "0", "n * 0", "paddle.to_tensor(0.0)", "paddle.to_tensor([0])"))
        bound = self.one_of(("n", "n", "n - 1", "min(n, 3)", "4", "len(x)"))
        head = [f"{k} = {start}", f"while {k} < {bound}:"]
        return head, k, f"    {k} = {k} + {self.one_of(('1', '1', '2', '3'))}"
