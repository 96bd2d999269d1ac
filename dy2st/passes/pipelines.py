"""The pipelines: which passes run, in which order and why, for each use of a Program. Nothing else orders passes.

| pipeline | runs on |
|---|---|
| `default` | every Program before it runs, and its derivatives |
| `specialize` | a Program whose extents specialize_shapes.py has just made known |
| `native` | what native code is made of; `native_strict` where that has to give the interpreter's bits |

What makes a Program may call one pass on what it has just made: autodiff/prune.py and static/model_files.py remove what
nobody uses. What takes more than a Program (vmap, derivatives, known extents) is no pass.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.ir.clone import clone_program
from dy2st.ir.program import Program
from dy2st.passes.core.base import Pass, run_pipeline
from dy2st.passes.loops.licm import HoistInvariants
from dy2st.passes.loops.merge_carried import MergeCarried
from dy2st.passes.loops.rematerialize import Rematerialize
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
    Rematerialize(),  # after merge_carried, so that a counter of the source is the one that counts iterations
    HoistInvariants(),  # after cse, so that a loop carries each invariant once
    MergeConds(),  # makes room for all of the above inside the branches
    RemoveDeadCode(),  # last: the others leave behind what they made useless
)
SPECIALIZE: tuple[Pass, ...] = (
    Simplify(),  # extents that are known now become constants
    FoldConstants(),  # after simplify: what is computed of them
    Rematerialize(),  # after fold: numbers that are known now need no tape
    HoistInvariants(),  # last: what a known extent has made the same in every iteration
)
_ROUNDS = 4


def native(strict: bool = False) -> tuple[Pass, ...]:
    """Return the passes in front of native code; their modules load when code is made, not when it is found on disk.

    Strict code adds up in the order that the Program says, so no product is cut into a sum of two.
    """
    from dy2st.passes.loops.peel_optional_cotangents import PeelOptionalCotangents
    from dy2st.passes.loops.sink_broadcasts import SinkBroadcasts
    from dy2st.passes.loops.split_matmul import SplitMatmul
    from dy2st.passes.lowering.batched_wgrad import BatchedWeightGradient
    from dy2st.passes.lowering.bool_indices_to_int import BoolIndicesToInt
    from dy2st.passes.lowering.broadcast_constants import BroadcastConstants
    from dy2st.passes.lowering.complex_to_pairs import ComplexToPairs
    from dy2st.passes.lowering.decompose import Decompose
    from dy2st.passes.lowering.dims_of_operands import DimsOfOperands
    from dy2st.passes.lowering.in_float32 import InFloat32
    from dy2st.passes.lowering.matmul_accumulate import MatmulAccumulate
    from dy2st.passes.lowering.pad_add_to_concat import PadAddToConcat
    from dy2st.passes.lowering.push_slice_up import PushSliceUp
    from dy2st.passes.simplify.dead_stores import RemoveDeadStores
    from dy2st.passes.simplify.fuse_attention import FuseAttention
    from dy2st.passes.simplify.select_to_cond import SelectToCond

    regroup: tuple[Pass, ...] = (
        SplitMatmul(),  # not before cse and push_slice_up, so that products are cut as they will stay
        PushSliceUp(),  # again: what was cut is a sum now, and parts alone of it may be read
    )
    return (
        BoolIndicesToInt(),  # first: all that follows meets ints alone as places
        InFloat32(),  # before fuse_attention: what it puts together of bfloat16 is rounded in between
        FuseAttention(),  # before decompose, which takes apart the softmax that attention is recognised by
        ComplexToPairs(),  # before decompose, so that what is left of complex numbers is taken apart like other floats
        RemoveDeadStores(),  # before decompose: what fills a whole tensor is a repeated value for all that follows
        Decompose(),  # before all that looks for small operations
        PeelOptionalCotangents(),  # before pad_add_to_concat: it makes plain sums of sums with what may be missing
        PadAddToConcat(),  # before push_slice_up: it makes sums of parts, which may be cut in turn
        SinkBroadcasts(),  # after decompose, which repeats numbers; licm has put them in front of the loops
        BroadcastConstants(),  # wherever constants stand: fold has put them into the blocks that read them
        DimsOfOperands(),  # before cse: extents are asked of fewer values then, often of the same one
        MergeCommonSubexpressions(),  # after what made equal operations, before what counts the users of a value
        PushSliceUp(),  # after cse, which leaves a value with all of its users
        SelectToCond(),  # after push_slice_up, which cuts no results of a cond
        *(() if strict else regroup),
        BatchedWeightGradient(),  # before matmul_accumulate, which may add the one product that it makes in place
        RemoveDeadCode(),  # before matmul_accumulate, which wants a product that nobody else uses
        MatmulAccumulate(),
        RemoveDeadCode(),  # last: the others leave behind what they made useless
    )


PIPELINES: dict[str, Callable[[], tuple[Pass, ...]]] = {
    "default": lambda: DEFAULT,
    "specialize": lambda: SPECIALIZE,
    "native": native,
    "native_strict": lambda: native(strict=True),
}


def all_passes() -> dict[str, Pass]:
    """Return every pass of a pipeline by its name, which is that of its file."""
    return {one.name: one for passes in PIPELINES.values() for one in passes()}


def optimise(program: Program, verify: bool = False) -> Program:
    """Return a Program that computes the same with less work; the one that is given stays as it is.

    Passes make room for each other, so the pipeline runs until nothing changes, at most four times.
    """
    copy = clone_program(program)
    converge(copy, verify)
    return copy


def converge(program: Program, verify: bool = False) -> bool:
    """Run the default pipeline until nothing changes; return whether anything did."""
    changed = False
    for _ in range(_ROUNDS):
        if not run_pipeline(program, DEFAULT, verify):
            break
        changed = True
    return changed
