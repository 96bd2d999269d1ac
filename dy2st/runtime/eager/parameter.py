"""A tensor that training changes: what layers own and optimizers update."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.device import namespace
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Setting
from dy2st.runtime.eager.version_counter import VersionCounter


class Parameter(Tensor):
    """A tensor that needs a gradient unless it is frozen, with what optimizers ask of it.

    Parameters
    ----------
    data
        A Tensor (its memory is shared) or an array-like; None for an empty tensor.
    requires_grad
        Whether it is trained.
    name
        A name of its own; one is made up when it is None.
    regularizer
        A regularizer that replaces the optimizer's weight decay for this parameter.
    learning_rate
        A factor on the optimizer's learning rate.
    need_clip
        Whether gradient clipping takes it in.
    """

    fixed_shape = True
    regularizer = Setting()
    need_clip = Setting()
    optimize_attr = Setting()

    def __init__(
        self,
        data: Any = None,
        requires_grad: bool = True,
        *,
        name: str | None = None,
        trainable: bool | None = None,
        regularizer: Any = None,
        learning_rate: float = 1.0,
        need_clip: bool = True,
        do_model_average: bool | None = None,
    ):
        if trainable is not None:
            requires_grad = trainable
        super().__init__(_payload_of(data), stop_gradient=not requires_grad)
        self.storage_version = VersionCounter()
        self._name = name or unique_name.generate("_eager_param_base")
        self.optimize_attr = {"learning_rate": learning_rate}
        self.regularizer = regularizer
        self.need_clip = need_clip
        self.do_model_average = do_model_average
        self.is_distributed = False
        self.persistable = True

    def initialize(self) -> None:
        """Do nothing: values that wait are there when they are read."""

    @classmethod
    def from_tensor(cls, tensor: Any, **options: Any) -> Parameter:
        """Return a parameter of a tensor's memory."""
        return cls(tensor, **options)

    def settings_now(self) -> dict[str, Any]:
        """Return what optimizers ask of it, by name."""
        found = vars(self)
        return {name: found[name] for name in ("regularizer", "need_clip", "optimize_attr") if name in found}

    @property
    def trainable(self) -> bool:
        """Whether training changes this parameter."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if not isinstance(trainable, bool):
            raise ValueError(f"trainable must be True or False, not {trainable!r}")
        self.stop_gradient = not trainable

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        twin = super().__deepcopy__(memo)
        assert isinstance(twin, Parameter)
        twin.storage_version = VersionCounter()
        twin._name = unique_name.generate(f"{self.name}_deepcopy")
        return twin


def _payload_of(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.payload
    if data is None:
        return namespace().zeros((0,), np.float32)
    array = namespace().asarray(data)
    dtypes.of_array(array)
    return array.astype(np.float32) if array.dtype == np.float64 and not hasattr(data, "dtype") else array
