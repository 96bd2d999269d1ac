"""The extents of an attention, and how far its operands' axes are apart, as a row of integers."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import least, most, plus, rounded_down, rounded_up, times

OPERANDS = "q", "k", "v", "mask", "ct"
"""What is read; `ct` is the cotangent of the results."""
FIELDS = (
    "outer", "inner", "queries", "keys", "features", "values",
    *(f"{operand}_{axis}" for operand in (*OPERANDS, "slope") for axis in ("outer", "inner", "row")),
    "mask_column", "slope_column", "causal", "drawn_outer", "drawn_inner", "seed", "draw", "keep", "factor",
)  # fmt: skip
"""What stands in the row, as int64: two axes of batches, and in elements how far axes are apart, also those of the
mask's cotangent (`slope`); for a draw, in matrices of weights (`drawn`); `causal` is 1 or 0; `keep` and `factor` are
float64 numbers."""
PAST_ROW = 128
"""Elements beyond a row that are drawn at most, because random numbers come by whole vectors."""
TEAM = 8
"""How many threads there is room for."""
_SCORES, _MOST, _LEAST = 1 << 16, 64, 8
"""The scores of a block at most, and its queries."""


def named(what: str, dtype: str, drops: bool, part: str = "") -> str:
    """Return the name of a function: of kernels that drop weights, or of those that keep all."""
    return f"dy2st.{what}{'_dropped' * drops}.{dtype}{part}"


class AttentionShape:
    """The numbers of a row in registers, and what follows from them."""

    def __init__(self, f: LLVMFunction, tile: Tile, row: str = "%row"):
        self._f, self._panel, self._tile = f, tile.vectors * tile.lanes, tile
        self._numbers = {name: f.load("i64", f.offset(row, 8 * i)) for i, name in enumerate(FIELDS)}
        self.causal = f.value(f"icmp ne i64 {self['causal']}, 0")
        self.heads = times(f, self["outer"], self["inner"])
        self.width = rounded_up(f, self["keys"], tile.lanes)
        """The scores of a query, up to whole vectors."""
        fitting = f.value(f"udiv i64 {_SCORES}, {most(f, self.width, 1)}")
        self.block = most(f, rounded_down(f, least(f, fitting, _MOST), _LEAST), _LEAST)
        """How many queries are taken together."""
        self.blocks = f.value(f"udiv i64 {plus(f, self['queries'], self.block, -1)}, {self.block}")
        values = rounded_up(f, self["values"], tile.lanes)
        self.key_bytes = times(f, self["features"], self.width, tile.size)
        self.value_bytes = times(f, self["keys"], values, tile.size)
        self.slope_bytes = times(f, self["values"], self.width, tile.size)
        """What values take that are packed as keys are."""
        self.room_bytes = times(f, self.block, self.width, tile.size)

    def __getitem__(self, name: str) -> str:
        return self._numbers[name]

    def share(self, name: str) -> str:
        """Write the probability to keep a weight, or what is kept is multiplied by, in the dtype of the tile."""
        number = self._f.value(f"bitcast i64 {self[name]} to double")
        return number if self._tile.size == 8 else self._f.value(f"fptrunc double {number} to {self._tile.element}")

    def bytes(self, operand: str) -> str:
        """Write how far the rows of an operand are apart in memory."""
        return times(self._f, self[f"{operand}_row"], self._tile.size)

    def seen(self, first: str) -> str:
        """Write how many keys query number `first` sees."""
        return self._f.value(f"select i1 {self.causal}, i64 {plus(self._f, first, 1)}, i64 {self['keys']}")

    def needed(self, first: str, count: str) -> str:
        """Write how many of the first keys a block of queries needs: whole panels, packed as those of all keys are."""
        f, keys = self._f, self["keys"]
        panels = f.value(f"udiv i64 {plus(f, first, count, self._panel - 1)}, {self._panel}")
        some = times(f, panels, self._panel)
        fewer = f.value(f"icmp sle i64 {plus(f, some, 2 * self._panel)}, {keys}")
        fewer = f.value(f"and i1 {fewer}, {self.causal}")
        return f.value(f"select i1 {fewer}, i64 {some}, i64 {keys}")

    def place(self, operand: str, head: str) -> str:
        """Write how many elements before the matrix of a head stand."""
        f = self._f
        outer, inner = (f.value(f"{what} i64 {head}, {self['inner']}") for what in ("udiv", "urem"))
        return plus(f, times(f, outer, self[f"{operand}_outer"]), times(f, inner, self[f"{operand}_inner"]))
