"""A Python number inside a Program: what `x.shape[0]`, `len(x)`, `x.item()` give in a trace.

It does arithmetic and comparisons by Python's rules, and meets a tensor as a Python number would. Where Python itself
needs the number (an index into a Python list, `if` in code that was not converted) it raises NeedsPythonValue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dy2st.errors import NeedsPythonValue
from dy2st.ir.context import current
from dy2st.ir.location import frame_at, is_user_frame
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType
from dy2st.runtime.eager.tensor import Tensor, needs_value

Number = (bool, int, float)


class Scalar:
    """Hold the `ir.Value` of a Python int, float or bool; `choices` are its possible values where they are known."""

    __slots__ = ("choices", "value")
    # Attached below, each a scalar op:
    __add__: Callable[..., Any]
    __radd__: Callable[..., Any]
    __sub__: Callable[..., Any]
    __rsub__: Callable[..., Any]
    __mul__: Callable[..., Any]
    __rmul__: Callable[..., Any]
    __truediv__: Callable[..., Any]
    __rtruediv__: Callable[..., Any]
    __floordiv__: Callable[..., Any]
    __rfloordiv__: Callable[..., Any]
    __mod__: Callable[..., Any]
    __rmod__: Callable[..., Any]
    __pow__: Callable[..., Any]
    __rpow__: Callable[..., Any]
    __and__: Callable[..., Any]
    __rand__: Callable[..., Any]
    __or__: Callable[..., Any]
    __ror__: Callable[..., Any]
    __xor__: Callable[..., Any]
    __rxor__: Callable[..., Any]
    __lt__: Callable[..., Any]
    __le__: Callable[..., Any]
    __gt__: Callable[..., Any]
    __ge__: Callable[..., Any]
    __neg__: Callable[..., Any]
    __pos__: Callable[..., Any]
    __abs__: Callable[..., Any]

    if TYPE_CHECKING:

        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

    def __init__(self, value: Value, choices: tuple[Any, ...] | None = None):
        self.value, self.choices = value, choices

    @property
    def kind(self) -> str:
        """What Python calls the number's type: int, float or bool."""
        assert isinstance(self.value.type, ScalarType)
        return self.value.type.kind

    @property
    def python_type(self) -> type:
        """The type that the number has when the Program runs."""
        return {"int": int, "float": float, "bool": bool}[self.kind]

    def __getattr__(self, name: str) -> Any:
        """Raise NeedsPythonValue for what numbers of Python have, AttributeError for what they have not."""
        if name.startswith("__") or name in self.__slots__:  # a copy or a pickle asks what has no value yet
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
        if hasattr(self.python_type, name):
            raise self.asked(f".{name} of a number that only the run will tell was needed")
        raise AttributeError(f"'{self.kind}' object has no attribute '{name}'", name=name, obj=self)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """The class itself; for `isinstance` in code that is not converted it would have to be int, float or bool."""
        if getattr(current().trace, "natively", 0) and is_user_frame(frame_at(1)):
            raise self.asked("code that is not converted looks at the type of a number that only the run will tell")
        return type(self)

    def _known(self, message: str) -> int:
        """Return the number where all calls have the same, such as `n - n`."""
        if isinstance(extent := self.value.type.extent, int):  # type: ignore[union-attr]
            return extent
        raise self.asked(message)

    def asked(self, message: str, hint: str | None = None) -> NeedsPythonValue:
        """Return the error for code that asks for the number itself."""
        return needs_value(message, hint, [self])

    def __bool__(self) -> bool:
        raise self.asked(f"the truth of a symbolic {self.kind} was needed as a Python bool")

    def __int__(self) -> int:
        return self._known(f"a symbolic {self.kind} was needed as a Python int")

    def __float__(self) -> float:
        return float(self._known(f"a symbolic {self.kind} was needed as a Python float"))

    def __index__(self) -> int:
        return self._known(f"a symbolic {self.kind} was needed as a Python int (an index or a count)")

    def __hash__(self) -> int:
        return hash(self._known(f"the hash of a symbolic {self.kind} was needed (a key, or an item of a set)"))

    def __repr__(self) -> str:
        if getattr(current().trace, "natively", 0):
            raise self.asked("code that is not converted needs the text of a number that only the run will tell")
        kind = self.value.type
        if isinstance(kind, ScalarType) and kind.extent is not None:
            return str(kind.extent)  # as other messages name it
        return f"Scalar({kind})"

    def __format__(self, spec: str) -> str:
        raise self.asked(f"a symbolic {self.kind} was needed as text")

    __str__ = __repr__

    def item(self) -> Scalar:
        """Return the number itself."""
        return self

    def __round__(self, digits: int | None = None) -> Scalar:
        return Scalar(current().trace.emit("scalar_round", [self.value], {"digits": digits}))

    def __trunc__(self) -> Scalar:
        return self if self.kind == "int" else Scalar(current().trace.emit("scalar_int", [self.value]))

    def __floor__(self) -> Scalar:
        return (self // 1).__trunc__()

    def __ceil__(self) -> Scalar:
        return -((-self).__floor__())

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __invert__(self) -> Scalar:
        return -self - 1

    def __lshift__(self, other: Any) -> Any:
        return self * 2**other

    def __rlshift__(self, other: Any) -> Any:
        return other * 2**self

    def __rshift__(self, other: Any) -> Any:
        return self // 2**other

    def __rrshift__(self, other: Any) -> Any:
        return other // 2**self

    @property
    def real(self) -> Scalar:
        """The number itself."""
        return self

    def is_integer(self) -> Any:
        """Return whether a float is a whole number."""
        return self == self.__trunc__()


def unary(name: str, a: Scalar) -> Scalar:
    """Emit a scalar op of one operand."""
    return Scalar(current().trace.emit(name, [a.value]))


def binary(name: str, a: Any, b: Any) -> Any:
    """Emit a scalar op of two operands, each a Scalar or a Python number."""
    trace = current().trace
    return Scalar(trace.emit(name, [trace.scalar(a), trace.scalar(b)]))


class NumPyNumber(Scalar):
    """A NumPy scalar inside a Program: what the run knows of it is the number, so it can only meet tensors.

    There it counts as the Python number that it holds, as in eager code. Whatever asks for anything else (NumPy's
    arithmetic, its dtype, its text) raises NeedsPythonValue.
    """

    __slots__ = ("_number",)

    def __init__(self, number: Scalar):
        self._number = number
        self.choices = None

    @property
    def value(self) -> Value:
        """Raise NeedsPythonValue."""
        raise needs_value("a NumPy scalar that changes from call to call was needed as an object of NumPy")

    @property
    def kind(self) -> str:
        """What Python calls the number's type: int or float."""
        return self._number.kind

    @property
    def python_type(self) -> type:
        """Raise NeedsPythonValue."""
        return type(self.value)

    def item(self) -> Scalar:
        """Return the number as one of Python's."""
        return self._number

    def __getattr__(self, name: str) -> Any:
        raise needs_value(f".{name} of a NumPy scalar that changes from call to call was needed")

    def __repr__(self) -> str:
        return f"NumPyNumber({self._number!r})"


def _forward(name: str) -> Callable[[Scalar, Any], Any]:
    def method(self: Scalar, other: Any, *modulus: Any) -> Any:
        if modulus:
            raise self.asked("pow() with a modulus was called on a symbolic int", "write `x ** y % z`")
        return binary(name, self, other) if isinstance(other, (Scalar, *Number)) else NotImplemented

    return method


def _reflected(name: str) -> Callable[[Scalar, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        return binary(name, other, self) if isinstance(other, Number) else NotImplemented

    return method


def _unary(name: str) -> Callable[[Scalar], Scalar]:
    return lambda self: unary(name, self)


for _dunder, _op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "truediv"), ("floordiv", "floordiv"),
                     ("mod", "mod"), ("pow", "pow"), ("and", "and"), ("or", "or"), ("xor", "xor")):  # fmt: skip
    setattr(Scalar, f"__{_dunder}__", _forward(f"scalar_{_op}"))
    setattr(Scalar, f"__r{_dunder}__", _reflected(f"scalar_{_op}"))
for _dunder in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(Scalar, f"__{_dunder}__", _forward(f"scalar_{_dunder}"))
for _dunder in ("neg", "abs"):
    setattr(Scalar, f"__{_dunder}__", _unary(f"scalar_{_dunder}"))


def _itself(x: Scalar) -> Scalar:
    return x


Scalar.__pos__ = _itself


def is_number(x: Any) -> bool:
    """Return whether `x` is a Python number, concrete or symbolic."""
    return isinstance(x, (Scalar, *Number))


_INT_ALONE = frozenset((int,))


def split_shape(shape: Any) -> tuple[tuple[int | None, ...], list[Scalar]]:
    """Split a shape into the abstract value that ops take (None where an operand stands) and those operands.

    `shape` is an int, a list or tuple of ints, Scalars and one-element integer tensors, or a 1-D integer tensor
    (which must be concrete: a symbolic one would leave the rank open).
    """
    if shape.__class__ in (list, tuple) and _INT_ALONE.issuperset(map(type, shape)):
        return tuple(shape), []
    if isinstance(shape, Tensor):
        shape = shape.tolist() if shape.ndim else [shape]
    elif isinstance(shape, (int, Scalar)):
        shape = [shape]
    aval: list[int | None] = []
    dims: list[Scalar] = []
    for extent in shape:
        if isinstance(extent, Tensor):
            extent = extent.item()
        if isinstance(extent, Scalar):
            aval.append(None)
            dims.append(extent)
        else:
            aval.append(_checked_extent(extent))
    return tuple(aval), dims


def _checked_extent(extent: Any) -> int:
    try:
        return int(extent.__index__())
    except AttributeError:
        raise TypeError(f"an extent of a shape must be an int, not {type(extent).__name__} {extent!r}") from None
