"""What `set_code_level` and `set_verbosity` show of the conversion, through `logging` (loggers "dy2st.jit...")."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

from dy2st.transformers import Converted

EVENTS, CODE = logging.getLogger("dy2st.jit.events"), logging.getLogger("dy2st.jit.code")


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Show the converted source of each function that is converted from now on; a level of 0 or less stops it.

    Any positive level shows the source after all transformers. It goes to stderr, and to stdout too where asked for.
    """
    _direct(CODE, level, also_to_stdout)


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Say on stderr (and stdout, where asked for) which functions are converted; a level of 0 says nothing."""
    _direct(EVENTS, level, also_to_stdout)


def converted(found: Converted) -> None:
    """Show that a function was converted, where that was asked for."""
    if EVENTS.isEnabledFor(logging.DEBUG):
        EVENTS.debug("converted `%s` (%s:%d)", found.code.co_name, found.file, found.firstlineno)
    if CODE.isEnabledFor(logging.DEBUG):
        CODE.debug("`%s` (%s:%d) as converted:\n%s", found.code.co_name, found.file, found.firstlineno, found.source)


class _To(logging.StreamHandler[TextIO]):
    """A handler of ours, so that another level can take it away."""


def _direct(logger: logging.Logger, level: Any, also_to_stdout: bool) -> None:
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"the level must be an int, not {level!r}")
    for handler in [h for h in logger.handlers if isinstance(h, _To)]:
        logger.removeHandler(handler)
    logger.setLevel(logging.DEBUG if level > 0 else logging.NOTSET)
    if level > 0:
        for stream in (sys.stderr, sys.stdout)[: 1 + also_to_stdout]:
            logger.addHandler(_To(stream))
