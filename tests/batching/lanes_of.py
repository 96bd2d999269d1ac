"""Run a Program over lanes, and lane by lane."""

from typing import Any

import numpy as np
import pytest

from dy2st.batching.batched_value import LaneForm
from dy2st.batching.programs import vmap
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.checked import optimised


def stacked(values: list[Any]) -> Any:
    """Return the stacked form of a value for each lane."""
    first = values[0]
    if isinstance(first, list):
        return [stacked(list(items)) for items in zip(*values, strict=True)]
    if isinstance(first, tuple):
        assert len({v[0] for v in values}) == 1, "lanes differ in the tag"
        return (first[0], None if first[1] is None else stacked([v[1] for v in values]))
    if hasattr(first, "items"):
        return type(first)([stacked(list(items)) for items in zip(*(v.items for v in values), strict=True)])
    return np.stack(values) if isinstance(first, np.ndarray) else np.asarray(values)


def lane(value: Any, i: int) -> Any:
    """Return what a lane has of a stacked value."""
    if isinstance(value, list):
        return [lane(item, i) for item in value]
    if isinstance(value, tuple):
        return (value[0], None if value[1] is None else lane(value[1], i))
    if hasattr(value, "items") and not isinstance(value, np.ndarray):
        return type(value)([lane(item, i) for item in value.items])
    return value[i, ...]


def check(program: Program, inputs: list[list[Any]], batched: list[bool], known: bool = True) -> Program:
    """Compare a Program over lanes with the runs of each lane; `inputs` are those of each lane. Return the former.

    Where lanes raise, the Program over lanes has to raise what one of them does.
    """
    count = len(inputs)
    verify(program)
    made, forms = vmap(program, batched, count if known else None)
    verify(made)
    given = [stacked(list(v)) if b else v[0] for v, b in zip(zip(*inputs, strict=True), batched, strict=True)]
    plan = compile_plan(optimised(made))
    wanted, raised = outcomes(program, inputs)
    if raised:
        for run in (lambda: evaluate(made, given), lambda: plan.run(given)):
            with pytest.raises(raised):
                run()
        return made
    for found in (evaluate(made, given), plan.run(given)):
        for i, (result, form) in enumerate(zip(found, forms, strict=True)):
            for k in range(count):
                one = result if form is LaneForm.SHARED else result[k] if form is LaneForm.APART else lane(result, k)
                equal(one, wanted[k][i])
    return made


def outcomes(program: Program, inputs: list[list[Any]]) -> tuple[list[Any], tuple[type[Exception], ...]]:
    """Return the results of each lane, and the kinds of errors that lanes raise."""
    wanted: list[Any] = []
    raised: list[type[Exception]] = []
    for one in inputs:
        try:
            wanted.append(evaluate(program, one))
        except Exception as error:
            raised.append(type(error))
    return wanted, tuple(raised)


def equal(found: Any, wanted: Any) -> None:
    """Assert that two values are equal to rounding; a number may be a 0-D array."""
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            equal(a, b)
    elif isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind in "fc":
            rounding = np.finfo(wanted.dtype).eps * 100
            np.testing.assert_allclose(found, wanted, rtol=rounding, atol=rounding)
        else:
            np.testing.assert_array_equal(found, wanted)
    elif hasattr(wanted, "items"):
        equal(list(found.items), list(wanted.items))
    else:
        assert found == wanted or (found != found and wanted != wanted), (found, wanted)
