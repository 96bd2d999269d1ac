"""Judge changes: in a fork of a process that has collected the tests, those that run the changed line are run.

`Judge` is a plugin of pytest whose run loop is the loop over changes. A fork exchanges the functions that change
(`exchanging.py`), runs the tests that ran the changed lines when `watching.py` looked, nearest and shortest first, and
ends at the first failure. That takes a second where a change is noticed. What survives meets the cases of these tests
that `--fast` leaves out, and all of the nearest files. What is run at import is changed in a copy of the checkout and
meets the tests in new processes, and so do random programs what is left. A test that hangs is a change that is noticed.
"""

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import ceil
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutation.exchanging import exchanged, functions
from tests.mutation.mutants import Mutant
from tests.mutation.watching import ROOT, checksum

STAGES = ("lines", "cases", "programs")
COPIED = ("dy2st", "tests", "examples", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "dev.py",
          "requirements.lock")  # fmt: skip
HANGS, TURNS = 60, 10.0
"""A test that takes so many seconds hangs: by the clock, or of the CPU's time. What is right is far below."""
CASES = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANGS}"]
MOST_CASES = 200
MOST_NAMED = 60
IMPORTING = 15.0
"""Seconds that a new process takes to import the package and the tests."""
PROGRAMS = ["-m", "tests.generator", "--count", "25", "--shrink", "0", "--jobs", "1"]
NONE = ["-c", ""]
Code = list[tuple[FunctionType, CodeType]]


class Map:
    """Which tests run which lines."""

    def __init__(self, path: Path):
        told = json.loads(path.read_text())
        self._tests: list[tuple[str, float]] = [(name, seconds) for name, seconds in told["tests"]]
        self._lines, self._sums = told["lines"], told["sums"]
        self.known = {name.partition("[")[0] for name, _ in self._tests}
        """The tests that there were when it was made."""

    def tests(self, path: Path, lines: tuple[int, int]) -> list[str]:
        """Return the tests that run any of these lines, nearest and shortest first.

        Where the file is another since, all that run any line of it.
        """
        known = self._lines.get(str(path), {})
        if self._sums.get(str(path)) == checksum(ROOT / path):
            known = {line: told for line, told in known.items() if lines[0] <= int(line) <= lines[1]}
        ran = {test for told in known.values() for test in told}
        beside = near(path)
        order = sorted((-_nearness(self._tests[i][0], path, beside), self._tests[i][1], i) for i in ran)
        return [self._tests[i][0] for _, _, i in order]


@dataclass
class Judge:
    """Goes through changes in place of pytest's loop over tests."""

    where: Map
    changes: Sequence[tuple[Path, Mutant]]
    told: Callable[[Path, Mutant, str], None]
    """Is told each change, and what noticed it: empty where nothing did."""
    stages: Sequence[str] = STAGES
    seconds: float = 20.0
    """How long the CPU may work at the tests of one stage."""
    _items: dict[str, pytest.Item] = field(default_factory=dict)
    _right: set[str] = field(default_factory=set)
    """Tests that are known to pass in a fork without a change."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import settings  # not before pytest, which rewrites it

        settings.register_profile("mutation", max_examples=25, database=None)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "a test file cannot be imported"
        for path in {path for path, _ in self.changes}:
            with suppress(ImportError):  # of what is optional
                importlib.import_module(".".join(path.with_suffix("").parts))
        self._items = {item.nodeid: item for item in session.items if not item.get_closest_marker("soak")}
        known = functions(str(ROOT / "dy2st"))
        for path, mutant in self.changes:
            code = exchanged(known, str(ROOT / path), (ROOT / path).read_text(), mutant.source)
            self.told(path, mutant, self._in_forks(path, mutant, code) if code else self._at_import(path, mutant))
        return True

    def _in_forks(self, path: Path, mutant: Mutant, code: Code) -> str:
        tests = self.where.tests(path, mutant.lines)
        if by := self._failing(tests, code):
            return by
        if "cases" in self.stages and (by := self._failing(self._cases(path, mutant, tests), code)):
            return by
        return self._in_new_process(path, mutant, {"programs": PROGRAMS})

    def _at_import(self, path: Path, mutant: Mutant) -> str:
        ran = self.where.tests(path, mutant.lines) or self.where.tests(path, (0, sys.maxsize))
        tests = [*dict.fromkeys([*ran[:MOST_CASES], *self._cases(path, mutant, ran)])][: 2 * MOST_CASES]
        return self._in_new_process(path, mutant, {"cases": [*CASES, *tests] if tests else NONE, "programs": PROGRAMS})

    def _cases(self, path: Path, mutant: Mutant, tests: Sequence[str]) -> list[str]:
        """Return all cases of the tests that run a line, or the file where none does, and of those nearest to it.

        Before them come those of its folder that are younger than the map, which does not say what they run, and some
        of all that name what is changed: what is made once for all, a formula say, only the first test is seen to run.
        """
        of = {test.partition("[")[0] for test in tests or self.where.tests(path, (0, sys.maxsize))}
        beside, folder = near(path), _folder_of_tests(path).as_posix()
        made = {test: test.partition("[")[0] for test in self._items}
        young = {t for t, name in made.items() if name not in self.where.known and t.startswith(f"{folder}/")}
        found = {t for t, name in made.items() if t in young or name in of or name.partition("::")[0] in beside}
        order = sorted(made, key=lambda t: (t not in young, -_nearness(t, path, beside), zlib.crc32(t.encode())))
        subject = re.compile(rf"(?<![a-z]){re.escape(mutant.subject)}(?![a-z])")
        named = [t for t in order if mutant.subject and subject.search(t)][:MOST_NAMED]
        return [*dict.fromkeys([*(t for t in order if t in young), *named, *(t for t in order if t in found)])]

    def _failing(self, tests: Sequence[str], code: Code) -> str:
        """Return the test that fails with a change, and does not without; empty where none does."""
        while by := in_fork([self._items[test] for test in tests if test in self._items], code, self.seconds):
            if by in self._right or not in_fork([self._items[by]], [], self.seconds):
                self._right.add(by)
                return by
            del self._items[by]
        return ""

    def _in_new_process(self, path: Path, mutant: Mutant, commands: dict[str, list[str]]) -> str:
        later = [stage for stage in commands if stage in self.stages]
        if not later:
            return ""
        (self._copy / path).write_text(mutant.source)
        try:
            return next(
                (stage for stage in later if not _holds(self._copy, commands[stage], IMPORTING + self.seconds)), ""
            )
        finally:
            (self._copy / path).write_text((ROOT / path).read_text())

    @cached_property
    def _copy(self) -> Path:
        """A copy of what the tests need of the checkout."""
        folder = Path(tempfile.mkdtemp(prefix="dy2st-mutation-"))
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, folder / name)
        return folder

    def pytest_sessionfinish(self) -> None:
        if "_copy" in self.__dict__:
            shutil.rmtree(self._copy)


def in_fork(chosen: list[pytest.Item], code: Code, seconds: float) -> str:
    """Return the test that fails in a process where functions have other code; empty where none does in time."""
    if not chosen:
        return ""
    kept = tempfile.mkdtemp(prefix="dy2st-mutation-")
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        os.environ["DY2ST_CACHE_DIR"] = kept
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        for function, new in code:
            function.__code__ = new
        _run(chosen, writes, time.process_time() + seconds)
        os._exit(0)
    os.close(writes)
    try:
        return _failed(child, reads)
    finally:
        os.close(reads)
        shutil.rmtree(kept, ignore_errors=True)


def _run(chosen: list[pytest.Item], writes: int, until: float) -> None:
    """Run tests until one fails or the time is over, and write their names."""
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        if time.process_time() > until:
            return
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, TURNS)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS)
        os.write(writes, f"{item.nodeid}\n".encode())
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            os._exit(1)


def _failed(child: int, reads: int) -> str:
    """Return the test at which a process ended that did not end well."""
    with os.fdopen(os.dup(reads)) as written:
        begun = written.read().splitlines()
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)  # what the tests have left
    except ProcessLookupError:
        pass
    return (begun or ["start"])[-1] if status else ""


def near(changed: Path) -> list[str]:
    """Return the test files of the module's name, and those that import it."""
    module = ".".join(changed.with_suffix("").parts)
    package, _, name = map(re.escape, module.rpartition("."))
    imports = re.compile(rf"\b(from|import) {re.escape(module)}\b|\bfrom {package} import [^\n(]*\b{name}\b")
    named = f"test_{changed.stem}.py"
    return sorted(p for p, text in _texts().items() if p.endswith("/" + named) or imports.search(text))[:6]


def _folder_of_tests(changed: Path) -> Path:
    """Return the folder of tests named as the folder of a changed file, or as the next one above that has one."""
    folders = (Path("tests", *changed.parts[1:k]) for k in range(len(changed.parts) - 1, 0, -1))
    return next(folder for folder in folders if (ROOT / folder).is_dir())


def _nearness(test: str, changed: Path, beside: Sequence[str]) -> int:
    """Return 0 for a test somewhere, more for one in the folders of the changed file, most for one of its file."""
    file = Path(test.partition("::")[0])
    folders = zip(file.parts[1:-1], changed.parts[1:-1], strict=False)
    own = 100 * (str(file) in beside) + 100 * (file.stem == f"test_{changed.stem}")
    return own + sum(ours == theirs for ours, theirs in folders)


@cache
def _texts() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py"))}


def _holds(root: Path, arguments: list[str], seconds: float) -> bool:
    """Return whether the tests pass, those for which the CPU's time is enough."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DY2ST_")}
    variables = {**inherited, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    limited = ["-c", f'ulimit -t {ceil(seconds)} && exec "$@"', "sh", sys.executable, *arguments]
    done = subprocess.run(["sh", *limited], cwd=root, env=variables, capture_output=True)
    return done.returncode in (0, 5, -signal.SIGXCPU, -signal.SIGKILL)
