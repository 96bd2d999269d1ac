"""`cond`, `while_loop`, `case`, `switch_case`: in a hand-built Program, in eager mode and under to_static."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import StructureError

nn = paddle.static.nn


def run(feed, *fetches):
    return paddle.static.Executor().run(feed=feed, fetch_list=list(fetches))


def x_of(*shape, dtype="float32"):
    return paddle.static.data("x", list(shape), dtype)


@pytest.mark.parametrize("value", [2.0, -2.0])
@pytest.mark.proves("static.nn.cond")
def test_cond_takes_the_branch_of_the_run(main, value):
    x = x_of(1)
    y = nn.cond(x > 0, lambda: x * 10, lambda: -x)
    assert run({"x": np.array([value], "float32")}, y)[0].tolist() == [20.0 if value > 0 else 2.0]


def test_cond_returns_structures(main):
    x = x_of(1)
    pair, rest = nn.cond(x > 0, lambda: ((x, x + 1), {"a": x}), lambda: ((x, x - 1), {"a": -x}))
    out = run({"x": np.array([-1.0], "float32")}, pair[0], pair[1], rest["a"])
    assert [o.item() for o in out] == [-1.0, -2.0, 1.0]


def test_shapes_of_branches_may_differ(main):
    x = x_of(3)
    y = nn.cond(x.sum() > 0, lambda: x[:2], lambda: x)
    assert run({"x": np.ones(3, "float32")}, y)[0].shape == (2,)
    assert run({"x": -np.ones(3, "float32")}, y)[0].shape == (3,)


def test_cond_without_functions_gives_none(main):
    assert nn.cond(x_of(1) > 0, None, None) is None


def test_assign_in_a_branch_writes_the_outer_variable(main):
    x = x_of(1)
    total = paddle.full([1], 0.0)

    def keep():
        paddle.assign(x, total)

    nn.cond(x > 0, keep, None)
    assert run({"x": np.array([4.0], "float32")}, total)[0].tolist() == [4.0]
    assert run({"x": np.array([-4.0], "float32")}, total)[0].tolist() == [0.0]


def test_branches_that_return_different_things_are_refused(main):
    x = x_of(1)
    with pytest.raises(StructureError, match=r"(?s)true_fn and false_fn return different things.*test_control_flow.py"):
        nn.cond(x > 0, lambda: x, lambda: x.astype("int64"))
    with pytest.raises(StructureError, match="true_fn and false_fn return different things"):
        nn.cond(x > 0, lambda: x, None)


@pytest.mark.proves("static.nn.while_loop")
def test_while_loop_of_two_counters(main):
    a, b = paddle.full([1], 0, "int64"), paddle.full([1], 10, "int64")
    c, d = nn.while_loop(lambda a, b: a < b, lambda a, b: (a + 2, b + 1), [a, b])
    assert [v.item() for v in run({}, c, d)] == [20, 20]
    assert "while_loop" in str(main)


def test_while_loop_grows_a_shape(main):
    x = x_of(None)
    (y,) = nn.while_loop(lambda v: v.shape[0] < 10, lambda v: [paddle.concat([v, v])], [x])
    assert run({"x": np.ones(3, "float32")}, y)[0].shape == (12,)


def test_while_loop_that_does_not_turn(main):
    x = x_of(1)
    (y,) = nn.while_loop(lambda v: v < 0, lambda v: v + 1, [x])
    assert run({"x": np.array([5.0], "float32")}, y)[0].tolist() == [5.0]


def test_while_loop_in_a_branch(main):
    x = x_of(1)
    y = nn.cond(x > 1, lambda: nn.while_loop(lambda v: v < 100, lambda v: v * v, [x])[0], lambda: x)
    assert run({"x": np.array([3.0], "float32")}, y)[0].tolist() == [6561.0]
    assert run({"x": np.array([0.5], "float32")}, y)[0].tolist() == [0.5]


@pytest.mark.parametrize(("value", "want"), [(0.5, 1.5), (2.0, 4.0), (9.0, -9.0)])
@pytest.mark.proves("static.nn.case")
def test_case_takes_the_first_true_predicate(main, value, want):
    x = x_of(1)
    y = nn.case([(x < 1, lambda: x + 1), (x < 5, lambda: x * 2)], default=lambda: -x)
    assert run({"x": np.array([value], "float32")}, y)[0].tolist() == [want]


def test_case_without_a_default_ends_in_the_last_function(main):
    x = x_of(1)
    y = nn.case([(x < 1, lambda: x + 1), (x < 5, lambda: x * 2)])
    assert run({"x": np.array([9.0], "float32")}, y)[0].tolist() == [18.0]


PAIRS = [(1, lambda: paddle.full([1], 10)), (3, lambda: paddle.full([1], 30))]


@pytest.mark.parametrize("branches", [PAIRS, dict(PAIRS)])
@pytest.mark.proves("static.nn.switch_case")
def test_switch_case_by_number(main, branches):
    i = x_of(1, dtype="int64")
    with_default = nn.switch_case(i, branches, default=lambda: paddle.full([1], -1))
    without = nn.switch_case(i, branches)
    got = {k: [v.item() for v in run({"x": np.array([k])}, with_default, without)] for k in (1, 2, 3)}
    assert got == {1: [10, 10], 2: [-1, 30], 3: [30, 30]}


def test_eager_control_flow_runs_python():
    x = paddle.to_tensor([3.0])
    assert nn.cond(x > 1, lambda: "yes", lambda: "no") == "yes"
    assert nn.while_loop(lambda i: i < 3, lambda i: i + 1, [paddle.to_tensor(0)])[0].item() == 3
    assert nn.case([(x < 1, lambda: 1), (x < 5, lambda: 2)]) == 2
    assert nn.switch_case(paddle.to_tensor(1), [lambda: "a", lambda: "b"]) == "b"


def test_cond_and_while_loop_under_to_static():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        y = nn.cond(x > 1, lambda: x * 2, lambda: x - 1)
        return nn.while_loop(lambda v: v < 50, lambda v: v * 3, [y])[0]

    assert f(paddle.to_tensor([2.0])).tolist() == [108.0]
    assert f(paddle.to_tensor([-1.0], stop_gradient=True) + 3).tolist() == [108.0]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: nn.cond(x > 0, 3), TypeError, "cond: true_fn must be a function, not int"),
        (lambda x: nn.cond(paddle.ones([2]) > 0, None),
         ValueError, r"cond: pred must have one element, not the shape \[2\]"),
        (lambda x: nn.cond("a", None), TypeError, "cond: pred must be a tensor of one element or a bool, not str"),
        (lambda x: nn.while_loop(1, 2, [x]), TypeError, "while_loop: cond must be a function, not int"),
        (lambda x: nn.while_loop(lambda v: v < 1, lambda v: v, x), TypeError, "loop_vars must be a list or tuple, not"),
        (lambda x: nn.while_loop(lambda: True, lambda: 1, []), ValueError, "loop_vars must not be empty"),
        (lambda x: nn.while_loop(lambda v: v < 9, lambda v: (v, v), [x]),
         ValueError, "takes 1 loop variables and must"),
        (lambda x: nn.while_loop(lambda v: None, lambda v: v, [x]),
         TypeError, "what cond returns must be a tensor of one"),
        (lambda x: nn.case([]), TypeError, "case: pred_fn_pairs must be a list of pairs"),
        (lambda x: nn.case([x]), TypeError, "each of pred_fn_pairs is a pair"),
        (lambda x: nn.case([(x > 1, lambda: x)], default=3), TypeError, "case: default must be a function, not int"),
        (lambda x: nn.switch_case(x, []), TypeError, "branch_fns must be a list of functions or pairs"),
        (lambda x: nn.switch_case(x, [lambda: 1]), TypeError, "branch_index must be an integer, not float32"),
        (lambda x: nn.switch_case(1, [3]), TypeError, "a branch is a function or a pair"),
        (lambda x: nn.switch_case(1, [lambda: 1], default=1), TypeError, "switch_case: default must be a function"),
        (lambda x: nn.switch_case(1, [(0, lambda: 1), (0, lambda: 2)]), ValueError, "two branches have one number"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call(paddle.to_tensor([1.0]))


def test_a_predicate_of_two_elements_is_refused_while_building(main):
    with pytest.raises(ValueError, match=r"cond: pred must have one element"):
        nn.cond(x_of(2) > 0, lambda: 1, lambda: 2)
