"""`draw` writes a picture to a file, `to_svg` returns one as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dy2st.files import atomic
from dy2st.viz import page, svg
from dy2st.viz.things import panels_and_title


def draw(
    thing: Any,
    path: str | os.PathLike[str],
    *,
    input_spec: Sequence[Any] | None = None,
    title: str | None = None,
    details: bool = False,
) -> Path:
    """Draw a Program, a Layer, a to_static function or a saved file to an HTML file, or to SVG; return its path.

    The HTML file needs nothing else: it can be moved, zoomed and searched, boxes of control flow fold, and what the
    pointer rests on tells its source line, types and shapes. A path that ends in `.svg` gives the picture alone.
    A Layer without a Program shows its parts; with `input_spec`, what it computes. `details` shows constants and what
    serves shapes only, too. Raises TypeError for what cannot be drawn and FileFormatError for a file that is damaged.

    >>> import tempfile
    >>> import dy2st as paddle
    >>> folder = tempfile.TemporaryDirectory()
    >>> draw(paddle.nn.Linear(3, 2), folder.name + "/linear.html").name
    'linear.html'
    >>> folder.cleanup()
    """
    target = Path(path)
    panels, name = panels_and_title(thing, input_spec, details)
    if target.suffix not in (".svg", ".html", ".htm"):
        raise ValueError(f"a picture is written to .html or .svg, not to {target.name!r}")
    text = svg.to_text(panels) if target.suffix == ".svg" else page.to_html(panels, title or name)
    atomic.replace(target, [text.encode("utf-8")])
    return target


def to_svg(thing: Any, *, input_spec: Sequence[Any] | None = None, details: bool = False) -> str:
    """Return the picture of anything that `draw` draws, as the text of an SVG document.

    >>> import dy2st as paddle
    >>> to_svg(paddle.nn.Linear(3, 2))[:42]
    '<svg xmlns="http://www.w3.org/2000/svg" vi'
    """
    return svg.to_text(panels_and_title(thing, input_spec, details)[0])
