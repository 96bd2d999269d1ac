"""What stands for a Program: equal for equal ones, another for each difference that counts."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dy2st.dtypes import float32, float64
from dy2st.ir.clone import clone_program
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.location import Location
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.shapes import symbol


def made(name="x", dtype=float32, value=2.0, op="add", line=1, extra=None):
    """Return a Program of a constant and an operation."""
    program = Program()
    block = program.block
    x = block.add_argument(TensorType(dtype, (symbol("N"), 3)), name)
    attributes = {"value": np.full((2, 3), value, dtype.numpy), **(extra or {})}
    constant = Operation(lookup("constant"), [], attributes, [], Location("file.py", line, "f"))
    constant.results.append(Value(TensorType(dtype, (2, 3)), block, constant))
    both = Operation(lookup(op), [x, constant.results[0]], {}, [], Location("file.py", line, "f"))
    both.results.append(Value(TensorType(dtype, (2, 3)), block, both))
    block.operations += [constant, both]
    block.results.append(both.results[0])
    return program


def test_equal_programs_have_one():
    program = made()
    assert fingerprint(program) == fingerprint(clone_program(program)) == fingerprint(made(name="y", line=7))


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": float64}, {"value": 3.0}, {"value": -0.0}, {"op": "sub"}, {"extra": {"n": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_each_difference_gives_another(other):
    assert fingerprint(made(**other)) not in (fingerprint(made()), fingerprint(made(value=0.0)), None)


def test_numbers_of_different_kinds_differ():
    values = [1, 1.0, True, "1", None, (1,), (1, 1), float("nan"), {"a": 1}, np.float32(1), np.int64(1)]
    assert len({fingerprint(made(extra={"n": v})) for v in values}) == len(values) - 1  # NumPy's have no text
    assert fingerprint(made(extra={"n": float("nan")})) == fingerprint(made(extra={"n": float("nan")}))


def test_the_entry_and_the_renewed_results_count():
    texts = set()
    for entry, renewed in (("main", ()), ("other", ()), ("main", ((0, 1),)), ("main", ((1, 0),))):
        program = made()
        program.functions["other"] = made(op="sub").block
        program.entry, program.renewed = entry, renewed
        texts.add(fingerprint(program))
    assert len(texts) == 4


def test_attributes_of_other_operations_and_names_of_functions_count():
    names = {
        fingerprint(made(extra={"a": "b"})),
        fingerprint(made(extra={"b": "a"})),
        fingerprint(made(extra={"a": "a"})),
    }
    program = made()
    program.functions = {"a": program.block}
    assert len({*names, fingerprint(program), fingerprint(made())}) == 5


def test_operands_count():
    one, other = made(), made()
    other.block.operations[1].operands.reverse()
    assert fingerprint(one) != fingerprint(other)


def test_results_count():
    one = made()
    one.block.results.append(one.block.results[0])
    assert fingerprint(one) != fingerprint(made())


def test_python_objects_have_none():
    assert fingerprint(made(extra={"function": print})) is None
    assert fingerprint(made(extra={"value": np.array([None])})) is None


@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_it_is_the_same_in_another_process(seed):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_fingerprint as t; print(t.fingerprint(t.made()))"
    run = [sys.executable, "-c", code, os.path.dirname(__file__)]
    said = subprocess.run(run, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=60)
    assert said.stdout.strip() == fingerprint(made())
