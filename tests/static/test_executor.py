"""The Executor: feeds, fetches, states, and one clear error for each thing that is wrong."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static.executor import prepare

X = np.array([1.0, 2.0], "float32")


def run(**options):
    return paddle.static.Executor().run(**options)


def doubled():
    x = paddle.static.data("x", [None], "float32")
    return x, x * 2


def test_fetches_by_variable_and_by_name(main):
    _, y = doubled()
    one, two = run(feed={"x": X}, fetch_list=[y, y.name])
    assert one.tolist() == two.tolist() == [2.0, 4.0]


def test_nested_fetch_lists_are_flattened(main):
    x, y = doubled()
    assert [a.tolist() for a in run(feed={"x": X}, fetch_list=[[x, (y,)], y])] == [[1, 2], [2, 4], [2, 4]]


def test_one_program_serves_every_extent(main):
    _, y = doubled()
    for n in (0, 1, 5):
        assert run(feed={"x": np.ones(n, "float32")}, fetch_list=[y])[0].shape == (n,)
    assert len(main.prepared) == 1


def test_a_plan_is_made_once_for_each_list_of_fetches(main):
    x, y = doubled()
    assert prepare(main, [y]) is prepare(main, [y.name])
    assert prepare(main, [y]) is not prepare(main, [x])


def test_the_last_fetches_are_found_again_by_what_they_are(main):
    x = paddle.static.data("x", [None], "float32")
    y, z = x * 2, x * 3
    exe, feed, inner = paddle.static.Executor(), {"x": np.ones(2, "float32")}, [y]
    for fetches, wanted in (([y], 2), ([y], 2), ([z], 3), ([inner], 2), ([y.name], 2)):
        (found,) = exe.run(main, feed=feed, fetch_list=fetches)
        np.testing.assert_array_equal(found, np.full(2, wanted, "float32"))
    fetches = [inner]
    exe.run(main, feed=feed, fetch_list=fetches)
    inner[0] = z
    np.testing.assert_array_equal(exe.run(main, feed=feed, fetch_list=fetches)[0], np.full(2, 3, "float32"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, 2), "float32"), r"has shape \[-1, 3\], but the value has shape \[2, 2\]"),
        (np.ones(3, "float32"), r"has shape \[-1, 3\], but the value has shape \[3\]"),
        (np.ones((2, 3)), "is float32, but the value has dtype float64"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused_every_time(main, given, message):
    y = paddle.static.data("x", [None, 3], "float32") * 2
    exe = paddle.static.Executor()
    for _ in range(2):
        exe.run(main, feed={"x": np.ones((4, 3), "float32")}, fetch_list=[y])
        with pytest.raises(ValueError, match=message):
            exe.run(main, feed={"x": given}, fetch_list=[y])


def test_a_plan_is_made_anew_when_the_program_grows(main):
    _, y = doubled()
    run(feed={"x": X}, fetch_list=[y])
    z = y + 1
    assert run(feed={"x": X}, fetch_list=[z])[0].tolist() == [3.0, 5.0]
    assert len(main.prepared) == 1


def test_tensors_lists_and_numbers_can_be_fed(main):
    _, y = doubled()
    paddle.disable_static()
    eager = paddle.to_tensor([3.0])
    assert run(program=main, feed={"x": eager}, fetch_list=[y])[0].tolist() == [6.0]
    assert run(program=main, feed={"x": [1, 2]}, fetch_list=[y])[0].dtype == np.float32


def test_return_numpy_false_gives_tensors(main):
    _, y = doubled()
    (out,) = run(feed={"x": X}, fetch_list=[y], return_numpy=False)
    assert isinstance(out, paddle.Tensor)
    assert out.numpy().tolist() == [2.0, 4.0]


def test_what_is_fetched_has_memory_of_its_own(main):
    x, _ = doubled()
    w = paddle.static.create_global_var([1], 3.0, "float32", name="w")
    run(program=paddle.static.default_startup_program())
    out, kept = run(feed={"x": X}, fetch_list=[x, w])
    out[0] = 100.0
    kept[0] = 100.0
    assert X[0] == 1.0
    assert run(feed={"x": X}, fetch_list=[w])[0].tolist() == [3.0]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_fetched_view_has_memory_of_its_own(main, backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    whole = paddle.static.data("x", [None], "float32") * 2
    results = paddle.static.Executor().run(feed={"x": np.ones(3, "float32")}, fetch_list=[whole, whole[1:], whole])
    for result in results:
        result += 1
    assert [result.tolist() for result in results] == [[3.0, 3.0, 3.0], [3.0, 3.0], [3.0, 3.0, 3.0]]


def test_what_no_fetch_needs_may_be_left_out(main):
    _, y = doubled()
    paddle.static.data("unused", [3], "float32") + 1
    assert run(feed={"x": X}, fetch_list=[y])[0].tolist() == [2.0, 4.0]


def test_extents_and_numbers_can_be_fetched(main):
    x, _ = doubled()
    assert run(feed={"x": X}, fetch_list=[x.shape[0]])[0] == 2


@pytest.mark.proves("static.CompiledProgram static.BuildStrategy")
def test_a_compiled_program_runs_as_the_program(main):
    _, y = doubled()
    compiled = paddle.static.CompiledProgram(main)
    assert run(program=compiled, feed={"x": X}, fetch_list=[y])[0].tolist() == [2.0, 4.0]


def test_the_cpu_place_is_accepted(main):
    _, y = doubled()
    exe = paddle.static.Executor(paddle.CPUPlace())
    assert exe.run(feed={"x": X}, fetch_list=[y])[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"feed": {}}, ValueError, r"no value is given for the data 'x' \(declared at .*test_executor.py:\d+\)"),
        ({"feed": {"x": X, "xx": X}}, ValueError, "the Program has no data 'xx'; did you mean 'x'"),
        (
            {"feed": {"x": X.astype("float64")}},
            ValueError,
            r"'x' \(declared.*is float32, but the value has dtype float",
        ),
        ({"feed": {"x": X[None]}}, ValueError, r"'x' \(declared .* has shape \[-1\], but the value has shape \[1, 2\]"),
        ({"feed": {"x": "words"}}, TypeError, "the value for 'x' must be an array or numbers, not str"),
        ({"feed": {"x": None}}, TypeError, "the value for 'x' must be an array or numbers, not NoneType"),
        ({"feed": 3}, TypeError, "feed is a dict of names and arrays, not int"),
        ({"fetch_list": ["nothing"]}, ValueError, "the Program has no variable named 'nothing'"),
        ({"fetch_list": [3]}, TypeError, "fetch_list has variables and names, not int"),
        ({"program": 3}, TypeError, "Executor.run needs a paddle.static.Program, not int"),
        ({"scope": 3}, TypeError, "scope must be a paddle.static.Scope, not int"),
    ],
)
def test_errors_name_what_is_wrong(main, options, kind, message):
    _, y = doubled()
    with pytest.raises(kind, match=message):
        run(**{"feed": {"x": X}, "fetch_list": [y], **options})


def test_a_variable_of_another_program_is_refused(main):
    with paddle.static.program_guard(paddle.static.Program()):
        _, other = doubled()
    doubled()
    with pytest.raises(ValueError, match="belongs to another Program"):
        run(feed={"x": X}, fetch_list=[other])


def test_an_eager_tensor_that_the_program_does_not_use_is_refused(main):
    with paddle.static.program_guard(main):
        paddle.disable_static()
        eager = paddle.to_tensor([1.0])
    with pytest.raises(ValueError, match="is an eager tensor that the Program does not use"):
        run(program=main, fetch_list=[eager])


def test_a_closed_executor_does_not_run(main):
    exe = paddle.static.Executor()
    exe.close()
    with pytest.raises(RuntimeError, match="this Executor was closed"):
        exe.run(main)


def test_a_state_without_a_value_asks_for_the_startup_program(main):
    w = paddle.static.create_parameter([2], "float32", name="w")
    with pytest.raises(RuntimeError, match="the variable w has no value in this scope: run the startup program first"):
        run(fetch_list=[w])


def test_a_state_of_another_shape_is_refused(main):
    w = paddle.static.create_parameter([2], "float32", name="w")
    paddle.static.global_scope().var("w").set(np.ones(3, "float32"))
    with pytest.raises(
        ValueError, match=r"the variable w is float32\[2\] in the Program, but the scope holds float32\[3\]"
    ):
        run(fetch_list=[w])


def test_a_run_that_fails_leaves_the_state_as_it_was(main):
    x, _ = doubled()
    w = paddle.static.create_global_var([1], 1.0, "float32", name="w")
    paddle.assign(w + 1, w)
    y = x[paddle.static.data("i", [], "int64")]
    run(program=paddle.static.default_startup_program())
    with pytest.raises(IndexError):
        run(feed={"x": X, "i": 7}, fetch_list=[y])
    assert np.array(paddle.static.global_scope().find_var("w").get_tensor()).tolist() == [1.0]


def test_random_numbers_are_those_of_eager_mode(main):
    r = paddle.rand([3])
    paddle.seed(7)
    first, second = run(fetch_list=[r])[0], run(fetch_list=[r])[0]
    paddle.disable_static()
    paddle.seed(7)
    assert first.tolist() == paddle.rand([3]).tolist()
    assert second.tolist() == paddle.rand([3]).tolist()


def test_a_program_with_a_seed_has_random_numbers_of_its_own(main):
    main.random_seed = 5
    r = paddle.rand([3])
    one = run(fetch_list=[r])[0]
    paddle.seed(1)
    main.random_seed = 5
    assert run(fetch_list=[r])[0].tolist() == one.tolist()


def test_two_threads_run_one_program(main):
    _, y = doubled()
    wrong = []

    def work(k):
        for _ in range(20):
            (out,) = paddle.static.Executor().run(main, feed={"x": X * k}, fetch_list=[y])
            if out.tolist() != (X * k * 2).tolist():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert not wrong
