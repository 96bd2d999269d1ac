"""Functions that will go, and loggers."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable
from typing import Any


def deprecated(update_to: str = "", since: str = "", reason: str = "", level: int = 0) -> Callable[..., Any]:
    """Return a decorator for a function that will go: each call warns once a line; at level 2 it raises RuntimeError.

    At level 0 nothing is said until somebody looks for DeprecationWarning.
    """

    def decorate(function: Any) -> Any:
        text = f"{function.__name__} is deprecated{f' since {since}' if since else ''}"
        text += f"; use {update_to} instead" if update_to else ""
        text += f": {reason}" if reason else ""

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if level == 2:
                raise RuntimeError(text)
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **keywords)

        return call

    return decorate


def get_logger(name: str, level: int, fmt: str | None = None) -> logging.Logger:
    """Return a logger that writes to stderr from this level on, in this form, and hands nothing up."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(fmt))
        logger.addHandler(handler)
    logger.propagate = False
    return logger
