"""1.x's `fluid.dygraph.jit`: `declarative` is `to_static`; ProgramTranslator switches it for the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.ir.context import current
from dy2st.jit.api import enable_to_static, to_static
from dy2st.jit.static_function import StaticFunction

declarative = dygraph_to_static_output = to_static


class ProgramTranslator:
    """The switch of `to_static` for the process, and what it makes of functions.

    >>> import dy2st.fluid as fluid
    >>> translator = fluid.dygraph.ProgramTranslator()
    >>> translator.enable(True)
    >>> translator.enable_to_static
    True
    """

    @classmethod
    def get_instance(cls) -> ProgramTranslator:
        """Return the switch; all instances are the same one."""
        return cls()

    def enable(self, enable_to_static: bool) -> None:
        """Switch all `to_static` functions to Programs (True) or to eager mode (False)."""
        _switch(enable_to_static)

    @property
    def enable_to_static(self) -> bool:
        """Whether `to_static` functions run as Programs."""
        return current().process.to_static_enabled

    def get_output(self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a function gives for these arguments, run as a Program (eagerly where switched off)."""
        return _static(dygraph_func)(*args, **kwargs)

    def get_func(self, dygraph_func: Callable[..., Any]) -> StaticFunction:
        """Return the function that runs as a Program."""
        return _static(dygraph_func)

    def get_code(self, dygraph_func: Callable[..., Any]) -> str:
        """Return the converted source of a function."""
        return _static(dygraph_func).code

    def get_program(self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function once as a Program and return the Program."""
        static = _static(dygraph_func)
        static(*args, **kwargs)
        return static.concrete_program.main_program


_switch = enable_to_static


def _static(function: Any) -> StaticFunction:
    if not callable(function):
        raise TypeError(f"ProgramTranslator takes a function, not {type(function).__name__}")
    return function if isinstance(function, StaticFunction) else to_static(function)


__all__ = ["ProgramTranslator", "declarative", "dygraph_to_static_output"]
