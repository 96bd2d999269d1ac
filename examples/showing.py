"""How the demo shows things in a terminal: a progress bar (rich's where it is installed), two texts side by side."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

try:
    from rich.progress import track
except ImportError:
    track = None

T = TypeVar("T")
BAR = 40


def progress(steps: Sequence[T], title: str) -> Iterable[T]:
    """Go through the steps and show a bar that fills."""
    return plain_bar(steps, title) if track is None else track(steps, description=title)


def plain_bar(steps: Sequence[T], title: str) -> Iterator[T]:
    """Go through the steps and write a bar of characters to the standard error stream.

    >>> list(plain_bar("ab", "letters"))
    ['a', 'b']
    """
    shown = -1
    for done, step in enumerate(steps):
        filled = BAR * done // len(steps)
        if filled != shown:  # not at every step: a terminal is slower than a training step
            sys.stderr.write(f"\r{title} [{'#' * filled}{'.' * (BAR - filled)}]")
            sys.stderr.flush()
            shown = filled
        yield step
    sys.stderr.write(f"\r{title} [{'#' * BAR}]\n")


def heading(title: str) -> str:
    """Return a line that opens a part of the output.

    >>> print(heading("files"))
    <BLANKLINE>
    ---- files ----------------------------------------------------------------------
    """
    return f"\n---- {title} ".ljust(82, "-")


def side_by_side(left: str, right: str, width: int | None = None) -> str:
    r"""Put two texts beside each other; what does not fit goes on in the next line of its column.

    >>> print(side_by_side("if x:\n    y = 1", "def _then():\n    return 1", 32))
    if x:          | def _then():
        y = 1      |     return 1
    """
    column = ((width or max(shutil.get_terminal_size((160, 24)).columns, 120)) - 3) // 2
    rows = zip_longest(folded(left, column), folded(right, column), fillvalue="")
    return "\n".join(f"{a:<{column}} | {b}".rstrip() for a, b in rows)


def folded(text: str, width: int) -> Iterator[str]:
    """Break the lines of a text that are longer than `width`."""
    for line in text.splitlines():
        yield line[:width]
        for start in range(width, len(line), width):
            yield line[start : start + width]
