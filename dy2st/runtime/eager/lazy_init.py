"""Values that a tensor gets when somebody first asks for them: those of large new parameters.

A model is mostly made to be loaded into, and then its initial values, drawn for half a second, are never looked at.
Such a tensor has an empty `payload`, for which Python asks `Tensor.__getattr__`; any other tensor costs nothing more.
What is drawn later are the numbers that would have been drawn at once: their place in the generator is taken here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.forks import Locked
from dy2st.ir.context import current, replaced
from dy2st.records import replace
from dy2st.runtime.eager.rng import Generator, default_generator
from dy2st.runtime.eager.tensor import Tensor

_LATE = "_late"


class _LateValues(Locked):
    """What a tensor will hold, and how that is computed."""

    def __init__(self, shape: tuple[int, ...], dtype: DType, make: Callable[[], Any]):
        super().__init__()
        self.shape, self.dtype, self._make = shape, dtype, make

    def put_into(self, x: Tensor) -> None:
        """Compute the values, once."""
        with self._lock:
            if _late(x) is not None:  # else another thread has computed them
                x.payload = self._make()
                x.__dict__.pop(_LATE)


def postpone(x: Tensor, shape: tuple[int, ...], dtype: DType, draw: Callable[[], Tensor]) -> None:
    """Let a tensor get its values from `draw`, which draws one random tensor, when somebody asks for them."""
    seed, number = default_generator().next()
    process = current().process

    def make() -> Any:
        generator = Generator(seed)
        generator.set_state((seed, number))
        alone = {"trace": None, "static": None, "grad": False, "amp": None, "layer": None, "saved": None}
        with replaced(**alone, process=replace(process, generator=generator)):
            return draw().payload

    x.__dict__[_LATE] = _LateValues(shape, dtype, make)
    del x.payload


def payload_of(x: Tensor) -> Any:
    """Compute the values of a tensor that has none yet; AttributeError where there is nothing to compute."""
    late = x.__dict__.get(_LATE)
    if late is None:
        raise AttributeError("payload")
    late.put_into(x)
    return x.payload


def shape_of(x: Tensor) -> list[Any]:
    """Return the shape of a tensor, without computing its values."""
    late = _late(x)
    return x.shape if late is None else list(late.shape)


def dtype_of(x: Tensor) -> DType:
    """Return the element type of a tensor, without computing its values."""
    late = _late(x)
    return x.dtype if late is None else late.dtype


@contextmanager
def overwritten(x: Tensor, new: Tensor) -> Iterator[None]:
    """Spare a tensor that is written as a whole the values that it has not yet; it gets them where the write fails."""
    late = _late(x)
    if late is None or list(late.shape) != list(new.shape):
        yield
        return
    x.payload = np.empty(late.shape, late.dtype.numpy)
    try:
        yield
    except BaseException:
        del x.payload
        raise
    x.__dict__.pop(_LATE)


def _late(x: Tensor) -> _LateValues | None:
    """Return what a tensor will hold; None where it holds something."""
    late = x.__dict__.get(_LATE)
    if late is None:
        return None
    try:
        Tensor.payload.__get__(x)
    except AttributeError:
        return late
    return None  # somebody gave it another payload
