"""What the tests let actors do: functions of a module, so that other processes find them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import dy2st as paddle


def scaled(factor: Any, item: Any) -> Any:
    return item * factor


def slow_at_first(_: Any, item: int) -> int:
    time.sleep(0.3 if item == 0 else 0.0)
    return item


def dies_once(folder: str, item: int) -> int:
    """Die, as by kill -9, over items that divide by 5, the first time that each is begun; note every time that ends."""
    begun = Path(folder) / f"begun.{item}"
    if item % 5 == 0 and not begun.exists():
        begun.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def dies_at_three(_: Any, item: int) -> int:
    if item == 3:
        os._exit(7)
    return item


def raises_at_three(_: Any, item: int) -> int:
    if item == 3:
        raise KeyError("three")
    return item


def prepared(value: Any) -> Any:
    return {"array": value, "pid": os.getpid(), "made": time.monotonic()}


def seen(state: Any, item: int) -> Any:
    array: np.ndarray = state["array"]
    return float(array[item]), array.flags.writeable, array.flags.owndata, state["pid"], state["made"]


def pid(_: Any, item: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def loss(lr: float, depth: int) -> float:
    if depth == 3:
        raise ValueError("too deep")
    return (lr - 0.1) ** 2 + depth


def distance(data: np.ndarray, shift: float) -> float:
    x = paddle.to_tensor(data)
    return float(((x - shift) ** 2).mean())
