"""The public Program of static mode, its blocks, and which Programs are current."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.ir import program as ir
from dy2st.ir.context import current, replaced, switch
from dy2st.ir.printer import block_to_text
from dy2st.ir.program import Value
from dy2st.runtime.eager import rng
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.clone import clone_recorder
from dy2st.static.operator import Operator
from dy2st.static.recorder import ProgramRecorder


class Block:
    """A block of a Program: its operations and the variables of the Program by name."""

    def __init__(self, program: Program, idx: int, block: ir.Block):
        self.program, self.idx, self._block = program, idx, block

    @property
    def ops(self) -> list[Operator]:
        """The operations, in order; each has a `type`."""
        return [Operator(operation) for operation in self._block.operations]

    @property
    def vars(self) -> dict[str, Tensor]:
        """The named variables that are defined in this block."""
        found = self.program.recorder.named
        return {name: t for name, t in found.items() if self._block is self.program.recorder.value_of(t).block}

    def var(self, name: str) -> Tensor:
        """Return the variable of this name; ValueError where there is none."""
        found = self.program.recorder.named.get(name)
        if found is None:
            raise ValueError(f"the Program has no variable named {name!r}")
        return found

    def has_var(self, name: str) -> bool:
        """Return whether the Program has a variable of this name."""
        return name in self.program.recorder.named

    def all_parameters(self) -> list[Parameter]:
        """Return the parameters."""
        return self.program.all_parameters()

    def __str__(self) -> str:
        return block_to_text(self._block)


class Program:
    """A Program that is built by hand, statement by statement, under `program_guard` or as the default one.

    `str(program)` is its text.
    """

    def __init__(self, recorder: ProgramRecorder | None = None) -> None:
        self.recorder = recorder or ProgramRecorder()
        self.recorder.face_of = self._face_of
        self._seed = 0
        self.generator: rng.Generator | None = None
        """The Program's own random numbers, where it has a seed."""
        self.prepared: dict[Any, Any] = {}
        self.last: Any = None
        """The plan that the Executor ran last."""
        """What the Executor keeps for each version and list of fetches."""

    # ---- random numbers --------------------------------------------------------------------------------------------
    @property
    def random_seed(self) -> int:
        """The seed of the Program's own random numbers; 0 for those of the process."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if not isinstance(seed, int):
            raise ValueError(f"random_seed must be an int, not {seed!r}")
        self._seed = seed
        self.generator = rng.Generator(seed) if seed else None

    # ---- what it has -----------------------------------------------------------------------------------------------
    @property
    def blocks(self) -> list[Block]:
        """The blocks: the outermost first, then those of control flow."""
        root = self.recorder.root.block
        inner = [block for operation in root.walk() for block in operation.blocks]
        return [Block(self, i, block) for i, block in enumerate([root, *inner])]

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    def global_block(self) -> Block:
        """Return the outermost block."""
        return Block(self, 0, self.recorder.root.block)

    def block(self, index: int) -> Block:
        """Return a block by number."""
        return self.blocks[index]

    def current_block(self) -> Block:
        """Return the block that statements extend now."""
        return self._face_of(self.recorder.builder.block)

    def _face_of(self, block: ir.Block) -> Block:
        found = [b for b in self.blocks if b._block is block]
        return found[0] if found else Block(self, -1, block)

    @property
    def ops(self) -> list[Operator]:
        """The operations of the outermost block."""
        return self.global_block().ops

    def list_vars(self) -> Iterator[Tensor]:
        """Yield the named variables."""
        yield from list(self.recorder.named.values())

    def all_parameters(self) -> list[Parameter]:
        """Return the parameters, in the order in which they were created."""
        return [s.tensor for s in self.recorder.states.values() if isinstance(s.tensor, Parameter)]

    def persistables(self) -> dict[str, Tensor]:
        """Return what the scope keeps for this Program, by name."""
        return {name: s.tensor for name, s in self.recorder.states.items()}

    # ---- copies ----------------------------------------------------------------------------------------------------
    def clone(self, for_test: bool = False) -> Program:
        """Return a Program of its own that does the same; with `for_test`, one that only evaluates.

        A Program for testing has no dropout, uses the running statistics of batch norm, and leaves out what training
        writes. Variables of the original can be fetched from the copy.
        """
        made = Program(clone_recorder(self.recorder, for_test))
        made.random_seed = self.random_seed
        return made

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, Tensor]:
        """Return the values of parameters ("param"), of other state ("opt") or of both, by name."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"mode must be 'all', 'param' or 'opt', not {mode!r}")
        found: dict[str, Tensor] = {}
        for name, t in self.persistables().items():
            if mode == "all" or (mode == "param") == isinstance(t, Parameter):
                found[name] = Tensor(self.recorder.holder(name, scope).get_tensor().numpy())
        return found

    def set_state_dict(self, state_dict: dict[str, Any], scope: Any = None) -> None:
        """Set the values of parameters and other state by name; names that the Program lacks are left out."""
        for name, value in state_dict.items():
            if name in self.recorder.states:
                self.recorder.holder(name, scope, fresh=True).set(value)

    # ---- text ------------------------------------------------------------------------------------------------------
    def ir_program(self, results: list[Value] | None = None) -> ir.Program:
        """Return the underlying Program with these results (default: none); its operations are this Program's own."""
        root = self.recorder.root.block
        block = ir.Block()
        block.arguments, block.operations = list(root.arguments), list(root.operations)
        block.results = list(results or ())
        return ir.Program({"main": block, **self.recorder.functions})

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Return the text of the Program."""
        return str(self)

    def __str__(self) -> str:
        results = [*(v for _, v in self.recorder.writes()), *self.recorder.stores.values()]
        return str(self.ir_program(results))

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show."""
        return self.ir_program()._repr_svg_()


Pair = tuple[Program, Program]


def _defaults() -> Pair:
    process = current().process
    if process.programs is None:
        process.programs = (Program(), Program())
    return process.programs


def enable_static() -> None:
    """Build Programs by hand from now on: operations are appended to the default main Program."""
    if current().static is None:
        pair = _defaults()
        switch(static=pair, trace=pair[0].recorder)


def disable_static(place: Any = None) -> None:
    """Run operations at once from now on."""
    if current().static is not None:
        switch(static=None, trace=None)


def default_main_program() -> Program:
    """Return the Program that statements extend in static mode."""
    return (current().static or _defaults())[0]


def default_startup_program() -> Program:
    """Return the Program that computes initial values."""
    return (current().static or _defaults())[1]


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Make `main_program` (and `startup_program`) the default ones for the length of a `with`."""
    for what, given in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(given, Program) and (given is not None or what == "main_program"):
            raise TypeError(f"program_guard: {what} must be a paddle.static.Program, not {type(given).__name__}")
    process, was_static = current().process, current().static
    before = was_static or _defaults()
    pair = (main_program, startup_program if startup_program is not None else before[1])
    if was_static is None:
        process.programs = pair
        try:
            yield
        finally:
            if process.programs is pair:
                process.programs = before
        return
    trace = current().trace
    switch(static=pair, trace=main_program.recorder)
    try:
        yield
    finally:
        if current().static is not None:  # else static mode was left inside
            switch(static=before, trace=trace)


@contextmanager
def building(program: Program) -> Iterator[ProgramRecorder]:
    """Extend `program` for the length of a `with`, in either mode."""
    with replaced(static=(program, default_startup_program()), trace=program.recorder):
        yield program.recorder
