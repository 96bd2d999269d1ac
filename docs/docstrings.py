"""Docstrings in NumPy's style as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator


def to_markdown(doc: str) -> str:
    r"""Return a docstring as Markdown: sections in bold, parameters as a list, examples as fenced code.

    >>> print(to_markdown("Return 2 x.\n\nParameters\n----------\nx\n    A number."))
    Return 2 x.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `x`: A number.
    """
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(doc))
    return "\n\n".join(part for block in blocks for part in _block(block)).strip()


def _block(block: str) -> Iterator[str]:
    """Give the Markdown of one block of lines without an empty line between them."""
    lines = block.split("\n")
    if len(lines) > 1 and re.fullmatch("-{3,}", lines[1].strip()):
        yield f"**{lines[0].strip()}**"
        if lines[2:]:
            yield _definitions(lines[2:])
        return
    first = next((i for i, line in enumerate(lines) if line.lstrip().startswith(">>> ")), None)
    if first is None:
        yield block
        return
    if lines[:first]:
        yield "\n".join(lines[:first])
    yield "```pycon\n" + inspect.cleandoc("\n".join(lines[first:])).replace("<BLANKLINE>", "") + "\n```"


def _definitions(lines: list[str]) -> str:
    """Return names, each with the indented lines that follow it, as a list."""
    items: list[list[str]] = []
    for line in lines:
        if line.startswith(" ") and items:
            items[-1].append(line.strip())
        else:
            items.append([f"- `{line.strip()}`:"])
    return "\n".join(" ".join(item) for item in items)
