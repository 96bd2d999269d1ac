"""C compilers: for this machine the one in `CC`, `cc`, `gcc` or `clang`; for others, and where there is none, zig's."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dy2st.errors import Dy2stError, MissingExtraError
from dy2st.records import record


class BuildError(Dy2stError, RuntimeError):
    """A C compiler that refuses what was written for it; the text is its own."""


@record(frozen=True)
class Toolchain:
    """The commands that compile C and make archives."""

    compile: tuple[str, ...]
    archive: tuple[str, ...]

    def run(self, arguments: Sequence[str], folder: Path) -> None:
        """Compile or link in a folder."""
        _run([*self.compile, *arguments], folder)

    def pack(self, library: str, objects: Sequence[str], folder: Path) -> None:
        """Make a static library of object files."""
        (folder / library).unlink(missing_ok=True)
        _run([*self.archive, "rcs", library, *objects], folder)


def toolchain(zig_target: str | None) -> Toolchain:
    """Return the compiler for a target as zig names it, None for this machine's own; MissingExtraError without any."""
    own = _own() if zig_target is None else None
    if own is not None:
        return own
    if importlib.util.find_spec("ziglang") is None:
        raise MissingExtraError("ziglang", "library", "compiling C for another machine, or where no C compiler is")
    zig = (sys.executable, "-m", "ziglang")
    aimed = ("-target", zig_target) if zig_target else ()
    return Toolchain((*zig, "cc", *aimed), (*zig, "ar"))


def _own() -> Toolchain | None:
    named = shlex.split(os.environ.get("CC", ""))
    compiler = named or [found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))][:1]
    archiver = shutil.which(os.environ.get("AR", "ar"))
    return Toolchain(tuple(compiler), (archiver,)) if compiler and archiver else None


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{shlex.join(command)}\n{done.stderr.strip() or done.stdout.strip()}")
