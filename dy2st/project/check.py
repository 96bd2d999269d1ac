"""What of a project differs here: names that are missing, names that behave otherwise, functions that split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from dy2st.project.names import missing, used
from dy2st.project.sources import Source, sources
from dy2st.project.splits import Split, splits


@dataclass
class Findings:
    """What was found in a project, by file."""

    project: str
    names: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By file, the lines of each of Paddle's names."""
    missing: dict[str, str] = field(default_factory=dict)
    """For a name that is not here, the part of it that is missing."""
    otherwise: dict[str, str] = field(default_factory=dict)
    """For a name that behaves otherwise, how."""
    splits: dict[str, list[Split]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    """Why a file was not read."""

    def files_with_all(self) -> int:
        """Return how many of the files that use Paddle use only names that are here."""
        return sum(not any(name in self.missing for name in names) for names in self.names.values())


def check_project(folder: Path) -> Findings:
    """Read the Python files below a folder, and say what of Paddle they use; nothing of them is run or imported."""
    found = Findings(folder.name or str(folder))
    for source in sources(folder):
        try:
            _look(source, found)
        except RecursionError:
            found.unread[source.path] = "is nested too deeply"
    return found


def _look(source: Source, found: Findings) -> None:
    if source.tree is None:
        found.unread[source.path] = source.reason
        return
    lines: dict[str, list[int]] = {}
    for name, line in used(source.tree):
        if line not in lines.setdefault(name, []):
            lines[name].append(line)
        if name not in found.missing and (part := missing(name)):
            found.missing[name] = part
        if name not in found.otherwise and (how := unlike_paddle(name)):
            found.otherwise[name] = how
    if not lines:
        return
    found.names[source.path] = dict(sorted(lines.items()))
    if split := list(splits(source.tree)):
        found.splits[source.path] = split


@cache
def differences() -> tuple[tuple[str, str], ...]:
    """Return patterns of names, and what is otherwise here: the table of `docs/peers/paddle.md`."""
    package = Path(__file__).resolve().parents[1]
    for page in (package / "paddle.md", package.parent / "docs" / "peers" / "paddle.md"):  # installed; a checkout
        if page.is_file():
            rows = re.findall(r"^\| (`[^|]+) \| (.+?) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
            return tuple(one for which, how in rows for one in _of_names(which, how))
    return ()


def _of_names(which: str, how: str) -> Iterator[tuple[str, str]]:
    """Yield each name in the first cell of a row, with what stands behind the names as a condition."""
    name = r"`([\w.*\[\]]+)(?:\(\))?`,? ?"
    condition = re.sub(rf"^(?:{name})+", "", which)
    for found in re.findall(name, which.removesuffix(condition)):
        yield found, f"{condition}: {how}" if condition else how


def unlike_paddle(name: str) -> str:
    """Return how one of Paddle's names behaves otherwise here, "" where it does not.

    >>> unlike_paddle("paddle.heaviside")
    'NaN of NaN, as NumPy'
    """
    for pattern, how in differences():
        whole = name.removeprefix("paddle.")
        if fnmatchcase(whole if "." in pattern else whole.rpartition(".")[2], pattern) or whole == pattern:
            return how
    return ""
