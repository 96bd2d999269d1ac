"""Segments of the tape that were walked a few times run as one Program each, native code like any other.

The first walks of a kind of segment go node by node; then its Program is made (`tape_program.py`) and kept. What it
cannot do, and whatever a run of it refuses, the walk does, which says what is wrong. Hooks are run by the walk alone: a
segment ends in front of their node (`tape_segment.py`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from dy2st import config
from dy2st.errors import Dy2stError
from dy2st.ir.context import current
from dy2st.runtime.autograd_engine.tape_program import NotComposable, TapeProgram, held, tape_program
from dy2st.runtime.autograd_engine.tape_segment import FEW, Extents, Segment
from dy2st.runtime.eager.device import is_on_device
from dy2st.runtime.eager.tape.node import Node

if TYPE_CHECKING:
    from dy2st.runtime.autograd_engine.backward_pass import Walk

_MOST_KINDS, _MOST_SHAPES = 256, 1024
_REFUSALS = (Dy2stError, MemoryError, ValueError, IndexError, TypeError)


class _Kind:
    """Segments of one pattern: how many there were, and what runs them."""

    def __init__(self) -> None:
        self.walks = 0
        self.program: TapeProgram | None = None
        self.is_left = False
        """Whether the walk does them."""


_kinds: dict[Any, _Kind] = {}
_shapes: dict[Any, tuple[_Kind, list[int]]] = {}


def advance(walk: Walk, stop: int) -> float:
    """Pull a walk's cotangents back through all nodes up to one that only the walk can step over.

    Return 0; or through how many nodes the walk has to go by itself, where nothing was done.
    """
    if any(is_on_device(ct) for cts in walk.pending.values() for ct in cts):
        return math.inf
    special: Collection[Node] = ()
    if walk.wanted or walk.blocked:
        special = {node for node, _ in walk.wanted} | {at[0] for at in walk.blocked if isinstance(at, tuple)}
    segment = Segment(walk.pending, walk.ones, special, stop, walk.most)
    if segment.too_long and walk.most > FEW:
        walk.most = FEW
        segment = Segment(walk.pending, walk.ones, special, stop, FEW)
    if segment.too_long:
        return math.inf
    count = len(segment.nodes)
    if count < 2:
        return max(count, 1)
    try:
        found = _shapes.get(segment.key)
    except TypeError:  # an attribute that has no hash
        return count
    kind, values = found if found is not None else _noted(segment)
    if kind not in walk.met:
        walk.met.add(kind)
        kind.walks += 1
    if kind.is_left or kind.walks <= current().process.walks_of_tape:
        return count
    if kind.program is None:
        try:
            kind.program = tape_program(segment, Extents(segment))
        except NotComposable:
            kind.is_left = True
            return count
    return 0 if _run(walk, segment, kind.program, values) else count


def _noted(segment: Segment) -> tuple[_Kind, list[int]]:
    if len(_shapes) >= _MOST_SHAPES or len(_kinds) >= _MOST_KINDS:
        _shapes.clear()
        _kinds.clear()
    extents = Extents(segment)
    found = _shapes[segment.key] = _kinds.setdefault(extents.key, _Kind()), extents.values
    return found


def _run(walk: Walk, segment: Segment, made: TapeProgram, extents: list[int]) -> bool:
    """Run the Program of a segment; return whether it took what the nodes keep."""
    nodes = segment.nodes
    for a, b in made.alike:
        if held(segment, a) is not held(segment, b):
            return False
    arguments: list[Any] = []
    for kind, at, i in made.takes:
        if kind == "residual":
            arguments.append(nodes[at].source.residuals[i])
        elif kind == "operand":
            arguments.append(nodes[at].source[2][i])
        elif kind == "result":
            arguments.append(nodes[at].results[i])
        elif kind == "raw":
            arguments.append(nodes[at].source.raw[i])
        else:
            arguments.append(extents[at] if kind == "extent" else segment.entering[at][2])
    try:
        results = made.compiled.run(arguments, np)
    except _REFUSALS:
        return False
    _step_over(walk, nodes)
    leaves, met = list(segment.leaves.values()), list(segment.numbers)
    seen = set(map(id, arguments))
    for (where, is_optional), value in zip(made.gives, results, strict=True):
        ct: Any = value
        if is_optional:
            ct = value[1] if value[0] else None
        if ct.__class__ is ndarray:
            if ct.base is not None or id(ct) in seen:
                ct = ct.copy()
            seen.add(id(ct))
        edge = leaves[-1 - where][1] if where.__class__ is int else (met[where[0]], where[1])
        if not walk.blocked or (edge if edge.__class__ is tuple else id(edge)) not in walk.blocked:
            walk.send(edge, ct)
    if not walk.keep:
        for at in made.pulled:
            walk.free(nodes[at])
    return True


def _step_over(walk: Walk, nodes: list[Node]) -> None:
    """Take the nodes of a segment from what is pending."""
    for node in nodes:
        walk.pending.pop(node, None)
    if walk.pending:
        done = set(nodes)
        walk.heap = [entry for entry in walk.heap if entry[1] not in done]
        heapq.heapify(walk.heap)
    else:
        walk.heap.clear()


if (_told := config.walks_of_tape()) is not None:
    current().process.walks_of_tape = _told
