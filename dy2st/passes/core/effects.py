"""What operations may do besides giving results: raise, or be seen outside. Sub-blocks and called functions count."""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Program


class Effects:
    """Answers for one Program; make a new one after functions were added or removed."""

    def __init__(self, program: Program):
        self.program = program
        self._functions: dict[str, tuple[bool, bool]] = {}

    def can_raise(self, operation: Operation) -> bool:
        """Return whether the operation, or one inside it, may raise."""
        return self.both(operation)[0]

    def has_effect(self, operation: Operation) -> bool:
        """Return whether the operation, or one inside it, is seen outside."""
        return self.both(operation)[1]

    def is_pure(self, operation: Operation) -> bool:
        """Return whether the operation only gives results: it may run twice, elsewhere, or not at all."""
        return not any(self.both(operation))

    def both(self, operation: Operation) -> tuple[bool, bool]:
        """Say both: whether the operation may raise, and whether it is seen outside."""
        op = operation.op
        if op.is_call:
            return self._function(operation.attributes["function"])
        raises = op.can_raise([v.type for v in operation.operands], operation.attributes)
        effect = op.effect
        for block in operation.blocks:
            inner = self._block(block)
            raises, effect = raises or inner[0], effect or inner[1]
        return raises, effect

    def _block(self, block: Block) -> tuple[bool, bool]:
        found = [self.both(operation) for operation in block.operations]
        return any(raises for raises, _ in found), any(effect for _, effect in found)

    def _function(self, name: str) -> tuple[bool, bool]:
        """Judge a function; one that calls itself may raise RecursionError."""
        if name not in self._functions:
            self._functions[name] = (True, False)  # what a call inside of itself is taken for
            self._functions[name] = self._block(self.program.functions[name])
        return self._functions[name]
