"""How the function that makes a call which was seen before ends (fast_call.py): what it writes, what it gives.

    t0 = target(c9, [v0], [])           # an argument that the call writes
    output = Tensor(results[0])
    if t0._version is None: t0._payload = results[1]
    else: write_array(t0, results[1])
    c10._grad = None
    return output

It does what `ConcreteProgram.run_on` does through templates and the keys of the write log, one line for each write.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dy2st.jit.concrete_program import ConcreteProgram
from dy2st.jit.guards import ArgumentSlot, StateSlot
from dy2st.jit.outputs import restore
from dy2st.jit.write_back import commit, target, write_array
from dy2st.runtime.backward import accumulate_leaf
from dy2st.runtime.tape import freed, wrap
from dy2st.runtime.templates import Const, Items, NewList, Number, Template, TensorLike
from dy2st.runtime.tensor import Tensor

NAMES = {
    "Tensor": Tensor, "accumulate_leaf": accumulate_leaf, "commit": commit, "freed": freed, "restore": restore,
    "target": target, "wrap": wrap, "write_array": write_array,
}  # fmt: skip
"""What the lines name beside constants."""
Constant = Callable[[Any], str]
"""Returns the name of a constant."""


def finishing(
    program: ConcreteProgram, leaves: Sequence[str], containers: Sequence[str], constant: Constant
) -> list[str]:
    """Return the lines that write what `results` of a plain Program say, and return what its calls give."""
    traced = program.traced
    output = _made_of(traced.output, itertools.count(), traced.freed)
    if output is None:
        values = ", ".join(f"freed(wrap(Tensor, results[{i}]))" if i in traced.freed else f"wrap(Tensor, results[{i}])"
                           for i in range(traced.outputs))  # fmt: skip
        output = f"restore(iter([{values}]), {constant(traced.output)})"
    if not traced.writes:
        return [f"return {output}"]
    numbers = itertools.count(traced.outputs)
    targets: list[str] = []
    writes: list[str] = []
    for key, owner, template in traced.writes:
        name = constant(owner)
        if isinstance(owner, (ArgumentSlot, StateSlot)):
            targets.append(f"t{len(targets)} = target({name}, [{', '.join(leaves)}], [{', '.join(containers)}])")
            name = f"t{len(targets) - 1}"
        writes += _write(key, name, template, numbers, constant)
    return [*targets, f"output = {output}", *writes, "return output"]


def _write(key: Any, owner: str, template: Template, numbers: Iterator[int], constant: Constant) -> list[str]:
    """Return the lines that write one value under a key of the write log, as `write_back.commit` does."""
    if isinstance(template, Const):
        if key[0] == "grad" and template.object is None:
            return [f"{owner}._grad = None"]
        return [f"commit({constant(key)}, {owner}, {constant(template.object)})"]
    value = f"results[{next(numbers)}]"
    made = value if isinstance(template, Number) else f"Tensor({value})"
    if key[0] == "data":
        return [f"if {owner}._version is None: {owner}._payload = {value}", f"else: write_array({owner}, {value})"]
    if key[0] == "grad":
        return [f"{owner}._grad = {made}"]
    if key[0] == "grad_sum":
        return [f"if {owner}._grad is None: {owner}._grad = {made}", f"else: accumulate_leaf({owner}, {value}, set())"]
    return [f"commit({constant(key)}, {owner}, {made})"]


def _made_of(template: Template, numbers: Iterator[int], ended: Sequence[int] = ()) -> str | None:
    """Return the expression of an object of this template, made of `results` in turn; None where there are no words.

    The results that `ended` names were differentiated while the Program ran.
    """
    if isinstance(template, TensorLike):
        number = next(numbers)
        return f"freed(Tensor(results[{number}]))" if number in ended else f"Tensor(results[{number}])"
    if isinstance(template, Number):
        return f"results[{next(numbers)}]"
    if isinstance(template, NewList):
        return _made_of(template.content, numbers, ended)
    if not isinstance(template, Items) or template.kind not in (tuple, list, dict):
        return None
    items = [_made_of(item, numbers, ended) for item in template.items]
    if template.keys is None:
        whole = "".join(f"{item}, " for item in items)
        text = f"({whole})" if template.kind is tuple else f"[{whole}]"
    elif all(type(key) in (str, int) for key in template.keys):
        text = f"{{{', '.join(f'{key!r}: {item}' for key, item in zip(template.keys, items, strict=True))}}}"
    else:
        return None
    return None if None in items else text
