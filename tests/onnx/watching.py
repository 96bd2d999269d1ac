"""Every Program that runs, run in onnxruntime too: what `Watch` saw of a test, a script or random programs.

python -m tests.onnx.watching examples/lenet.py ...      counts, and what differs
"""

import runpy
import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, VariantType
from dy2st.onnx.exporting import NotExportable
from dy2st.onnx.writing.leaves import leaves
from dy2st.ops.core.bundle import Bundle
from dy2st.runtime.interpreter.planned import Plan
from tests.agreement import TOLERANCES
from tests.onnx.running import NO_KERNEL, session, written

FEW = 3
"""So many runs of one Program are looked at."""
_DTYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}


class Watch:
    """Counts Programs that were equal, refused or without a kernel, and says what differed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.faults: list[str] = []
        self._plans: dict[int, Any] = {}
        self._opened: dict[str, Any] = {}
        self._runs: Counter[str] = Counter()
        self._busy = threading.local()

    def start(self, patch: pytest.MonkeyPatch) -> None:
        """See every run of a plan until `patch` is undone."""
        init, run = Plan.__init__, Plan.run

        def remembered(plan: Any, program: Any, xp: Any) -> None:
            init(plan, program, xp)
            if xp is np:
                self._plans[id(plan)] = plan, program

        def seen(plan: Any, inputs: Any) -> Any:
            program = self._plans.get(id(plan), (None, None))[1]
            before = [copied(v) for v in inputs]
            found = run(plan, inputs)
            if program is not None and not getattr(self._busy, "now", False):
                self._busy.now = True
                try:
                    self.compare(program, before, found)
                finally:
                    self._busy.now = False
            return found

        patch.setattr(Plan, "__init__", remembered)
        patch.setattr(Plan, "run", seen)

    def compare(self, program: Any, inputs: Any, found: Any) -> None:
        """Run a Program in onnxruntime, and note how that went."""
        key = fingerprint(program)
        if key is None or not program.block.results:  # onnxruntime opens no model without nodes
            return
        self._runs[key] += 1
        if self._runs[key] > FEW:
            return
        if key not in self._opened:
            self._opened[key] = self.opened(program)
        opened = self._opened[key]
        if opened is None:
            return
        feeds = [leaf for v, x in zip(program.block.arguments, inputs, strict=True) for leaf in flat(v.type, x)]
        try:
            given = {i.name: x for i, x in zip(opened.get_inputs(), feeds, strict=True)}
            made = opened.run(None, given)
        except Exception as error:
            self.note(program, f"{type(error).__name__}: {error}")
            return
        wanted = [leaf for v, x in zip(program.block.results, found, strict=True) for leaf in flat(v.type, x, True)]
        self.counts["runs"] += 1
        for got, meant in zip(made, wanted, strict=True):
            if fault := difference(got, meant):
                self.note(program, fault)
                return
        self.counts["equal"] += 1

    def opened(self, program: Any) -> Any:
        """Return a session on a Program, None where there is none."""
        self.counts["programs"] += 1
        try:
            return session(written(program))
        except NotExportable as error:
            self.counts["refused"] += 1
            self.refused.update({f"{name}: {why}" for name, _, why in error.operations})
        except NO_KERNEL as error:
            self.counts["no kernel"] += 1
            self.refused[str(error)[:110]] += 1
        except Exception as error:
            self.note(program, f"{type(error).__name__}: {error}")
        return None

    def note(self, program: Any, fault: str) -> None:
        """Note what went wrong."""
        self.counts["different"] += 1
        self.faults.append(f"{fault}\n{program}")


def copied(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy()
    if isinstance(x, (list, tuple)):
        return type(x)(copied(item) for item in x)
    return Bundle([copied(item) for item in x.items]) if isinstance(x, Bundle) else x


def flat(t: Any, x: Any, mask: bool = False) -> list[Any]:
    """The leaves of a value; of alternatives that it is not, what stands there, or None to say that nothing counts."""
    if isinstance(t, TensorType):
        return [np.asarray(x)]
    if isinstance(t, ScalarType):
        return [np.asarray(x, _DTYPES[t.kind])]
    if isinstance(t, ListType):
        rows = [flat(t.element, item, mask) for item in x]
        return [[row[i] for row in rows] for i in range(len(leaves(t.element)))]
    if isinstance(t, TupleType):
        return [leaf for item, part in zip(t.items, x.items, strict=True) for leaf in flat(item, part, mask)]
    if not isinstance(t, VariantType):
        return []
    made: list[Any] = [np.asarray(x[0], np.int64)]
    for k, alternative in enumerate(t.alternatives):
        made += flat(alternative, x[1], mask) if k == x[0] else [absent(leaf, mask) for leaf in leaves(alternative)]
    return made


def absent(leaf: Any, mask: bool) -> Any:
    if mask:
        return None
    if leaf.sequence:
        return []
    return np.zeros([e if isinstance(e, int) else 0 for e in leaf.shape or ()], leaf.dtype.numpy)


def difference(got: Any, meant: Any) -> str:
    """Say in what a leaf differs; as much as two tiers of ours may is nothing."""
    if meant is None:
        return ""
    if isinstance(meant, list):
        if len(got) != len(meant):
            return f"{len(got)} elements and {len(meant)}"
        return next(filter(None, map(difference, got, meant)), "")
    if got.shape != meant.shape or got.dtype != meant.dtype:
        return f"{got.dtype}{got.shape} and {meant.dtype}{meant.shape}"
    share = TOLERANCES.get(meant.dtype.name, 0)
    finite = np.abs(meant[np.isfinite(meant)]) if meant.size else meant
    largest = max(1.0, float(finite.max())) if share and finite.size else 1.0
    close = np.allclose(got, meant, rtol=5 * share, atol=5 * share * largest, equal_nan=True)
    return "" if close else f"{got.reshape(-1)[:6]} and {meant.reshape(-1)[:6]}"


def main() -> None:
    watch, patch = Watch(), pytest.MonkeyPatch()
    watch.start(patch)
    for script in sys.argv[1:]:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit:
            pass
    patch.undo()
    print(dict(watch.counts))
    print(*watch.refused.most_common(30), sep="\n")
    print(*watch.faults[:5], sep="\n\n")


if __name__ == "__main__":
    main()
