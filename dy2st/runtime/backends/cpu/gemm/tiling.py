"""What a matrix product is cut into: the tile that one kernel holds in registers, and the blocks that stay in cache."""

from __future__ import annotations

from dy2st.records import record
from dy2st.runtime.backends.cpu.compile_link.target import Target

ELEMENTS = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64"}
SIZES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}


@record(frozen=True)
class Tile:
    """`rows` rows by up to `vectors` vectors of `lanes` elements are one kernel's sums."""

    dtype: str
    lanes: int
    rows: int
    vectors: int
    few_rows: int
    """The rows of the kernel for what is left over."""
    dots: tuple[int, int]
    """Rows of A by rows of B whose dot products are taken together, when both lie along k."""

    @property
    def element(self) -> str:
        """The LLVM type of an element."""
        return ELEMENTS[self.dtype]

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return SIZES[self.dtype]

    @property
    def vector(self) -> str:
        """The LLVM type of a vector."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        """How LLVM's intrinsics name the vector type."""
        return self.dtype if self.lanes == 1 else f"v{self.lanes}{self.dtype}"

    def splat(self, text: str) -> str:
        """Return a constant in all lanes."""
        return text if self.lanes == 1 else f"splat ({self.element} {text})"

    @property
    def depth(self) -> int:
        """How many steps of k are packed at a time."""
        return 1024 // self.size

    @property
    def width(self) -> int:
        """How many columns are packed at a time: a multiple of every panel's width."""
        return 6 * self.lanes * max(1, 384 // (6 * self.lanes) * 4 // self.size)


def tile(dtype: str, target: Target) -> Tile:
    """Return the tile for a CPU: sums, a row of B and one element of A fit its 32 or 16 vector registers."""
    lanes = target.lanes(SIZES[dtype])
    if target.vector_bytes == 64:
        return Tile(dtype, lanes, 8, 3, 4, (4, 4))
    if target.triple.startswith(("aarch64", "arm64")) and not target.strict:  # sums of other tiles have other bits
        return Tile(dtype, lanes, 8, 2, 4, (2, 4))
    if target.vector_bytes == 32:
        return Tile(dtype, lanes, 4, 3, 2, (2, 4))
    return Tile(dtype, lanes, 4, 2, 2, (2, 4))
