"""The process that loads and runs changed Programs, one a line of its input: a crash ends it, and nothing else.

python -m tests.fuzzing.victim < numbers        each line: seed, number
"""

from __future__ import annotations

import copy
import os
import random
import resource
import signal
import sys
import warnings
from typing import Any

import numpy as np

from dy2st.errors import Dy2stError, FileFormatError
from dy2st.ir.serialize import _Writer, from_json
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.reference import evaluate
from tests.agreement import difference, is_exact
from tests.fuzzing.corpus import Entry, entries, operands
from tests.fuzzing.files import called, in_file, metadata_of
from tests.fuzzing.mutations import mutated
from tests.fuzzing.written import samples, written
from tests.runtime.backends.cpu.native import Guarded

EXPECTED = (Dy2stError, ValueError, TypeError, IndexError, ArithmeticError, AssertionError, MemoryError, RecursionError,
            UnboundLocalError, KeyError, np.linalg.LinAlgError)  # fmt: skip
"""What a Program may raise of itself: what its operations raise on values that they do not take."""
LONGEST = 1000
MEMORY = 6 << 30
SECONDS, SECONDS_IN_FILES = 1, 5
"""How long a Program may run, and one that is compiled meanwhile: most of the time would go to endless ones."""
PATIENCE = 60
"""How long a Program may take to be loaded and compiled, on a busy machine."""
QUICK = 2
"""One of so many Programs is compiled as the first call compiles it: the same bits, in a fifth of the time."""
WRITTEN = 3
"""One of so many Programs is written from nothing."""
IN_FILES = 6
"""One of so many Programs goes through a file and `jit.load`, where it is one that a file can hold."""


class TookLong(BaseException):
    """A Program that ran until the alarm; that a signal ends it is what is asked of it."""


def _alarm(*_: Any) -> None:
    raise TookLong


def _alarm_after(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again each second: Python drops what __del__ raises


def changed(corpus: list[Entry], seed: int, number: int) -> tuple[str, Any, dict[str, Any], random.Random]:
    """Return the Program of a number: always the same one."""
    rng = random.Random(f"{seed}/{number}")
    if number % WRITTEN == 1:
        program, writer = written(samples(), rng), _Writer()
        functions = {name: writer.block(block, 0) for name, block in program.functions.items()}
        made = {"entry": program.entry, "functions": functions}
        return "written", mutated(made, [made], rng) if rng.random() < 0.4 else made, writer.arrays, rng
    name, data, arrays = corpus[rng.randrange(len(corpus))] if rng.random() < 0.6 else rng.choice(corpus[-14:])
    return name, mutated(data, [e[1] for e in rng.sample(corpus, 3)], rng), arrays, rng


def attempt(corpus: list[Entry], seed: int, number: int) -> str:
    """Load and run a Program; return what became of it, "FAULT ..." for what must not be."""
    name, data, arrays, rng = changed(corpus, seed, number)
    stage = "loading"
    _alarm_after(PATIENCE)
    try:
        if number % IN_FILES == 0 and (metadata := metadata_of(data)) is not None:
            layer = in_file(data, arrays, metadata)
            stage = "running"
            _alarm_after(SECONDS_IN_FILES)
            return called(layer, from_json(data, arrays), rng)
        program = from_json(data, arrays)
        stage = "compiling"
        plan = NativePlan(program, quick=number % QUICK == 0)
        stage = "running"
        _alarm_after(SECONDS)
        for _ in range(2):
            given = operands(program, rng)
            if given is None:
                return "no operands"
            fault = _compared(plan, given)
            if fault:
                return f"FAULT {name}: {fault:.300}"
        return "ran"
    except FileFormatError as error:
        return _judged(error, "refused") if stage == "loading" else f"FAULT {stage} {name}: {error!r:.200}"
    except (TookLong, KeyboardInterrupt):
        return f"took long ({stage})" if stage == "running" else f"FAULT {stage} {name}: more than {PATIENCE} s"
    except EXPECTED as error:
        if stage == "running":
            return _judged(error, "raised")
        return f"FAULT {stage} {name}: {type(error).__name__}: {error!s:.300}"
    except Exception as error:
        return f"FAULT {stage} {name}: {type(error).__name__}: {error!s:.300}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _compared(plan: NativePlan, given: list[Any]) -> str:
    """Run native code between forbidden pages, and the interpreter; say in what their results differ.

    An operation whose result nobody reads is computed by the interpreter alone, so it alone may raise.
    """
    program, copied = plan.program, copy.deepcopy(given)
    guarded = [Guarded(np.ascontiguousarray(x)).array.reshape(x.shape) if isinstance(t, TensorType) and x.size else x
               for t, x in zip(program.argument_types, given, strict=True)]  # fmt: skip
    found = plan.run(guarded)
    try:
        wanted = evaluate(program, copied)
    except EXPECTED:
        return ""
    fault = difference(found, wanted, copied, exact=is_exact(program))
    undefined = " elements" in fault and any(o.op.name == "cast" for o in program.walk())  # NaN as an integer
    return "" if undefined else fault


def _judged(error: Exception, word: str) -> str:
    return word if len(str(error)) <= LONGEST else f"FAULT a text of {len(str(error))} letters: {error!s:.100}"


def main() -> None:
    os.environ["DY2ST_GUARD"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Programs print
    corpus = entries()
    answers.write("ready\n")
    for line in sys.stdin:
        seed, number = map(int, line.split())
        answers.write(f"{attempt(corpus, seed, number)!r}\n")


if __name__ == "__main__":
    main()
