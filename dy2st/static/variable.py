"""Variables: the tensors of a hand-built Program. They have a name by which they can be fetched, and no elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.errors import NeedsPythonValue
from dy2st.ir.location import error_here
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor

_HOW = "; run the Program with paddle.static.Executor and fetch the variable"
_FLOW = " of a hand-built Program; write paddle.static.nn.cond or while_loop instead of `if` or `while`"


class Variable(Tensor):
    """A tensor that a hand-built Program computes, or is fed."""

    _recorder: Any
    persistable: bool = False

    def __init__(self, payload: Any, stop_gradient: bool = True, recorder: Any = None):
        super().__init__(payload, stop_gradient)
        self._recorder = recorder

    @property
    def name(self) -> str:
        """The name by which the variable can be fetched."""
        if self._name is None:
            made = self.payload.operation
            self._name = f"{unique_name.generate(made.name if made is not None else 'variable')}.tmp_0"
            self._recorder.named[self._name] = self
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
        self._recorder.named[name] = self

    @property
    def block(self) -> Any:
        """The block in which the variable is defined."""
        return self._recorder.face_of(self.payload.block)

    def numpy(self) -> np.ndarray:
        """Refuse: there are no elements before the Program runs."""
        raise no_value(f"numpy() of the variable {self.name} was asked for, but it has no value yet{_HOW}")

    def __bool__(self) -> bool:
        raise no_value(f"a Python bool was needed of the variable {self.name}{_FLOW}")

    def __int__(self) -> int:
        raise no_value(f"a Python int was needed of the variable {self.name}, but it has no value yet{_HOW}")

    def __float__(self) -> float:
        raise no_value(f"a Python float was needed of the variable {self.name}, but it has no value yet{_HOW}")

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Return the text of the variable."""
        return repr(self)

    def __repr__(self) -> str:
        return described(self)

    __str__ = __repr__


class StaticParameter(Parameter):
    """A parameter of a hand-built Program: its values are in the scope, put there by the startup program."""

    def __init__(self, value: Value, recorder: Any, **options: Any):
        super().__init__(Tensor(value), **options)
        self._recorder = recorder

    @property
    def block(self) -> Any:
        """The block in which the parameter is defined."""
        return self._recorder.face_of(self.payload.block)

    def get_value(self, scope: Any = None) -> Tensor:
        """Return the values that the parameter has in a scope; RuntimeError where it has none."""
        return Tensor(np.array(self._recorder.holder(self.name, scope).array))

    def set_value(self, value: Any, scope: Any = None) -> Tensor:
        """Write values of the parameter's shape into a scope; return the parameter."""
        array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        if list(array.shape) != list(self.shape):
            raise ValueError(
                f"set_value: the value has shape {list(array.shape)}, the parameter {self.name} {self.shape}"
            )
        self._recorder.holder(self.name, scope, fresh=True).set(array.astype(self.dtype.numpy))
        return self

    def numpy(self) -> np.ndarray:
        """Return the values that the parameter has in the current scope."""
        return np.array(self._recorder.holder(self.name, None).array)

    def __repr__(self) -> str:
        return f"persist trainable {described(self)}" if self.trainable else f"persist {described(self)}"

    __str__ = __repr__


def no_value(message: str) -> NeedsPythonValue:
    """Return the error for a variable of which the value was asked for, at the user's line."""
    return error_here(NeedsPythonValue, message)


def described(t: Tensor) -> str:
    """Return the text of a variable: name, shape, dtype."""
    kind = t.payload.type
    assert isinstance(kind, TensorType)
    return f"var {t.name} : {kind.dtype.name}{declared(t)}, stop_gradient={t.stop_gradient}"


def declared(t: Tensor) -> list[int]:
    """Return the extents of a variable as ints, -1 where it is known only at run time."""
    kind = t.payload.type
    return [e if isinstance(e, int) else -1 for e in kind.shape]


def dtype_of(t: Tensor) -> DType:
    """Return the dtype of a variable."""
    return t.dtype
