"""`paddle.static.amp`: lists of operations for mixed precision, and optimizers that ask for it.

A hand-built Program computes in the dtypes of its variables: what asks for mixed precision here is accepted and leaves
it in float32. `paddle.amp` is mixed precision in eager mode and under `to_static`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.missing import missing_in


class AutoMixedPrecisionLists:
    """Names of operations for float16, for float32, and of variables for float32."""

    def __init__(
        self, custom_white_list: Iterable[str] | None = None, custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None, dtype: str = "float16",
    ):  # fmt: skip
        self.white_list, self.black_list = set(custom_white_list or ()), set(custom_black_list or ())
        if both := self.white_list & self.black_list:
            raise ValueError(f"operations are in the white list and in the black list: {', '.join(sorted(both))}")
        self.black_varnames, self.amp_dtype = set(custom_black_varnames or ()), dtype


CustomOpLists = AutoMixedPrecisionLists


class OptimizerWithMixedPrecision:
    """An optimizer that was asked for mixed precision: it does what it did, in float32."""

    def __init__(self, optimizer: Any, amp_lists: Any = None):
        self._optimizer, self._amp_lists = optimizer, amp_lists

    def amp_init(
        self, place: Any = None, scope: Any = None, test_program: Any = None, use_fp16_test: bool = False,
        rewrite_master_weight: bool = False,
    ) -> None:  # fmt: skip
        """Do nothing: parameters stay in float32."""

    def get_loss_scaling(self) -> float:
        """Return 1: float32 needs no scaling."""
        return 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


def decorate(optimizer: Any, amp_lists: Any = None, **options: Any) -> OptimizerWithMixedPrecision:
    """Return an optimizer with `amp_init`; nothing else of what is asked for changes anything."""
    return OptimizerWithMixedPrecision(optimizer, amp_lists)


@contextmanager
def fp16_guard() -> Iterator[None]:
    """Mark operations of a `with` block for float16; they stay in float32."""
    yield


def cast_model_to_fp16(program: Any, amp_lists: Any = None, use_fp16_guard: bool = True, **options: Any) -> set[str]:
    """Return the names of the variables that became float16: none."""
    return set()


def cast_parameters_to_fp16(place: Any, program: Any, *args: Any, **options: Any) -> None:
    """Do nothing: parameters stay in float32."""


__getattr__ = missing_in(__name__)
