"""The area under a curve and slow copies of parameters, over several runs of a hand-built Program."""

from collections.abc import Iterator

import numpy as np
import pytest

import dy2st as paddle
from dy2st import static


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.scope_guard(static.Scope()):
        yield
    paddle.disable_static()


def area(scores, labels, parts=100):
    places = (scores * parts).astype(int)
    pairs = [(p > n) + 0.5 * (p == n) for p in places[labels > 0] for n in places[labels == 0]]
    return np.mean(pairs)


@pytest.mark.proves("static.auc")
def test_the_area_under_the_curve():
    main, start = static.Program(), static.Program()
    with static.program_guard(main, start):
        x, y = static.data("x", [None, 2]), static.data("y", [None, 1], "int64")
        total, batch, counts = static.auc(x, y, num_thresholds=100)
        with pytest.raises(ValueError, match="curve is 'ROC'"):
            static.auc(x, y, curve="PR")
    run = static.Executor()
    run.run(start)
    rng, seen = np.random.default_rng(0), []
    for _ in range(3):
        scores = rng.random(20).astype("float32")
        labels = (rng.random(20) < scores).astype("int64")
        seen.append((scores, labels))
        feed = {"x": np.stack([1 - scores, scores], 1), "y": labels[:, None]}
        found = run.run(main, feed=feed, fetch_list=[total, batch, counts[2]])
        every = [np.concatenate(part) for part in zip(*seen, strict=True)]
        np.testing.assert_allclose(found[:2], [area(*every), area(scores, labels)], rtol=1e-6)
        assert found[2].sum() == every[1].sum()


@pytest.mark.proves("static.ExponentialMovingAverage")
def test_slow_copies_of_parameters():
    main, start = static.Program(), static.Program()
    with static.program_guard(main, start):
        x = static.data("x", [1, 2])
        w = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
        loss = (x * w).mean()
        paddle.optimizer.SGD(1.0).minimize(loss)
        average = static.ExponentialMovingAverage(0.5)
        average.update()
    run, feed = static.Executor(), {"x": np.ones((1, 2), "float32")}
    run.run(start)
    test, value, slow = main.clone(for_test=True), 1.0, 0.0
    for step in range(1, 4):
        run.run(main, feed=feed)
        value -= 0.5
        slow = 0.5 * slow + 0.5 * value
        with average.apply(run):
            np.testing.assert_allclose(
                run.run(test, feed=feed, fetch_list=[loss])[0], slow / (1 - 0.5**step), rtol=1e-6
            )
        np.testing.assert_allclose(run.run(test, feed=feed, fetch_list=[loss])[0], value, rtol=1e-6)
    with average.apply(run, need_restore=False):
        pass
    np.testing.assert_allclose(run.run(test, feed=feed, fetch_list=[loss])[0], slow / 0.875, rtol=1e-6)
    average.restore(run)
    np.testing.assert_allclose(run.run(test, feed=feed, fetch_list=[loss])[0], value, rtol=1e-6)


@pytest.mark.proves("static.nn.sparse_embedding static.nn.row_conv")
def test_layers_of_ranking_models():
    main, start = static.Program(), static.Program()
    with static.program_guard(main, start):
        ids, x = static.data("ids", [2, 3], "int64"), static.data("x", [2, 5, 4])
        rows = static.nn.sparse_embedding(ids, [10, 4])
        ahead = static.nn.row_conv(x, 2, param_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5)))
    run, rng = static.Executor(), np.random.default_rng(3)
    run.run(start)
    x = rng.normal(size=(2, 5, 4)).astype("float32")
    found = run.run(main, feed={"ids": np.ones((2, 3), "int64"), "x": x}, fetch_list=[rows, ahead])
    assert found[0].shape == (2, 3, 4)
    wide = np.concatenate([x, np.zeros((2, 2, 4))], 1)
    np.testing.assert_allclose(found[1], 0.5 * (wide[:, :5] + wide[:, 1:6] + wide[:, 2:7]), rtol=1e-5, atol=1e-6)
