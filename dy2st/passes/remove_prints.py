"""Programs that run again without being seen: what they print was printed the first time.

A derivative that computes forward values a second time uses these. Only pure effects go; what may raise stays, and
does not raise, because it did not the first time.
"""

from __future__ import annotations

from dy2st.ir.clone import clone_block, clone_program
from dy2st.ir.program import Block, Operation, Program


def silenced(program: Program) -> Program:
    """Return the Program, or a copy without its prints where it has some."""
    if not any(map(_is_seen, program.functions.values())):
        return program
    copy = clone_program(program)
    for block in copy.functions.values():
        _remove(block)
    return copy


def silence(block: Block, functions: dict[str, Block]) -> None:
    """Remove the prints of a block; functions that it calls and that print are replaced by copies without."""
    _remove(block)
    for operation in block.operations:
        if operation.op.is_call:
            operation.attributes["function"] = _quiet(operation.attributes["function"], functions)
        for inner in operation.blocks:
            silence(inner, functions)


def runs_twice_unseen(block: Block, functions: dict[str, Block]) -> bool:
    """Return whether nobody sees that a block runs a second time, silenced: it calls no Python functions."""
    pending: list[Block] = [block]
    known: set[str] = set()
    while pending:
        for operation in pending.pop().walk():
            if operation.op.is_call:
                name = operation.attributes["function"]
                pending += [functions[name]] if name in functions and name not in known else []
                known.add(name)
            elif operation.op.effect and not _is_print(operation) and not operation.op.is_raise:
                return False
    return True


def _quiet(name: str, functions: dict[str, Block]) -> str:
    """Return the name of a function that does what another does, without its prints."""
    made = f"{name}__quiet"
    if name.endswith("__quiet") or name not in functions or not _is_seen(functions[name]):
        return name
    if made not in functions:
        functions[made] = clone_block(functions[name])  # there before it is silenced: it may call itself
        silence(functions[made], functions)
    return made


def _remove(block: Block) -> None:
    block.operations[:] = [o for o in block.operations if not _is_print(o)]
    for operation in block.operations:
        for inner in operation.blocks:
            _remove(inner)


def _is_print(operation: Operation) -> bool:
    return operation.op.effect and not operation.op.may_raise and not operation.results


def _is_seen(block: Block) -> bool:
    return any(_is_print(o) or any(map(_is_seen, o.blocks)) for o in block.operations)
