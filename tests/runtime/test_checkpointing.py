"""The public choice of what gradients keep of the turns of loops."""

import numpy as np
import pytest

import dy2st as paddle


def grow(x, n):
    while n > 0:
        x, n = paddle.sin(x) * 1.1 + x * paddle.rand([1]), n - 1
    return x.sum()


def text(function):
    return str(function.concrete_program.main_program)


def gradient(function, turns=20):
    paddle.seed(3)
    x = paddle.to_tensor(np.linspace(0.1, 1, 4), stop_gradient=False)
    function(x, paddle.to_tensor(turns)).backward()
    return x.grad.numpy()


@pytest.mark.parametrize("policy", ["sqrt", 1, 7, 100])
def test_to_static_takes_a_policy(policy):
    chosen = paddle.jit.to_static(grow, full_graph=True, checkpoint=policy)
    np.testing.assert_allclose(gradient(chosen), gradient(grow), rtol=1e-9)
    assert f"checkpoint={policy!r}".replace("'", '"') in text(chosen)


def test_a_with_sets_the_policy_of_the_loops_in_it():
    @paddle.jit.to_static(full_graph=True)
    def two(x, n):
        m = n
        with paddle.autograd.checkpoint_policy("sqrt"):
            while n > 0:
                x, n = paddle.sin(x), n - 1
        while m > 0:
            x, m = paddle.cos(x), m - 1
        return x

    two(paddle.to_tensor(0.5), paddle.to_tensor(3))
    assert text(two).count("while_loop(") == 2
    assert text(two).count("checkpoint=") == 1


def test_a_policy_around_calls_makes_a_program_of_its_own():
    chosen = paddle.jit.to_static(grow, full_graph=True)
    plain = gradient(chosen)
    with paddle.autograd.checkpoint_policy(3):
        np.testing.assert_allclose(gradient(chosen), plain, rtol=1e-12)
        assert "checkpoint=3" in text(chosen)
    gradient(chosen)
    assert "checkpoint=" not in text(chosen)
    assert len(chosen.program_cache) == 2


def test_the_policy_of_a_function_holds_where_it_is_called_by_another():
    inner = paddle.jit.to_static(grow, full_graph=True, checkpoint="sqrt")
    outer = paddle.jit.to_static(lambda x, n: inner(x, n) * 2, full_graph=True)
    gradient(outer)
    assert 'checkpoint="sqrt"' in text(outer)


def test_methods_and_layers_take_a_policy():
    class Net(paddle.nn.Layer):
        def forward(self, x, n):
            return grow(x, n)

    net = paddle.jit.to_static(Net(), full_graph=True, checkpoint="sqrt")
    np.testing.assert_allclose(gradient(net), gradient(grow), rtol=1e-9)
    assert 'checkpoint="sqrt"' in text(net.forward)


def test_gradients_inside_of_a_trace_use_it():
    @paddle.jit.to_static(full_graph=True, checkpoint="sqrt")
    def slopes(x, n):
        (first,) = paddle.grad(grow(x, n), [x], create_graph=True)
        (second,) = paddle.grad(first.sum(), [x])
        return first, second

    x = paddle.to_tensor([0.2, 0.9], dtype="float64", stop_gradient=False)
    paddle.seed(3)
    found = slopes(x, paddle.to_tensor(9))
    paddle.seed(3)
    wanted = slopes.dygraph_function(x, paddle.to_tensor(9))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)


@pytest.mark.parametrize("policy", ["all", "sqrt", 4])
def test_while_loop_takes_a_policy(policy):
    def run(x, n):
        test, turn = (lambda i, x: i < n), (lambda i, x: [i + 1, paddle.sin(x) * paddle.rand([1])])
        return paddle.static.nn.while_loop(test, turn, [paddle.to_tensor(0), x], checkpoint=policy)[1].sum()

    static = paddle.jit.to_static(run, full_graph=True)
    np.testing.assert_allclose(gradient(static), gradient(run), rtol=1e-9)
    assert ("checkpoint=" in text(static)) == (policy != "all")


def test_an_eager_while_loop_runs_its_turns_again():
    turns = []

    def run(x, n):
        def turn(i, x):
            turns.append(1)
            return [i + 1, paddle.sin(x)]

        return paddle.static.nn.while_loop(lambda i, x: i < n, turn, [paddle.to_tensor(0), x], checkpoint="sqrt")[
            1
        ].sum()

    gradient(run, 10)
    assert len(turns) == 20


def test_programs_built_by_hand_have_segments_too():
    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None], "float64")
            x.stop_gradient = False
            start = [paddle.full([1], 0, "int64"), x]
            turn = lambda i, x: [i + 1, paddle.sin(x) * 1.2]
            out = paddle.static.nn.while_loop(lambda i, x: i < 30, turn, start, checkpoint="sqrt")[1]
            (slope,) = paddle.static.gradients(out, x)
        executor = paddle.static.Executor()
        for program in (main, main.clone()):
            (found,) = executor.run(program, feed={"x": np.array([0.3, 0.5])}, fetch_list=[slope])
            np.testing.assert_allclose(found, [7.157592147e-05, 1.086991045e-05], rtol=1e-6)
        assert "segment_0" in str(main.ir_program([]))
    finally:
        paddle.disable_static()


def test_a_policy_survives_save_and_load(tmp_path):
    chosen = paddle.jit.to_static(grow, full_graph=True, checkpoint="sqrt")
    spec = [paddle.static.InputSpec([None], "float64"), paddle.static.InputSpec([], "int64")]
    paddle.jit.save(chosen, str(tmp_path / "grow"), input_spec=spec)
    loaded = paddle.jit.load(str(tmp_path / "grow"))
    np.testing.assert_allclose(gradient(loaded), gradient(grow), rtol=1e-9)
    assert 'checkpoint="sqrt"' in str(loaded.program())


@pytest.mark.parametrize("policy", ["some", 0, -1, 1.5, True, None])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(ValueError, match='checkpoint is "all", "sqrt" or the number of turns between checkpoints'):
        with paddle.autograd.checkpoint_policy(policy):
            pass


def test_to_static_refuses_what_is_no_policy():
    with pytest.raises(ValueError, match=r"checkpoint is .*, not 'often'"):
        paddle.jit.to_static(grow, checkpoint="often")


def test_while_loop_refuses_what_is_no_policy():
    with pytest.raises(ValueError, match=r"checkpoint is .*, not 0"):
        paddle.static.nn.while_loop(lambda i: i < 3, lambda i: [i + 1], [paddle.to_tensor(0)], checkpoint=0)
