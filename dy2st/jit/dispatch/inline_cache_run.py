"""How the function that makes a call which was seen before runs its Program (inline_cache.py): at once, or input by
input.

    direct = c8.direct
    results = known(direct.call, v0, v3)
    if type(results) is list:
        program.calls += 1
    elif results is UNSEEN:                 # an input is not as it was, or this version of the code does not take it
        ...
        results = run(p0, p1)
        ...
        results[0] = Tensor(results[0])
    else:
        ...                                 # the run ended with an error

`known` is machine code (call.py), from the call on after the one in which native code ran first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dy2st.ir.checkpoint import KEEP_ALL
from dy2st.ir.context import Context
from dy2st.jit.dispatch.write_back import write_array
from dy2st.kinds import type_of
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.trampolines import static_function
from dy2st.runtime.backends.cpu.trampolines.call import Input, is_loaded, known_call
from dy2st.runtime.backends.cpu.trampolines.write_back import known_writes
from dy2st.runtime.backends.llvm_availability import NoLlvm
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.signal_delivery import comes_from_handler

UNSEEN = object()
"""What an inline cache returns of another call."""
MOST_COMPARED = 12
"""So many objects are compared one by one, which takes 5 ns a pair; the number of an object takes 40."""


def note_like(function: Any, context: Context, count: int, recognise: Callable[..., Any], program: Any) -> None:
    """Let machine code make calls like this one, once it makes any: in such a context, with so many arguments."""
    if is_loaded():
        static_function.install(type_of(function), "_like", "_last", UNSEEN)
        function._like = *map(context.__getattribute__, static_function.MODES), count, recognise, program


def modes_of(context: Context) -> Any:
    """Return what is in force that makes another Program of the same call; None for what mostly is."""
    if context.amp is None and context.checkpoint == KEEP_ALL:
        return None
    return repr(context.amp), context.checkpoint


def kind_of_call(context: Context, args: Any, keywords: Any) -> Any:
    """Return what calls have in common that one function may recognise."""
    return (len(args), context.grad, context.amp, context.checkpoint, *keywords)


def unknown(*_: Any) -> Any:
    """Stand in for machine code that is not there: what follows in Python does it."""
    return UNSEEN


@record
class ProgramInputs:
    """What a Program takes, as the lines of a function that calls it name it."""

    given: list[str] = field(default_factory=list)
    """Tensors, and what is no tensor."""
    kinds: list[Input] = field(default_factory=list)
    payloads: list[str] = field(default_factory=list)
    """Names of their arrays, and what is no tensor."""
    looks: list[str] = field(default_factory=list)
    """Lines that look at the tensors and name their arrays."""
    array_looks: list[str] = field(default_factory=list)
    """Lines that look at arrays, which native code does itself."""
    distinct: int = 0
    """The first so many are to be different objects, which the lines look at too."""

    def plain(self, text: str) -> None:
        """Add what goes on as it is."""
        self.given.append(text)
        self.kinds.append(False)
        self.payloads.append(text)

    def tensor(self, text: str, kind: type[Tensor], stop_gradient: bool) -> str:
        """Add a tensor; return the name of its array."""
        self.given.append(text)
        self.kinds.append((kind, stop_gradient))
        self.payloads.append(f"p{len(self.payloads)}")
        return self.payloads[-1]


@record
class TrampolineBuilder:
    """Makes the machine code for a kind of call, once there is native code for it to call."""

    runner: TieredProgram
    inputs: Sequence[Input]
    results: Sequence[int] | None
    distinct: int

    def __call__(self, now: Callable[..., Any]) -> Callable[..., Any]:
        """Return the machine code, or what there is `now`."""
        if now is not unknown or self.runner.native is None:
            return now
        try:
            made = known_call(self.inputs, UNSEEN, results=self.results, distinct=self.distinct)
        except NoLlvm:  # native code was kept by an earlier process, this was not
            made = None
        return now if made is None else made


@record
class WritingTrampolineBuilder:
    """Makes the machine code for what a call writes, beside that for the call itself."""

    writes: Sequence[tuple[Tensor, int]]

    def __call__(self, now: Any) -> Any:
        """Return the machine code, or None while there is none."""
        return known_writes(self.writes, write_array) if now is None else now


def running(
    runner: str, ready: Sequence[str], inputs: ProgramInputs, results: Sequence[int] | None, *, renews: bool
) -> list[str]:
    """Return the lines that run a Program by what `runner` names, and leave what it gives in `results`.

    That is the list of results, of which those with these numbers are tensors; the only one where `results` is None.
    `ready` are lines for the call in which native code ran first. What `renews` passes an object that nobody else holds
    (buffer_donation.py).
    """
    payloads = ", ".join(inputs.payloads)
    again = f"Handed([{payloads}], 3)" if renews else f"[{payloads}]"
    ended = ", ".join(
        v if kind is False else f"{v}.payload" for v, kind in zip(inputs.given, inputs.kinds, strict=True)
    )
    return [
        f"direct = {runner}.direct",
        *["held = (object(),)"] * renews,
        f"results = known({', '.join(['direct.call', *inputs.given, *['held'] * renews])})",
        f"if type(results) is {'Tensor' if results is None else 'list'}:",
        "    program.calls += 1",
        "elif results is UNSEEN:",
        *inside(guarded(inputs.looks)),
        *["    alone = held[0]"] * renews,
        "    run = direct.call",  # apart from the call: CPython looks for a method first where the two are one
        f"    results = run({payloads}{', alone' * renews})",
        "    if type(results) is list:",
        "        program.calls += 1",
        "    else:",
        *inside(inside(guarded(inputs.array_looks))),
        "        program.calls += 1",
        f"        results = {runner}.again({again}) if results is False else direct.ended(results, [{payloads}])",
        *inside(inside(ready)),
        *inside(wrapping(results)),
        "else:",
        "    program.calls += 1",
        f"    results = direct.ended(results, [{ended}])",
        *inside(wrapping(results)),
    ]


def wrapping(results: Sequence[int] | None) -> list[str]:
    """Return the lines that make tensors of results, as `running` leaves them."""
    if results is None:
        return ["results = Tensor(results[0])"]
    return [f"for i in {tuple(results)}: results[i] = Tensor(results[i])"] if results else []


def guarded(lines: Sequence[str]) -> list[str]:
    """Return lines of which what raises means another call."""
    return ["try:", *inside(lines), "except Exception as error:", "    return unseen(error)"] if lines else []


def unseen(error: Exception) -> object:
    """Return that a call is another one; what a handler of a signal has raised in between goes on its way."""
    if comes_from_handler(error):
        raise error
    return UNSEEN


def inside(lines: Iterable[str]) -> list[str]:
    """Return lines as they stand in a block."""
    return [f"    {line}" for line in lines]


def one_is_another(names: Sequence[str]) -> str:
    """Return a test whether two of these are the same object; a set of their numbers pays where there are many."""
    if len(names) > MOST_COMPARED:
        return f"len({{{', '.join(f'id({v})' for v in names)}}}) != {len(names)}"
    return " or ".join(f"{a} is {b}" for a, b in itertools.combinations(names, 2))
