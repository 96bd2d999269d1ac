"""What SECURITY.md says of memory and time: sizes that nothing has are errors, and signals end what does not end."""

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.reference import evaluate
from tests.ir.checker.test_hostile import function, loaded

TOO_LONG = (2**50, 2**61, 2**62 + 5, 2**63 - 1)
ONE = "%c: float64[] = constant() {value=float64[](1.0)}\n"
THREE = "%t: float64[3] = constant() {value=float64[3](1.0, 2.0, 3.0)}\n"
NUMBERS = "%z: int = scalar_constant() {value=0}\n%o: int = scalar_constant() {value=1}\n"
SIZED = {
    "full": ONE + "%y: float64[A] = full(%c, %n) {shape=(none,)}",
    "broadcast": ONE + "%b: float64[A] = broadcast(%c, %n) {shape=(none,)}\n%y: float64[A] = sin(%b)",
    "pad": THREE + ONE + "%y: float64[A] = pad(%t, %c, %n, %n) {low=(none,), high=(none,)}",
    "arange": NUMBERS + "%y: int64[A] = arange(%z, %n, %o) {dtype=int64}",
    "linspace": NUMBERS + "%y: float32[A] = linspace(%z, %o, %n) {dtype=float32}",
    "eye": "%y: float32[A, A] = eye(%n, %n) {dtype=float32}",
    "uniform": "%y: float64[A] = random_uniform(%n, %n, %n) {shape=(none,), dtype=float64}",
    "permutation": "%y: int64[A] = random_permutation(%n, %n, %n) {dtype=int64}",
}
TWICE = {
    "full": ONE + "%y: float64[A, B] = full(%c, %n, %n) {shape=(none, none)}",
    "broadcast": ONE + "%b: float64[A, B] = broadcast(%c, %n, %n) {shape=(none, none)}\n%y: float64[A, B] = sin(%b)",
    "tiled": THREE + "%b: float64[A, B, 3] = broadcast(%t, %n, %n) {shape=(none, none, 3)}\n"
    "%y: float64[A, B, 3] = sin(%b)",
    "eye": "%y: float32[A, B] = eye(%n, %n) {dtype=float32}",
    "uniform": "%y: float64[A, B] = random_uniform(%n, %n, %n, %n) {shape=(none, none), dtype=float64}",
    "padded": THREE + ONE + "%y: float64[A] = pad(%t, %c, %n, %n) {low=(none,), high=(none,)}\n"
    "%m: float64[A, A] = broadcast(%y, %n, %n) {shape=(none, none)}",
}


def ways(program: Program) -> list[Callable[[list[Any]], Any]]:
    """Return what runs a Program: native code, and the interpreter."""
    return [NativePlan(program).run, lambda given: evaluate(program, given)]


@pytest.mark.parametrize("name", SIZED)
def test_more_than_there_is_memory_is_an_error(name: str) -> None:
    for run in ways(loaded(function(f"{SIZED[name]}\nreturn %y", "%n: int"))):
        for n in TOO_LONG:
            with pytest.raises((MemoryError, ValueError)):
                run([n])


@pytest.mark.parametrize("name", TWICE)
def test_products_of_more_than_64_bits_are_an_error(name: str) -> None:
    for run in ways(loaded(function(f"{TWICE[name]}\nreturn %y", "%n: int"))):
        for n in (2**31, 2**32, 2**33, 2**62, 2**63 - 1)[name == "padded" :]:
            if name != "padded" or n > 2**50:
                with pytest.raises((MemoryError, ValueError)):
                    run([n])


@pytest.mark.parametrize("shape", ["1125899906842624", "4294967296, 4294967296", "2305843009213693952, 8"])
@pytest.mark.parametrize("op", ["full", "broadcast"])
def test_sizes_of_the_file_are_no_others(op: str, shape: str) -> None:
    comma = "" if "," in shape else ","
    body = f"{ONE}%y: float64[{shape}] = {op}(%c) {{shape=({shape}{comma})}}\n%z: float64[{shape}] = sin(%y)\nreturn %z"
    for run in ways(loaded(function(body))):
        with pytest.raises((MemoryError, ValueError)):
            run([np.ones(1)])


@pytest.mark.parametrize("name", [name for name in SIZED if name != "arange"])
def test_negative_sizes_are_errors(name: str) -> None:
    for run in ways(loaded(function(f"{SIZED[name]}\nreturn %y", "%n: int"))):
        for n in (-1, -(2**32), -(2**63)):
            with pytest.raises(ValueError, match=r"negative|too (big|large)|exceeded"):
                run([n])


ENDLESS = """%a: int = scalar_constant() {value=0}
%t: bool = scalar_constant() {value=true}
%p: bool, %s: int = while_loop(%t, %t, %a) {carried=2} {
    body(%q: bool, %b: int) {
      %k: int = scalar_constant() {value=1}
      %d: int = scalar_xor(%b, %k)
      return %q, %q, %d
    }
  }
return %s"""


@pytest.mark.parametrize("way", [0, 1], ids=["native", "interpreter"])
def test_a_signal_ends_a_loop_that_does_not_end(way: int) -> None:
    def late(*_: Any) -> None:
        raise TimeoutError("late")

    run = ways(loaded(function(ENDLESS)))[way]
    before = signal.signal(signal.SIGALRM, late)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(TimeoutError, match="late"):
                run([np.ones(1)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
