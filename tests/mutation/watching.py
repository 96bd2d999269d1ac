"""Which lines of the package each test runs, and how long it takes: a plugin of pytest that writes one JSON file.

A function that ran 30 times in a test without a new line is not looked at further in that test, so that the suite takes
two to three times as long as without, and not thirty.
"""

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(ROOT / "dy2st")
ENOUGH = 30


class Watching:
    """Collects lines per test."""

    def __init__(self, written: Path):
        self._written = written
        self._runs: dict[int, int] = {}
        """How often each function, by the id of its code, ran in this test since it last ran a new line."""
        self._seen: set[tuple[str, int]] = set()
        self._lines: dict[str, dict[int, list[int]]] = {}
        self._tests: list[tuple[str, float]] = []
        self._sums = {str(path.relative_to(ROOT)): checksum(path) for path in Path(PACKAGE).rglob("*.py")}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._runs.clear()
        self._seen.clear()
        started = time.perf_counter()
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            for name, line in self._seen.copy():
                self._lines.setdefault(name, {}).setdefault(line, []).append(len(self._tests))
            self._tests.append((item.nodeid, round(time.perf_counter() - started, 3)))

    def pytest_sessionfinish(self) -> None:
        prefix = len(str(ROOT)) + 1
        lines = {name[prefix:]: told for name, told in sorted(self._lines.items())}
        sums = {name: self._sums[name] for name in lines if name in self._sums}
        self._written.parent.mkdir(parents=True, exist_ok=True)
        self._written.write_text(json.dumps({"tests": self._tests, "sums": sums, "lines": lines}))

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        runs = self._runs.get(id(code), 0)
        if runs >= ENOUGH:
            return None
        ours = code.co_filename.startswith(PACKAGE)
        self._runs[id(code)] = runs + 1 if ours else ENOUGH
        return self._line if ours else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            ran = (frame.f_code.co_filename, frame.f_lineno)
            if ran not in self._seen:
                self._seen.add(ran)
                self._runs[id(frame.f_code)] = 0
        return self._line


def checksum(path: Path) -> str:
    """Return what tells one state of a file from another."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watching(Path(os.environ["WATCHED_LINES"])))
