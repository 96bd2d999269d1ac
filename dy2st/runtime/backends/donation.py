"""Inputs of a run that may write the next values of parameters into their memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class DonatedInputs(list[Any]):
    """Inputs, with an object `alone` that has as many holders as an array among them which only its tensor holds.

    Native code compares what the two count (buffer_donation.py). `holders` says how many there are while it runs,
    beside the call itself: the tensor, this list, and whatever of the caller's names the array.
    """

    __slots__ = ("_more", "alone")

    def __init__(self, inputs: Iterable[Any], holders: int = 2):
        super().__init__(inputs)
        self.alone = object()
        self._more = [self.alone] * (holders - 1)
