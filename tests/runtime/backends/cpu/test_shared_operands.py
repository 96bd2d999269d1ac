"""Operands that share memory, natively: every pair of operands of every op, as one value and as views of one.

What an operation is the last to use, it may write into; not where another operand still reads that.
"""

import itertools

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference, is_exact
from tests.ops.evaluate import emit, type_of
from tests.ops.test_registry import KNOWN, cases
from tests.runtime.backends.cpu.test_same_as_interpreter import program_of


def whole(b, x):
    return x


def turned(b, x):
    return b.flip(x, axes=(0,))


def transposed(b, x):
    return b.transpose(x, perm=tuple(reversed(range(len(x.type.shape)))))


def repeated(b, x):
    first = b.index(x, spec=(("slice", 0, 1, None),))
    dims = [b.dim(x, axis=i) for i in range(len(x.type.shape))]
    return b.emit("broadcast", [first, *dims], {"shape": (None,) * len(dims)})


def lower(b, x):
    return b.index(x, spec=(("slice", None, -1, None),))


def upper(b, x):
    return b.index(x, spec=(("slice", 1, None, None),))


def row(b, x):
    return b.index(x, spec=(("int", 0),))


def corner(b, x, like, of):
    """The last elements of x along each axis, or all of it: as `like` has it."""
    slices = [("slice", None if m == n else -m, None, None) for m, n in zip(like.shape, of.shape, strict=True)]
    return x if like.shape == of.shape else b.index(x, spec=tuple(slices))


FORMS = {
    "same": (whole, whole),
    "turned": (whole, turned),
    "the other way": (turned, whole),
    "both turned": (turned, turned),
    "transposed": (whole, transposed),
    "repeated": (whole, repeated),
    "onto repeated": (repeated, whole),
    "offset": (lower, upper),
    "offset down": (upper, lower),
    "row": (whole, row),
    "onto row": (row, whole),
    "corner": (corner, corner),
}


def bases(form, x, y):
    """Arrays of which operands like x and y may be two views."""
    views = FORMS[form]
    if x.dtype != y.dtype or 0 in x.shape + y.shape:
        return []
    if "row" in form:
        long, short = (x, y) if views[1] is row else (y, x)
        return [long] if long.shape[1:] == short.shape and long.ndim else []
    if form == "transposed":
        return [x, y.T.copy()] if x.ndim > 1 and x.shape == y.shape[::-1] else []
    if form == "corner":
        larger = x if x.size > y.size else y
        least = tuple(max(a, b) for a, b in zip(x.shape, y.shape, strict=False))
        return [larger] if x.ndim == y.ndim and least == larger.shape else []
    if not x.ndim or x.shape != y.shape:
        return []
    if "offset" in form:
        return [np.concatenate([x, y[-1:]])]
    return [x, y]


def variants(op, sample):
    """Which operands are views of what: (places, form, array)."""
    arrays = [i for i, x in enumerate(sample.operands) if isinstance(x, np.ndarray)]
    for (i, j), form in itertools.product(itertools.combinations(arrays, 2), FORMS):
        for base in bases(form, sample.operands[i], sample.operands[j]):
            yield (i, j), form, base


def built(op, sample, chosen, symbolic):
    """A Program with the op once for each variant, on views of tensors that it makes itself; and its inputs."""
    b, inputs, known = Builder(), [], KNOWN.get(op.name, {})

    def argument(x, kept=slice(0)):
        inputs.append(x)
        return b.argument(type_of(x, symbolic, kept))

    for places, form, base in chosen:
        own = b.take(argument(base), argument(np.arange(len(base))), axis=0)
        operands = [None if i in places else argument(x, known.get(i, slice(0))) for i, x in enumerate(sample.operands)]
        for i, view in zip(places, FORMS[form], strict=True):
            more = (sample.operands[i], base) if view is corner else ()
            operands[i] = view(b, own, *more)
        b.block.results += emit(b, op, operands, sample.attributes)
    return Program({"main": b.block}), inputs


def fits(op, sample, variant, symbolic):
    """Say whether the op takes such operands."""
    try:
        program, inputs = built(op, sample, [variant], symbolic)
        compile_plan(program).run(inputs)
    except Exception:  # the type rule or the interpreter refuses them
        return False
    return True


def check(op, sample, symbolic):
    chosen = [variant for variant in variants(op, sample) if fits(op, sample, variant, symbolic)]
    if not chosen:
        return
    program, inputs = built(op, sample, chosen, symbolic)
    copies = [np.copy(x) if isinstance(x, np.ndarray) else x for x in inputs]
    wanted = compile_plan(program).run(inputs)
    fault = difference(NativePlan(program).run(copies), wanted, inputs, exact=is_exact(program))
    assert fault == "", f"{fault}; {[(places, form) for places, form, _ in chosen]}\n{program}"
    assert difference(copies, inputs, [], exact=True) == ""


def has_pairs(op, sample):
    return any(True for _ in variants(op, sample))


@pytest.mark.parametrize(("op", "sample"), cases(has_pairs))
@pytest.mark.parametrize("symbolic", [True, False], ids=["symbolic", "known"])
def test_pairs_of_operands(op, sample, symbolic):
    check(op, sample, symbolic)


def all_turned(x):
    y = x * 1.0
    y[paddle.arange(y.shape[0] - 1, -1, -1)] = y
    return y


def scattered(x):
    y = x * 1.0
    return paddle.scatter(y, paddle.arange(y.shape[0] - 1, -1, -1), y)


def with_its_end_in_front(x):
    y = x * 1.0
    y[1:] = y[:-1]
    return y


def onto_itself_turned(x):
    y = x * 1.0
    y[::-1] = y
    return y


def put_along(x):
    y = x * 1.0
    return paddle.put_along_axis(y, paddle.arange(y.shape[0] - 1, -1, -1), y, 0)


def gradient(x):
    x.stop_gradient = False
    return paddle.grad(paddle.sin(x + x[::-1]).sum(), x)[0]


def gradient_of_rows(x):
    x.stop_gradient = False
    y = x.reshape([-1, 1]) * x
    return paddle.grad((paddle.sin(y + y.transpose([1, 0])) * y[::-1]).sum(), x)[0]


@pytest.mark.parametrize(
    "f",
    [all_turned, scattered, with_its_end_in_front, onto_itself_turned, put_along, gradient, gradient_of_rows],
)
def test_functions_that_write_over_what_they_read(f):
    program = program_of(f, np.arange(3.0))
    native, plan = NativePlan(program), compile_plan(program)
    for size in (1, 2, 3, 17, 64):
        x = np.sin(np.arange(1.0, size + 1))
        assert difference(native.run([x]), plan.run([x]), [x], exact=is_exact(program)) == ""
