"""Which op stood at which position in the Programs of random functions, and which statement ran in which way.

Positions: `loop` and `branch`, inside of a block of one; `carried`, what goes into a value that a loop hands to its
next iteration; `early`, what goes into a value of a branch inside of a loop, which is how a value leaves one;
`derived` and `second`, floats in a function whose gradient was asked for, to the first and to the second order. An op
that is not seen at each of them is a hole, and so is a kind of statement that did not run in each way
(`statement_kinds.py`): an error, but for what is told by `ELSEWHERE` and `NOT_THERE`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Block, Operation, Program
from tests.generator.statement_kinds import KINDS
from tests.generator.ways import COLUMNS

POSITIONS = ("loop", "branch", "carried", "early", "derived", "second")
LOOPS = ("while_loop", "counted_while")
BRANCHES = ("cond", "try")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
Seen = Counter[tuple[str, str]]

ELSEWHERE = {
    "only Programs of derivatives have them": """
        adaptive_avg_pool_grad adjugate adjugate_slope attention_grad attention_mask_grad avg_pool_grad
        combine_along_axis conv_input_grad conv_weight_grad host_tangent index_last keep_at last_writer
        list_accumulate list_clear list_concat_tangent list_extents list_popped list_put list_split list_spread
        list_stack_tangent list_take matrix_exp_slope optional_add safe_mul slots_extend slots_narrow slots_part
        slots_reverse slots_widen sum_to take_add tuple_of_tangents variant_ct variant_or_zeros variant_wrap""",
    "passes put them in the place of others": "attention class_places fmod linear_scan matmul_add renew top",
    "only vmap makes them": "list_unstack list_widen",
    "tests/quantization has programs of them": "dequantize quantized_matmul",
    "the language has no way to them: py_func, warnings that tests would turn into errors, refused methods of lists":
        "host_call list_index list_remove warn",
}  # fmt: skip
"""Why no program need have an op."""
NOT_THERE = {
    "a test that an `assert` or a branch makes, a call, an end: not what a loop carries, and no function of floats":
        "assert carried, assert early, call carried, call second, unreachable carried, "
        "unreachable early, unreachable loop",
    "a file is handed no objects": "Point loaded, attribute loaded, hasattr loaded, manager loaded",
    "a number outside is what it was when saved, of which saving warns": "global loaded",
}  # fmt: skip
"""Why an op, or a statement, is not at a position, or in a way."""


def positions(program: Program, *, order: int) -> Seen:
    """Count the ops of a Program by position; `order` is that of the gradients that were asked for."""
    seen: Seen = Counter()
    for block in program.functions.values():
        for operation, places in _walk(block, frozenset()):
            name = operation.op.name
            seen[name, "anywhere"] += 1
            for place in places:
                seen[name, place] += 1
            if _takes_floats(operation):
                seen.update((name, place) for place in ("derived", "second")[:order])
    return seen


def _takes_floats(operation: Operation) -> bool:
    """Say whether a tensor of floats goes in and one comes out."""
    return all(
        any(dtype is not None and dtype.name in FLOATS for dtype in (getattr(v.type, "dtype", None) for v in values))
        for values in (operation.operands, operation.results)
    )


def _walk(block: Block, around: frozenset[str]) -> Iterator[tuple[Operation, frozenset[str]]]:
    """Yield operations with their positions; `around` has `loop` and `branch`, and what kind of block this is."""
    wanted = {id(value) for value in block.results}
    leaving = ({"carried"} if "body" in around else set()) | ({"early"} if "end" in around else set())
    for operation in reversed(block.operations):
        places = around - {"body", "end"}
        if wanted & {id(result) for result in operation.results}:
            places |= leaving
            wanted |= {id(operand) for operand in operation.operands}
        yield operation, places
        for inner in operation.blocks:
            yield from _walk(inner, _inside(operation.op.name, around))


def _inside(name: str, around: frozenset[str]) -> frozenset[str]:
    """Return what is around a block of an op of that name."""
    outer = around - {"body", "end"}
    if name in LOOPS:
        return outer | {"loop", "body"}
    if name in BRANCHES:
        return outer | {"branch"} | ({"end"} if "loop" in around else set())
    return outer


def holes(seen: Seen) -> list[str]:
    """Name the positions at which an op was not seen, and the ops that no program had, but for those explained."""
    elsewhere = set(" ".join(ELSEWHERE.values()).split())
    missing = [f"{name} anywhere" for name in REGISTRY if not seen[name, "anywhere"] and name not in elsewhere]
    written = sorted({name for name, place in seen if place == "anywhere" and _is_on_tensors(name)})
    missing += [f"{name} {place}" for name in written for place in _places_of(name) if not seen[name, place]]
    return _unexplained(missing)


def holes_of_kinds(ran: Seen) -> list[str]:
    """Name the ways in which a kind of statement did not run."""
    return _unexplained([f"{kind} {way}" for kind in KINDS for way in COLUMNS if not ran[kind, way]])


def _unexplained(missing: list[str]) -> list[str]:
    explained = set(", ".join(NOT_THERE.values()).split(", "))
    return [hole for hole in missing if hole not in explained]


def _places_of(name: str) -> tuple[str, ...]:
    return POSITIONS if REGISTRY[name].differentiable else POSITIONS[:4]


def _is_on_tensors(name: str) -> bool:
    op: Any = REGISTRY[name]
    return not op.effect and not op.blocks and not name.startswith(("list_", "slots_", "scalar_", "variant_", "tuple_"))
