"""Derivatives of whole Programs: Program in, Program out.

vjp(program, wrt)   the forward Program (results, then residuals) and the backward Program
(residuals, then cotangents of the results that have one) -> cotangents of `wrt`
jvp(program, wrt)   (arguments, then tangents of `wrt`) -> (results, then their tangents)
jet(program, given, order)   the same with coefficients of Taylor series, of which tangents are the first
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dy2st.autodiff.calls  # these fill the table of control rules
import dy2st.autodiff.custom
import dy2st.autodiff.loops
import dy2st.autodiff.variants
from dy2st.autodiff.forward import Given, JetBuilder, found_in
from dy2st.autodiff.prune import prune
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import Cotangents, accumulate, pull_back
from dy2st.ir.builder import Builder, Names
from dy2st.ir.clone import clone_block, clone_program
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import Type, optional, tangent_type
from dy2st.ops.control.control_flow import visible_symbols
from dy2st.records import record

assert dy2st.autodiff.calls
assert dy2st.autodiff.custom
assert dy2st.autodiff.loops
assert dy2st.autodiff.variants


@record(frozen=True)
class Pullback:
    """What `vjp` gives.

    `forward` has the results of the original, then the residuals. `backward` takes the residuals, then the cotangents
    of `seeded` results; its results are the cotangents of the arguments `found` (those of `wrt` that have one at all),
    each dense or optional.
    """

    forward: Program
    backward: Program
    residuals: int
    seeded: tuple[int, ...]
    found: tuple[int, ...]


def fresh_names(program: Program) -> Names:
    """Return a source of symbols that no value of `program` uses."""
    types: list[Type] = []
    for block in _blocks(program):
        types += [v.type for v in block.arguments]
        types += [v.type for operation in block.operations for v in operation.results]
    taken = [int(name[1:]) for name in visible_symbols(types) if name[0] == "n" and name[1:].isdigit()]
    return Names(max(taken, default=-1) + 1)


def _blocks(program: Program) -> Iterator[Block]:
    for function in program.functions.values():
        yield function
        for operation in function.walk():
            yield from operation.blocks


def vjp(program: Program, wrt: Sequence[int], seeded: Sequence[tuple[int, bool]]) -> Pullback:
    """Differentiate a Program in reverse mode.

    `wrt` are the numbers of the arguments to differentiate; `seeded` are pairs of a result's number and whether its
    cotangent will be an optional.
    """
    forward = clone_program(program)
    block = forward.block
    source = Builder(block, names=fresh_names(program))
    back = BackwardBuilder(source, None, {})
    back.functions = forward.functions
    cts: Cotangents = {}
    arguments: list[Value] = []
    for i, is_opt in seeded:
        result = block.results[i]
        arguments.append(back.argument(_cotangent_type(result.type, is_opt), "ct"))
        cts[result] = accumulate(back, cts.get(result), arguments[-1])
    roots = [block.arguments[i] for i in wrt]
    cotangents = pull_back(back, block, roots, cts)
    found = tuple(i for i, root in zip(wrt, roots, strict=True) if root in cotangents)
    back.block.results = [back.use(cotangents[root]) for root in roots if root in cotangents]
    back.block.arguments[:] = [*back.residuals.values(), *arguments]
    others = {n: clone_block(f) for n, f in forward.functions.items() if n != forward.entry}
    backward = Program({**others, forward.entry: back.block}, forward.entry)
    prune(forward, backward, back.residuals)
    return Pullback(forward, backward, len(back.residuals), tuple(i for i, _ in seeded), found)


def _cotangent_type(t: Type, is_opt: bool) -> Type:
    return optional(tangent_type(t)) if is_opt else tangent_type(t)


def jvp(program: Program, wrt: Sequence[int]) -> tuple[Program, tuple[int, ...]]:
    """Differentiate a Program in forward mode; return the new Program and the numbers of the results with tangents.

    `wrt` are numbers of arguments, in their order.
    """
    made, found = jet(program, tuple((i, (1,)) for i in wrt), 1)
    return made, tuple(i for i, _ in found)


def jet(program: Program, given: Given, order: int) -> tuple[Program, Given]:
    """Push series through a Program.

    The new Program takes the arguments, then the coefficients of those in `given`; its results are those of `program`,
    then their coefficients, which the second thing that is returned names.
    """
    source = program.block
    b = Builder(names=fresh_names(program))
    b.functions = {n: clone_block(f) for n, f in program.functions.items() if n != program.entry}
    pusher = JetBuilder(b, order, {})
    masks = dict(given)
    pusher.enter(source.arguments, [masks.get(i, ()) for i in range(len(source.arguments))])
    pusher.run(source)
    found = found_in(pusher, source.results)
    b.block.results = [pusher.mapped(v) for v in source.results]
    for i, orders in found:
        b.block.results += pusher.dense(source.results[i], orders)
    return Program({**b.functions, program.entry: b.block}, program.entry), found
