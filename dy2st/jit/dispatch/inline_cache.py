"""Calls that were seen before: one function of straight Python recognises the arguments and the state of a Program.

    def call(a0, a1):                   # of f(x, k) with x: float32 of rank 2, k == 3; self.w is a parameter
        nonlocal known
        try:
            if type(a1) is not int or a1 != c6: return UNSEEN
            v1 = c7._parameters.get('w', MISSING)
            ...
        except Exception as error:
            return unseen(error)
        try:
            direct = c8.direct
            results = known(direct.call, a0, v1)            # machine code (call.py): looks, runs, makes tensors
            if type(results) is Tensor:
                program.calls += 1
            elif results is UNSEEN:
                try:
                    if type(a0) is not c3: return UNSEEN
                    if a0.stop_gradient is not True: return UNSEEN
                    p0 = a0.payload
                    ...
                except Exception as error:
                    return unseen(error)
                run = direct.call
                results = run(p0, p1)                       # native code, which looks at arrays itself
                ...                                         # p0.dtype is not c9 ..., then the way for all inputs
            return results
        except Exception as error:
            again = failed(error, (a0, a1,), {})
            if again is None: raise
        raise again

It makes the call, or says that it is another one: then the call is looked up by its key (`signature.flatten`) and by
the guards, which is what decides, and slower. What it has no words for (objects from outside with conditions of their
own) it asks the guards themselves. What raises (an attribute that is no longer there) is no call that was seen before.
It is all one function, under the name of the user's, because a frame more takes as long as ten of its lines. Machine
code looks at tensors in the time of one line; where it refuses, what it would have done stands below in Python.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import tensor_type
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.dispatch.inline_cache_epilogue import finishing, plain_writes, tensors_among
from dy2st.jit.dispatch.inline_cache_run import (
    MOST_COMPARED,
    TrampolineBuilder,
    WritingTrampolineBuilder,
    guarded,
    inside,
    one_is_another,
    running,
    wrapping,
)
from dy2st.jit.dispatch.inline_cache_state import NotCacheable, StateLines
from dy2st.jit.guards.call_signature import NUMPY_NUMBERS, FlatCall, bound_places, meet
from dy2st.kinds import derives, is_dict, is_tuple, numbered, type_of, variables_of
from dy2st.nn.layer import Layer
from dy2st.runtime.aot_cache.bytecode_cache import compiled
from dy2st.runtime.eager.device import namespace_among
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.tracer.input_spec import InputSpec

InlineCache = Callable[..., Any]
"""Takes the arguments of a call, or its arguments and keywords where it has keywords, and returns what it gives;
`UNSEEN` of another call."""
Failed = Callable[[Exception, tuple[Any, ...], dict[str, Any]], Exception | None]
"""Takes the error of a call, its arguments and keywords, before that leaves; gives what leaves in its place."""
PLAIN = (bool, int, float, str, bytes)
MOST_LINES = 40_000
"""A Program that reads more than this takes the slow way."""


def build_inline_cache(
    signature: Any, args: Sequence[Any], keywords: dict[str, Any], made: FlatCall, program: ConcreteProgram,
    specs: dict[str, InputSpec], failed: Failed,
) -> InlineCache | None:  # fmt: skip
    """Return a function that makes a call like this one and returns what it gives, `UNSEEN` for any other."""
    names = [f"a{i}" for i in range(len(args))]
    try:
        return _InlineCacheEmitter(made, program, specs, failed).function(
            bound_places(signature, args, keywords), names, bool(keywords)
        )
    except NotCacheable:
        return None


class _InlineCacheEmitter(StateLines):
    """Writes the source of one inline cache."""

    def __init__(self, made: FlatCall, program: ConcreteProgram, specs: dict[str, InputSpec], failed: Failed):
        super().__init__(program, len(made.leaves), failed)
        self.made, self.specs = made, specs
        self.leaves: list[str] = []
        self.containers: list[str] = []
        self.seen: dict[int, str] = {}
        self.open = {made.names[i] for i in made.numbers}

    def function(self, places: Iterator[tuple[str, str | None, Any]], given: list[str], named: bool) -> InlineCache:
        """Return the function of arguments that stand at `places`: (name, expression, value).

        Those that are `given` by position have these names; the others are `named` in the call.
        """
        for name, text, x in places:
            self.argument(name, self.constant(x) if text is None else text, x)
        if len(self.seen) > 1:
            names = [*self.seen.values()]
            first = self.inputs.given[: len(names)] == names and len(names) <= MOST_COMPARED
            self.inputs.distinct = len(names) if first else 0  # then machine code compares them
            self.refuse(one_is_another(names), self.inputs.looks if first else self.lines)
        tensors = [v for v, x in zip(self.leaves, self.made.leaves, strict=True) if isinstance(x, Tensor)]
        if len(tensors) > 1 and self.program.traced.written_leaves:
            self.refuse(f"shares_memory(({', '.join(tensors)}))")
        state = self.state()
        self.apart(state)
        run = self.run(state)
        if self.program.random:
            run = [f"with {self.constant(default_generator)}().run() as (random_seed, random_draw):", *inside(run)]
        if len(self.lines) > MOST_LINES:
            raise NotCacheable
        every = "".join(f"{name}, " for name in given)
        head, first = ("args, keywords", [f"{every}= args"] if given else []) if named else (", ".join(given), [])
        end = "failed(error, args, keywords)" if named else f"failed(error, ({every}), {{}})"
        caught = [
            "try:",
            *inside(run),
            "except Exception as error:",
            f"    again = {end}",
            "    if again is None: raise",
        ]
        caught.append("raise again")  # behind the block, so that no error is its context
        body = "".join(
            f"        {line}\n" for line in ["nonlocal known, written, watched", *first, *guarded(self.lines), *caught]
        )
        source = f"def make({', '.join(self.names)}):\n    def call({head}):\n{body}    return call\n"
        scope: dict[str, Any] = {}
        try:
            exec(compiled(source, "<recognised call>"), scope)
        except SyntaxError as error:
            if "too many nested" not in error.msg:
                raise
            raise NotCacheable from None  # results that stand in 200 lists, one in the other
        return scope["make"](**self.names)

    def apart(self, state: list[str]) -> None:
        """Check that nothing which the Program writes is both an argument and state."""
        arguments, outside = self.program.written
        leaves = {i: v for i, v in enumerate(self.leaves) if isinstance(self.made.leaves[i], Tensor)}
        tensors = [v for v, (_, t) in zip(state, self.program.traced.state, strict=True) if t is not None]
        self.names["meet"] = meet
        changed = [self.containers[i] for i in self.program.changed_containers]
        numbers, others = self.program.graded
        groups = (
            (self.containers, self.program.changed_outside),
            (changed, frozenset(self.program.traced.outside)),
            ([leaves[i] for i in numbers if i in leaves], others),
        )
        for given, ids in groups:
            if given and ids:
                known = self.constant(ids)
                self.refuse(" or ".join(f"id({v}) in {known}" for v in given))
        for some, others in ((leaves.values(), [state[i] for i in outside]), ([leaves[i] for i in arguments], tensors)):
            if some and others:
                views = " or ".join(f"{v}.storage_version is not None" for v in some)  # or it has views
                self.refuse(" or ".join(f"{a} is {b}" for a in some for b in others))
                self.refuse(f"({views}) and meet(({', '.join(some)},), ({', '.join(others)},))")

    # ---- the run ---------------------------------------------------------------------------------------------------
    def run(self, state: list[str]) -> list[str]:
        """Return the lines that run the Program on what was found, and make what the call gives."""
        given = [*self.made.leaves, *(t for _, t in self.program.traced.state)]
        xp = namespace_among(x.payload for x in given if isinstance(x, Tensor))
        inputs = self.inputs
        if not self.program.plain:
            self.lines += inputs.looks + inputs.array_looks
            groups = ", ".join(f"[{', '.join(group)}]" for group in (self.leaves + state, self.leaves, self.containers))
            return ["program.calls += 1", f"return program.run_on({groups}, {self.constant(xp)})"]
        runner = self.program.compiled.runner(xp)
        name, results = self.constant(runner), tensors_among(self.program)
        if isinstance(runner, TieredProgram):
            renews = bool(self.program.traced.program.renewed)
            ready = TrampolineBuilder(runner, [*inputs.kinds, *[True] * renews], results, inputs.distinct)
            lines = [f"known = {self.constant(ready)}(known)"]
            if writes := plain_writes(self.program):
                lines.append(f"written = {self.constant(WritingTrampolineBuilder(writes))}(written)")
            made = running(name, lines, inputs, results, renews=renews)
        else:
            self.lines += inputs.looks + inputs.array_looks
            given = f"[{', '.join(inputs.payloads)}]"
            made = ["program.calls += 1", f"results = {name}.run({given})", *wrapping(results)]
        if self.program.writes:
            made = ["try:", *inside(made), "except Exception as error:", "    note_unwritten(error)", "    raise"]
        if results is None:
            return [*made, "return results"]
        ends = self.leaves, self.containers, self.constant, self.leaves + state, results
        return [*made, *finishing(self.program, *ends)]

    # ---- arguments -------------------------------------------------------------------------------------------------
    def argument(self, name: str, text: str, x: Any) -> None:
        kind = type_of(x)
        if isinstance(x, Tensor):
            self.tensor(name, text, x, kind)
        elif kind is np.ndarray:
            v = self.variable(text)
            self.refuse(f"type({v}) is not {self.constant(kind)}")
            self.tensor(name, f"Tensor({v})", Tensor(x), Tensor)
            self.seen.pop(id(x), None)
        elif kind in (int, float) and name in self.open:
            v = self.variable(text)
            self.refuse(f"type({v}) is not {kind.__name__}")
            self.leaves.append(v)
            self.inputs.plain(v)
        elif kind in NUMPY_NUMBERS and name in self.open:
            v = self.variable(text)
            self.refuse(f"type({v}) is not {self.constant(kind)}")
            self.leaves.append(self.variable(f"{v}.item()"))
            self.inputs.plain(self.leaves[-1])
        elif x is None or kind in PLAIN:
            self.value(text, x, kind)
        elif kind in (tuple, list, dict, OrderedDict) or (derives(kind, tuple) and hasattr(kind, "_fields")):
            self.branch(name, text, x, kind)
        elif name in self.made.opened:
            self.object(name, text, x, kind)
        elif isinstance(x, (types.FunctionType, type, Layer)):
            self.refuse(f"{text} is not {self.constant(x)}")
        else:
            raise NotCacheable

    def value(self, text: str, x: Any, kind: type) -> None:
        if x is None or kind is bool:
            self.refuse(f"{text} is not {x}")
            return
        if kind is float and (x != x or x == 0):
            raise NotCacheable
        v = self.variable(text)
        self.refuse(f"type({v}) is not {kind.__name__} or {v} != {self.constant(x)}")

    def branch(self, name: str, text: str, x: Any, kind: type) -> None:
        v = self.variable(text)
        if not is_tuple(x) and self.is_again(x, v):
            return
        self.refuse(f"type({v}) is not {self.constant(kind)} or len({v}) != {len(x)}")
        if not is_tuple(x):
            self.containers.append(v)
        if is_dict(x):
            if not all(isinstance(k, (str, int)) for k in x):
                raise NotCacheable
            self.refuse(f"tuple({v}) != {self.constant(tuple(x))}")
        items: Iterable[tuple[Any, Any]] = x.items() if is_dict(x) else numbered(x)
        labels: Any = getattr(kind, "_fields", None) or range(len(x))
        for at, (k, item) in enumerate(items):
            label = k if is_dict(x) else labels[at]
            self.argument(f"{name}_{label}", f"{v}[{self.constant(k) if is_dict(x) else k}]", item)

    def object(self, name: str, text: str, x: Any, kind: type) -> None:
        v = self.variable(text)
        if self.is_again(x, v):
            return
        self.refuse(f"type({v}) is not {self.constant(kind)}")
        self.containers.append(v)
        d = self.variable(f"{v}.__dict__")
        self.refuse(f"tuple({d}) != {self.constant(tuple(variables_of(x)))}")
        for k, item in variables_of(x).items():
            self.argument(f"{name}_{k}", f"{d}[{k!r}]", item)

    def is_again(self, x: Any, v: str) -> bool:
        """Return whether a call has given an object before: then the next one has to, too."""
        first = self.seen.setdefault(id(x), v)
        if first != v:
            self.refuse(f"{v} is not {first}")
        return first != v

    def tensor(self, name: str, text: str, x: Tensor, kind: type) -> None:
        v = self.variable(text)
        if self.is_again(x, v):
            return
        self.refuse(f"type({v}) is not {self.constant(kind)}", self.inputs.looks)
        declared = tensor_type(self.program.traced.program.block.arguments[len(self.leaves)])
        self.checked(v, x, {i: e for i, e in enumerate(declared.shape) if isinstance(e, int)})
        if len(self.leaves) in self.program.traced.grad_free:
            self.refuse(f"{v}._grad is not None")
        if len(self.leaves) in self.program.traced.unhooked:
            self.refuse(f"{v}.leaf_hooks")
        self.leaves.append(v)
