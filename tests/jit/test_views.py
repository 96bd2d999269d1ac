"""What shares memory in eager mode shares it in a Program, and nothing else does."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError


def pick_then_write(x, rows):
    picked = x[rows]
    picked[0] = -1.0
    return x, picked


def slice_then_write(x, rows):
    part = x[1:]
    part[0] = -1.0
    return x, part


def pick_in_loop_then_write(x, rows):
    turn = paddle.zeros([], "int64")
    while turn < 3:
        x = x[rows]
        x[:, turn] = turn.astype("float32")
        turn += 1
    return x, rows


def write_into_detached(x, rows):
    whole = x * 1
    detached = whole.detach()
    detached[1:] = 7.0
    return whole, detached


def write_what_was_detached(x, rows):
    whole = x * 1
    detached = whole.detach()
    whole[1:] = 7.0
    return whole, detached


@pytest.mark.parametrize(
    "function",
    [pick_then_write, slice_then_write, pick_in_loop_then_write, write_into_detached, write_what_was_detached],
)
def test_a_write_reaches_what_shares_its_memory(function):
    given = np.arange(12, dtype="float32").reshape(4, 3)
    static = paddle.jit.to_static(function, full_graph=True)
    results = [f(paddle.to_tensor(given), paddle.to_tensor([2, 0, 3, 1])) for f in (function, static)]
    for eager, traced in zip(*results, strict=True):
        np.testing.assert_array_equal(traced.numpy(), eager.numpy())


def gradient_past_a_write_into_detached(w):
    whole = w * paddle.ones([2, 2])
    whole.detach()[0] = 7.0
    return (whole * whole).sum()


def test_the_gradient_of_what_was_written_through_a_detached_tensor():
    found = []
    for f in (gradient_past_a_write_into_detached, paddle.jit.to_static(gradient_past_a_write_into_detached)):
        w = paddle.to_tensor(2.0, stop_gradient=False)
        f(w).backward()
        found.append(float(w.grad))
    assert found == [2 * (7 + 7 + 2 + 2)] * 2


def test_what_a_detached_tensor_cannot_hold_in_a_program_is_refused():
    @paddle.jit.to_static(full_graph=True)
    def write_with_gradient(w):
        detached = paddle.ones([2]).detach()
        detached[0] = w
        return detached

    with pytest.raises(TraceError, match="a value that has a gradient is written into a detached tensor"):
        write_with_gradient(paddle.to_tensor(2.0, stop_gradient=False))


def test_what_a_function_made_and_wrote_for_itself_does_not_leave_the_program(tmp_path):
    @paddle.jit.to_static(full_graph=True, input_spec=[paddle.static.InputSpec([None])])
    def first_is_one(x):
        mask = paddle.zeros([3])
        mask[0] = 1.0
        return x * mask

    assert first_is_one(paddle.full([3], 2.0)).tolist() == [2.0, 0.0, 0.0]
    assert len(first_is_one.main_program.block.results) == 1
    paddle.jit.save(first_is_one, tmp_path / "m")  # without a warning that an argument's elements change
    assert paddle.jit.load(tmp_path / "m")(paddle.full([3], 2.0)).tolist() == [2.0, 0.0, 0.0]


def two_views(x):
    whole = x * 2
    return whole[:3], whole[1:]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("stop_gradient", [True, False])
def test_two_views_of_a_tensor_that_is_not_a_result_share_memory(backend, stop_gradient, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(two_views, full_graph=True)
    for _ in range(3):  # traced, looked up, recognised
        front, back = static(paddle.to_tensor([1.0, 2.0, 3.0, 4.0], stop_gradient=stop_gradient))
        with paddle.no_grad():
            front[2] = -1.0
        assert back.tolist() == [4.0, -1.0, 8.0]


def test_gradients_of_two_views_reach_the_tensor_that_both_show():
    static = paddle.jit.to_static(two_views, full_graph=True)
    for _ in range(3):
        x = paddle.to_tensor([1.0, 2.0, 3.0, 4.0], stop_gradient=False)
        front, back = static(x)
        (slope,) = paddle.grad((front**2).sum() + (back * front).sum(), x, create_graph=True)
        (curvature,) = paddle.grad(slope.sum(), x)
        assert slope.tolist() == [16.0, 32.0, 48.0, 12.0]
        assert curvature.tolist() == [12.0, 16.0, 16.0, 4.0]


def test_a_function_of_two_views_is_saved_without_what_both_show(tmp_path):
    static = paddle.jit.to_static(two_views, full_graph=True, input_spec=[paddle.static.InputSpec([None])])
    static(paddle.ones([4]))
    paddle.jit.save(static, tmp_path / "m")
    x = paddle.arange(4.0)
    x.stop_gradient = False
    front, back = paddle.jit.load(tmp_path / "m")(x)
    assert (front.tolist(), back.tolist()) == ([0.0, 2.0, 4.0], [2.0, 4.0, 6.0])
    (front.sum() + back.sum()).backward()
    assert x.grad.tolist() == [2.0, 4.0, 4.0, 2.0]


def places_of_the_run(x, k):
    whole = x + 1
    return whole, [whole[int(k) :], {"row": whole[int(k)]}], x.reshape([-1])


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_recognised_calls_give_views_at_places_that_the_run_tells(backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(places_of_the_run, full_graph=True)
    for k in (1, 2, 0, 1):
        x = paddle.zeros([3])
        whole, (rest, found), flat = static(x, paddle.to_tensor(k))
        whole[k] = 5.0
        x[0] = 7.0
        assert rest.tolist() == [5.0, 1.0, 1.0][: 3 - k]
        assert found["row"].tolist() == 5.0
        assert flat.tolist() == [7.0, 0.0, 0.0]


def slices_of_slices(x):
    y = x * 2
    for _ in range(250):
        y = y[1:]
    return y


def a_result_in_many_lists(x):
    y = [x * 2]
    for _ in range(250):
        y = [y]
    return y


@pytest.mark.parametrize("function", [slices_of_slices, a_result_in_many_lists])
def test_recognised_calls_give_results_behind_many_steps(function):
    static = paddle.jit.to_static(function, full_graph=True)
    for _ in range(4):
        found = static(paddle.ones([252]))
        while isinstance(found, list):
            (found,) = found
        assert found.numpy().min() == found.numpy().max() == 2.0
