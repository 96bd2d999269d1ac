"""Images with their padding, cut by the stride into planes in which every window moves by 1.

The elements that meet one place of the kernel stand, for all places of the result, in one plane: place (y, x) of the
result finds them y rows and x elements behind where the tap's first one stands. So a convolution of any stride and
dilation reads memory as one of stride 1 does.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import least, minus, plus, rounded_up, times


class PaddedPlanes:
    """The extents of the planes of one group of one image, of two axes."""

    def __init__(self, f: LLVMFunction, tile: Tile, extents: GroupExtents):
        self._f, self._tile, self.extents = f, tile, extents
        shape = extents.shape
        reaches = [times(f, minus(f, shape[f"kernel{a}"], 1), shape[f"dilation{a}"]) for a in (1, 2)]
        self.strides = [shape[f"stride{a}"] for a in (1, 2)]
        self.cuts = [least(f, s, plus(f, r, 1)) for s, r in zip(self.strides, reaches, strict=True)]
        """How many planes there are along each axis: what no window meets is left out."""
        self.mixed = shape["mixed"]
        height, width = (f.value(f"udiv i64 {r}, {s}") for r, s in zip(reaches, self.strides, strict=True))
        self.height = plus(f, shape["out1"], height)
        self.width = plus(f, shape["out2"], times(f, width, self.mixed))
        self.plane = times(f, self.height, self.width)
        self.channel = times(f, self.plane, *self.cuts)
        self.image = times(f, self.channel, extents.channels)
        self.taps_bytes = rounded_up(f, times(f, extents.depth, 8), 64)

    def write_taps(self, taps: str) -> None:
        """Write for each channel and place of the kernel how many bytes from the planes' start its elements begin."""
        f, shape = self._f, self.extents.shape
        count = times(f, shape["kernel1"], shape["kernel2"])
        with f.loop(shape["kernel1"]) as i, f.loop(shape["kernel2"]) as j:
            reach = [times(f, n, shape[f"dilation{a}"]) for a, n in ((1, i), (2, j))]
            cut = [f.value(f"urem i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            step = [f.value(f"udiv i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            number = plus(f, times(f, cut[0], self.cuts[1]), cut[1])
            place = plus(f, times(f, number, self.plane), times(f, step[0], self.width), times(f, step[1], self.mixed))
            here = f.offset(taps, plus(f, times(f, i, shape["kernel2"]), j), "i64")
            f.store("i64", times(f, place, self._tile.size), here)
        apart = times(f, self.channel, self._tile.size)
        with f.loop(minus(f, self.extents.depth, count)) as n:
            before, after = f.offset(taps, n, "i64"), f.offset(taps, plus(f, n, count), "i64")
            f.store("i64", plus(f, f.load("i64", before), apart), after)
