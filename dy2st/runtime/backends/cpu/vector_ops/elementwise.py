"""Elementwise operations on registers: one element, or one vector of `lanes` elements.

Booleans are `i1` in registers. Semantics are those of NumPy on the same dtype: integers wrap, maximum and minimum hand
NaN on, a comparison with NaN is false.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.dtypes import DType, bfloat16, bool_, float16, float64, int32
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, tensor_type
from dy2st.ops.core.constant import Cast
from dy2st.ops.elementwise.arithmetic import Add
from dy2st.ops.elementwise.comparison import BitwiseNot, IsFinite, IsInf, IsNan, LogicalNot
from dy2st.ops.elementwise.gcd_nextafter import NextAfter
from dy2st.ops.elementwise.minimum_maximum import FMax, FMin, Maximum
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind, in_nests
from dy2st.runtime.backends.cpu.vector_ops import integer_functions
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPARISONS = {"lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"),
                "ge": ("oge", "sge", "uge"), "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne")}  # fmt: skip

Compute = Callable[..., str]
RULES: dict[str, Compute] = {}
_OF_FLOATS: set[str] = set()


def _rule(*names: str, of_floats: bool = False) -> Callable[[Compute], Compute]:
    def enter(compute: Compute) -> Compute:
        RULES.update(dict.fromkeys(names, compute))
        if of_floats:
            _OF_FLOATS.update(names)
        return compute

    return enter


def is_long(op: OpDef) -> bool:
    """Return whether an op takes many instructions, each of which waits for the one before."""
    return bool(op.formula) or op.random_elementwise or op.name in integer_functions.FUNCTIONS


def is_dear(op: OpDef) -> bool:
    """Return whether the result of an op is better kept than computed twice."""
    return op.long_latency or is_long(op)


def computes(operation: Operation) -> bool:
    """Return whether `compute` can write this operation."""
    name = operation.op.name
    if name not in RULES and not operation.op.formula and name not in integer_functions.FUNCTIONS:
        return False
    dtypes = [tensor_type(v).dtype for v in (*operation.operands, *operation.results)]
    if not all(map(in_nests, dtypes)):
        return False
    floats = all(d.name in _FLOATS for d in dtypes)
    if isinstance(operation.op, Cast) and dtypes == [float64, float16]:
        return False  # by way of float32 it would be rounded twice, as it is to bfloat16
    if isinstance(operation.op, NextAfter) and bfloat16 in dtypes:
        return False
    if name in RULES:
        return floats or name not in _OF_FLOATS
    if floats:
        return bool(operation.op.formula)
    return name in integer_functions.FUNCTIONS and all(d.is_integer and d is dtypes[0] for d in dtypes)


def compute(lanes: VectorType, operation: Operation, registers: list[str]) -> str:
    """Write an operation on registers; return the register of its result."""
    return lanes.rounded(tensor_type(operation.results[0]).dtype, _computed(lanes, operation, registers))


def _computed(lanes: VectorType, operation: Operation, registers: list[str]) -> str:
    name, dtype = operation.op.name, tensor_type(operation.operands[0]).dtype
    if name in RULES:
        return RULES[name](lanes, operation, dtype, *registers)
    if isinstance(operation.op, NextAfter) and dtype is float16:
        return _next_half(lanes, *registers)
    if dtype.is_integer:
        return integer_functions.FUNCTIONS[name](lanes, dtype, *registers)
    return lanes.math(name, dtype, *registers)


@_rule("add", "sub", "mul")
def _arithmetic(v: VectorType, o: Operation, dtype: DType, a: str, b: str) -> str:
    if dtype.is_bool:
        return v.f.value(f"{'or' if isinstance(o.op, Add) else 'and'} {v.of(dtype)} {a}, {b}")
    return v.f.value(f"{'f' * dtype.is_floating}{o.name} {v.of(dtype)} {a}, {b}")


@_rule("div", of_floats=True)
def _quotient(v: VectorType, o: Operation, dtype: DType, a: str, b: str) -> str:
    return v.f.value(f"fdiv {v.of(dtype)} {a}, {b}")


@_rule("neg")
def _negative(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return v.f.value(
        f"fneg {v.of(dtype)} {a}" if dtype.is_floating else f"sub {v.of(dtype)} {v.constant(0, dtype)}, {a}"
    )


@_rule("square")
def _square(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return v.f.value(f"{'fmul' if dtype.is_floating else 'mul'} {v.of(dtype)} {a}, {a}")


@_rule("reciprocal", of_floats=True)
def _reciprocal(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return v.f.value(f"fdiv {v.of(dtype)} {v.constant(1, dtype)}, {a}")


@_rule("sqrt", of_floats=True)
def _root(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return v.intrinsic("sqrt", dtype, a)


@_rule("safe_mul")
def _safe_product(v: VectorType, o: Operation, dtype: DType, a: str, b: str) -> str:
    zero = v.constant(0, dtype)
    product = v.f.value(f"fmul {v.of(dtype)} {a}, {b}")
    nothing = f"{v.kind('i1')} {_compared(v, 'eq', dtype, a, zero)}"
    either = v.f.value(f"or {nothing}, {_compared(v, 'eq', dtype, b, zero)}")
    return v.select(either, zero, product, dtype)


def _compared(v: VectorType, name: str, dtype: DType, a: str, b: str) -> str:
    ordered, signed, unsigned = _COMPARISONS[name]
    if dtype.is_floating:
        return v.f.value(f"fcmp {ordered} {v.of(dtype)} {a}, {b}")
    return v.f.value(f"icmp {unsigned if dtype.kind in 'bu' else signed} {v.of(dtype)} {a}, {b}")


@_rule(*_COMPARISONS)
def _comparison(v: VectorType, o: Operation, dtype: DType, a: str, b: str) -> str:
    return _compared(v, o.name, dtype, a, b)


def _is_nan(v: VectorType, dtype: DType, a: str) -> str:
    return v.f.value(f"fcmp uno {v.of(dtype)} {a}, {a}")


@_rule("maximum", "minimum", "fmax", "fmin")
def _extremum(v: VectorType, o: Operation, dtype: DType, a: str, b: str) -> str:
    """NumPy gives the second operand where the two are equal, the first one of float16: zeros may differ in sign.

    It gives a NaN that is there (or skips it: fmax, fmin).
    """
    test = "g" if isinstance(o.op, (FMax, Maximum)) else "l"
    first = _compared(v, f"{test}{'e' if dtype is float16 else 't'}", dtype, a, b)
    if dtype.is_floating:
        missing = _is_nan(v, dtype, b if isinstance(o.op, (FMax, FMin)) else a)
        first = v.f.value(f"or {v.kind('i1')} {first}, {missing}")
    return v.select(first, a, b, dtype)


@_rule("relu")
def _positive_part(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    zero = v.constant(0, dtype)
    return v.select(_compared(v, "lt" if dtype is float16 else "le", dtype, a, zero), zero, a, dtype)  # as `maximum`


@_rule("abs")
def _absolute(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    if dtype.kind in "bu":
        return a
    if dtype.is_floating:
        return v.intrinsic("fabs", dtype, a)
    return v.select(_compared(v, "lt", dtype, a, v.constant(0, dtype)), _negative(v, o, dtype, a), a, dtype)


@_rule("sign")
def _sign(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    zero, one = v.constant(0, dtype), v.constant(1, dtype)
    if dtype.kind in "bu":
        return v.select(_compared(v, "ne", dtype, a, zero), one, zero, dtype)
    size = v.select(_compared(v, "gt", dtype, a, zero), one, zero, dtype)
    signed = v.select(_compared(v, "lt", dtype, a, zero), v.constant(-1, dtype), size, dtype)
    return v.select(_is_nan(v, dtype, a), a, signed, dtype) if dtype.is_floating else signed


@_rule("floor", "ceil", "trunc", "rint")
def _rounded(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return v.intrinsic(o.name, dtype, a) if dtype.is_floating else a


@_rule("round")
def _nearest(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    """Half away from zero."""
    if not dtype.is_floating:
        return a
    kind = v.of(dtype)
    whole = v.intrinsic("trunc", dtype, a)
    rest = v.intrinsic("fabs", dtype, v.f.value(f"fsub {kind} {a}, {whole}"))
    far = _compared(v, "ge", dtype, rest, v.constant(0.5, dtype))
    step = v.select(far, v.constant(1, dtype), v.constant(0, dtype), dtype)
    return v.f.value(f"fadd {kind} {whole}, {_with_sign(v, dtype, step, a)}")


def _with_sign(v: VectorType, dtype: DType, size: str, sign: str) -> str:
    return v.intrinsic("copysign", dtype, size, sign)


@_rule("where")
def _where(v: VectorType, o: Operation, dtype: DType, condition: str, a: str, b: str) -> str:
    return v.select(condition, a, b, tensor_type(o.results[0]).dtype)


@_rule("isnan", "isinf", "isfinite")
def _special(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    if not dtype.is_floating:
        return v.constant(isinstance(o.op, IsFinite), bool_)
    if isinstance(o.op, IsNan):
        return _is_nan(v, dtype, a)
    size, infinite = v.intrinsic("fabs", dtype, a), v.constant(float("inf"), dtype)
    return _compared(v, "eq" if isinstance(o.op, IsInf) else "lt", dtype, size, infinite)


@_rule("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(v: VectorType, o: Operation, dtype: DType, *registers: str) -> str:
    true = [r if dtype.is_bool else _compared(v, "ne", dtype, r, v.constant(0, dtype)) for r in registers]
    if isinstance(o.op, LogicalNot):
        return v.f.value(f"xor {v.kind('i1')} {true[0]}, {v.constant(True, bool_)}")
    return v.f.value(f"{o.name.removeprefix('logical_')} {v.kind('i1')} {true[0]}, {true[1]}")


@_rule("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _bitwise(v: VectorType, o: Operation, dtype: DType, *registers: str) -> str:
    if isinstance(o.op, BitwiseNot):
        return v.f.value(f"xor {v.of(dtype)} {registers[0]}, {v.constant(True if dtype.is_bool else -1, dtype)}")
    return v.f.value(f"{o.name.removeprefix('bitwise_')} {v.of(dtype)} {registers[0]}, {registers[1]}")


@_rule("detach")
def _same(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return a


@_rule("zeros_like", "ones_like")
def _filled(v: VectorType, o: Operation, dtype: DType, *_: str) -> str:
    return v.constant(o.op.splat or 0, tensor_type(o.results[0]).dtype)


@_rule("gelu", of_floats=True)
def _gelu(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    """The exact form by the tail of the normal distribution; the one by tanh as elementwise/activations.py has it."""
    if not o.attributes["approximate"]:
        return v.math("gelu", dtype, a)
    if v.is_better("activations.gelu_tanh", dtype):
        return v.math("activations.gelu_tanh", dtype, a)
    kind = v.of(dtype)
    half = v.f.value(f"fmul {kind} {v.constant(0.5, dtype)}, {a}")
    cube = v.f.value(f"fmul {kind} {a}, {v.f.value(f'fmul {kind} {a}, {a}')}")
    inner = v.f.value(f"fadd {kind} {a}, {v.f.value(f'fmul {kind} {v.constant(0.044715, dtype)}, {cube}')}")
    curve = v.math("tanh", dtype, v.f.value(f"fmul {kind} {v.constant(0.7978845608028654, dtype)}, {inner}"))
    return v.f.value(f"fmul {kind} {half}, {v.f.value(f'fadd {kind} {curve}, {v.constant(1, dtype)}')}")


@_rule("softplus", of_floats=True)
def _softplus(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    """max(s, 0) + log1p(e ** -|s|) of s = beta * x, and x where s is above the threshold."""
    kind, f = v.of(dtype), v.f
    beta = v.constant(o.attributes["beta"], dtype)
    scaled = f.value(f"fmul {kind} {beta}, {a}")
    total = _softplus_of(v, dtype, scaled)
    curve = f.value(f"fdiv {kind} {total}, {beta}")
    linear = _compared(v, "gt", dtype, scaled, v.constant(o.attributes["threshold"], dtype))
    return v.select(linear, a, curve, dtype)


def _softplus_of(v: VectorType, dtype: DType, scaled: str) -> str:
    """Write max(s, 0) + log1p(e ** -|s|)."""
    if v.is_better("softplus", dtype):
        return v.math("softplus", dtype, scaled)
    kind, f = v.of(dtype), v.f
    away = f.value(f"fneg {kind} {v.intrinsic('fabs', dtype, scaled)}")
    small = v.math("log1p", dtype, v.math("exp", dtype, away))
    below = _compared(v, "lt", dtype, scaled, v.constant(0, dtype))
    large = v.select(below, v.constant(0, dtype), scaled, dtype)
    return f.value(f"fadd {kind} {large}, {small}")


def _next_half(v: VectorType, a: str, b: str) -> str:
    """The next number of float16, which is another than that of the float32 in the register."""
    f, short, dtype = v.f, v.kind("i16"), float16
    kind, zero = v.of(dtype), v.constant(0, dtype)
    below, negative = (_compared(v, "lt", dtype, a, other) for other in (b, zero))
    outward = f.value(f"xor {v.kind('i1')} {below}, {negative}")
    up, down = ("1", "-1") if v.count == 1 else ("splat (i16 1)", "splat (i16 -1)")
    step = f.value(f"select {v.kind('i1')} {outward}, {short} {up}, {short} {down}")
    moved = v.widened(dtype, f.value(f"add {short} {v.narrowed(dtype, a)}, {step}"))
    least = v.intrinsic("copysign", dtype, v.constant(2.0**-24, dtype), b)
    moved = v.select(_compared(v, "eq", dtype, a, zero), least, moved, dtype)
    moved = v.select(_compared(v, "eq", dtype, a, b), a, moved, dtype)
    missing = f.value(f"fcmp uno {kind} {a}, {b}")
    return v.select(missing, f.value(f"fadd {kind} {a}, {b}"), moved, dtype)


@_rule("cast")
def _cast(v: VectorType, o: Operation, dtype: DType, a: str) -> str:
    return converted(v, a, dtype, o.attributes["dtype"])


def converted(v: VectorType, a: str, dtype: DType, into: DType) -> str:
    """Write elements of one dtype as those of another, as C does."""
    if dtype is into:
        return a
    if into.is_bool:
        return _compared(v, "ne", dtype, a, v.constant(0, dtype))
    if element_kind(dtype) == element_kind(into):
        return a
    if dtype.is_floating and into.is_floating:
        word = "fpext" if into.bits > dtype.bits else "fptrunc"
    elif dtype.is_floating:
        if into.bits < 32:  # by way of 32 bits, of which the lower ones are taken
            return converted(v, converted(v, a, dtype, int32), int32, into)
        word = "fptosi"
    elif into.is_floating:
        word = "uitofp" if dtype.kind in "bu" else "sitofp"
    elif dtype.is_bool or into.bits > dtype.bits:
        word = "zext" if dtype.kind in "bu" else "sext"
    else:
        if into.bits == dtype.bits:
            return a
        word = "trunc"
    return v.f.value(f"{word} {v.of(dtype)} {a} to {v.of(into)}")
