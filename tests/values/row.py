"""One row of a table of values: a public name, the arguments of one call, and what the call must give.

Rows import neither dy2st nor Paddle, so that the same rows run through either. Arrays stand where the call takes
tensors; floats in them are exact in float32, so that what a row wants holds in both precisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """A call and its result.

    `want` is the result, or a function of the arguments that computes it; a tuple where there are several results, None
    in the place of one that is not compared.
    """

    name: str
    args: tuple[Any, ...]
    want: Any
    keywords: dict[str, Any] = field(default_factory=dict)
    form: str = "function"
    """How the name is used: function, method or attribute (of the first argument), layer (made, called), in place."""
    made_with: tuple[Any, ...] = ()
    """The arguments that make a layer; `keywords` make it too."""
    state: dict[str, Any] = field(default_factory=dict)
    """Arrays that are written into a layer before it is called."""
    variants: tuple[str, ...] = ("float64", "float32", "strided", "program")
    tolerance: tuple[float, float] = (1e-9, 1e-5)
    """Relative, in float64 and in float32."""
    known_extents: bool = False
    """The Program needs to know extents: what the call gives depends on them."""

    def but(self, **changes: Any) -> Row:
        """Return the row with some fields changed."""
        return replace(self, **changes)

    def only(self, *variants: str) -> Row:
        """Return the row with fewer variants."""
        return replace(self, variants=variants)

    def wanted(self) -> Any:
        """Return what the call must give."""
        return self.want(*self.args) if callable(self.want) else self.want

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Of:
    """An argument that the module under test makes, such as a ParamAttr."""

    make: Callable[[Any], Any]


EAGER = ("float64", "float32", "strided")


def row(name: str, args: tuple[Any, ...], want: Any, **keywords: Any) -> Row:
    """Return the row of a function."""
    return Row(name, args, want, keywords)


def attribute(name: str, x: Any, want: Any) -> Row:
    """Return the row of an attribute of a tensor."""
    return Row(f"Tensor.{name}", (x,), want, form="attribute", variants=EAGER)


def method(name: str, args: tuple[Any, ...], want: Any, **keywords: Any) -> Row:
    """Return the row of a method that is no function."""
    return Row(f"Tensor.{name}", args, want, keywords, form="method", variants=EAGER)


def layer(name: str, made_with: tuple[Any, ...], args: tuple[Any, ...], want: Any, **keywords: Any) -> Row:
    """Return the row of a layer: made with these arguments and keywords, called on `args`."""
    return Row(name, args, want, keywords, form="layer", made_with=made_with)


NOT_FINITE = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


def everywhere(name: str, reference: Callable[..., Any], *operands: Any, **keywords: Any) -> Iterator[Row]:
    """Yield rows of a function that works element by element: whole, 0-D, empty, broadcast, and not finite."""
    yield row(name, operands, reference, **keywords)
    edge = ("float64", "float32")
    yield row(name, tuple(x.ravel()[:1].reshape(()) for x in operands), reference, **keywords).only(*edge)
    yield row(name, tuple(x[:0] for x in operands), reference, **keywords).only(*edge)
    if len(operands) == 2:
        x, y = operands
        yield row(name, (x[:, None], y[0]), reference, **keywords).but(known_extents=True)
        if x.dtype.kind == "f":
            pairs = np.meshgrid(NOT_FINITE, NOT_FINITE)
            yield row(name, (pairs[0].ravel(), pairs[1].ravel()), _quiet(reference), **keywords).only(*edge)
    elif operands[0].dtype.kind == "f":
        yield row(name, (NOT_FINITE,), _quiet(reference), **keywords).only(*edge)


def _quiet(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with NumPy's warnings off: they are about the numbers that the row is about."""

    def computed(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return reference(*operands)

    return computed
