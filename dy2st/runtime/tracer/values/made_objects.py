"""The objects that a trace made, which exist in it alone, and the blocks in which it did."""

from __future__ import annotations

import weakref
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.kinds import is_generator


class MadeObjects:
    """What a trace made, by id; an object stays alive as long as its id is in use here."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        """Objects that exist in the trace only."""
        self.births: dict[int, Builder] = {}
        """Where these were made: they are there in that block and all inside of it."""
        self.remade: set[int] = set()
        """Those among them that were put together again of values: the run has the object itself elsewhere."""
        self.library: dict[int, tuple[Any, Builder]] = {}
        """Arrays and library objects, and the block in which they were made."""
        self.classes: dict[int, type] = {}
        """Classes that a `class` statement made."""
        self.iterators: dict[int, tuple[Any, Any]] = {}
        """Iterators of Python's, and the block in which they were made; None where only the run tells their place."""
        self.is_pulling = False
        """Whether an iterator from outside is pulled, so that what pulls can only run once."""
        self.generators: list[weakref.ref[Any]] = []
        """Generators of Python's; what forgets one closes it, where eager mode does."""
        self.dropped: list[Any] = []
        """Those of what was traced and given up: nothing in them may run before the trace has ended."""
        self.constructing: set[int] = set()
        """Objects whose `__init__` runs."""

    def note(self, x: Any, builder: Builder) -> None:
        """Note an object that was made where a builder stands."""
        self.objects[id(x)] = x
        self.births[id(x)] = builder

    def note_iterator(self, x: Any, block: Any) -> None:
        """Note the block in which an iterator of Python's was made."""
        kept, number = x, id(x)
        if is_generator(x):
            kept = weakref.ref(x, lambda _: self.iterators.pop(number, None))
            self.generators.append(kept)
        self.iterators[number] = kept, block

    def around(self, builder: Builder) -> set[int]:
        """Return the ids of the objects that were made in a block and in those around it."""
        around: set[int] = set()
        block: Builder | None = builder
        while block is not None:
            around.add(id(block))
            block = block.parent
        return {i for i, builder in self.births.items() if id(builder) in around}

    def once(self, root: Builder) -> set[int]:
        """Return the ids of the objects that were made outside of any branch or loop: one each in every run."""
        return {i for i, builder in self.births.items() if builder is root and i not in self.remade}
