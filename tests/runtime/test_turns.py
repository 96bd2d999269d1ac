"""How often loops turn at most, told before a run."""

import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import Program
from dy2st.passes import optimise
from dy2st.runtime.interpreter.cost_model import bindings
from dy2st.runtime.interpreter.trip_count import KnownNumbers
from tests.passes.texts import program
from tests.runtime.programs import counting, looping, program_of

X = np.ones((2, 3), "float32")


def turns(program: Program, *inputs) -> list[float]:
    """Return the most turns of each loop of the entry function, after all passes."""
    program = optimise(program)
    numbers = KnownNumbers(program, inputs, bindings(program, inputs))
    return [numbers.iterations(operation) for operation in program.block.operations if operation.op.is_loop]


def up(x):
    t = 0
    while t < x.shape[0]:
        x, t = x + 1, t + 1
    return x


def by_two(x):
    t = 0
    while x.shape[0] > t:
        x, t = x + 1, t + 2
    return x


def down(x):
    t = x.shape[0]
    while t > 0:
        x, t = x * 2, t - 1
    return x


def of_tensors(x, most):
    t = paddle.zeros([], "int64")
    while t < most:
        x, t = x + 1, t + 1
    return x


def both_tests(x):
    t = 0
    while t < x.shape[0] and x.sum() < 100:
        x, t = x + 1, t + 1
    return x


def left_early(x):
    for i in range(x.shape[0]):
        x = x + i
        if x.sum() > 1e6:
            break
    return x


def counter_is_used(x):
    t = 0
    while t < x.shape[0]:
        x, t = x + 1, t + 1
    for _ in range(t):
        x = x * 2
    return x


def standing_still(x):
    t = 0
    while t < x.shape[0]:
        x, t = x + 1, t + 0
        if x.sum() > 100:
            t = t + 1
    return x


def in_steps_of_the_run(x):
    t = paddle.zeros([])
    while t < x.shape[0]:
        x, t = x + 1, t + x.mean()
    return x


@pytest.mark.parametrize("function", [up, down, both_tests, left_early])
@pytest.mark.parametrize("rows", [2, 7])
def test_a_counter_that_goes_to_an_extent_is_told(function, rows):
    program = program_of(function, X)
    assert turns(program, np.ones((rows, 3), "float32")) == [rows]


def test_steps_of_two_are_half_as_many():
    assert turns(program_of(by_two, X), np.ones((7, 3), "float32")) == [4]


def test_a_tensor_of_one_element_among_the_inputs_is_a_limit():
    program = program_of(of_tensors, X, np.array(500))
    assert turns(program, X, np.array(321)) == [321]


def test_the_count_of_a_loop_is_known_after_it():
    assert turns(program_of(counter_is_used, X), np.ones((6, 3), "float32")) == [6, 6]


def test_loops_of_a_fixed_length_are_known():
    assert turns(program_of(counting(50), X), X) == [50]


@pytest.mark.parametrize("function", [looping, standing_still, in_steps_of_the_run])
def test_what_only_the_run_tells_is_not_told(function):
    assert turns(program_of(function, X), X) == [math.inf]


@pytest.mark.parametrize("function", [up, down, left_early])
def test_an_empty_input_turns_nothing_for_ever(function):
    (found,) = turns(program_of(function, X), np.ones((0, 3), "float32"))
    assert found <= 1


def test_a_limit_that_is_no_number_tells_nothing():
    (found,) = turns(program_of(of_tensors, X, np.array(3.0)), X, np.array(math.nan))
    assert not math.isfinite(found)


def test_a_limit_beyond_every_float_tells_nothing():
    loop = program("""%n: int, %x: float32[]
      %z: int(0) = scalar_constant() {value=0}
      %go: bool = scalar_gt(%n, %z)
      %t: int, %y: float32[] = while_loop(%go, %z, %x, %n) {carried=2} {
        body(%i: int, %a: float32[], %m: int) {
          %one: int(1) = scalar_constant() {value=1}
          %j: int = scalar_add(%i, %one)
          %e: float32[] = exp(%a)
          %more: bool = scalar_lt(%j, %m)
          return %more, %j, %e
        }
      }
      return %y""")
    assert turns(loop, 7, np.float32(1)) == [7]
    assert turns(loop, 10**400, np.float32(1)) == [math.inf]
