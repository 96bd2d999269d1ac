"""Where in the user's code an operation comes from."""

from __future__ import annotations

import inspect
import linecache
from dataclasses import dataclass
from types import FrameType

_HOUSE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source: file, line and the function's name."""

    file: str
    line: int
    function: str = ""

    def source(self) -> str:
        """Return the text of the line, "" when it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_frame() -> FrameType | None:
    """Return the innermost frame that is not of this package."""
    frame = inspect.currentframe()
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    return frame


def is_user_frame(frame: FrameType) -> bool:
    """Say whether a frame runs code that is not of this package."""
    name = frame.f_globals.get("__name__", "")
    return not (name == _HOUSE or name.startswith(_HOUSE + "."))


def user_location() -> Location | None:
    """Return the line of the user's code that is running now."""
    frame = user_frame()
    return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
