"""Which tests judge a change, nearest first: those of the file's name, of its folder, then `--fast` and the generator.

Each stage ends at its first failure. A test that hangs is a change that is noticed.
"""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

SECONDS = {"near": 240, "folder": 420, "fast": 900, "programs": 600}


def judge(root: Path, changed: Path, *, stages: tuple[str, ...] = tuple(SECONDS)) -> str:
    """Return the stage at which a change of one file of the checkout at `root` is noticed; empty where at none."""
    for stage in stages:
        arguments = _arguments(root, changed, stage)
        if arguments and not _holds(root, arguments, SECONDS[stage]):
            return stage
    return ""


def _arguments(root: Path, changed: Path, stage: str) -> list[str]:
    """Return what Python is started with for a stage; nothing where there is no test for it."""
    if stage == "programs":
        return ["-m", "tests.generator", "--count", "200", "--shrink", "0", "--jobs", "1"]
    pytest = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--fast"]
    if stage == "fast":
        return pytest
    files = near(root, changed) if stage == "near" else folder(root, changed)
    return [*pytest, *files] if files else []


def near(root: Path, changed: Path) -> list[str]:
    """Return the test files of the module's name, and those that import it."""
    module = ".".join(changed.with_suffix("").parts)
    imports = re.compile(rf"\b(from|import) {re.escape(module)}\b")
    named = f"test_{changed.stem}.py"
    texts = _texts(root)
    return sorted({path for path, text in texts.items() if path.endswith("/" + named) or imports.search(text)})[:6]


def folder(root: Path, changed: Path) -> list[str]:
    """Return the test folder of the package, or the nearest above it."""
    place = Path("tests", *changed.parts[1:-1])
    while len(place.parts) > 1 and not (root / place).is_dir():
        place = place.parent
    return [str(place)] if len(place.parts) > 1 else []


@cache
def _texts(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in (root / "tests").rglob("test_*.py")}


def _holds(root: Path, arguments: list[str], seconds: int) -> bool:
    """Return whether the tests pass; what takes too long does not."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DY2ST_")}
    variables = {**inherited, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    try:
        done = subprocess.run(command, cwd=root, env=variables, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 5)  # 5: `--fast` left out all of these tests
