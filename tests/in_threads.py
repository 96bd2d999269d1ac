"""Calls in several threads at the same time."""

import threading
from collections.abc import Callable
from typing import Any


def in_threads(*works: Callable[[], Any]) -> None:
    """Call each in a thread of its own, all begun before the first is waited for; pytest fails for what one raises."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
