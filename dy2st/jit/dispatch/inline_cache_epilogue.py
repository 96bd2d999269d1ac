"""How the function that makes a call which was seen before ends (inline_cache.py): what it writes, what it gives.

    t0 = target(c9, [v0], [])           # an argument that the call writes
    s0 = Tensor(results[0])
    s1 = view_of(s0, c11, (1,), c12)    # a result that shows another one (output_views.py)
    output = (s0, s1)
    if t0.storage_version is None: t0.payload = results[1]
    else: write_array(t0, results[1])
    c10._grad = None
    return output

It does what `ConcreteProgram.run_on` does through abstract values and the keys of the side-effect log, one line for
each write.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.dispatch.write_back import commit, target, write_array
from dy2st.jit.guards.guards import ArgumentSlot, StateSlot
from dy2st.jit.tracing.output_choices import NO_OTHER, ResultChoice, StructureChoice
from dy2st.jit.tracing.output_structure import SharedObjects, restore
from dy2st.jit.tracing.output_views import ResultView, RunResult, view_of
from dy2st.runtime.autograd_engine.backward import accumulate_leaf
from dy2st.runtime.backends.cpu.trampolines.write_back import NO_GRADIENT
from dy2st.runtime.eager.tape.node import freed, wrap
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const, Items, NewList, Number, TensorLike
from dy2st.runtime.tracer.values.shared_objects import MadeObject, SameArgument, SameObject

NAMES = {
    "Shared": SharedObjects, "Tensor": Tensor, "accumulate_leaf": accumulate_leaf, "commit": commit, "freed": freed,
    "restore": restore, "target": target, "view_of": view_of, "wrap": wrap, "write_array": write_array,
}  # fmt: skip
"""What the lines name beside constants."""
FEW = 3
"""So many writes are worth machine code of their own."""
Constant = Callable[[Any], str]
"""Returns the name of a constant."""


def finishing(
    program: ConcreteProgram, leaves: Sequence[str], containers: Sequence[str], constant: Constant,
    inputs: Sequence[str] = (), tensors: Sequence[int] = (),
) -> list[str]:  # fmt: skip
    """Return the lines that write what `results` of a plain Program say, and return what its calls give.

    `inputs` are the expressions of everything that it takes, tensors where they are; `tensors` the numbers of results
    that were made tensors before (`tensors_among`).
    """
    traced = program.traced
    made = {i: f"results[{i}]" for i in tensors} | {i: f"freed(Tensor(results[{i}]))" for i in traced.freed}
    single = [view for view in traced.views if not isinstance(view, StructureChoice)]  # no plain Program has others
    views = _views(single, inputs, made, constant)
    output = _ResultExpressions(made, containers).of(traced.output)
    if output is None:
        values = ", ".join(made.get(i, f"wrap(Tensor, results[{i}])") for i in range(traced.outputs))
        output = f"restore(iter([{values}]), {constant(traced.output)}, Shared([{', '.join(containers)}]))"
    if not traced.writes:
        return [*views, f"return {output}"]
    numbers = itertools.count(traced.outputs)
    targets: list[str] = []
    writes: list[str] = []
    for key, owner, aval in traced.writes:
        name = constant(owner)
        if isinstance(owner, (ArgumentSlot, StateSlot)):
            targets.append(f"t{len(targets)} = target({name}, [{', '.join(leaves)}], [{', '.join(containers)}])")
            name = f"t{len(targets) - 1}"
        writes += _write(key, name, aval, numbers, constant)
    if plain_writes(program):
        writes = ["if written is None:", *(f"    {line}" for line in writes), "else: written(results)"]
    return [*targets, *views, f"output = {output}", *writes, "return output"]


def plain_writes(program: ConcreteProgram) -> list[tuple[Tensor, int]]:
    """Return the tensors that a call writes, each with the number of its result; none where there are other writes."""
    numbers, found = itertools.count(program.traced.outputs), list[tuple[Tensor, int]]()
    for key, owner, aval in program.traced.writes:
        none = key[0] == "grad" and isinstance(aval, Const) and aval.object is None
        if not isinstance(owner, Tensor) or not (none or (key[0] == "data" and isinstance(aval, TensorLike))):
            return []
        found.append((owner, NO_GRADIENT if none else next(numbers)))
    return found if len(found) >= FEW else []


def tensors_among(program: ConcreteProgram) -> tuple[int, ...] | None:
    """Return the numbers of results that every call makes tensors of; None where one is all that there is to a call."""
    traced = program.traced
    words = _ResultExpressions({})
    if words.of(traced.output) is None:
        return ()
    other = {*traced.freed, *(view.result for view in traced.views if isinstance(view, ResultView))}
    if isinstance(traced.output, TensorLike) and not (traced.writes or traced.views or other):
        return None
    return tuple(i for i in words.tensors if i not in other)


def _views(
    views: Sequence[ResultView | ResultChoice], inputs: Sequence[str], made: dict[int, str], constant: Constant
) -> list[str]:
    """Return the lines that make results views; `made` gets the names of these and of the results that they show."""
    lines: list[str] = []

    def tensor(number: int) -> str:
        if number < len(inputs):
            return inputs[number]
        number -= len(inputs)
        if not made.get(number, "").startswith("s"):
            lines.append(f"s{number} = {made.get(number, f'Tensor(results[{number}])')}")
            made[number] = f"s{number}"
        return made[number]

    for view in views:
        name = f"s{view.result}"
        if isinstance(view, ResultChoice):
            lines.append(f"{name} = {_choice(view, tensor, len(inputs))}")
            continue
        source = tensor(view.source)
        for op, operands, attributes in view.steps:
            words = [f"results[{x.result}], " if isinstance(x, RunResult) else f"{x!r}, " for x in operands]
            lines.append(f"{name} = view_of({source}, {constant(op)}, ({''.join(words)}), {constant(attributes)})")
            source = name
        if not view.steps:
            lines.append(f"{name} = {source}")
        made[view.result] = name
    return lines


def _choice(choice: ResultChoice, tensor: Callable[[int], str], inputs: int) -> str:
    """Return the expression of a result that may be another tensor."""
    told, own = f"results[{choice.which}]", tensor(inputs + choice.result)
    ways = [f"{tensor(source)} if {told} == {number} else " for number, source in choice.sources.items()]
    ways += [f"{tensor(inputs + r)} if {told} == results[{w}] != {NO_OTHER} else " for w, r in choice.others]
    return f"{''.join(ways)}{own}"


def _write(key: Any, owner: str, aval: AbstractValue, numbers: Iterator[int], constant: Constant) -> list[str]:
    """Return the lines that write one value under a key of the side-effect log, as `write_back.commit` does."""
    if isinstance(aval, Const):
        if key[0] == "grad" and aval.object is None:
            return [f"{owner}._grad = None"]
        return [f"commit({constant(key)}, {owner}, {constant(aval.object)})"]
    value = f"results[{next(numbers)}]"
    made = value if isinstance(aval, Number) else f"Tensor({value})"
    if key[0] == "data":
        return [
            f"if {owner}.storage_version is None: {owner}.payload = {value}",
            f"else: write_array({owner}, {value})",
        ]
    if key[0] == "grad":
        return [f"{owner}._grad = {made}"]
    if key[0] == "grad_sum":
        return [f"if {owner}._grad is None: {owner}._grad = {made}", f"else: accumulate_leaf({owner}, {value}, set())"]
    return [f"commit({constant(key)}, {owner}, {made})"]


class _ResultExpressions:
    """Write the expression of an output, made of `results` in turn.

    `made` has the tensors of some results, `containers` the lists and dicts of the call; `tensors` gets the numbers of
    all results that are tensors.
    """

    def __init__(self, made: Mapping[int, str], containers: Sequence[str] | None = None):
        self.made, self.containers = made, containers
        self.tensors: list[int] = []
        self._numbers = itertools.count()
        self._made = set[int]()

    def of(self, aval: AbstractValue) -> str | None:
        """Return the expression of an object of this abstract value; None where there are no words."""
        if isinstance(aval, TensorLike):
            number = next(self._numbers)
            self.tensors.append(number)
            return self.made.get(number, f"Tensor(results[{number}])")
        if isinstance(aval, Number):
            return f"results[{next(self._numbers)}]"
        if isinstance(aval, NewList):
            return self.of(aval.content)
        if isinstance(aval, SameArgument):
            return "" if self.containers is None else self.containers[aval.index]
        if isinstance(aval, SameObject):
            return f"same{aval.number}" if aval.number in self._made else None
        if isinstance(aval, MadeObject):
            text = self.of(aval.content)
            self._made.add(aval.number)  # not before: what is in it may not lead to it
            return None if text is None else f"(same{aval.number} := {text})"
        if not isinstance(aval, Items) or aval.kind not in (tuple, list, dict):
            return None
        items = [self.of(item) for item in aval.items]
        if aval.keys is None:
            whole = "".join(f"{item}, " for item in items)
            text = f"({whole})" if aval.kind is tuple else f"[{whole}]"
        elif all(type(key) in (str, int) for key in aval.keys):
            text = f"{{{', '.join(f'{key!r}: {item}' for key, item in zip(aval.keys, items, strict=True))}}}"
        else:
            return None
        return None if None in items else text
