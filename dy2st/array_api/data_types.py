"""Data types by the array API standard, and what this namespace says of itself (`__array_namespace_info__`)."""

from __future__ import annotations

from functools import reduce
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core import defaults
from dy2st.functions.core.assigning import clone
from dy2st.functions.core.operands import cast_to, default_dtype
from dy2st.functions.device_transfer import to
from dy2st.records import record
from dy2st.runtime.eager import device as places
from dy2st.runtime.eager.tensor import Tensor

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_WIDENS = {"b": "b", "u": "iu", "i": "i", "f": "fc", "c": "c"}


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return x in another dtype; a copy where it has that dtype, unless `copy` is false."""
    made = cast_to(x, as_dtype(dtype))
    made = clone(x) if copy and made is x else made
    return made if device is None else to(made, device=device)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether every value of one dtype (or of the dtype of a tensor) has its place in another."""
    given, wanted = from_.dtype if isinstance(from_, Tensor) else as_dtype(from_), as_dtype(to)
    return given is wanted or (wanted.kind in _WIDENS[given.kind] and dtypes.promote(given, wanted) is wanted)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind ("real floating", ...), is another dtype, or one of several of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str) and kind not in _KINDS:
        raise ValueError(f"isdtype: {kind!r} is no kind of dtype; the kinds are {', '.join(_KINDS)}")
    return as_dtype(dtype).kind in _KINDS[kind] if isinstance(kind, str) else as_dtype(dtype) is as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype in which tensors, dtypes and Python numbers meet."""
    numbers = [a for a in arrays_and_dtypes if isinstance(a, (bool, int, float, complex))]
    others = [a.dtype if isinstance(a, Tensor) else as_dtype(a) for a in arrays_and_dtypes if a not in numbers]
    if not others:
        raise ValueError("result_type needs a tensor or a dtype: Python numbers alone have none")
    return reduce(lambda t, n: dtypes.promote_number(t, n, default_dtype()), numbers, reduce(dtypes.promote, others))


@record(frozen=True)
class FloatInfo:
    """The limits of a float dtype; of a complex one those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a float or complex dtype, of a tensor's where one is given."""
    limits = defaults.finfo(type.dtype if isinstance(type, Tensor) else type)
    numbers = (float(n) for n in (limits.eps, limits.max, limits.min, limits.smallest_normal))
    return FloatInfo(limits.bits, *numbers, dtype=as_dtype(limits.dtype))


def iinfo(type: Any, /) -> Any:
    """Return the limits of an integer dtype, of a tensor's where one is given."""
    return defaults.iinfo(type.dtype if isinstance(type, Tensor) else type)


@record(frozen=True)
class Info:
    """What the namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Say that bool masks and shapes that depend on data are there, and how many axes at most."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the place where tensors are made."""
        return places.current_place()

    def devices(self) -> list[Any]:
        """Return the places of this machine that are used so far."""
        return [places.CPU] if self.default_device() == places.CPU else [places.CPU, self.default_device()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Return the dtypes of results for which none is said."""
        real = default_dtype()
        wide = dtypes.complex128 if real is dtypes.float64 else dtypes.complex64
        integral = dtypes.int64
        return {"real floating": real, "complex floating": wide, "integral": integral, "indexing": integral}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Return the dtypes by name, those of some kinds where `kind` says so."""
        return {
            t.name: t
            for t in dtypes.ALL
            if t not in (dtypes.float16, dtypes.bfloat16) and (kind is None or isdtype(t, kind))
        }


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return what this namespace can do."""
    return Info()
