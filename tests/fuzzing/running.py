"""Runs numbered Programs in processes beside this one; one that ends, or that no signal ends, is replaced and told."""

from __future__ import annotations

import ast
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus

ROOT = Path(__file__).parents[2]
LONGEST = 90
"""After so many seconds a process has not heard its alarm (victim.py)."""


def sweep(seed: int, numbers: Iterable[int], jobs: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield each number with what became of its Program, as they end; as many processes work as there are CPUs."""
    left = iter(numbers)
    victims = [_Victim(seed, number) for _, number in zip(range(jobs or usable_cpus()), left, strict=False)]
    try:
        while victims:
            ready = select.select([victim.answers for victim in victims], [], [], 1)[0]
            for victim in [*victims]:
                answer = victim.answer() if victim.answers in ready else victim.overdue()
                if not answer:
                    continue
                yield victim.number, answer
                number = next(left, None)
                if number is not None:
                    victim.ask(number)
                else:
                    victim.end()
                    victims.remove(victim)
    finally:
        for victim in victims:
            victim.end()


class _Victim:
    """A process that is asked for one Program after the other, and is started again where it ends."""

    def __init__(self, seed: int, number: int):
        self._seed = seed
        self._start()
        self.ask(number)

    def ask(self, number: int) -> None:
        if self._process.poll() is not None:
            self.end()
            self._start()
        self.number, self._asked = number, time.monotonic()
        self._questions.write(f"{self._seed} {number}\n")
        self._questions.flush()

    def answer(self) -> str:
        line = self.answers.readline()
        return ast.literal_eval(line) if line else f"FAULT the process ended with status {self._process.wait()}"

    def overdue(self) -> str:
        """Return what is said of a Program that takes too long, and end it; nothing while there is time."""
        if time.monotonic() - self._asked < LONGEST:
            return ""
        self._process.kill()
        self._process.wait()
        return f"FAULT no signal ended it within {LONGEST} s"

    def end(self) -> None:
        self._questions.close()
        self._process.wait()
        self.answers.close()

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DY2ST_GUARD": "1", "DY2ST_BACKEND": "interpreter"}
        command = [sys.executable, "-m", "tests.fuzzing.victim"]
        self._process = made = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert made.stdin is not None
        assert made.stdout is not None
        self._questions: IO[str] = made.stdin
        self.answers: IO[str] = made.stdout
        if self.answers.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} did not start: status {made.wait()}")
