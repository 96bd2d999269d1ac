"""Lines of text made into lines of numbers by slot, as readers of ranking models take them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dy2st.missing import missing_in

Slots = list[tuple[str, list[Any]]]


class DataGenerator:
    """Define `generate_sample(line)`, which returns an iterator over samples: lists of (name of slot, values)."""

    def __init__(self) -> None:
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Say how many samples `generate_batch` gets."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Callable[[], Iterable[Slots]]:
        """Return a function without arguments that gives the samples of a line."""
        raise NotImplementedError(f"{type(self).__name__} has no generate_sample(line)")

    def generate_batch(self, samples: list[Slots]) -> Callable[[], Iterable[Slots]]:
        """Return a function without arguments that gives the samples of a batch, as they are unless it is defined."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Write the samples of the lines of standard input to standard output."""
        for text in self._lines(sys.stdin):
            sys.stdout.write(text)

    def run_from_memory(self) -> None:
        """Write the samples that `generate_sample(None)` gives to standard output."""
        for text in self._lines([None]):
            sys.stdout.write(text)

    def _lines(self, lines: Iterable[Any]) -> Iterator[str]:
        samples: list[Slots] = []
        for line in lines:
            for sample in self.generate_sample(line)():
                if sample is None:
                    continue
                samples.append(sample)
                if len(samples) == self.batch_size_:
                    yield from map(self._gen_str, self.generate_batch(samples)())
                    samples = []
        if samples:
            yield from map(self._gen_str, self.generate_batch(samples)())

    def _gen_str(self, line: Any) -> str:
        if not isinstance(line, (list, tuple)):
            raise ValueError(f"a sample is a list of (slot, values), not {type(line).__name__}")
        return " ".join(" ".join(map(str, [len(values), *values])) for _, values in line) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    r"""Samples of numbers: each slot is written as the number of its values and these.

    >>> MultiSlotDataGenerator()._gen_str([("words", [1926, 8]), ("label", [1])])
    '2 1926 8 1 1\n'
    """

    def _gen_str(self, line: Any) -> str:
        for name, values in line if isinstance(line, (list, tuple)) else ():
            if not values or not all(isinstance(value, (int, float)) for value in values):
                raise ValueError(f"the slot {name!r} needs numbers, at least one, not {values!r:.60}")
        return super()._gen_str(line)


class MultiSlotStringDataGenerator(DataGenerator):
    """Samples of texts: each slot is written as the number of its values and these."""


__getattr__ = missing_in(__name__)
