"""Check the derivatives of a Program against differences and against each other."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dy2st.autodiff.programs import Pullback, fresh_names, jvp, vjp
from dy2st.autodiff.reverse import pull_back
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, is_differentiable, is_optional, tangent_type
from dy2st.ir.verifier import verify
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from tests import shares
from tests.passes.checked import optimised

MOST_KNOWN = 64


class Derived:
    """The derivatives of a Program, each made and verified where it is first wanted."""

    def __init__(self, program: Program):
        self.program = program

    @cached_property
    def pulled(self) -> tuple[Pullback, Program, Program]:
        """What `vjp` makes, and what the passes make of its two Programs."""
        wrt, seeded = tensors(self.program)
        made = vjp(self.program, wrt, [(i, False) for i in seeded])
        for one in (made.forward, made.backward):
            verify(one)
        return made, optimised(made.forward), optimised(made.backward)

    @cached_property
    def pushed(self) -> tuple[Program, list[int], Program]:
        """What `jvp` makes, which results have tangents, and what the passes make of it."""
        made, live = jvp(self.program, tensors(self.program)[0])
        verify(made)
        return made, live, optimised(made)

    @cached_property
    def whole(self) -> Program:
        """The Program of all gradients."""
        return gradient_program(self.program)


_known: dict[str, Derived] = {}


def derived(program: Program) -> Derived:
    """Return the derivatives of a Program: those that were made of an equal one, if there are any."""
    key = fingerprint(program)
    if key is None:
        return Derived(program)
    if key not in _known and len(_known) >= MOST_KNOWN:
        _known.pop(next(iter(_known)))
    return _known.setdefault(key, Derived(program))


def tensors(program: Program) -> tuple[list[int], list[int]]:
    """Return which arguments and which results are tensors that can have a derivative."""
    block = program.block
    return _places(block.arguments), _places(block.results)


def _places(values: Sequence[Any]) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v.type, TensorType) and is_differentiable(v.type)]


def dense(value: Any, like: Any) -> np.ndarray:
    """Return a cotangent, zeros where it is unset."""
    if isinstance(value, tuple):
        return np.zeros_like(like) if value[0] == 0 else dense(value[1], like)
    return value


def dot(a: Sequence[Any], b: Sequence[Any]) -> float:
    return float(sum(np.vdot(x, y).real for x, y in zip(a, b, strict=True)))


def pulled(program: Program, inputs: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Return the cotangents of the tensor arguments by `vjp`; verify, and compare what the passes make of it."""
    wrt, _ = tensors(program)
    made, forward, backward = derived(program).pulled
    values = evaluate(made.forward, inputs)
    count = len(program.block.results)
    same(values[:count], evaluate(program, inputs))
    found = evaluate(made.backward, [*values[count:], *cts])
    fast = compile_plan(forward).run(inputs)
    same(fast[:count], values[:count], exact=False)
    again = compile_plan(backward).run([*fast[count:], *cts])
    same(again, found, exact=False)
    gradients = {i: ct for i, ct in zip(made.found, found, strict=True)}
    return [dense(gradients[i], inputs[i]) if i in gradients else np.zeros_like(inputs[i]) for i in wrt]


def pushed(program: Program, inputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of the tensor results by `jvp`."""
    _, seeded = tensors(program)
    made, live, faster = derived(program).pushed
    count = len(program.block.results)
    values = evaluate(made, [*inputs, *tangents])
    same(values[:count], evaluate(program, inputs))
    same(compile_plan(faster).run([*inputs, *tangents]), values, exact=False)
    found = dict(zip(live, values[count:], strict=True))
    return [found[i] if i in found else np.zeros_like(values[i]) for i in seeded]


def differences(program: Program, inputs: Sequence[Any], tangents: Sequence[Any], step: float = 1e-4) -> list[Any]:
    """Return the tangents of the tensor results by central differences of fourth order."""
    wrt, seeded = tensors(program)

    def at(factor: float) -> list[Any]:
        moved = list(inputs)
        for i, t in zip(wrt, tangents, strict=True):
            moved[i] = np.asarray(inputs[i] + factor * t)
        values = evaluate(program, moved)
        return [values[i] for i in seeded]

    a, b, c, d = (at(k * step) for k in (-2, -1, 1, 2))
    return [(p - 8 * q + 8 * r - s) / (12 * step) for p, q, r, s in zip(a, b, c, d, strict=True)]


def gradient_program(program: Program, functions: bool = True) -> Program:
    """Return the Program (arguments, cotangents of tensor results) -> (cotangents of tensor arguments), one block."""
    copy = clone_program(program)
    b = Builder(copy.block, names=fresh_names(copy))
    b.functions = copy.functions if functions else None
    wrt, seeded = tensors(copy)
    cts: dict[Any, Any] = {}
    for i in seeded:
        value = copy.block.results[i]
        ct = b.argument(value.type)
        cts[value] = b.add(cts[value], ct) if value in cts else ct
    roots = [copy.block.arguments[i] for i in wrt]
    found = pull_back(b, copy.block, roots, cts)
    copy.block.results = []
    for root in roots:
        ct = found.get(root)
        if ct is None:
            ct = b.zeros_like(root)
        elif is_optional(ct.type):
            ct = b.variant_or_zeros(ct, root, tag=1)
        copy.block.results.append(ct)
    verify(copy)
    return copy


def check(program: Program, *inputs: Any, order: int = 2, tolerance: float = 1e-6, seed: int = 0) -> None:
    """Compare reverse mode, forward mode and differences, up to a derivative of this order (in `--fast` the second)."""
    verify(program)
    order = shares.order(order)
    rng = np.random.default_rng(seed)
    wrt, seeded = tensors(program)
    tangents = [rng.normal(size=inputs[i].shape) for i in wrt]
    values = evaluate(program, inputs)
    cts = [np.asarray(rng.normal(size=values[i].shape)) for i in seeded]
    gradients = pulled(program, inputs, cts)
    assert [g.shape for g in gradients] == [inputs[i].shape for i in wrt]
    forward = pushed(program, inputs, tangents)
    reverse = dot(gradients, tangents)
    np.testing.assert_allclose(dot(cts, forward), reverse, rtol=1e-10, atol=1e-10)
    for got, want in zip(forward, differences(program, inputs, tangents), strict=True):
        scale = float(np.max(np.abs(want), initial=1.0))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
    whole = derived(program).whole
    same(evaluate(whole, [*inputs, *cts]), gradients, exact=False)
    if order > 1:
        check(whole, *inputs, *cts, order=order - 1, tolerance=tolerance * 10, seed=seed + 1)


def same(a: Any, b: Any, exact: bool = True) -> None:
    """Assert that two run-time values are equal, bit by bit or to rounding."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y, exact)
    elif hasattr(a, "items"):
        same(list(a.items), list(b.items), exact)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-11)
    else:
        assert a == b or (a != a and b != b)


def tangents_of(program: Program) -> list[Any]:
    """Return the tangent types of the arguments that have one."""
    return [tangent_type(v.type) for v in program.block.arguments if is_differentiable(v.type)]
