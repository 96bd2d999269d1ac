"""Two files that belong together, parameters and the state of their optimizer, of one generation whenever a save ends.

No system renames two files at once. So the second one first stands under a name that tells which first file it belongs
to, by the checksum in that one's header:

    1. `m.pdparams`, `m.pdopt`                                  both old
    2. `m.pdparams`, `m.pdopt`, `.m.pdopt.<checksum>`           whose parameters are not there: it is not looked at
    3. `m.pdparams` renamed, so it is what `.m.pdopt.<checksum>` belongs to, and that is what is read
    4. `.m.pdopt.<checksum>` renamed to `m.pdopt`               both new

Who dies on the way leaves 2, which is the old generation, or 3, which is the new one. The next save cleans up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dy2st.errors import FileFormatError
from dy2st.files import atomic, safetensors_head, safetensors_io, state_files
from dy2st.files.state_files import ToArray

FIRST, SECOND = ".pdparams", ".pdopt"
_TURNS = 100


def save(first: Any, second: Any, stem: str, to_array: ToArray = state_files.as_array) -> None:
    """Write `first` to `<stem>.pdparams` and `second` to `<stem>.pdopt`, both or neither."""
    one, other = (Path(os.path.realpath(stem + suffix)) for suffix in (FIRST, SECOND))
    with atomic.locked(other.parent):
        _clean_up(one, other)
        waiting: Path | None = None
        try:
            with atomic.replacing(one) as out:
                waiting = _waiting(other, state_files.save_to(out, first, to_array))
                with atomic.replacing(waiting, other) as beside:
                    state_files.save_to(beside, second, to_array)
        except BaseException:
            if waiting is not None and waiting != second_file(stem):
                waiting.unlink(missing_ok=True)
            raise
        os.replace(waiting, other)
        atomic.sync_folder(other.parent)


def load(stem: str, read: Callable[[str], Any], with_second: bool = True) -> tuple[Any, Any]:
    """Return what `read` makes of the two files, None for a second one that is not there; of one generation."""
    one = Path(stem + FIRST)
    for _ in range(_TURNS):
        said = _checksum(one)
        first, second, is_whole = read(str(one)), None, True
        other = second_file(stem)
        if with_second and other.exists():
            try:
                second = read(str(other))
            except FileNotFoundError:  # it was renamed in this moment
                is_whole = False
        if is_whole and (not with_second or _checksum(one) == said):
            return first, second
    raise FileFormatError(f"{one}: another process writes it all the time")


def second_file(stem: str) -> Path:
    """Return the file of the state that belongs to `<stem>.pdparams`."""
    other = Path(os.path.realpath(stem + SECOND))
    if not _all_waiting(other):
        return Path(stem + SECOND)
    waiting = _waiting(other, _checksum(Path(stem + FIRST)))
    return waiting if waiting.exists() else Path(stem + SECOND)


def _clean_up(one: Path, other: Path) -> None:
    """Bring to an end what a process that was killed had begun."""
    left = _all_waiting(other)
    said = _checksum(one) if left else ""
    for path in left:
        if path == _waiting(other, said):
            os.replace(path, other)
        else:
            path.unlink(missing_ok=True)


def _waiting(other: Path, checksum: str) -> Path:
    return other.with_name(f".{other.name}.{checksum}")


def _all_waiting(other: Path) -> list[Path]:
    named = re.compile(re.escape(f".{other.name}.") + "[0-9a-f]{64}")
    try:
        names = os.listdir(other.parent)
    except FileNotFoundError:
        return []
    return [other.with_name(name) for name in names if named.fullmatch(name)]


def _checksum(path: Path) -> str:
    """Return the checksum in the header of a file; nothing for one that is not there or is not ours."""
    try:
        with safetensors_head.opened(path) as found:
            return safetensors_io.head_digest(found.head)
    except (FileNotFoundError, FileFormatError):
        return ""
