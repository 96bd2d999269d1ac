"""Eager steps as native code: the updates of the parameters of a group are one Program, recorded at the second step.

    p - g * lr          for each parameter          one Program: (rates, p0, g0, m0, p1, g1, m1, ...) -> next values
    write, count up                                 which stand where the values before stood (buffer_donation.py)

The rule is recorded as in a whole step that becomes a Program (`update_in_trace`), with gradient clipping and weight
decay. Rates and the bounds of a clipping are inputs, everything else that decides of the updates is in the key under
which all optimizers of a process share Programs: `Optimizer.decides`. A step looks up which parameters have gradients;
what may be set anew between two steps counts up (`tracked_settings.changes`), and the native code looks at the arrays.

NumPy runs the first step with these parameters, code of the user's (a rule, a clipping, a regularizer), and arrays that
are not plain ones: of another device, with gaps, of other types than the Program's, in memory that two share. Many
parameters are several Programs, sorted by shape so that many of these are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dy2st.dtypes import DType, float64
from dy2st.naming import is_plain_module
from dy2st.nn.clip import ClipGradBase, ClipGradByGlobalNorm
from dy2st.nn.maths import TENSORS, ArrayMaths
from dy2st.optimizer.alike import Alike
from dy2st.optimizer.groups import factor_of
from dy2st.optimizer.recorded_updates import UpdateRecorder, Updates, is_plain, recorded
from dy2st.records import record
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.eager.inplace import bump
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import changes

if TYPE_CHECKING:
    from dy2st.optimizer.optimizer import Optimizer

Pairs = Sequence[tuple[Tensor, Tensor]]
MOST_AT_ONCE = 64
"""The most parameters of one Program."""
_MOST_MADE = 256
"""How often an optimizer makes them anew at most."""
_MOST_KEPT = 32
"""The most sets of parameters of which an optimizer keeps what updates them."""
_SETTINGS = ("regularizer", "need_clip", "optimize_attr")


# ---- steps ----------------------------------------------------------------------------------------------------------
@record(frozen=True)
class _Part:
    """Parameters that one Program updates."""

    updates: Updates
    norms: Updates | None
    """Adds up the squares of their gradients, where other parts have to know them too."""
    numbers: tuple[int, ...]
    """Which of the pairs they are."""
    factors: tuple[float, ...]
    """What the learning rate is multiplied by."""
    parameters: list[Tensor]
    tensors: list[Tensor]
    """The parameters and their states."""
    states: list[Tensor]
    """Those of the states that the Program writes."""
    kinds: list[tuple[Tensor, Any, tuple[int, ...]]]
    """The parameters with the dtypes and shapes that the Program takes."""

    def inputs(self, rate: float, clip: ClipGradBase | None, pairs: Pairs) -> DonatedInputs:
        """Return what the Program of the updates takes now, but what `norms` give."""
        rates = [np.array(rate * factor) for factor in self.factors]
        bounds = [float(getattr(clip, name)) for name in _bounds(clip)]
        grads = [pairs[i][1].payload for i in self.numbers]
        return DonatedInputs([*rates, *bounds, *grads, *[t.payload for t in self.tensors]])

    def write(self, made: list[Any]) -> None:
        """Give tensors their next values; what stands in the memory of the value before is written already."""
        for t, new in zip(self.parameters, made, strict=False):
            array = t.payload
            if array is not new:
                array[...] = new
            bump(t)
        for t, new in zip(self.states, made[len(self.parameters) :], strict=True):
            t.payload = new


@record
class _Kept:
    """What updates some parameters, and what was so when it was made."""

    parts: list[_Part]
    decided: Any
    """What all of it was made of."""
    parameters: list[Tensor]
    unlike: list[Tensor]
    """The parameters that are plain tensors, of which nobody notes what is set."""
    asked: list[Any] | None
    """What functions of the user's said, where there are any."""
    changes: int


class NativeSteps:
    """The steps of an optimizer that native code makes."""

    def __init__(self, optimizer: Optimizer):
        self._optimizer = optimizer
        self._kept: dict[tuple[int, ...], _Kept | None] = {}
        self._made = 0

    def __reduce__(self) -> Any:
        return NativeSteps, (self._optimizer,)

    def run(self, pairs: Pairs, group: dict[str, Any], clip: ClipGradBase | None) -> tuple[Pairs, ClipGradBase | None]:
        """Update parameters by their gradients; return the pairs that are left for NumPy, and what still clips them."""
        key = tuple([id(p) for p, _ in pairs])
        try:
            kept = self._kept[key]
        except KeyError:  # the first step
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = None
            return pairs, clip
        if kept is None or kept.changes != changes.count or not self._says_the_same(kept, pairs):
            if not all(is_plain(g.payload) for _, g in pairs):
                return pairs, clip
            kept = self._kept[key] = self._renewed(kept, pairs, group, clip)
        if not kept.parts or any(not vars(p).keys().isdisjoint(_SETTINGS) for p in kept.unlike):
            return pairs, clip
        left, clip = self._run(kept.parts, pairs, clip)
        if left:
            self._kept[key] = None
        return left, clip

    def _says_the_same(self, kept: _Kept, pairs: Pairs) -> bool:
        """Return whether functions of the user's say what they said before."""
        return kept.asked is None or [self._optimizer.asked(p) for p, _ in pairs] == kept.asked

    def _run(self, parts: list[_Part], pairs: Pairs, clip: ClipGradBase | None) -> tuple[Pairs, ClipGradBase | None]:
        rate, total = self._optimizer.get_lr(), None
        if any(part.norms is not None for part in parts):
            total = self._squares(parts, pairs)
            if total is None:
                return pairs, clip
        left: list[tuple[Tensor, Tensor]] = []
        for part in parts:
            inputs = part.inputs(rate, clip, pairs)
            if part.norms is not None:
                inputs.append(total)
            made = part.updates.run(inputs)
            if made is None:
                left += [pairs[i] for i in part.numbers]
            else:
                part.write(made)
        if total is None or not left:
            return left, clip
        assert isinstance(clip, ClipGradByGlobalNorm)  # of all gradients, not of those that are left
        return [(p, _scaled(p, g, clip, total)) for p, g in left], None

    def _squares(self, parts: list[_Part], pairs: Pairs) -> Any:
        """Return the sum of the squares of all gradients that are clipped; None where arrays are of other kinds."""
        total: Any = np.zeros(())
        for part in parts:
            if not all(t.payload.shape == s and t.payload.dtype == d for t, d, s in part.kinds):
                return None
            if part.norms is not None:
                made = part.norms.run(DonatedInputs([total, *[pairs[i][1].payload for i in part.numbers]]))
                if made is None:
                    return None
                (total,) = made
        return total

    def _renewed(self, kept: _Kept | None, pairs: Pairs, group: dict[str, Any], clip: ClipGradBase | None) -> _Kept:
        """Return what updates parameters as things are now."""
        decided = self._decisions(pairs, group, clip)
        if kept is not None and kept.decided == decided:
            kept.changes = changes.count
            return kept
        self._made += 1
        parts = [] if decided is None or self._made > _MOST_MADE else self._parts(decided, pairs, group, clip)
        parameters = [p for p, _ in pairs]
        unlike = [p for p in parameters if not isinstance(p, Parameter)]
        asked = [] if decided is None else [one.decides[-1] for one in decided[1]]
        return _Kept(
            parts, decided, parameters, unlike, asked if any(one != () for one in asked) else None, changes.count
        )

    def _decisions(
        self, pairs: Pairs, group: dict[str, Any], clip: ClipGradBase | None
    ) -> tuple[Any, list[_Decided]] | None:
        """Return what decides of the updates: of all together, and of each; None where the user's code does."""
        optimizer = self._optimizer
        if not (clip is None or is_plain_module(type(clip).__module__)) or _share_memory(pairs):
            return None
        options = optimizer.options_of(group)
        changes.noted.add(optimizer)
        found: list[_Decided] = []
        for p, g in pairs:
            decides, decay = optimizer.decides(p, options, group), optimizer.decay_of(p, group)
            if decides is None or not is_plain(p.payload) or not self._has_usual_states(p, options):
                return None
            if decay is not None:
                changes.noted.add(decay)
            taken = clip is not None and getattr(p, "need_clip", True)
            kinds = tuple((t.dtype, tuple(t.payload.shape)) for t in (p, g))
            found.append(_Decided(kinds, taken, factor_of(p, group), decides))
        return (type(optimizer), optimizer._multi_precision, type(clip)), found

    def _has_usual_states(self, p: Tensor, options: dict[str, Any]) -> bool:
        """Return whether the states of a parameter are as new ones: those of one that has another dtype now are not."""
        optimizer = self._optimizer
        states, slots = optimizer.state_of(p, options), optimizer.slots(options)
        master, shape = states.get("fp32_master"), p.payload.shape
        dtype = (p if master is None else master).payload.dtype
        for name, t in states.items():
            slot, x = slots.get(name), t.payload
            scalar, extent = (False, None) if slot is None else (slot.scalar, slot.extent)
            usual = () if scalar else shape if extent is None else (extent, *shape)
            if not is_plain(x) or x.shape != usual or x.dtype != (np.float64 if scalar else dtype):
                return False
        return True

    def _parts(
        self, decided: tuple[Any, list[_Decided]], pairs: Pairs, group: dict[str, Any], clip: ClipGradBase | None
    ) -> list[_Part]:
        """Return the Programs of the updates; none where NumPy is to make them."""
        of_all, each = decided
        order = list(range(len(pairs)))
        size = MOST_AT_ONCE
        if len(order) > size:  # fewer are made sooner, and it is likelier that two Programs are one
            order.sort(key=lambda i: (each[i].kinds[0][1], each[i].kinds[0][0].name))
            size //= 2
        chunks = [order[at : at + size] for at in range(0, len(order), size)]
        parts = [
            self._part(of_all, [(i, each[i]) for i in chunk], pairs, group, clip, len(chunks) > 1) for chunk in chunks
        ]
        return [part for part in parts if part is not None] if None not in parts else []

    def _part(
        self, of_all: Any, each: list[tuple[int, _Decided]], pairs: Pairs, group: dict[str, Any],
        clip: ClipGradBase | None, several: bool,
    ) -> _Part | None:  # fmt: skip
        optimizer, numbers = self._optimizer, tuple(i for i, _ in each)
        apart = several and isinstance(clip, ClipGradByGlobalNorm)
        factors = tuple(dict.fromkeys(one.factor for _, one in each))
        rates = tuple(factors.index(one.factor) for _, one in each)
        key = (of_all, apart, rates, *((one.kinds, one.taken, one.decides) for _, one in each))
        taken = [at for at, (_, one) in enumerate(each) if one.taken]
        parameters = [pairs[i][0] for i in numbers]
        options = optimizer.options_of(group)
        tensors = [*parameters, *(t for p in parameters for t in optimizer.state_of(p, options).values())]

        def updates(trace: UpdateRecorder) -> list[Tensor]:
            given = [trace.take(float64) for _ in factors]
            for name in _bounds(clip):
                trace.take_number(name)
            grads = [trace.take(*one.kinds[1]) for _, one in each]
            for t in tensors:
                trace.take_as(t)
            if taken and clip is not None:
                some = [grads[at] for at in taken]
                if apart and isinstance(clip, ClipGradByGlobalNorm):
                    clipped = clip.scaled(some, trace.take(float64), TENSORS)
                else:
                    clipped = clip.clipped(some, TENSORS)
                for at, g in zip(taken, clipped, strict=True):
                    grads[at] = g
            alike = Alike(trace)
            for p, g, rate in zip(parameters, grads, rates, strict=True):
                optimizer.update_in_trace(p, g, group, alike, given[rate])
            return []

        def norms(trace: UpdateRecorder) -> list[Tensor]:
            total, grads = trace.take(float64), [trace.take(*one.kinds[1]) for _, one in each]
            assert isinstance(clip, ClipGradByGlobalNorm)
            return [clip.total([grads[at] for at in taken], total, TENSORS)]

        made = recorded(("updates", *key), updates)
        summed = recorded(("norms", *key), norms) if apart and taken else None
        if made is None or (summed is None and apart and taken):
            return None
        states = [tensors[i] for i in made.written[len(parameters) :]]
        kinds = [(p, p.payload.dtype, p.payload.shape) for p in parameters]
        return _Part(made, summed, numbers, factors, parameters, tensors, states, kinds)


@record(frozen=True)
class _Decided:
    """What decides of the update of one parameter."""

    kinds: tuple[tuple[DType, tuple[int, ...]], ...]
    """Of the parameter, and of its gradient."""
    taken: bool
    """Whether it is clipped."""
    factor: float
    decides: Any


def _scaled(p: Tensor, g: Tensor, clip: ClipGradByGlobalNorm, total: Any) -> Tensor:
    """Return the gradient of a parameter, clipped by the sum of the squares of all gradients."""
    if not getattr(p, "need_clip", True):
        return g
    return Tensor(clip.scaled([g.array("a gradient")], total, ArrayMaths(np))[0])


def _share_memory(pairs: Pairs) -> bool:
    """Return whether a parameter is a view, or two share memory: the update of one is then seen by that of the next."""
    return any(p.view_of is not None for p, _ in pairs) or len(pairs) > len(
        {id(p if p.storage_version is None else p.storage_version) for p, _ in pairs}
    )


def _bounds(clip: ClipGradBase | None) -> list[str]:
    """Return the attributes of a clipping that are numbers."""
    return [] if clip is None else [name for name in sorted(clip._not_settings) if name in vars(clip)]
