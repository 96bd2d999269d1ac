"""Type rules of ops that go element by element, and of numbers: tables of what they take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import bool_, complex64, complex128, float32, float64, int64
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import BOOL, FLOAT, INT, ScalarType, TensorType, Type
from dy2st.shapes import Extent, broadcast

_PART = {complex64: float32, complex128: float64}
_WHOLE = {float32: complex64, float64: complex128}

# operands, kinds of elements, result (= that of the operands, ? bool, | the real part's): ops
_TABLE = """
1 fc    = acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sigmoid
1 fc    = silu gelu softplus log_sigmoid sin sinh sqrt tan tanh erf erfinv i0e i1e lgamma digamma
1 biufc = ones_like square relu sign neg conj round rint
1 biuf  = floor ceil trunc
1 biu   = bitwise_not
1 biufc | abs
1 c     | real imag
1 biufc ? logical_not isnan isinf isfinite
2 biufc = add sub mul safe_mul pow maximum minimum fmax fmin
2 fc    = div
2 f     = atan2 hypot nextafter gammainc gammaincc
2 biuf  = floordiv mod fmod
2 biu   = bitwise_and bitwise_or bitwise_xor
2 iu    = shift_left shift_right gcd lcm
2 biufc ? eq ne lt le gt ge logical_and logical_or logical_xor
"""


def _entered(count: int, kinds: str, result: str, names: Sequence[str]) -> None:
    @rule(" ".join(names), count)
    def _(g: TypedOperation) -> Sequence[Type]:
        first = g.tensors(0, kinds)[0]
        for i in range(1, count):
            g.same_shape(i)
        dtype = {"=": first.dtype, "?": bool_, "|": _PART.get(first.dtype, first.dtype)}[result]
        return (TensorType(dtype, first.shape),)


for _line in _TABLE.strip().splitlines():
    _count, _kinds, _result, *_names = _line.split()
    _entered(int(_count), _kinds, _result, _names)


@rule("where", 3)
def _where(g: TypedOperation) -> Sequence[Type]:
    g.tensor(0, "b")
    x, _ = g.tensors(1)
    g.same_shape(1)
    g.same_shape(2)
    return (TensorType(x.dtype, g.tensor(0).shape),)


@rule("complex", 2)
def _complex_(g: TypedOperation) -> Sequence[Type]:
    x, _ = g.tensors(0, "f")
    g.require(x.dtype in _WHOLE, f"operands are {x.dtype.name}")
    g.same_shape(1)
    return (TensorType(_WHOLE[x.dtype], x.shape),)


@rule("polygamma", 1)
def _polygamma(g: TypedOperation) -> Sequence[Type]:
    g.whole("n", 0, 1000)
    return (g.tensor(0, "f"),)


@rule("cast", 1)
def _cast(g: TypedOperation) -> Sequence[Type]:
    return (TensorType(g.dtype(), g.tensor(0).shape),)


# ---- numbers -------------------------------------------------------------------------------------------------------
_KINDS = {"i": "int", "f": "float", "b": "bool"}
_EXACT: dict[str, Callable[[Extent, Extent], Extent]] = {
    "scalar_add": lambda a, b: a + b, "scalar_sub": lambda a, b: a - b, "scalar_mul": lambda a, b: a * b,
}  # fmt: skip

# operands, kinds of numbers, result (~ a float where one is taken, else an int; & a bool where all are, else ~): ops
_NUMBERS = """
2 ifb f scalar_truediv
2 ifb b scalar_lt scalar_le scalar_eq scalar_ne scalar_gt scalar_ge
2 ifb ~ scalar_floordiv scalar_mod scalar_pow scalar_add scalar_sub scalar_mul
2 ifb & scalar_min scalar_max
2 ib  & scalar_and scalar_or scalar_xor
1 ifb ~ scalar_neg scalar_abs
1 ifb b scalar_not scalar_bool
1 ifb i scalar_int
1 ifb f scalar_float
"""


def _of_numbers(count: int, kinds: str, result: str, names: Sequence[str]) -> None:
    @rule(" ".join(names), count)
    def _(g: TypedOperation) -> Sequence[Type]:
        given = [g.number(i, *(_KINDS[k] for k in kinds)) for i in range(count)]
        if result in _KINDS:
            return (ScalarType(_KINDS[result]),)
        if result == "&" and all(t.kind == "bool" for t in given):
            return (BOOL,)
        if any(t.kind == "float" for t in given):
            return (FLOAT,)
        a, b = given[0].extent, given[-1].extent
        known = None if a is None or b is None or g.name not in _EXACT else _EXACT[g.name](a, b)
        return (ScalarType("int", known),)


for _line in _NUMBERS.strip().splitlines():
    _count, _kinds, _result, *_names = _line.split()
    _of_numbers(int(_count), _kinds, _result, _names)


@rule("scalar_constant", 0)
def _constant(g: TypedOperation) -> Sequence[Type]:
    value = g.attribute("value")
    if type(value) is int:
        return (ScalarType("int", value),)
    return (BOOL if type(value) is bool else FLOAT if type(value) is float else g.refuse(f"value is {value!r:.40}"),)


@rule("scalar_round", 1)
def _rounded(g: TypedOperation) -> Sequence[Type]:
    digits, kind = g.attribute("digits"), g.number(0, "int", "float", "bool").kind
    g.require(digits is None or g.small(digits, "digits", -400, 400) == digits, "digits")
    return (FLOAT if kind == "float" and digits is not None else INT,)


@rule("scalar_to_tensor", 1)
def _to_tensor(g: TypedOperation) -> Sequence[Type]:
    g.number(0, "int", "float", "bool")
    return (TensorType(g.dtype(), ()),)


@rule("item", 1)
def _item(g: TypedOperation) -> Sequence[Type]:
    kind = g.tensor(0, "biuf").dtype.kind
    return (BOOL if kind == "b" else INT if kind in "iu" else FLOAT,)


@rule("broadcast_extent", 2)
def _broadcast_extent(g: TypedOperation) -> Sequence[Type]:
    a, b = g.number(0).extent, g.number(1).extent
    if a is not None and b is not None:
        if isinstance(a, int) and isinstance(b, int) and a != b and 1 not in (a, b):
            return (INT,)  # the run raises
        return (ScalarType("int", broadcast(a, b)),)
    known = b if a is None else a
    return (ScalarType("int", known if isinstance(known, int) and known != 1 else None),)


def accumulated(t: TensorType) -> TensorType:
    """Return the type in which elements are added up, or multiplied."""
    return TensorType(int64, t.shape) if t.dtype.kind in "biu" else t
