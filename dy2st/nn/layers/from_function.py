"""Layers made from functions: a table row says the function and which of its arguments the layer keeps."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dy2st.nn.layer import Layer

REQUIRED = inspect.Parameter.empty


def layer_of(name: str, function: Callable[..., Any], doc: str, module: str, **options: Any) -> type[Layer]:
    """Return a Layer class whose forward calls `function`; `options` are the constructor's arguments with defaults.

    An option whose default is REQUIRED has none. The layer keeps each option as an attribute of its name.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(option, kind, default=default) for option, default in options.items()]
        + [inspect.Parameter("name", kind, default=None)]
    )

    def __init__(self: Layer, *arguments: Any, **keywords: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        bound.apply_defaults()
        Layer.__init__(self)
        for option in options:
            setattr(self, f"_{option}", bound.arguments[option])

    def forward(self: Layer, *inputs: Any) -> Any:
        return function(*inputs, **{option: getattr(self, f"_{option}") for option in options})

    def extra_repr(self: Layer) -> str:
        return ", ".join(f"{option}={getattr(self, f'_{option}')}" for option in options)

    members = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": doc}
    made = type(name, (Layer,), {**members, "__module__": module, "__signature__": signature})
    for member in (__init__, forward, extra_repr):
        member.__qualname__ = f"{name}.{member.__name__}"
        member.__module__ = module
    return made
