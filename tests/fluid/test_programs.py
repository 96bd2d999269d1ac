"""Hand-built Programs with 1.x's names."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.fluid as fluid

F32 = np.float32


@pytest.fixture
def programs():
    """Static mode with a Program of its own."""
    paddle.enable_static()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        yield main, startup
    paddle.disable_static()


def test_data_puts_the_batch_first_unless_told():
    paddle.enable_static()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        assert fluid.layers.data("a", [3, 4]).shape[1:] == [3, 4]
        assert len(fluid.layers.data("b", [-1, 4]).shape) == 2
        assert fluid.layers.data("c", [3], append_batch_size=False).shape == [3]
        with pytest.raises(NotImplementedError, match="lod_level above 0"):
            fluid.layers.data("d", [3], lod_level=1)


def test_fc_and_minimize_train_a_line(programs, rng):
    main, startup = programs
    x = fluid.layers.data("x", [2])
    y = fluid.layers.data("y", [1])
    out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(name="slope"))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.SGDOptimizer(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    points = rng.normal(size=(64, 2)).astype(F32)
    feed = {"x": points, "y": points @ np.array([[2.0], [-1.0]], F32) + 0.5}
    losses = [float(exe.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(60)]
    assert losses[-1] < 1e-3 < losses[0]
    (slope,) = exe.run(main, feed=feed, fetch_list=["slope"])
    np.testing.assert_allclose(slope[:, 0], [2.0, -1.0], atol=0.05)


def test_dropout_and_batch_norm_in_a_clone_for_testing(programs, rng):
    main, startup = programs
    x = fluid.layers.data("x", [4])
    h = fluid.layers.dropout(x, 0.5)
    out = fluid.layers.batch_norm(h)
    test = main.clone(for_test=True)
    exe = fluid.Executor()
    exe.run(startup)
    points = rng.normal(size=(16, 4)).astype(F32)
    dropped, _ = exe.run(main, feed={"x": points}, fetch_list=[h, out])
    assert ((dropped == 0) | (dropped == points)).all()
    assert 0 < (dropped == 0).sum() < 64
    tested, normal = exe.run(test, feed={"x": points}, fetch_list=[h, out])
    np.testing.assert_allclose(tested, points * 0.5, rtol=1e-6)
    np.testing.assert_array_equal(normal, exe.run(test, feed={"x": points}, fetch_list=[out])[0])


def test_embedding_looks_up_rows_of_a_new_table(programs):
    main, startup = programs
    ids = fluid.layers.data("ids", [2], dtype="int64")
    rows = fluid.embedding(ids, [5, 3], param_attr=fluid.ParamAttr(name="table"))
    exe = fluid.Executor()
    exe.run(startup)
    found, table = exe.run(main, feed={"ids": np.array([[1, 4]])}, fetch_list=[rows, "table"])
    np.testing.assert_array_equal(found[0], table[[1, 4]])


def test_backward_names_are_those_of_static():
    assert fluid.backward.append_backward is paddle.static.append_backward
