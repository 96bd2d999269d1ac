"""Optimizer: what all update rules share: learning rate, decay, clipping, state, stepping (groups: groups.py).

A rule is a function of (parameter, gradient, learning rate, state), written once in terms of `nn.maths`.
Eagerly it runs on arrays and the results are written into the parameter's memory. In a trace it runs on tensors, and
the results are written by `runtime.inplace.write`, which makes them state of the Program; the learning rate is then the
0-D tensor `_lr_tensor`, so that a new rate needs no new trace.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.functions.gradients import zero_gradients
from dy2st.functions.shape.creation import full
from dy2st.ir.context import current, replaced
from dy2st.naming import is_plain_module
from dy2st.nn.clip import ClipGradBase
from dy2st.nn.maths import TENSORS, ArrayMaths
from dy2st.optimizer import state as saving
from dy2st.optimizer.alike import Alike, at_one_line
from dy2st.optimizer.groups import Alone, factor_of, group_of, groups_of, regularizer_of
from dy2st.optimizer.lr import LRScheduler
from dy2st.optimizer.native_step import NativeSteps, Pairs
from dy2st.records import record
from dy2st.regularizer import WeightDecayRegularizer
from dy2st.runtime.backends.cpu.python_abi import prefault
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.side_effect_check import in_trace, refusal
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settable, Settings, changes
from dy2st.runtime.tracer.control_flow.conditional import if_exp
from dy2st.runtime.tracer.recording.leaf_gradients import gradient_parts
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar


@record(frozen=True)
class Slot:
    """A piece of state that a rule keeps for each parameter: of its shape, or one number in float64 (`scalar`)."""

    fill: float = 0.0
    scalar: bool = False
    extent: int | None = None
    """A new first axis, where the slot holds several tensors."""


class Optimizer(Settable):
    """Base of the optimizers; a subclass says `slots` and `rule`.

    Parameters
    ----------
    learning_rate
        A number or an LRScheduler.
    parameters
        The tensors to train, or groups: dicts with "params" and, where they differ, "learning_rate" (a factor on the
        optimizer's), "weight_decay", "grad_clip" and the rule's own options. Needed in eager mode.
    weight_decay
        A number (for L2Decay) or a regularizer; a parameter's own regularizer comes first.
    grad_clip
        A clipping, applied to the gradients before weight decay.
    """

    _not_settings: ClassVar[frozenset[str]] = frozenset(
        ("_learning_rate", "_own_lr_tensor", "_accumulators", "_loaded", "_name", "_native")
    )

    _spread: Any = Alone()
    """How steps and state are spread over processes."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: ClipGradBase | None = None,
        multi_precision: bool = False,
        name: str | None = None,
        **options: Any,
    ):
        if not isinstance(learning_rate, (int, float, LRScheduler, Tensor)):
            raise TypeError(f"the learning rate must be a number or an LRScheduler, not {type(learning_rate).__name__}")
        if grad_clip is not None and not isinstance(grad_clip, ClipGradBase):
            raise TypeError(
                f"grad_clip must be a clipping such as ClipGradByGlobalNorm, not {type(grad_clip).__name__}"
            )
        self._own_lr_tensor: Tensor | None = None
        self._name = name
        self._multi_precision = multi_precision
        self._options = Settings(options)
        self._grad_clip = grad_clip
        self.regularization = regularizer_of(weight_decay)
        self._learning_rate = learning_rate if isinstance(learning_rate, LRScheduler) else float(learning_rate)
        self._groups = groups_of(parameters)
        self._accumulators: dict[int, dict[str, Tensor]] = {}
        self._loaded: dict[str, Any] = {}
        self._native = NativeSteps(self)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_learning_rate":
            return
        if isinstance(value, LRScheduler):
            changes.count += 1
        elif self._own_lr_tensor is not None:
            self._own_lr_tensor.payload[...] = value

    def settings_now(self) -> dict[str, Any]:
        rate = self._learning_rate if isinstance(self._learning_rate, LRScheduler) else None  # a number: `_lr_tensor`
        return {**super().settings_now(), "schedule": rate}

    # ---- what a subclass says --------------------------------------------------------------------------------------
    def slots(self, options: dict[str, Any]) -> dict[str, Slot]:
        """Return the state that the rule keeps for each parameter."""
        return {}

    def rule(
        self, m: Any, p: Any, g: Any, lr: Any, state: dict[str, Any], options: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the new parameter and the new state. All are arrays or all tensors, `m` is their arithmetic."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it updates: define `rule`")

    # ---- learning rate ---------------------------------------------------------------------------------------------
    def get_lr(self) -> float:
        """Return the learning rate as it is now; in a trace as it is at each run."""
        if in_trace():
            return current().trace.item(self._lr_tensor)
        return self._rate_now()

    def _rate_now(self) -> float:
        rate = self._learning_rate
        return rate.last_lr if isinstance(rate, LRScheduler) else rate

    def set_lr(self, value: float) -> None:
        """Set the learning rate; RuntimeError where a scheduler sets it."""
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError("the learning rate is set by an LRScheduler, set_lr cannot change it")
        if in_trace():
            trace = current().trace
            trace.write_attribute(self, "_learning_rate", trace.callable(float)(value))
            return
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Have a scheduler set the learning rate from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"set_lr_scheduler needs an LRScheduler, not {type(scheduler).__name__}")
        self._learning_rate = scheduler

    def _written_rate(self) -> Any:
        """Return the learning rate that the function which is traced has set; MISSING where it has set none."""
        rate = current().trace.log.get(("attr", id(self), "_learning_rate")) if in_trace() else MISSING
        scheduled = isinstance(self._learning_rate, LRScheduler)
        if rate is not MISSING and (scheduled or not isinstance(rate, (int, float, Scalar))):
            raise refusal("a function sets a schedule in place of a learning rate, or the other way round")
        return rate

    @property
    def _lr_tensor(self) -> Tensor:
        """The learning rate as a 0-D float64 tensor whose memory follows it: what Programs read."""
        rate = self._written_rate()
        if isinstance(self._learning_rate, LRScheduler):
            return self._learning_rate.tensor
        if rate is not MISSING:
            return full([], rate, "float64")
        if self._own_lr_tensor is None:
            self._own_lr_tensor = Tensor(np.asarray(self._learning_rate, np.float64))
            self._own_lr_tensor.name = "learning_rate"
        return self._own_lr_tensor

    # ---- parameters ------------------------------------------------------------------------------------------------
    @property
    def _parameter_list(self) -> list[Tensor]:
        return [p for group in self._groups for p in group["params"]]

    _param_groups = property(lambda self: self._groups)

    def _add_param_group(self, group: dict[str, Any]) -> None:
        known = {id(p) for p in self._parameter_list}
        made = group_of(group)
        if any(id(p) in known for p in made["params"]):
            raise ValueError("a parameter appears in more than one parameter group")
        self._groups = [*self._groups, made]

    # ---- stepping --------------------------------------------------------------------------------------------------
    def step(self) -> None:
        """Update every parameter that has a gradient; parameters whose gradient is None are left alone."""
        for group in self._groups:
            self._update_all(
                [(p, g) for p in group["params"] if not p.stop_gradient and (g := p.grad) is not None], group
            )
        self._spread.give_out(self)

    def apply_gradients(self, params_grads: Sequence[tuple[Tensor, Any]]) -> list[Any]:
        """Update parameters by gradients that the caller gives; pairs whose gradient is None are left alone."""
        of = {id(p): group for group in self._groups for p in group["params"]}
        rest: dict[str, Any] = {"params": []}
        for group in (*self._groups, rest):
            self._update_all([(p, g) for p, g in params_grads if g is not None and of.get(id(p), rest) is group], group)
        self._spread.give_out(self)
        return []

    def _update_all(self, pairs: Pairs, group: dict[str, Any]) -> None:
        clip = group.get("grad_clip", self._grad_clip)
        pairs, clip = self._spread.own(self, pairs, clip)
        if current().trace is not None:
            with replaced(grad=False):
                self._record_all(pairs, group, clip)
            return
        if pairs:
            pairs, clip = self._native.run(pairs, group, clip)
        grads = [g.array("a gradient") for _, g in pairs]
        with np.errstate(all="ignore"):
            if clip is not None:
                taken = [i for i, (p, _) in enumerate(pairs) if getattr(p, "need_clip", True)]
                maths = ArrayMaths(namespace_of(grads[0])) if grads else None
                for i, g in zip(taken, clip.clipped([grads[i] for i in taken], maths), strict=True):
                    grads[i] = g
            for (p, _), g in zip(pairs, grads, strict=True):
                self.update(p, g, group)

    def _record_all(self, pairs: Pairs, group: dict[str, Any], clip: ClipGradBase | None) -> None:
        """Append the updates to a Program; one whose gradient may not be there stands under `cond`."""
        trace = current().trace
        self._written_rate()  # before state is made from it
        parts = [gradient_parts(trace, g, p) for p, g in pairs]
        dense = [(p, g) for (p, _), (g, _) in zip(pairs, parts, strict=True)]
        if not hasattr(trace, "update"):
            self._make_states([p for (p, _), (_, there) in zip(pairs, parts, strict=True) if there is None], group)
        alike = Alike(trace)
        for (p, g), (_, there) in zip(clip(dense) if clip is not None else dense, parts, strict=True):
            if hasattr(trace, "update"):
                trace.update(self, p, g, group)
            elif there is None:
                self.update_in_trace(p, g, group, alike)
            else:
                if_exp(trace, there, lambda p=p, g=g: self.update_in_trace(p, g, group), _leave_alone)

    def _make_states(self, parameters: Sequence[Tensor], group: dict[str, Any]) -> None:
        """Make the states that there are not yet, so that their memory is there when the first run asks for it."""
        options = self.options_of(group)
        new = [p for p in parameters if id(p) not in self._accumulators]
        arrays = [t.payload for p in new for t in self.state_of(p, options).values()]
        prefault.prefault([array for array in arrays if isinstance(array, np.ndarray)])

    def make_state(self) -> None:
        """Make the state of every parameter that is trained, which the first step would do."""
        for group in self._groups:
            own = self._spread.own_parameters(self, group["params"])
            self._make_states([p for p in own if not p.stop_gradient], group)

    def update(self, p: Tensor, g: Any, group: dict[str, Any]) -> None:
        """Update one parameter eagerly by a gradient that is an array."""
        options = self.options_of(group)
        state = self.state_of(p, options)
        arrays = {name: t.payload for name, t in state.items()}
        master = arrays.pop("fp32_master", None)
        m = ArrayMaths(namespace_of(p.payload))
        w = p.payload if master is None else master
        g = g if g.dtype == w.dtype else g.astype(w.dtype)
        new, changed = self._ruled(m, p, w, g, self.get_lr(), factor_of(p, group), arrays, options, group)
        if master is not None:
            changed["fp32_master"] = new
        for name, value in changed.items():
            state[name].payload = m.xp.asarray(value)
        inplace.write_memory(p, m.xp.asarray(new))

    def update_in_trace(
        self, p: Tensor, g: Tensor, group: dict[str, Any], alike: Alike | None = None, rate: Tensor | None = None
    ) -> None:
        """Update one parameter in a Program that is being built, by a gradient that is a tensor.

        What parameters before it did in the same step, `alike`, may be repeated. `rate` is the parameter's own, where
        that is not what follows from the optimizer's.
        """
        options = self.options_of(group)
        state = dict(self.state_of(p, options))
        master = state.pop("fp32_master", None)
        w = p if master is None else master
        with at_one_line(current().trace.builder, type(self)):
            g = TENSORS.like(g, w)
            lr, factor = (self._lr_tensor, factor_of(p, group)) if rate is None else (rate, 1.0)

            def rule() -> tuple[Any, dict[str, Any]]:
                return self._ruled(TENSORS, p, w, g, lr, factor, state, options, group)

            key = None if alike is None else self.decides(p, options, group)
            if alike is None or key is None:
                new, changed = rule()
            else:
                new, changed = alike.update((key, factor), {"p": w, "gradient": g, "rate": lr, **state}, rule)
            for name, value in changed.items():
                inplace.write(state[name], value)
            if master is not None:
                inplace.write(master, new)
            inplace.write(p, TENSORS.like(new, p))

    def _ruled(
        self, m: Any, p: Tensor, w: Any, g: Any, lr: Any, factor: float, state: dict[str, Any],
        options: dict[str, Any], group: Any,
    ) -> tuple[Any, dict[str, Any]]:  # fmt: skip
        """Apply weight decay and the rule; `w` stands for the parameter p, whose rate is `factor` times `lr`."""
        decay = self.decay_of(p, group)
        if decay is not None:
            g = g + decay.term(w, m)
        return self.rule(m, w, g, lr if factor == 1.0 else lr * factor, state, {**options, "parameter": p})

    def decay_of(self, p: Tensor, group: dict[str, Any]) -> WeightDecayRegularizer | None:
        """Return the weight decay of a parameter: its own, or that of its group, which may be set between two steps."""
        own = getattr(p, "regularizer", None)
        return own if own is not None else regularizer_of(group.get("weight_decay", self.regularization))

    def options_of(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return the options of the rule for the parameters of a group."""
        return {**self._options, **group.get("options", {})}

    def decides(self, p: Tensor, options: dict[str, Any], group: dict[str, Any]) -> tuple[Hashable, ...] | None:
        """Return what decides of the operations of an update beside dtypes, shapes and the factor on the rate.

        None where code of the user's does; the last of it is what functions of the user's say.
        """
        decay = self.decay_of(p, group)
        if not all(is_plain_module(type(code).__module__) for code in (self, decay) if code is not None):
            return None
        asked = self.asked(p)
        return None if asked is None else (repr(sorted(options.items())), repr(decay), asked)

    def asked(self, p: Tensor) -> Hashable | None:
        """Return what functions of the user's say of a parameter that decides of the rule; None where it is unknown."""
        return ()

    # ---- state -----------------------------------------------------------------------------------------------------
    def state_of(self, p: Tensor, options: dict[str, Any]) -> dict[str, Tensor]:
        """Return the state of a parameter, made at the first call."""
        found = self._accumulators.get(id(p))
        if found is None:
            found = saving.create(self, p, self.slots(options))
            self._accumulators[id(p)] = found
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters by name, and the scheduler's under "LR_Scheduler".

        Where it is spread over processes, what this one keeps: `paddle.distributed.save_state_dict` saves all of it.
        """
        return self._spread.whole(self, saving.state_dict)

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave, for parameters of the same names."""
        saving.set_state_dict(self, self._spread.own_state(self, state_dict))

    # ---- the rest of the face --------------------------------------------------------------------------------------
    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set the gradients that exist to zero, or forget them with `set_to_zero=False`."""
        if set_to_zero and current().trace is None:
            zero_gradients(self._parameter_list)
            return
        for p in self._parameter_list:
            p.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def backward(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
        """Return the pairs (parameter, gradient) that `loss.backward()` made; in a hand-built Program, build them."""
        trace = current().trace
        if trace is not None and hasattr(trace, "append_backward"):
            return trace.append_backward(loss, parameters, no_grad_set)
        given = self._parameter_list if parameters is None else list(parameters)
        return [(p, g) for p, g in ((p, p.grad) for p in given if not p.stop_gradient) if g is not None]

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[tuple[Tensor, Any]]]:
        """Update the parameters by the gradients that `loss.backward()` made before.

        In a hand-built Program the gradients of the loss and the update become part of it.
        """
        if not isinstance(loss, Tensor):
            raise TypeError(f"minimize needs the loss, a Tensor, not {type(loss).__name__}")
        trace = current().trace
        if trace is not None and hasattr(trace, "minimize"):
            return trace.minimize(self, loss, startup_program, parameters, no_grad_set)
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        self.apply_gradients(pairs)
        return [], pairs


def _leave_alone() -> None:
    """Do nothing: the other branch of an update."""
