"""Factories: which class makes the observers and quanters of layers, with which arguments."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from dy2st.nn.layer import Layer
from dy2st.quantization.base import BaseQuanter

Made = TypeVar("Made", bound=type[BaseQuanter])


class QuanterFactory:
    """Makes observers or quanters of one class, each for a layer, with the same arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.args, self.kwargs = args, kwargs

    @abstractmethod
    def _get_class(self) -> type[BaseQuanter]:
        """Return the class, which takes the layer and then the arguments."""

    def _instance(self, layer: Layer) -> Any:
        made: Any = self._get_class()
        return made(layer, *self.args, **self.kwargs)

    def __repr__(self) -> str:
        given = [*map(str, self.args), *(f"{name}={value}" for name, value in self.kwargs.items())]
        return f"{type(self).__name__}({','.join(given)})"


ObserverFactory = QuanterFactory


def quanter(class_name: str) -> Callable[[Made], Made]:
    """Declare, in the module of the decorated class, a factory of this name for it.

    The class takes the layer first, then the arguments that the factory is given.

    >>> import dy2st as paddle
    >>> from dy2st.quantization import BaseQuanter, quanter
    >>> @quanter("Halves")
    ... class HalvesLayer(BaseQuanter):
    ...     def __init__(self, layer, step):
    ...         super().__init__()
    ...         self.step = step
    ...     def forward(self, input):
    ...         return (input / self.step).round() * self.step
    >>> Halves(0.5)._instance(None)(paddle.to_tensor([0.6])).tolist()
    [0.5]
    """
    names = sys._getframe(1).f_globals

    def declare(of: Made) -> Made:
        def get_class(self: QuanterFactory) -> type[BaseQuanter]:
            return of

        factory = type(class_name, (QuanterFactory,), {"_get_class": get_class, "__module__": of.__module__})
        names[class_name] = factory
        if "__all__" in names:
            names["__all__"].append(class_name)
        return of

    return declare
