"""Programs that update tensors in eager mode: recorded once for all tensors of the same kinds.

    trace.take_as(p); g = trace.take(float32, [3])            (%0: float32[3], %1: float32[3])
    inplace.write(p, p - g)                                     %2: float32[3] = sub(%0, %1)
    recorded -> the next values, in the memory of those         return %2, which is the next value of %0
                before where nobody else holds it

Whoever asks for one has a key for everything that decides of it. It is native code from its first run on: the run
before, which found out that there are several, was NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from dy2st import config
from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.program import Program, Value
from dy2st.ir.types import FLOAT, TensorType, Type
from dy2st.ops.core.rounded import KIND
from dy2st.records import record
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.executor.select import may_be_native
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.tracer.tracer import Tracer
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar

_MOST_MADE = 256
"""The most Programs that are kept."""
_programs: dict[Hashable, Updates] = {}


class UpdateRecorder(Tracer):
    """Records what is done to arrays, each of them an argument; tensors from outside stand for theirs."""

    def __init__(self) -> None:
        super().__init__(Builder())
        self._values: dict[int, Value] = {}
        self._numbers: dict[str, Scalar] = {}

    def take(self, dtype: DType, shape: Sequence[int] = ()) -> Tensor:
        """Return a tensor that is the next argument."""
        return self.wrap(self.root.argument(TensorType(dtype, tuple(shape))))

    def take_as(self, t: Tensor) -> None:
        """Have a tensor from outside as the next argument."""
        self._values[id(t)] = self.root.argument(TensorType(t.dtype, tuple(t.payload.shape)))
        self.log.keep(t)

    def take_number(self, name: str) -> Scalar:
        """Return a number that is the next argument, and what an attribute of a clipping is."""
        found = self._numbers[name] = Scalar(self.root.argument(FLOAT))
        return found

    def read_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Return what an attribute of a clipping is in each run."""
        return self._numbers[name]

    def state(self, t: Tensor) -> Value:
        found = self._values.get(id(t))
        return super().state(t) if found is None else found

    def stops(self, t: Tensor) -> bool:
        return True  # there are no gradients here

    def recorded(self, results: Sequence[Tensor]) -> Updates:
        """Return what was recorded, with the next values of tensors from outside behind the results."""
        block = self.root.block
        numbers = {value: i for i, value in enumerate(block.arguments)}
        written = [(i, self.log.get(("data", key))) for i, key in enumerate(self._values)]
        found = [(i, t) for i, t in written if t is not MISSING]
        block.results = [self.root.use(self.value_of(t)) for t in (*results, *(t for _, t in found))]
        values = list(self._values.values())
        program = Program({"main": block})
        program.renewed = tuple((len(results) + at, numbers[values[i]]) for at, (i, _) in enumerate(found))
        runner = Compiled(program, whole=True).runner(np)
        assert isinstance(runner, TieredProgram)
        runner.count_run()
        return Updates(runner, tuple(i for i, _ in found))


@record(frozen=True)
class Updates:
    """A Program that updates tensors, and which of these it writes."""

    runner: TieredProgram
    written: tuple[int, ...]

    def run(self, inputs: list[Any]) -> list[Any] | None:
        """Run; return the results, or None, before anything is done, for arrays of other kinds.

        Tensors whose arrays are not donated get new ones.
        """
        direct = self.runner.direct
        made = direct.call(*inputs, inputs.alone) if type(inputs) is DonatedInputs else direct.call(*inputs)
        if type(made) is list:
            return made
        if made is not False:
            return direct.ended(made, inputs)
        return self.runner.again(inputs) if self.fits(inputs) else None

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Return whether inputs are what the Program takes."""
        return all(map(_fits, self.runner.program.argument_types, inputs))


def _fits(t: Type, x: Any) -> bool:
    if not isinstance(t, TensorType):
        return True
    return is_plain(x) and x.dtype == t.dtype.numpy and x.shape == t.shape


def is_plain(x: Any) -> bool:
    """Return whether something is an array that native code takes as it is."""
    return type(x) is np.ndarray and x.flags.carray and x.dtype.kind in ("f", KIND)


def recorded(key: Hashable, write: Callable[[UpdateRecorder], Sequence[Tensor]]) -> Updates | None:
    """Return the Program under a key, or what `write` records; None where NumPy is to run it."""
    if not may_be_native():
        return None
    key = config.backend(), config.is_strict(), key
    try:
        return _programs[key]
    except KeyError:
        if len(_programs) >= _MOST_MADE:
            _programs.clear()
    trace = UpdateRecorder()
    with replaced(trace=trace, grad=False, amp=None, layer=None):
        found = _programs[key] = trace.recorded(write(trace))
    return found
