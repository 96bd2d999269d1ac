"""Runs a group on arrays of a device: checks extents, makes room for results, chooses kernels and launches them.

Where the arrays are not as the group's types say, or it may raise on them, its members run one by one, so errors are
those of `eval`. Kernels are made on first use: another one where operands have gaps between their elements, or where
rows are so short, or one row so long, that threads share the work otherwise.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dy2st.forks import Locked
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.rounded import meaning
from dy2st.ops.shape.random import RandomInt
from dy2st.records import record
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.kernel_calls.group_calls import told_shape
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, ends_row, layout
from dy2st.runtime.backends.cuda.fusion import NUMBERS
from dy2st.runtime.backends.cuda.grid import ENTRY, WARP, DeviceGrid, EmulatedGrid, Grid
from dy2st.runtime.backends.cuda.nests import (
    MOST_BLOCKS,
    SUM_BLOCKS,
    THREADS,
    Columns,
    Kernel,
    Map,
    Rows,
    ShortRows,
    Whole,
    threads_for,
)
from dy2st.runtime.backends.cuda.target import AMPERE, Emulated
from dy2st.runtime.interpreter.reference import single

LONG_ROW = 1 << 13
"""So many elements of one row are shared by several blocks."""
_MOST_ELEMENTS = 1 << 40
Key = tuple[object, ...]
"""The name of a nest, its threads, and what else decides of the kernel."""


@record
class Counts:
    """What runs of a Program did."""

    launches: int = 0
    bytes: int = 0
    """Of memory that was asked for, for results and what kernels keep."""
    elsewhere: int = 0
    """How often members of a group ran one by one."""


class Loaded:
    """A kernel on a device; `write` writes it for another one."""

    def __init__(self, write: Callable[[type[Grid]], Kernel], xp: Any):
        self.write, self.kernel = write, write(EmulatedGrid if is_emulated(xp) else DeviceGrid)
        module = xp.cuda.function.Module()
        machine = Emulated() if is_emulated(xp) else AMPERE
        module.load(machine.image(self.kernel.text))
        self._function = module.get_function(ENTRY)

    def launch(self, blocks: int, values: dict[object, Any], counts: Counts) -> None:
        """Run so many blocks; `values` has a number or an array for each parameter."""
        counts.launches += 1
        self._function((blocks,), (self.kernel.threads,), tuple(values[name] for name, _ in self.kernel.parameters))


def is_emulated(xp: Any) -> bool:
    """Return whether this CPU stands for the device."""
    return hasattr(xp, "is_emulated")


class Launcher(Locked):
    """A group that is ready to run."""

    def __init__(self, group: FusedGroup, xp: Any, counts: Counts):
        super().__init__()
        self.group, self.xp, self.counts = group, xp, counts
        self._made: dict[object, tuple[NestLayout, dict[Key, Loaded]]] = {}

    def __call__(self, *operands: Any) -> Any:
        """Return the results, a tuple where there are several."""
        given = dict(zip(self.group.operands, operands, strict=True))
        extents = self._extents(given)
        if extents is None or not all(extents) or not self._may_run(given):
            self.counts.elsewhere += 1
            return self._one_by_one(given)
        results = self._run(given, extents)
        return results[0] if len(results) == 1 else results

    def _one_by_one(self, given: dict[Value, Any]) -> Any:
        known = dict(given)
        for operation in self.group.members:
            made = single(meaning(operation, self.xp)(*(known[v] for v in operation.operands)))
            known[operation.results[0]] = made if isinstance(made, self.xp.ndarray) else self.xp.asarray(made)
        results = tuple(known[v] for v in self.group.results)
        return results[0] if len(results) == 1 else results

    # ---- what arrays are there -------------------------------------------------------------------------------------
    def _extents(self, given: dict[Value, Any]) -> list[int] | None:
        """Return the extents of the space; None where the arrays do not agree."""
        found: dict[int, int] = {i: e for i, e in enumerate(self.group.space) if isinstance(e, int)}
        for value, array in given.items():
            if value not in self.group.maps or in_register(value.type):
                continue
            for axis, extent in zip(self.group.maps[value], array.shape, strict=True):
                if extent != (1 if axis is None else found.setdefault(axis, extent)):
                    return None
        for operation in self.group.members:
            template, dims = told_shape(operation)
            for axis, part in zip(self.group.maps[operation.results[0]], template, strict=bool(template)):
                extent = given[next(dims)] if part is None else part
                if extent != (1 if axis is None else found.setdefault(axis, extent)):
                    return None
        extents = [found[i] for i in range(len(self.group.space))]
        return extents if min(extents, default=1) >= 0 and math.prod(extents) < _MOST_ELEMENTS else None

    def _may_run(self, given: dict[Value, Any]) -> bool:
        """Return whether no member raises on these operands."""
        for operation in self.group.members:
            if isinstance(operation.op, RandomInt):
                low, high = (given[v] for v in operation.operands[2:4])
                if not low < high or high - low >= 1 << 63:
                    return False
        return True

    # ---- kernels ---------------------------------------------------------------------------------------------------
    def _run(self, given: dict[Value, Any], extents: Sequence[int]) -> tuple[Any, ...]:
        given = dict(given)
        gaps = self._gaps(given)
        made, loaded = self._layout(gaps)
        results = {
            v: self.room([1 if a is None else extents[a] for a in made.group.maps[v]], v) for v in made.group.results
        }
        rows, row = math.prod(extents[: made.outer]), math.prod(extents[made.outer :])
        values: dict[object, Any] = {("write", v): x for v, x in results.items()}
        values.update((("read", v), x) for v, x in given.items())
        for i, extent in enumerate(extents if made.outer else [row]):
            values["extent", i] = extent
        for v, strides in gaps.items():
            values.update((("stride", v, j), s) for j, s in enumerate(strides))
        _Launch(self, made, loaded, values, rows, row).run()
        return tuple(results.values())

    def room(self, shape: Sequence[int], like: Value) -> Any:
        """Return memory for elements of a value's dtype."""
        made = self.xp.empty(shape, tensor_type(like).dtype.numpy)
        self.counts.bytes += made.nbytes
        return made

    def _gaps(self, given: dict[Value, Any]) -> dict[Value, tuple[int, ...]]:
        """Return by how many elements the axes of operands are apart that have gaps; copy what cannot be read so."""
        found: dict[Value, tuple[int, ...]] = {}
        group = self.group
        for value, array in given.items():
            if value not in group.maps or not isinstance(value.type, TensorType) or array.flags.c_contiguous:
                continue
            if in_register(value.type) or not array.ndim:
                continue
            along = [a for a in group.maps[value] if a is not None and group.outer is not None and a >= group.outer]
            if len([a for a in along if group.space[a] != 1]) <= 1:
                found[value] = tuple(s // array.itemsize for s in array.strides)
            else:
                given[value] = self.xp.ascontiguousarray(array)
                self.counts.launches += 1
        return found

    def _layout(self, gaps: dict[Value, tuple[int, ...]]) -> tuple[NestLayout, dict[Key, Loaded]]:
        """Return the plan of a nest for operands with such gaps, and its kernels."""
        last = len(self.group.space) - 1
        beside = {v: [j for j, s in enumerate(strides) if s == 1] for v, strides in gaps.items()}
        key = tuple((v, tuple(places)) for v, places in beside.items())
        with self._lock:
            if key not in self._made:
                group = copy.copy(self.group)
                if group.outer is None and gaps:
                    group.outer = last  # a row along one axis can be read with gaps
                made = layout(group)
                for v, strides in gaps.items():
                    made.strides[v] = tuple("1" if j in beside[v] else "?" for j in range(len(strides)))
                self._made[key] = made, {}
            return self._made[key]

    def kernel(self, loaded: dict[Key, Loaded], key: Key, write: Callable[[type[Grid]], Kernel]) -> Loaded:
        """Return a kernel, made where it is needed first."""
        with self._lock:
            if key not in loaded:
                loaded[key] = Loaded(write, self.xp)
            return loaded[key]

    def kernels(self) -> Iterator[tuple[str, Loaded]]:
        """Yield the kernels that were made, each with the name of its nest."""
        for _, loaded in self._made.values():
            for key, kernel in loaded.items():
                yield " ".join(map(str, key)), kernel


@record
class _Launch:
    """The launches of one run of a group."""

    of: Launcher
    made: NestLayout
    loaded: dict[Key, Loaded]
    values: dict[object, Any]
    rows: int
    row: int

    def run(self) -> None:
        """Choose a nest and launch its kernels."""
        made, group = self.made, self.made.group
        if not any(o.op.monoid for o in group.members):
            threads = WARP if group.space is NUMBERS else THREADS
            return self._launch("map", Map, threads, -(-self.rows * self.row // threads))
        if not made.outer and self.row > LONG_ROW:
            return self._whole()
        if group.columns:
            return self._columns()
        if self.row <= WARP < self.rows:
            self._scratch(self.rows)
            return self._launch("short", ShortRows, WARP, -(-self.rows // WARP))
        blocks = min(self.rows, MOST_BLOCKS)
        self._scratch(blocks)
        return self._launch("rows", Rows, threads_for(self.row), blocks)

    def _launch(self, name: str, nest: Any, threads: int, blocks: int, *more: int) -> None:

        def write(grid: type[Grid]) -> Kernel:
            return nest(grid, self.made, threads, *more).kernel()

        loaded = self.of.kernel(self.loaded, (name, threads, *more), write)
        loaded.launch(max(1, min(blocks, MOST_BLOCKS)), self.values, self.of.counts)

    def _scratch(self, count: int) -> None:
        """Make room for the rows that are kept."""
        for v in self.made.kept:
            self._room(("scratch", v), v, count * self.row)

    def _room(self, name: object, like: Value, count: int) -> None:
        self.values[name] = self.of.room((count,), like)

    def _columns(self) -> None:
        """Let blocks add up rows of theirs, and then what they have."""
        columns, blocks = list(self.made.group.columns), min(self.rows, SUM_BLOCKS)
        results = {v: self.values["write", v] for v in columns}
        for i, v in enumerate(columns):
            self._room(("write", v), v, blocks * self.row)
            self.values[f"sums{i}"] = self.values["write", v]
        self._scratch(blocks)
        self._launch("rows", Rows, threads_for(self.row), blocks)
        self.values.update((("write", v), x) for v, x in results.items())
        self.values["parts"] = blocks
        self._launch("columns", Columns, 4 * WARP, -(-self.row // (4 * WARP)))

    def _whole(self) -> None:
        """Run through the one row there is, a kernel a sweep."""
        made = self.made
        blocks = min(-(-self.row // (4 * THREADS)), SUM_BLOCKS)
        ends: list[Operation] = [o for o in made.group.members if ends_row(o, made.group)]
        ends.sort(key=lambda o: made.at[o.results[0]])
        for i, o in enumerate(ends):
            self._room(f"sums{i}", o.results[0], blocks)
        self.values["parts"] = blocks
        self._scratch(1)
        for sweep in range(made.sweeps):
            self._launch("whole", Whole, THREADS, blocks, sweep)
        if any(made.is_row(v) for v in made.group.results):
            self._launch("whole", Whole, THREADS, 1, made.sweeps)
