"""A call that was seen before goes through machine code where that takes it, and through Python where it does not."""

import gc
import os
import subprocess
import sys
import threading
import traceback
import weakref
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch import inline_cache_run

T = paddle.to_tensor


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def static(function: Any, *args: Any, calls: int = 3) -> Any:
    """Return a static function after calls of a kind, of which machine code makes the next."""
    made = paddle.jit.to_static(function, full_graph=True)
    for _ in range(calls):
        made(*args)
    return made


def takes(made: Any) -> list[bool]:
    """Say of each kind of call that is recognised whether there is machine code for it."""
    found = []
    for kinds in made._seen.values():
        for _, call in kinds:
            cells = dict(zip(call.__code__.co_freevars, call.__closure__, strict=True))
            found.append(cells["known"].cell_contents is not inline_cache_run.unknown)
    return found


def branched(x: Any) -> Any:
    return x + 1 if x.sum() > 0 else x - 1


class Special(paddle.Tensor):
    """A tensor of a user's class."""


def test_machine_code_makes_calls_from_the_one_after_the_first_native_run() -> None:
    made = static(branched, T([1.0]))
    assert takes(made) == [True]
    assert [made(T([x])).tolist() for x in (3.0, -3.0)] == [[4.0], [-4.0]]
    assert made.concrete_program.calls == 5


def test_kinds_of_arrays_that_the_code_does_not_take_are_other_calls() -> None:
    made = static(branched, T([1.0]))
    for x in (T([[2.0]]), T(np.array([2.0])), T([1, 2]), T([1.0, 2.0]), T(np.arange(8.0, dtype="float32"))[::2]):
        for _ in range(3):
            assert made(x).tolist() == branched(x).tolist()
    with pytest.raises(AttributeError):
        made("word")


def test_tensors_of_a_users_class_and_numpy_arrays_are_taken() -> None:
    made = static(branched, T([1.0]))
    for x in (Special(np.ones(1, "float32") * 2), np.ones(1, "float32") * 2):
        for _ in range(4):
            found = made(x)
            assert (type(found), found.tolist()) == (paddle.Tensor, [3.0])


def test_objects_that_a_call_gives_twice_are_the_same_in_the_next_one() -> None:
    def added(a: Any, b: Any, both: list[Any]) -> Any:
        return a * 2 + b if both[0] is a else a * 2 - b

    x, y = T([1.0]), T([5.0])
    made = static(added, x, x, [x])
    assert takes(made) == [True]
    assert made(y, y, [y]).tolist() == [15.0]
    assert made.concrete_program.calls == 4
    assert [made(*args).tolist() for args in ((x, y, [x]), (y, x, [x]), (x, x, [y]))] == [[7.0], [9.0], [1.0]]
    assert made(y, y, [y]).tolist() == [15.0]


def test_a_list_that_a_call_gives_twice_is_one_list() -> None:
    def grown(some: list[Any], others: list[Any], x: Any) -> Any:
        some.append(x)
        return others[-1] + len(others)

    def same(n: int) -> tuple[list[Any], ...]:
        items = [T([float(n)])]
        return items, items

    made = static(grown, *same(1), T([2.0]), calls=1)
    for n in (1, 2, 3, 4):
        some, others = same(n)
        assert made(some, others, T([2.0])).tolist() == [4.0]
        assert len(others) == 2
    assert made([T([1.0])], [T([7.0])], T([2.0])).tolist() == [8.0]


def test_a_tensor_that_needs_a_gradient_gets_it() -> None:
    made = static(branched, T([1.0]))
    for _ in range(4):
        x: Any = T([2.0], stop_gradient=False)
        x.register_hook(lambda ct: ct * 10)
        made(x).sum().backward()
        assert x.grad.tolist() == [10.0]


def test_state_is_read_anew_by_each_call() -> None:
    w, k = paddle.create_parameter([2], "float32"), T([1.0, 1.0])
    made = None
    with paddle.no_grad():
        w.set_value(T([1.0, 2.0]))
        made = static(lambda x: x * w + k, T([1.0, 1.0]))
        assert takes(made) == [True]
        w.set_value(T([5.0, 6.0]))
        assert made(T([1.0, 1.0])).tolist() == [6.0, 7.0]
        k = T([0.0, 0.0])
        assert made(T([1.0, 1.0])).tolist() == [5.0, 6.0]


def test_many_results_come_in_the_functions_structure() -> None:
    def several(x: Any, y: Any) -> Any:
        return {"a": [x + y, 3], "b": (x * 2, None, x)}

    x, y = T([1.0]), T([2.0])
    made = static(several, x, y)
    assert takes(made) == [True]
    for _ in range(3):
        found = made(x, y)
        assert (found["a"][0].tolist(), found["a"][1], found["b"][0].tolist()) == ([3.0], 3, [2.0])
        assert found["b"][1] is None
        assert found["b"][2] is x


def test_a_step_writes_the_same_by_machine_code_as_eagerly() -> None:
    def train(static: bool) -> Any:
        paddle.seed(1)
        weights = [paddle.create_parameter([3], "float32") for _ in range(3)]
        optimizer = paddle.optimizer.Adam(learning_rate=0.1, parameters=weights)

        def step(x: Any) -> Any:
            loss: Any = sum(((w * x) ** 2).sum() for w in weights)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
            return loss

        made = paddle.jit.to_static(step, full_graph=True) if static else step
        view = weights[1][1:]
        losses = [float(made(T([1.0, 2.0, float(i)]))) for i in range(8)]
        if static:
            (kinds,) = (kinds for kinds in made._seen.values() if kinds)  # type: ignore[attr-defined]
            cells = [dict(zip(c.__code__.co_freevars, c.__closure__, strict=True)) for _, c in kinds]
            assert any(c["written"].cell_contents is not None for c in cells)
        return losses, [w.tolist() for w in weights], view.tolist(), [w.grad for w in weights]

    found, wanted = train(True), train(False)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e-4, atol=1e-6)
    assert found[3] == wanted[3] == [None] * 3


def test_an_error_of_a_run_ends_at_the_users_line() -> None:
    def pick(x: Any, i: Any) -> Any:
        return paddle.gather(x, i)  # this line

    made = static(pick, T([1.0, 2.0]), T([1]))
    assert takes(made) == [True]
    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            made(T([1.0, 2.0]), T([7]))
        (*_, last) = traceback.extract_tb(caught.value.__traceback__)
        assert (last.filename, last.line) == (__file__, "return paddle.gather(x, i)  # this line")
        assert made(T([1.0, 2.0]), T([0])).tolist() == [1.0]


def test_calls_work_without_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_cache_run, "known_call", lambda *_, **__: None)
    monkeypatch.setattr(inline_cache_run, "is_loaded", lambda: False)
    made = static(branched, T([1.0]), calls=5)
    assert takes(made) == [False]
    assert made._like is None
    assert [made(T([x])).tolist() for x in (3.0, -3.0)] == [[4.0], [-4.0]]


def profiled(run: Any) -> list[str]:
    """Return the functions of Python that run, by name."""
    names: list[str] = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return names


def test_a_call_like_the_last_one_runs_one_function_of_python() -> None:
    made, x = static(branched, T([1.0]), calls=5), T([1.0])
    assert made._like is not None
    assert profiled(lambda: made(x))[:2] == ["<lambda>", "branched"]
    assert profiled(lambda: made(x=x))[:2] == ["<lambda>", "__call__"]


def test_other_calls_than_the_last_one_go_the_usual_way() -> None:
    def added(x: Any, *more: Any, k: float = 1.0) -> Any:
        return sum(more, x * k)

    x, y = T([1.0]), T([2.0])
    made = static(added, x, calls=5)
    for _ in range(4):
        assert made(x).tolist() == [1.0]
        assert made(x, y).tolist() == [3.0]
        assert made(x, k=3.0).tolist() == [3.0]
        assert made(x, y, k=2.0).tolist() == [4.0]
        assert made(T([[1.0]])).tolist() == [[1.0]]
        with paddle.no_grad():
            assert made(x).tolist() == [1.0]
        with pytest.raises(TypeError, match="required positional argument"):
            made()
        with pytest.raises(TypeError, match="unexpected keyword"):
            made(x, other=3)


def test_programs_may_be_turned_off_between_calls() -> None:
    ran: list[int] = []

    def noted(x: Any) -> Any:
        return x + len(ran)

    made = static(noted, T([1.0]), calls=5)
    paddle.jit.enable_to_static(False)
    try:
        ran.append(1)
        assert made(T([1.0])).tolist() == [2.0]
        assert made.concrete_program.calls == 5
    finally:
        paddle.jit.enable_to_static(True)
    assert made(T([1.0])).tolist() == [2.0]


def test_a_call_inside_of_a_trace_becomes_a_part_of_it() -> None:
    inner = static(branched, T([1.0]), calls=5)
    outer = static(lambda x: inner(x) * 2, T([1.0]), calls=5)
    assert outer(T([1.0])).tolist() == [4.0]
    assert inner.concrete_program.calls == 5


def test_the_program_that_ran_last_is_known() -> None:
    made = static(branched, T([1.0]), calls=5)
    first = made.concrete_program
    made(T([[1.0]]))
    second = made.concrete_program
    made(T([1.0]))
    assert made.concrete_program is first is not second


def test_methods_have_calls_of_their_own() -> None:
    class Scale:
        def __init__(self, k: float):
            self.k = k

        @paddle.jit.to_static(full_graph=True)
        def scaled(self, x: Any) -> Any:
            return x * self.k

    one, other = Scale(2.0), Scale(3.0)
    for _ in range(6):
        assert (one.scaled(T([1.0])).tolist(), other.scaled(T([1.0])).tolist()) == ([2.0], [3.0])
    one.k = 5.0
    assert one.scaled(T([1.0])).tolist() == [5.0]


def test_a_layer_is_called_by_machine_code_too() -> None:
    class Scale(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.k = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.k

    made, x = paddle.jit.to_static(Scale(), full_graph=True), T([1.0])
    for _ in range(6):
        assert made(x).tolist() == [2.0]
    assert profiled(lambda: made(x))[:5] == ["<lambda>", "__call__", "with_layer", "__init__", "forward"]
    made.k = 3.0
    assert made(x).tolist() == [3.0]


def test_a_function_is_freed_with_what_recognises_its_calls() -> None:
    class Scale:
        @paddle.jit.to_static(full_graph=True)
        def scaled(self, x: Any) -> Any:
            return paddle.gather(x, T([0]))

    one = Scale()
    for _ in range(6):
        one.scaled(T([1.0]))
    there = weakref.ref(one)
    del one
    gc.collect()
    assert there() is None


def test_a_function_that_goes_while_it_runs_ends_its_run() -> None:
    kept: dict[str, Any] = {}

    def forget(x: Any) -> Any:
        print(x)
        return x + 1

    class Out:
        def write(self, text: str) -> int:
            kept.clear()
            gc.collect()
            return len(text)

        def flush(self) -> None:
            pass

    kept["f"] = static(forget, T([1.0]))
    stdout, sys.stdout = sys.stdout, Out()  # type: ignore[assignment]
    try:
        found = kept["f"](T([4.0]))
    finally:
        sys.stdout = stdout
    assert found.tolist() == [5.0]
    assert kept == {}


def test_nothing_is_left_of_calls() -> None:
    made, x = static(branched, T([1.0])), T([1.0])
    array = x.payload

    def counts() -> tuple[int, ...]:
        gc.collect()
        return sys.getrefcount(x), sys.getrefcount(array), sys.getrefcount(paddle.Tensor), len(gc.get_objects())

    made(x)
    before = counts()
    for _ in range(2000):
        made(x)
    after = counts()
    assert after[:3] == before[:3]
    assert abs(after[3] - before[3]) < 50


def test_eight_threads_call_one_function() -> None:
    made, wrong = static(branched, T([1.0])), list[Any]()

    def work(number: int) -> None:
        for i in range(1000):
            x = float(number * 1000 + i) - 4000.5
            found = made(T([x])).tolist()
            if found != [x + 1 if x > 0 else x - 1]:
                wrong.append((x, found))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_calls_on() -> None:
    made = static(branched, T([1.0]))
    child = os.fork()
    if child == 0:
        os._exit(0 if made(T([2.0])).tolist() == [3.0] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert made(T([2.0])).tolist() == [3.0]


_AT_THE_END = """
import atexit
import dy2st as paddle

class Late:
    def __del__(self):
        with paddle_.no_grad():
            assert not enabled()
            assert made(x).tolist() == [2.0]
        print("late")

paddle_, enabled = paddle, paddle.is_grad_enabled
made = paddle.jit.to_static(lambda x: x + 1 if x.sum() > 0 else x - 1, full_graph=True)
x = paddle.to_tensor([1.0])
for _ in range(6):
    with paddle.no_grad():
        made(x)
assert made._like is not None
atexit.register(lambda: (made(x), print("exit")))
late = Late()
late.itself = late
"""


def test_calls_work_while_python_ends() -> None:
    done = subprocess.run([sys.executable, "-X", "dev", "-c", _AT_THE_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["exit", "late"]
