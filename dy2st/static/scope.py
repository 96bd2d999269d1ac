"""Scopes: where the values of persistable variables (parameters, statistics, optimizer state) are kept between runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dy2st.ir.context import current
from dy2st.runtime.eager import device, inplace
from dy2st.runtime.eager.tensor import Tensor


class Holder:
    """The value of one variable of a scope; Paddle calls it a Variable and its value a LoDTensor.

    It may hold an eager tensor that a Program uses: then both have the same elements, always.
    """

    __slots__ = ("name", "tensor")

    def __init__(self, name: str, tensor: Tensor | None = None):
        self.name, self.tensor = name, tensor

    @property
    def array(self) -> Any:
        """The array; RuntimeError where there is none yet."""
        if self.tensor is None:
            raise not_initialised(self.name)
        return self.tensor.payload

    def put(self, array: Any) -> None:
        """Take `array` as the new value."""
        tensor = self.tensor
        if tensor is None:
            self.tensor = Tensor(array)
        elif tensor.storage_version is None:
            tensor.payload = array
        else:
            inplace.write_memory(tensor, array)

    def get_tensor(self) -> ScopeTensor:
        """Return the face through which the value is read and set."""
        return ScopeTensor(self)

    def set(self, value: Any, place: Any = None) -> None:
        """Set the value from an array."""
        self.get_tensor().set(value, place)

    def is_initialized(self) -> bool:
        """Return whether there is a value."""
        return self.tensor is not None


class ScopeTensor:
    """What `find_var(name).get_tensor()` gives: `numpy.array(it)` reads, `set(array, place)` writes."""

    __slots__ = ("_holder",)

    def __init__(self, holder: Holder):
        self._holder = holder

    def set(self, value: Any, place: Any = None) -> None:
        """Set the elements from an array; a value that is there keeps its dtype and its shape must be the same."""
        array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        held = self._holder.tensor
        if held is not None:
            old = held.payload
            if tuple(array.shape) != tuple(old.shape):
                raise ValueError(
                    f"the variable {self._holder.name} has shape {list(old.shape)}, "
                    f"the value for it {list(array.shape)}"
                )
            array = array.astype(old.dtype, copy=False)
        where = device.parse(place) if place is not None else device.current_place()
        self._holder.put(device.move(np.array(array), where))

    def shape(self) -> list[int]:
        """Return the extents."""
        return list(self._holder.array.shape)

    def numpy(self) -> np.ndarray:
        """Return the elements as an array of their own."""
        array = self._holder.array
        return np.array(array) if isinstance(array, np.ndarray) else array.get()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return repr(self._holder.tensor) if self._holder.tensor is not None else f"<{self._holder.name}: no value>"


class Scope:
    """Variables by name; a scope of a scope sees the variables of the one around it."""

    def __init__(self, parent: Scope | None = None):
        self.parent = parent
        self.holders: dict[str, Holder] = {}

    def var(self, name: str) -> Holder:
        """Return the variable of this name, made without a value where there is none."""
        found = self.find_var(name)
        return found if found is not None else self.holders.setdefault(name, Holder(name))

    def find_var(self, name: str) -> Holder | None:
        """Return the variable of this name, None where there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.holders:
                return scope.holders[name]
            scope = scope.parent
        return None

    def new_scope(self) -> Scope:
        """Return a new scope inside this one."""
        return Scope(self)

    def local_var_names(self) -> list[str]:
        """Return the names of this scope's own variables."""
        return list(self.holders)

    def drop_kids(self) -> None:
        """Do nothing: scopes inside a scope live as long as someone has them."""


def global_scope() -> Scope:
    """Return the scope in which Programs run unless another is given."""
    process = current().process
    if process.scope is None:
        process.scope = Scope()
    return process.scope


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make `scope` the global one for the length of a `with`."""
    if not isinstance(scope, Scope):
        raise TypeError(f"scope_guard needs a Scope, not {type(scope).__name__}")
    process = current().process
    before, process.scope = global_scope(), scope
    try:
        yield
    finally:
        process.scope = before


def not_initialised(name: str) -> RuntimeError:
    """Return the error for a variable without a value."""
    return RuntimeError(
        f"the variable {name} has no value in this scope: run the startup program first, "
        "exe.run(paddle.static.default_startup_program())"
    )
