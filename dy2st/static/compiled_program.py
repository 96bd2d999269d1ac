"""`CompiledProgram` and the strategies of Paddle 1.x and 2.x: names for what the Executor does by itself."""

from __future__ import annotations

from typing import Any

from dy2st.static.program import Program


class BuildStrategy:
    """Settings for the passes; any attribute can be set, the passes need none of them."""


class ExecutionStrategy:
    """Settings for the run; any attribute can be set, the Executor needs none of them."""


class CompiledProgram:
    """A Program to be run by the Executor, which compiles every Program at its first run."""

    def __init__(self, program_or_graph: Any, build_strategy: BuildStrategy | None = None):
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram needs a Program, not {type(program_or_graph).__name__}")
        self.program = program_or_graph

    def with_data_parallel(self, *arguments: Any, **keywords: Any) -> CompiledProgram:
        """Return the Program itself: there is one device."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "program":
            raise AttributeError(name)
        return getattr(self.program, name)
