"""Lists of places, and the guards of static mode that name operations or place them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dy2st.ir.context import current
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace, cuda, parse


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Return `device_count` times the CPU; by default as often as the environment variable CPU_NUM says, else once.

    >>> import dy2st as paddle
    >>> paddle.static.cpu_places(2)
    [Place(cpu), Place(cpu)]
    """
    count = int(os.environ.get("CPU_NUM", "1")) if device_count is None else device_count
    if count < 1:
        raise ValueError(f"cpu_places: device_count must be positive, not {count}")
    return [CPUPlace() for _ in range(count)]


def cuda_places(device_ids: int | Sequence[int] | None = None) -> list[CUDAPlace]:
    """Return the CUDA devices of these numbers, all that there are by default.

    Raises MissingExtraError without CuPy, RuntimeError without such a device.
    """
    if device_ids is None:
        device_ids = range(cuda().cuda.runtime.getDeviceCount())
    return [CUDAPlace(i) for i in ([device_ids] if isinstance(device_ids, int) else device_ids)]


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Group the operations that are added inside, for people who read; names of variables stay as they are."""
    if prefix is not None and (not isinstance(prefix, str) or not prefix):
        raise TypeError(f"name_scope needs a prefix, a string that is not empty, not {prefix!r}")
    yield


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Add the operations inside to the Program for `device`, "cpu" or "gpu": an Executor runs them where it runs all.

    Outside of static mode, tensors that are made inside are made there.
    """
    place = None if device is None else parse(device)
    if place is None or current().trace is not None:
        yield
        return
    process = current().process
    before, process.place = process.place, place
    try:
        yield
    finally:
        process.place = before
