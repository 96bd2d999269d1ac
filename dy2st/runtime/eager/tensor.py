"""The one public Tensor. Its payload is an array (eager) or an `ir.Value` (in a trace or a hand-built Program).

This file has what every tensor is: payload, shape, dtype, gradient state, conversion to Python and NumPy. Operators and
methods come from `functions/`, which attaches them by `functions/methods.py`'s table.

Views share memory. A view remembers its base and how it was made (`view`), so that a write through either reaches the
other in a trace as well, and so that gradients follow (`inplace.py`).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.errors import NeedsPythonValue
from dy2st.formatting import format_array
from dy2st.ir.context import current
from dy2st.ir.location import error_here
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.runtime.eager import device
from dy2st.runtime.eager.dlpack import capsule_of
from dy2st.runtime.eager.shape_list import extents
from dy2st.runtime.eager.tensor_methods import TensorMethods
from dy2st.runtime.eager.version_counter import VersionCounter

_numbers = itertools.count()


class Tensor(TensorMethods):
    """An n-dimensional array with a gradient, on a device or inside a Program that is being built.

    Make one with `paddle.to_tensor` or a creation function, not by calling this class.
    """

    __slots__ = ("__dict__", "__weakref__", "_grad", "_name", "kept", "leaf_hooks", "payload", "seen_base",
                 "stop_gradient", "storage_version", "tape_index", "tape_node", "view_of")  # fmt: skip
    __array_priority__ = 100.0
    printed_as = "Tensor"

    payload: Any
    tape_node: Any
    tape_index: int
    _grad: Tensor | None
    storage_version: VersionCounter | None
    stop_gradient: bool
    persistable: bool = False
    averaged_by: Any = None
    """What averages its gradient over processes when a backward has added to it (distributed/data_parallel.py)."""
    gradient_owner: int | None = None
    """The process that alone gets its gradient, as a sum (distributed/spread_steps.py)."""
    part: tuple[int, int, int] | None = None
    """Which block it is of a tensor of several processes: along which axis, its number, of how many."""
    counted_by: int | None = None
    """The process that counts it, where several have it whole beside parts of their own."""
    fixed_shape: bool = False
    """Whether Programs take its extents as they are (parameters, statistics, optimizer state) and not as symbols."""

    def __init__(self, payload: Any, stop_gradient: bool = True):
        self.payload = payload
        self.stop_gradient = stop_gradient
        self.tape_node = None
        self.tape_index = 0
        self._grad = None
        self.leaf_hooks: dict[int, Callable[[Tensor], Any]] | None = None
        self._name: str | None = None
        self.view_of: Any = None
        """How it was made of its base (a `View`), where it shares another tensor's memory."""
        self.seen_base: Any = 0
        """What its base was when it was last read: the number of its writes, in a trace its value."""
        self.kept: int = False
        """As `VersionCounter.kept`, while it has no version."""
        self.storage_version = None
        """Shared by a tensor and its views; made by the first view or write."""

    # ---- what it is ------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> DType:
        """The element type."""
        payload = self.payload
        return dtypes.of_array(payload) if not isinstance(payload, Value) else tensor_type(payload).dtype

    @property
    def shape(self) -> list[Any]:
        """The extents, as a list; inside a trace an unknown extent is a symbolic int.

        Once the array namespace is used, the list equals the tuple of its elements too.
        """
        payload, trace = self.payload, current().trace
        if isinstance(payload, Value):
            return extents(trace.shape_of(self) if trace is not None else _declared_shape(payload))
        return extents(payload.shape if trace is None else trace.shape_outside(self))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        payload = self.payload
        return (
            payload.ndim
            if payload.__class__ is np.ndarray or not isinstance(payload, Value)
            else tensor_type(payload).rank
        )

    def dim(self) -> int:
        """Return the number of axes."""
        return self.ndim

    def ndimension(self) -> int:
        """Return the number of axes."""
        return self.ndim

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for extent in self.shape:
            total = total * extent
        return total

    @property
    def place(self) -> device.Place:
        """Where the elements live."""
        return device.current_place() if isinstance(self.payload, Value) else device.place_of(self.payload)

    @property
    def name(self) -> str:
        """A name that no other tensor of this process has, unless it was set."""
        if self._name is None:
            self._name = f"generated_tensor_{next(_numbers)}"
        return self._name

    @property
    def given_name(self) -> str | None:
        """The name that was set or asked for; None before."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def is_leaf(self) -> bool:
        """Whether no operation that is being differentiated made this tensor."""
        trace = current().trace
        return self.tape_node is None if trace is None else trace.is_leaf(self)

    @property
    def inplace_version(self) -> int:
        """How many times the elements were written in place."""
        if current().trace is not None:
            raise needs_value("inplace_version was asked for, which a Program does not count")
        return 0 if self.storage_version is None else self.storage_version.number

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has summed here, or None."""
        trace = current().trace
        return self._grad if trace is None else trace.read_grad(self)

    @property
    def grad_outside(self) -> Tensor | None:
        """The gradient that was summed before a trace, which may know a later one."""
        return self._grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is not None and not isinstance(grad, Tensor):
            raise TypeError(f"a gradient is a Tensor or None, not {type(grad).__name__}")
        trace = current().trace
        if trace is None:
            self._grad = grad
        else:
            trace.write_grad(self, grad)

    def gradient(self) -> np.ndarray | None:
        """Return the gradient as a NumPy array, or None."""
        grad = self.grad
        return None if grad is None else grad.numpy()

    # ---- to Python and NumPy ---------------------------------------------------------------------------------------
    def array(self, why: str = "its elements") -> Any:
        """Return the array; inside a trace there is none, and the error says where it was asked for and `why`."""
        if isinstance(self.payload, Value):
            text = f"a tensor of a Program that is being built has no value yet, but {why} was asked for"
            raise needs_value(text, "use paddle's functions in place of NumPy's" if why == "a NumPy array" else None)
        return self.payload

    def numpy(self) -> np.ndarray:
        """Return the elements as a NumPy array of their own (a copy)."""
        trace = current().trace
        if trace is not None and isinstance(self.payload, Value):
            return trace.numpy_of(self)
        array = self.array("numpy()")
        return np.array(array) if isinstance(array, np.ndarray) else array.get()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        trace = current().trace
        if trace is not None and isinstance(self.payload, Value):
            return trace.list_of(self)
        return self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy() if copy or not isinstance(self.array("a NumPy array"), np.ndarray) else self.payload
        return array if dtype is None else array.astype(dtype, copy=False)

    def item(self, *at: int) -> Any:
        """Return the one element (or the one at the given position) as a Python number."""
        if isinstance(self.payload, Value):
            return current().trace.item(self[at] if at else self)
        array = self.payload
        if at:
            return array.item(*at)
        if array.size != 1:
            raise ValueError(
                f"only a tensor of one element has a Python value, this one has shape {self.shape}; "
                "reduce it first, by any(), all() or sum()"
            )
        return array.item()

    def __bool__(self) -> bool:
        if isinstance(self.payload, Value):
            raise needs_value("the truth of a tensor was needed as a Python bool")
        return bool(self.item())

    def __int__(self) -> int:
        if isinstance(self.payload, Value):
            raise needs_value("a tensor was needed as a Python int")
        return int(self.item())

    def __float__(self) -> float:
        if isinstance(self.payload, Value):
            raise needs_value("a tensor was needed as a Python float")
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"only integer tensors can be an index, this one is {self.dtype.name}")
        if isinstance(self.payload, Value):
            raise needs_value("a tensor was needed as a Python int (an index)")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-D tensor")
        extent = self.shape[0]
        if not isinstance(extent, int):
            raise needs_value("the length of a tensor was needed as a Python int", needed=[extent])
        return extent

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-D tensor")
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self.item(), spec) if self.ndim == 0 or self.size == 1 else str(self)

    def __str__(self) -> str:
        trace = current().trace
        if isinstance(self.payload, Value) or (trace is not None and trace.of_function):
            raise needs_value("the text of a tensor was needed while a Program is built (print and f-strings can wait)")
        return repr(self)

    def __repr__(self) -> str:
        if isinstance(self.payload, Value):
            if getattr(current().trace, "natively", 0):
                raise needs_value("code that is not converted needs the text of a tensor")
            return f"Tensor(symbolic, {self.payload.type}, stop_gradient={self.stop_gradient})"
        return format_array(self.payload, self.stop_gradient, type(self).printed_as)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        if not self.stop_gradient:
            raise BufferError("a tensor that needs a gradient cannot be shared by DLPack: use x.detach()")
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return capsule_of(self.array("a DLPack capsule"), **{k: v for k, v in asked.items() if v is not None})

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface = getattr(self.payload, "__cuda_array_interface__", None)
        if interface is None:
            raise AttributeError("__cuda_array_interface__")
        if not self.stop_gradient:
            raise BufferError("a tensor that needs a gradient cannot be shared with CUDA libraries: use x.detach()")
        return interface

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array("its device").__dlpack_device__()

    # ---- copies ----------------------------------------------------------------------------------------------------
    def __copy__(self) -> Tensor:
        return Tensor(self.payload, self.stop_gradient)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only tensors made by the user can be deep-copied; use x.clone() or x.detach()")
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        Tensor.__init__(twin, copy.deepcopy(self.array("a copy")), self.stop_gradient)
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.numpy(), self.stop_gradient, self._name, self.__dict__)


def _unpickle(kind: type[Tensor], array: np.ndarray, stop_gradient: bool, name: str | None, more: Any) -> Tensor:
    made = kind.__new__(kind)
    Tensor.__init__(made, array, stop_gradient)
    made._name = name
    made.__dict__.update(more)
    return made


def _declared_shape(value: Value) -> list[int]:
    assert isinstance(value.type, TensorType)
    return [e if isinstance(e, int) else -1 for e in value.type.shape]


def needs_value(message: str, hint: str | None = None, needed: Sequence[Any] | None = None) -> NeedsPythonValue:
    """Return the error for a symbolic value whose Python value was asked for; `hint` says what to write instead.

    `needed` are the numbers that were asked for, or what is made of some, where that is known.
    """
    error = error_here(NeedsPythonValue, message, hint or _what_instead())
    trace = current().trace
    if trace is not None:
        error.extents = None if needed is None else trace.extents_behind(needed)
        trace.asked = error
    return error


def _what_instead() -> str:
    trace = current().trace
    if trace is None:
        return "return it from the function: the call gives its value"
    if trace.of_function:
        return "use tensors and their operations in its place, or do this outside of the function"
    return "decorate the function with @to_static so that its control flow is converted, or call this outside of it"
