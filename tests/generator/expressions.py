"""Random expressions of the programs in `statements.py`: vectors, numbers, Python values and tests.

Values are small multiples of powers of two and thresholds are not, so that rounding decides no branch.
"""

from collections.abc import Callable, Sequence

from tests.generator import operations
from tests.generator.choices import Below

VECTORS, NUMBERS = ("a", "b"), ("s", "r")
FACTORS = ("0.5", "2.0", "-1.0", "1.5", "3")
THRESHOLDS = ("0.3", "1.7", "-0.7", "4.1")
ONE_ELEMENT = ("0", "-1", "n % len(x)", "len(x) - 1")
SOME_ELEMENTS = (":1", "1:", "::2", "...", "[0, -1]", "n % len(x):", "-1:", "::-1")


class Expressions:
    """Writes expressions from choices; the first of several forms is the simplest."""

    def __init__(self, below: Below, *, draws: bool = False) -> None:
        self._below = below
        self.functions = (*operations.VECTORS, *(operations.DRAWS if draws else ()))
        self.loops: list[str] = []
        """Names of numbers that the loops around count."""

    # ---- choices ---------------------------------------------------------------------------------------------------
    def below(self, n: int) -> int:
        return self._below(n)

    def one_of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]

    def chance(self, n: int) -> bool:
        """Say yes once in `n` times."""
        return self.below(n) == n - 1

    def form(self, forms: Sequence[Callable[[], str]]) -> str:
        return forms[self.below(len(forms))]()

    @property
    def factor(self) -> str:
        return self.one_of(FACTORS)

    @property
    def limit(self) -> str:
        return self.one_of(THRESHOLDS)

    # ---- tensors ---------------------------------------------------------------------------------------------------
    def vector(self, depth: int = 1) -> str:
        """An expression that is a vector as long as `x`."""
        if depth == 0 or not self.chance(2):
            return self.one_of(("a", "b", "x", "box.state"))
        if self.chance(2):
            return self.called(self.functions, depth)
        return self.form(
            (
                lambda: f"({self.vector(depth - 1)} * {self.factor})",
                lambda: f"({self.vector(depth - 1)} + {self.vector(depth - 1)})",
                lambda: f"({self.vector(depth - 1)} - {self.number(depth - 1)})",
                lambda: f"({self.vector(depth - 1)} if {self.test()} else {self.vector(depth - 1)})",
                lambda: f"({self.vector(depth - 1)} * {self.vector(depth - 1)}).clip(-4, 4)",
                lambda: "(out[-1] if len(out) > 0 else x)",
                lambda: f"half({self.vector(depth - 1)})",
                lambda: f"box.net({self.vector(depth - 1)})",
                lambda: f"shrink({self.vector(depth - 1)}, 0)",
                lambda: f"(lambda v: v {self.one_of('+-*')} {self.number(0)})({self.vector(depth - 1)})",
                lambda: f"scale({self.vector(depth - 1)})",
                lambda: f"d.get({self.key()}, {self.vector(depth - 1)})",
                lambda: f"paddle.where({self.vector(0)} > {self.limit}, {self.vector(0)}, {self.vector(0)})",
                lambda: f"(keep if isinstance(keep, paddle.Tensor) and keep.shape == x.shape else {self.vector(0)})",
                lambda: f"(paddle.full([len(x)], {self.factor}) * {self.number(0)})",
                lambda: f"paddle.concat([{self.vector(0)}[:1], {self.vector(0)}[1:]])",
                lambda: f"sum([v * {self.factor} for v in out], {self.vector(0)})",
                lambda: f"paddle.grad(({self.vector(0)} * x * x).sum(), x, create_graph=True)[0]",
            )
        )

    def number(self, depth: int = 1) -> str:
        """An expression that is a 0-D tensor or a Python number."""
        if depth == 0 or not self.chance(2):
            return self.one_of(("s", "r", "t", "0.5", "2", "box.count", "c", *self.loops))
        if self.chance(4):
            return self.called(operations.NUMBERS, depth)
        return self.form(
            (
                lambda: f"{self.vector(depth - 1)}.sum()",
                lambda: f"({self.number(depth - 1)} + {self.number(depth - 1)})",
                lambda: f"({self.number(depth - 1)} * {self.factor})",
                lambda: f"{self.vector(depth - 1)}[{self.one_of(ONE_ELEMENT)}]",
                lambda: f"{self.vector(depth - 1)}[{self.one_of(SOME_ELEMENTS)}].sum()",
                lambda: f"({self.number(depth - 1)} if {self.test()} else {self.number(depth - 1)})",
                lambda: "len(out)",
                lambda: "int(n)",
                lambda: f"float({self.number(depth - 1)})",
                lambda: f"min(max({self.number(depth - 1)}, -2.0), 3.0)",
                lambda: f"({self.number(0)} or {self.number(depth - 1)})",
                lambda: f"({self.number(0)} and {self.number(depth - 1)})",
                lambda: f"(s := {self.number(depth - 1)})",
                lambda: f"{self.vector(0)}[{self.vector(0)} > {self.limit}].sum()",
                lambda: f"sum(v.sum() for v in out if {self.test('v')})",
                lambda: f"len([v for v in out if {self.test('v')}])",
                lambda: "len(seen)",
                lambda: "(x.shape[0] * 2 - len(out))",
                lambda: "len(d)",
                lambda: f"abs({self.number(depth - 1)})",
            )
        )

    def called(self, forms: Sequence[str], depth: int) -> str:
        """Write a call of the library."""
        form = self.one_of(forms)
        return form.format(a=self.vector(depth - 1), b=self.vector(0), s=self.number(0))

    # ---- Python values ---------------------------------------------------------------------------------------------
    def key(self) -> str:
        return self.one_of(("'p'", "'q'", "tag"))

    def anything(self) -> str:
        """An expression of whatever type."""
        return self.form(
            (
                lambda: "None",
                lambda: self.vector(1),
                lambda: self.number(1),
                lambda: self.one_of(("'left'", "'right'", "tag")),
                lambda: f"({self.vector(0)}, {self.number(0)})",
                lambda: f"[{self.number(0)}]",
                lambda: f"{{'v': {self.vector(0)}}}",
                lambda: "out",
            )
        )

    def test(self, vector: str = "") -> str:
        """A condition: on tensors, on Python values, or on both."""
        limit = self.limit
        return self.form(
            (
                lambda: f"{self.one_of(NUMBERS)} > {limit}",
                lambda: f"{vector or self.one_of(VECTORS)}.sum() > {limit}",
                lambda: f"n > {self.below(4)}",
                lambda: f"{self.one_of(('c', 'e', *self.loops))} {self.one_of('<>')} {self.below(5)}",
                lambda: f"len(out) > {self.below(3)}",
                lambda: f"box.count < {self.below(4)}",
                lambda: f"(t > 0.3 and {self.one_of(NUMBERS)} < {limit})",
                lambda: f"not (n == 2 or s > {limit})",
                lambda: f"-1.2 < {self.one_of(NUMBERS)} <= {limit}",
                lambda: "keep is None",
                lambda: "tag == " + self.one_of(("'left'", "'right'")),
                lambda: f"{self.key()} in d",
                lambda: f"{self.below(3)} in seen",
                lambda: f"(m := {self.number(1)}) > {limit} or m < -2.2",
                lambda: f"any(v.sum() > {limit} for v in out)",
                lambda: f"({vector or self.one_of(VECTORS)} < {limit}).all()",
                lambda: "isinstance(keep, (int, float, tuple))",
                lambda: "len(x) == 2",
            )
        )
