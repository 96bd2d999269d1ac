"""The Python files below a folder as trees; a file that is none, or that nobody should read, as a reason.

Links are not followed, devices and pipes not opened, and nothing of a project is imported.
"""

from __future__ import annotations

import ast
import os
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LARGEST = 4 << 20
"""Files of more bytes are not read: no one has written them."""
_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


@dataclass(frozen=True)
class Source:
    """A file of a project, with its tree, or with the reason why it has none."""

    path: str
    tree: ast.Module | None
    reason: str = ""


def sources(folder: Path) -> Iterator[Source]:
    """Yield the Python files below a folder, or a file itself, in the order of their paths."""
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}")
    if not folder.is_dir():
        yield _read(folder, folder.name)
        return
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                path = Path(place, name)
                yield _read(path, path.relative_to(folder).as_posix())


def _read(path: Path, shown: str) -> Source:
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            return Source(shown, None, "is a link" if stat.S_ISLNK(about.st_mode) else "is no regular file")
        if about.st_size > LARGEST:
            return Source(shown, None, f"has {about.st_size:,} bytes, and files over {LARGEST:,} are not read")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the project's strings
            return Source(shown, ast.parse(path.read_bytes()))
    except SyntaxError as error:
        at = f"line {error.lineno}: " if error.lineno else ""
        return Source(shown, None, f"{at}{error.msg}")
    except OSError as error:
        return Source(shown, None, error.strerror or type(error).__name__)
    except (ValueError, RecursionError, MemoryError) as error:
        return Source(shown, None, str(error) or "is nested too deeply")
