"""A process that runs a range of random programs in one way and writes a line of JSON for each.

    python -m tests.generator.worker FIRST END

The line before a program is `{"seed": N}`, so that whoever reads knows which one ended the process.
"""

import gc
import json
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.jit.serialization.output_schema import NotSaveable
from tests.generator.coverage import Seen, positions
from tests.generator.outcomes import Call, alike, calls_of, difference, function_of, shown
from tests.generator.statement_kinds import kinds_of
from tests.generator.statements import program_of
from tests.generator.ways import LATER, LOADED

SECONDS = 60
"""A program that takes longer is reported."""


class Late(BaseException):
    """A program did not end in time."""


NOT_IN_FILES = ("box.", "LEVEL")
"""Objects are no arguments of what is loaded; a number that it changes outside is what it was when saved."""
CALLED = "called"
"""What is said of kinds of statements that ran in the way of this process."""


def run(seed: int, seen: Seen, ran: Seen) -> dict[str, Any]:
    """Run one program; say what came of it, and count the positions of its ops and how its statements were run."""
    text, calls = program_of(seed), calls_of(seed)
    static: list[Any] = []
    later = 56 if seed % 8 == 0 else 0
    found = difference(text, calls, later=later, seen=static.append)
    if found is not None and "refused" in found.static:
        return {"kind": "refused", "why": found.static["refused"][:300], "text": text}
    if found is not None:
        return {"kind": "differs", "text": str(found)}
    if not static:
        return {"kind": "skipped"}
    for concrete in static[0].program_cache:
        seen.update(positions(concrete.main_program, order=2 if calls[0].second else 1))
    kinds = kinds_of(text)
    ran.update((kind, CALLED) for kind in kinds)
    if later:
        ran.update((kind, LATER) for kind in kinds)
    if seed % 2 or any(name in text for name in NOT_IN_FILES):
        return {"kind": "same"}
    answer = saved(text, calls)
    if answer["kind"] == "same":
        ran.update((kind, LOADED) for kind in kinds)
    return answer


def saved(text: str, calls: tuple[Call, ...]) -> dict[str, Any]:
    """Compare a program with what is loaded of it, at the calls that return."""
    text = text.replace("(x, t, n, rows, box):", "(x, t, n, rows):", 1)
    eager, static = function_of(text), paddle.jit.to_static(function_of(text))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "program")
        if isinstance(once(eager, calls[0]), str):
            return {"kind": "not saved", "why": "it raises"}
        once(static, calls[0])
        try:
            paddle.jit.save(static, path, input_spec=[*map(spec, inputs(calls[0]))])
        except (Dy2stError, NotSaveable) as error:
            return {"kind": "not saved", "why": f"{type(error).__name__}: {error}"[:300]}
        loaded = paddle.jit.load(path)
        for call in calls[:4]:
            want, got = once(eager, call), once(loaded, call)
            if not alike(want, got):
                return {"kind": "differs", "text": f"after loading: {call}\n{text}\nloaded {got}\neager  {want}"}
    return {"kind": "same"}


def inputs(call: Call) -> tuple[Any, ...]:
    """Return `x`, `t`, `n` and `rows` of a call."""
    rows = [[v * f for v in call.values] for f in (1.0, -0.5, 2.0)]
    tensor = paddle.to_tensor
    return (
        tensor(list(call.values), call.dtype, stop_gradient=False),
        tensor(call.number, call.dtype, stop_gradient=False),
        tensor(call.count),
        tensor(rows, call.dtype),
    )


def spec(tensor: Any) -> Any:
    """Return the kind of an argument, any extent of it."""
    return paddle.static.InputSpec([None] * tensor.ndim, tensor.dtype)


def once(function: Any, call: Call) -> Any:
    """Call on tensors; return what is given, or the kind of what is raised: an own one is no data."""
    paddle.seed(1)
    try:
        return shown(function(*inputs(call)))
    except Exception as error:
        return type(error).__name__ if type(error).__module__ == "builtins" else "Exception"


def main() -> None:
    """Run the programs of a range."""
    warnings.simplefilter("ignore")
    gc.freeze()  # collecting what the imports made is a tenth of the time
    gc.set_threshold(50_000, 20, 20)
    first, end = int(sys.argv[1]), int(sys.argv[2])
    out = sys.stdout
    sys.stdout = sys.stderr
    seen: Seen = Counter()
    ran: Seen = Counter()

    def late(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    for seed in range(first, end):
        print(json.dumps({"seed": seed}), file=out, flush=True)
        signal.alarm(SECONDS)
        try:
            found = run(seed, seen, ran)
        except Late:
            found = {"kind": "late", "text": program_of(seed)}
        except Exception as error:  # whatever a program makes us raise is what is looked for
            found = {"kind": "crashed", "text": f"{type(error).__name__}: {error}\n{program_of(seed)}"}
        finally:
            signal.alarm(0)
        print(json.dumps({**found, "seed": seed}), file=out, flush=True)
    counted = {
        name: [[*key, count] for key, count in counts.items()] for name, counts in (("seen", seen), ("ran", ran))
    }
    print(json.dumps(counted), file=out, flush=True)


if __name__ == "__main__":
    main()
