"""What a Program differentiates itself, and frees, cannot be differentiated after the call: as in eager mode."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError
from tests.in_threads import in_threads

FREED = "was freed by an earlier backward"


def weights() -> Any:
    return paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Constant(2.0))


def stepped(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    loss.backward()
    return loss


def scaled(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    (loss * 8.0 + 1.0).backward()
    return loss


def kept(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    loss.backward(retain_graph=True)
    return loss


def other(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    loss.backward()
    return loss, (w * x).sum()


def with_slopes(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    return loss * 2.0, loss, paddle.grad(loss, w)[0]


def with_slopes_kept(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    return loss, paddle.grad(loss, w, retain_graph=True)[0]


def with_slopes_of_a_graph(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    return paddle.grad(loss, w, create_graph=True)[0]


def with_slopes_half_way(w: Any, x: Any) -> Any:
    y = w * w
    loss = (y * x).sum()
    return y.sum(), paddle.grad(loss, y)[0]


def with_slopes_blocked(w: Any, x: Any) -> Any:
    y = w * w
    loss = (w * x).sum() + y.sum()
    return (y * x).sum(), paddle.grad(loss, w, no_grad_vars=[y])[0]


class Pair(NamedTuple):
    loss: Any
    more: Any


def named(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    loss.backward()
    return Pair(loss, (w * x).sum())


def in_a_branch(w: Any, x: Any) -> Any:
    loss = (w * w * x).sum()
    if x.sum() > 100:
        loss.backward()
    return loss


def in_each_branch(w: Any, x: Any) -> Any:
    if x.sum() > 100:
        loss = (w * x).sum() * 2.0
        loss.backward()
    else:
        loss = (w * w * x).sum()
        loss.backward()
        loss = loss + 1.0
    return loss


def in_a_loop(w: Any, x: Any) -> Any:
    loss, turn = paddle.zeros([]), x.sum()
    while turn > 0:
        loss = (w * w * x).sum()
        loss.backward()
        turn = turn - 2.0
    return loss


def in_a_loop_from_nothing(w: Any, x: Any) -> Any:
    loss = None
    for _ in range(x.sum().astype("int64")):
        loss = (w * w * x).sum()
        loss.backward()
    return loss


def in_a_loop_that_may_not_turn(w: Any, x: Any) -> Any:
    loss = (w * x).sum()
    for _ in range(x.min().astype("int64") - 1):
        loss = (w * w * x).sum()
        loss.backward()
    return loss


def added_up_in_a_loop(w: Any, x: Any) -> Any:
    total, last = paddle.zeros([]), paddle.zeros([])
    for _ in range(x.sum().astype("int64")):
        total = total + last + (w * x).sum()
        last = (w * w * x).sum()
        last.backward()
    return total.detach(), last


def collected_in_a_loop(w: Any, x: Any) -> Any:
    losses = []
    for _ in range(x.sum().astype("int64")):
        loss = (w * w * x).sum()
        loss.backward()
        losses.append(loss)
    return losses


def collected_without_history(w: Any, x: Any) -> Any:
    losses = []
    for _ in range(x.sum().astype("int64")):
        loss = (w * w * x).sum()
        loss.backward()
        losses.append(loss.detach())
    return losses


def collected_with_others(w: Any, x: Any) -> Any:
    losses = []
    for _ in range(x.min().astype("int64")):
        loss = (w * w * x).sum()
        loss.backward()
        losses.append((w * 3.0 * x).sum())
    return losses


def behind_what_has_no_derivative(w: Any, x: Any) -> Any:
    y = w * x
    ((y > 1.5).astype("float32") * 0.0 + w).sum().backward()
    return y.sum()


def outcome(function: Callable[..., Any], static: bool) -> Any:
    """Return the gradients after a call, and what pulling back each result then gives."""
    w, x = weights(), paddle.to_tensor([1.0, 2.0, 3.0])
    run = paddle.jit.to_static(function, full_graph=True) if static else function
    found: list[Any] = []
    for _ in range(3):
        made = run(w, x)
        for result in made if isinstance(made, (tuple, list)) else (made,):
            found.append((result.tolist(), result.stop_gradient, None if w.grad is None else w.grad.tolist()))
            if result.stop_gradient:
                continue
            try:
                result.sum().backward()
            except AutodiffError as error:
                found.append(FREED in str(error))
            w.clear_gradient()
    return found


@pytest.mark.parametrize(
    "function",
    [
        stepped,
        scaled,
        kept,
        other,
        named,
        in_a_branch,
        in_each_branch,
        in_a_loop,
        in_a_loop_from_nothing,
        in_a_loop_that_may_not_turn,
        added_up_in_a_loop,
        collected_in_a_loop,
        collected_without_history,
        collected_with_others,
        behind_what_has_no_derivative,
        with_slopes,
        with_slopes_kept,
        with_slopes_of_a_graph,
        with_slopes_half_way,
        with_slopes_blocked,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_results_are_as_differentiable_as_in_eager_mode(
    function: Callable[..., Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    assert outcome(function, static=True) == outcome(function, static=False)


def test_a_step_that_frees_its_loss_has_no_derivative_made() -> None:
    w, x = weights(), paddle.ones([3])
    static = paddle.jit.to_static(stepped, full_graph=True)
    for _ in range(3):
        static(w, x)
    assert static.concrete_program.traced.freed == (0,)
    assert not static.concrete_program.compiled._pullbacks


@pytest.mark.parametrize(
    "function", [in_each_branch, in_a_loop, in_a_loop_from_nothing, collected_in_a_loop], ids=lambda f: f.__name__
)
def test_steps_in_loops_and_branches_have_no_derivative_made(function: Callable[..., Any]) -> None:
    w, x = weights(), paddle.to_tensor([1.0, 2.0, 3.0])
    static = paddle.jit.to_static(function, full_graph=True)
    for _ in range(3):
        static(w, x)
    assert static.concrete_program.traced.freed == (0,)
    assert not any(pullback.found for pullback in static.concrete_program.compiled._pullbacks.values())


def test_losses_without_history_have_no_derivative_made() -> None:
    w, x = weights(), paddle.ones([3])
    static = paddle.jit.to_static(collected_without_history, full_graph=True)
    for _ in range(3):
        static(w, x)
    assert static.concrete_program.traced.seeded == ()


def test_a_function_that_gives_its_slopes_has_no_derivative_made() -> None:
    w, x = weights(), paddle.ones([3])
    static = paddle.jit.to_static(with_slopes, full_graph=True)
    for _ in range(3):
        static(w, x)
    assert static.concrete_program.traced.freed == (0, 1)
    assert not static.concrete_program.compiled._pullbacks


def test_a_detached_loss_stays_as_it_is() -> None:
    def step(w: Any, x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        return loss.detach()

    static = paddle.jit.to_static(step, full_graph=True)
    assert static(weights(), paddle.ones([3])).stop_gradient is True
    assert static.concrete_program.traced.freed == ()


def test_higher_derivatives_through_a_loss_that_was_freed_are_refused() -> None:
    w, x = weights(), paddle.ones([3])
    for run in (stepped, paddle.jit.to_static(stepped, full_graph=True)):
        with pytest.raises(AutodiffError, match=FREED):
            paddle.grad(run(w, x) * 2.0, w)
        w.clear_gradient()


def test_a_loop_of_steps_trains_as_eagerly() -> None:
    def train(static: bool) -> list[float]:
        w, x = weights(), paddle.to_tensor([1.0, 2.0, 3.0])
        optimizer = paddle.optimizer.Adam(learning_rate=0.1, parameters=[w])

        def step(x: Any) -> Any:
            loss = ((w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        run = paddle.jit.to_static(step, full_graph=True) if static else step
        return [float(run(x)) for _ in range(5)]

    np.testing.assert_allclose(train(True), train(False), rtol=1e-6)


def test_steps_of_several_threads_train_their_own_weights() -> None:
    def trained(x: Any) -> list[float]:
        w = weights()
        optimizer = paddle.optimizer.Adam(learning_rate=0.1, parameters=[w])

        def step(x: Any) -> Any:
            loss = ((w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        static = paddle.jit.to_static(step, full_graph=True)
        return [float(static(x)) for _ in range(60)]

    x = paddle.to_tensor([1.0, 2.0, 3.0])
    wanted, found = trained(x), []
    in_threads(*[lambda: found.append(trained(x))] * 3)
    assert len(found) == 3
    for losses in found:
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)


def test_turns_make_no_gradient_of_what_needs_none() -> None:
    w = paddle.create_parameter([4, 4], "float32")
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=[w])

    @paddle.jit.to_static(full_graph=True)
    def train(x: Any, turns: Any) -> Any:
        for _ in range(turns):
            for _ in range(turns):
                loss = (x @ w).sum()
                loss.backward()
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)

    train(paddle.ones([2, 4]), paddle.to_tensor(2))
    names = [o.name for o in train.concrete_program.main_program.walk()]
    assert names.count("matmul") == 2  # the product, and the gradient of w
