"""`jit.verify`: run a function eagerly and as a Program on the same state, and compare everything that can be seen."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from dy2st.errors import ConversionError, TraceError
from dy2st.ir.location import Location
from dy2st.jit.static_function import StaticFunction
from dy2st.jit.verifying.culprits import RepeatableCall, find
from dy2st.jit.verifying.described import ObjectDescription, alike, apart, close, first_difference
from dy2st.jit.verifying.outcome import ObservedRun, observed
from dy2st.jit.verifying.report import Culprit, Difference, Verification
from dy2st.jit.verifying.snapshot import Snapshot, change, make_optimizer_state, shake
from dy2st.nn.layer import Layer
from dy2st.records import replace
from dy2st.runtime.eager.rng import default_generator

KINDS = ("exception", "prints", "warnings", "result", "state", "random numbers", "gradients")
"""What is compared, in the order in which differences are listed."""
MOST_LISTED = 20
AMPLIFIED = 16
"""So many times what one unit in the last place of all inputs makes of a result may be off."""
ORDINALS = ("", "second ", "third ", "fourth ")


def verify(
    function: Callable[..., Any],
    *inputs: Any,
    gradients: bool = True,
    calls: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
    **keywords: Any,
) -> Verification:
    """Run a function eagerly and as a Program, and report what differs and the first line that does.

    Both runs start from the same state, and everything is as it was afterwards: arguments, attributes, closures,
    globals that the function names, lists and dicts, the random generators. Compared are the result (values, dtypes,
    shapes, Python types), what was written, printed, warned of and raised, the random numbers drawn, and the gradients
    of all arguments and parameters for fixed cotangents of the result. The Program runs twice by default: traced, and
    again.

    Parameters
    ----------
    function
        A function, a method, a Layer, or one of them under `to_static`.
    *inputs, **keywords
        What to call it with.
    gradients
        Whether to compare gradients.
    calls
        How often the Program runs, from 1 to 4 times. From the third on, the tensors among the inputs have their
        elements in another order, and those of one element another value.
    rtol, atol
        How far apart numbers may be; by default what rounding explains: from 1e-9 (float64) to 4e-2 (bfloat16) of the
        largest element, or 16 times what eager mode gives otherwise where all its inputs differ in the last place.

    Returns
    -------
    Verification
        True where both agree. It prints the differences and the line; `check()` raises Mismatch.

    Raises
    ------
    TypeError
        `function` cannot be called.
    ValueError
        `calls` is not from 1 to 4.

    >>> import dy2st as paddle
    >>> def step(x):
    ...     while x.sum() < 10: x = x * 2
    ...     return x
    >>> paddle.jit.verify(step, paddle.to_tensor([1.0, 2.0])).agrees
    True
    """
    if not callable(function):
        raise TypeError(f"verify takes a function, a method or a Layer, not {type(function).__name__}")
    plain, static = _both(function)
    roots = {"": plain, **{f"argument {i}": x for i, x in enumerate(inputs)}, **keywords}
    if calls not in range(1, len(ORDINALS) + 1):
        raise ValueError(f"calls is a number from 1 to {len(ORDINALS)}, not {calls!r}")
    default_generator()
    untouched = Snapshot(roots)
    make_optimizer_state(roots)
    try:
        counted, found, culprit = _run(plain, static, inputs, keywords, roots, (calls, gradients, rtol, atol))
    finally:
        untouched.restore()
    name = getattr(plain, "__qualname__", type(plain).__name__)
    return Verification(name, counted, tuple(found[:MOST_LISTED]), culprit)


def _run(
    plain: Callable[..., Any], static: StaticFunction, inputs: tuple[Any, ...], keywords: dict[str, Any],
    roots: Mapping[str, Any], options: tuple[int, bool, float | None, float | None],
) -> tuple[dict[str, int], list[Difference], Culprit | None]:  # fmt: skip
    """Call both ways; return how much was compared, what differs at the first call that differs, and the line."""
    calls, gradients, rtol, atol = options
    counted: dict[str, int] = {}
    call = RepeatableCall(plain, static, inputs, keywords, Snapshot(roots))
    want = _outcome(call, call.eager, roots, gradients)
    for number in range(calls):
        if number > 1:
            change(inputs, keywords)
            call = RepeatableCall(plain, static, inputs, keywords, Snapshot(roots))
            want = _outcome(call, call.eager, roots, gradients)
        counted = counted or {kind: len(want.things[kind]) for kind in KINDS if want.things.get(kind)}
        got = _outcome(call, call.static, roots, gradients)
        found = _compared(want, got, rtol, atol)
        if found and rtol is atol is None:
            found = _unexplained(found, call, want, got, roots, gradients)
        if found:
            culprit = _culprit(call, found, want, got, rtol, atol)
            which = f"of the {ORDINALS[number]}call " if number else ""
            return counted, [replace(d, name=which + d.name) for d in found], culprit
    return counted, [], None


def _outcome(call: RepeatableCall, run: Callable[[], Any], roots: Mapping[str, Any], gradients: bool) -> ObservedRun:
    try:
        return observed(run, roots, gradients)
    finally:
        call.before.restore()


def _compared(want: ObservedRun, got: ObservedRun, rtol: float | None, atol: float | None) -> list[Difference]:
    """Return what differs between the eager run and that of the Program."""
    refusal = got.error
    if isinstance(refusal, (ConversionError, TraceError)) and type(want.error) is not type(refusal):
        return [Difference("conversion", "", "runs", str(refusal))]
    return list(_differences(want, got, rtol, atol))


def _unexplained(
    found: list[Difference],
    call: RepeatableCall,
    want: ObservedRun,
    got: ObservedRun,
    roots: Mapping[str, Any],
    gradients: bool,
) -> list[Difference]:
    """Return the differences that rounding does not explain.

    Rounding that the function amplifies (a chaotic loop, Adam's steps where a gradient is zero but for rounding) makes
    eager mode differ as much from itself, once the last place of its numbers is another.
    """

    def shaken(up: bool) -> ObservedRun:
        shake(roots, up)
        return _outcome(call, call.eager, roots, gradients)

    others = [shaken(True), shaken(False)]

    def explained(d: Difference) -> bool:
        a, b, *c = (o.things.get(d.kind, {}).get(d.name) for o in (want, got, *others))
        moved = max((apart(a, x) for x in c if x is not None), default=0.0) if a is not None else 0.0
        return a is not None and b is not None and moved > 0 and alike(a, b, None, AMPLIFIED * moved)

    return [d for d in found if not explained(d)]


def _culprit(
    call: RepeatableCall,
    found: list[Difference],
    want: ObservedRun,
    got: ObservedRun,
    rtol: float | None,
    atol: float | None,
) -> Culprit | None:
    """Return the first line that differs, where one is known."""
    if found[0].kind == "conversion":
        assert isinstance(got.error, (ConversionError, TraceError))
        return _refused(got.error)
    return find(call, found, partial(close, rtol=rtol, atol=atol)) or _seen(found[0], want, got)


def _both(function: Callable[..., Any]) -> tuple[Callable[..., Any], StaticFunction]:
    """Return a function as it was written, and as Programs of its own; a Layer with its hooks."""
    if isinstance(function, Layer):

        def layer(*inputs: Any, **keywords: Any) -> Any:
            return function(*inputs, **keywords)

        return function, StaticFunction(layer, full_graph=True)
    inner = getattr(function, "__dy2st_function__", function)
    if isinstance(inner, types.MethodType):
        return inner, StaticFunction(inner.__func__, full_graph=True, instance=inner.__self__)
    return inner, StaticFunction(inner, full_graph=True)


def _differences(want: ObservedRun, got: ObservedRun, rtol: float | None, atol: float | None) -> Iterator[Difference]:
    for kind in KINDS:
        if kind == "gradients" and "" in want.things.get(kind, {}):  # the eager run used the tape up itself
            continue
        yield from _between(kind, want.things.get(kind, {}), got.things.get(kind, {}), rtol, atol)


def _between(
    kind: str,
    eager: Mapping[str, ObjectDescription],
    static: Mapping[str, ObjectDescription],
    rtol: float | None,
    atol: float | None,
) -> Iterator[Difference]:
    for name in dict.fromkeys([*eager, *static]):
        a, b = eager.get(name), static.get(name)
        if a is None or b is None:
            yield Difference(kind, name, "has none" if a is None else str(a), "has none" if b is None else str(b))
        elif not alike(a, b, rtol, atol):
            yield Difference(kind, name, str(a), f"{b}{first_difference(a, b)}")


def _refused(error: ConversionError | TraceError) -> Culprit | None:
    if error.file is None or error.line is None:
        return None
    return Culprit(Location(error.file, error.line), "this cannot become a part of a Program")


def _seen(difference: Difference, want: ObservedRun, got: ObservedRun) -> Culprit | None:
    """Return the line of a difference that is seen from outside: an exception or a print."""
    if difference.kind == "exception":
        place = want.raised_at or got.raised_at
        return None if place is None else Culprit(place, f"eager raised {difference.eager}, static {difference.static}")
    if difference.kind == "prints":
        number = int(difference.name.split()[-1]) - 1
        place = want.printed_at[number] if number < len(want.printed_at) else None
        return None if place is None else Culprit(place, f"printed {difference.eager} and {difference.static}")
    return None if want.raised_at is None else Culprit(want.raised_at, "this raised, and left another state behind")
