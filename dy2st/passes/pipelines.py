"""The order of the passes, and `optimise`, which runs them until nothing changes."""

from __future__ import annotations

from dy2st.ir.clone import clone_program
from dy2st.ir.program import Program
from dy2st.passes.core.base import Pass, run_pipeline
from dy2st.passes.loops.licm import HoistInvariants
from dy2st.passes.loops.merge_carried import MergeCarried
from dy2st.passes.loops.rematerialize import ReadTapesLess
from dy2st.passes.simplify.constant_fold import FoldConstants
from dy2st.passes.simplify.cse import MergeCommonSubexpressions
from dy2st.passes.simplify.dce import RemoveDeadCode
from dy2st.passes.simplify.merge_conds import MergeConds
from dy2st.passes.simplify.simplify import Simplify

DEFAULT: tuple[Pass, ...] = (
    RemoveDeadCode(),  # first, so that no other pass works on what goes anyway
    Simplify(),  # extents that are known become constants, which folding needs
    FoldConstants(),  # before cse: it puts equal constants where they can be merged
    MergeCommonSubexpressions(),  # before merge_conds, which knows equal predicates by being one value
    MergeCarried(),  # after cse, which lets equal values begin as one
    ReadTapesLess(),  # after merge_carried, so that a counter of the source is the one that counts turns
    HoistInvariants(),  # after cse, so that a loop carries each invariant once
    MergeConds(),  # makes room for all of the above inside the branches
    RemoveDeadCode(),  # last: the others leave behind what they made useless
)
_ROUNDS = 4


def optimise(program: Program, verify: bool = False) -> Program:
    """Return a Program that computes the same with less work; the one that is given stays as it is.

    Passes make room for each other, so the pipeline runs until nothing changes, at most four times.
    """
    copy = clone_program(program)
    for _ in range(_ROUNDS):
        if not run_pipeline(copy, DEFAULT, verify):
            break
    return copy
