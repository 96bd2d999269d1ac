"""Runs numbered Programs in a process beside this one; one that ends, or that no signal ends, is replaced and told."""

from __future__ import annotations

import ast
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 90
"""After so many seconds a process has not heard its alarm (victim.py)."""


def sweep(seed: int, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yield each number with what became of its Program."""
    victim: subprocess.Popen[str] | None = None
    try:
        for number in numbers:
            if victim is None:
                victim = _started()
            assert victim.stdin is not None
            assert victim.stdout is not None
            victim.stdin.write(f"{seed} {number}\n")
            victim.stdin.flush()
            if not select.select([victim.stdout], [], [], LONGEST)[0]:
                victim.kill()
                victim.wait()
                yield number, f"FAULT no signal ended it within {LONGEST} s"
                victim = None
                continue
            line = victim.stdout.readline()
            if line:
                yield number, ast.literal_eval(line)
                continue
            status = victim.wait()
            yield number, f"FAULT the process ended with status {status}"
            victim = None
    finally:
        if victim is not None:
            assert victim.stdin is not None
            victim.stdin.close()
            victim.wait()
            if victim.stdout is not None:
                victim.stdout.close()


def _started() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DY2ST_GUARD": "1", "DY2ST_BACKEND": "interpreter"}
    command = [sys.executable, "-m", "tests.fuzzing.victim"]
    made = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    assert made.stdout is not None
    if made.stdout.readline() != "ready\n":
        raise RuntimeError(f"{' '.join(command)} did not start: status {made.wait()}")
    return made
