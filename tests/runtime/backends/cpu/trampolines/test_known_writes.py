"""Machine code writes next values into tensors as Python does, and leaves shared ones to Python."""

import gc
import sys
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.trampolines import call, write_back
from dy2st.runtime.eager.tensor import Tensor


def tensors(count: int) -> list[Any]:
    return [paddle.to_tensor([float(i)]) for i in range(count)]


def written(writes: Any, shared: Any = None) -> Any:
    assert call._layout() is not None
    made = write_back.known_writes(writes, shared or (lambda *_: pytest.fail("it is not shared")))
    assert made is not None
    return made


def test_tensors_get_the_arrays_of_their_results() -> None:
    (x, y), arrays = tensors(2), [np.zeros(1), np.ones(1), np.ones(2)]
    x._grad = y
    assert written([(y, 2), (x, 0), (x, write_back.NO_GRADIENT)])(arrays) is None
    assert x.payload is arrays[0]
    assert y.payload is arrays[2]
    assert x._grad is None


def test_a_tensor_with_a_version_goes_to_python() -> None:
    (x, y), arrays, seen = tensors(2), [np.zeros(1), np.ones(1)], list[Any]()
    view = x[:]
    written([(x, 0), (y, 1)], lambda *pair: seen.append(pair))(arrays)
    assert len(seen) == 1
    assert seen[0][0] is x
    assert seen[0][1] is arrays[0]
    assert y.payload is arrays[1]
    assert view.tolist() == [0.0]


def test_an_error_ends_the_writes() -> None:
    x, y = tensors(2)
    view, before = x[:], y.payload

    def refuse(*_: Any) -> None:
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        written([(x, 0), (y, 0)], refuse)([np.zeros(1)])
    with pytest.raises(IndexError):
        written([(y, 3)])([np.zeros(1)])
    assert y.payload is before
    assert view is not None


def test_nothing_is_held_and_nothing_lost() -> None:
    (x, y, z), arrays = tensors(3), [np.zeros(1), np.ones(1)]
    view = z[:]
    write = written([(x, 0), (y, 1), (y, write_back.NO_GRADIENT), (z, 0)], lambda *_: None)
    write(arrays)
    things = x, y, z, view, *arrays
    gc.collect()
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(1000):
        write(arrays)
    assert [sys.getrefcount(thing) for thing in things] == before


def test_without_the_machine_code_of_calls_python_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "is_loaded", lambda: False)
    assert write_back.known_writes([(Tensor(np.zeros(1)), 0)], lambda *_: None) is None
