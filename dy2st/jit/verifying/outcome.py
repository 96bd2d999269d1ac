"""One run of a function under observation: what it gave, wrote, printed, warned of and raised, and its gradients."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dy2st.ir.context import current, replaced
from dy2st.ir.location import Location, user_location
from dy2st.jit.verifying.described import ObjectDescription, described
from dy2st.jit.verifying.reachable import reachable
from dy2st.kinds import is_dict, is_sequence
from dy2st.ops.core.rounded import TANGENT
from dy2st.records import field, record, replace
from dy2st.runtime.autograd_engine.backward import Place, sum_into_leaves
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.interpreter.error_locations import user_lines


@record
class ObservedRun:
    """What one run left behind, as data."""

    things: dict[str, dict[str, ObjectDescription]] = field(default_factory=dict[str, dict[str, ObjectDescription]])
    """By kind ("result", "gradients", "state", "prints", ...), then by name."""
    printed_at: list[Location | None] = field(default_factory=list[Location | None])
    raised_at: Location | None = None
    error: BaseException | None = None


def observed(run: Callable[[], Any], roots: Mapping[str, Any], gradients: bool) -> ObservedRun:
    """Run once; `roots` lead to what the run may write."""
    made, output, inner = ObservedRun(), _Output(), inner_tensors(roots)
    result: Any = None
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:
            made.error, lines = error, user_lines(error.__traceback__)
            made.raised_at = lines[-1] if lines else None
            made.things["exception"] = {"": ObjectDescription(type(error).__name__, str(error))}
    made.printed_at = output.places
    if inspect.iscoroutine(result):
        result.close()
    if made.error is None:
        made.things["result"] = described({"": result})
    made.things["state"] = described(roots)
    made.things["prints"] = {f"{i + 1}": ObjectDescription("text", text) for i, text in enumerate(output.lines())}
    shown = [(w.category.__name__, f"{w.message} ({w.filename}:{w.lineno})") for w in warned]
    made.things["warnings"] = {f"{i + 1}": ObjectDescription(kind, text) for i, (kind, text) in enumerate(shown)}
    made.things["random numbers"] = {"generator": ObjectDescription("state", default_generator().get_state())}
    if gradients and made.error is None and current().grad:
        made.things["gradients"] = _gradients(result, roots, inner)
    return made


class _Output(io.StringIO):
    """Standard output that remembers the user's line of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[Location | None] = []

    def write(self, text: str) -> int:
        place = user_location()
        self.places += [place] * text.count("\n")
        return super().write(text)

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


def inner_tensors(roots: Mapping[str, Any]) -> dict[str, Place]:
    """Return where the tensors that are no leaves come from: what made them is the caller's, and stays on the tape."""
    found = {path: x for path, x in reachable(roots) if isinstance(x, Tensor)}
    return {path: (x.tape_node, x.tape_index) for path, x in found.items() if x.tape_node is not None}


def _gradients(result: Any, roots: Mapping[str, Any], inner: Mapping[str, Place]) -> dict[str, ObjectDescription]:
    """Pull fixed cotangents of all float results back; return the gradients that stand in `roots` afterwards."""
    try:
        cts = pulled_back(result, list(inner.values()))
    except Exception as error:
        return {"": ObjectDescription(type(error).__name__)}
    found = described(
        {**roots, **{f"{path}.grad": Tensor(ct) for path, ct in zip(inner, cts, strict=False) if ct is not None}}
    )
    return {path: thing for path, thing in found.items() if path.endswith(".grad")}


def pulled_back(result: Any, until: Sequence[Place]) -> list[Any]:
    """Sum the gradients of a result into leaves, node by node; return the cotangents at the places `until`."""
    live = live_results(result)
    if not live:
        return []
    with replaced(process=replace(current().process, walks_of_tape=math.inf)):
        return sum_into_leaves(live, [seed_of(t) for t in live], until=until)


def live_results(result: Any) -> list[Tensor]:
    """List the tensors of a result that gradients flow out of."""
    if isinstance(result, Tensor):
        return [] if result.stop_gradient or result.payload.dtype.kind not in TANGENT else [result]
    items: Iterable[Any] = result.values() if is_dict(result) else result if is_sequence(result) else ()
    found = [t for item in items for t in live_results(item)]
    return list({id(t): t for t in found}.values())


def seed_of(t: Tensor) -> Tensor:
    """Return a cotangent that is the same in every run and no two elements of which are equal by chance."""
    xp, payload = namespace_of(t.payload), t.payload
    return Tensor(xp.cos(xp.arange(payload.size) + 0.5).reshape(payload.shape).astype(payload.dtype))
