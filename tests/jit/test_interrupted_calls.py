"""Signals in first calls: what the handler raises arrives at the caller, and nothing stays half done."""

import contextlib
import functools
import importlib.machinery
import operator
import os
import signal
import subprocess
import sys
import threading
import time
import types
from typing import Any

import pytest

import dy2st as paddle
from dy2st.forks import Gate, started
from dy2st.functions.core.operands import op
from dy2st.ir.context import current
from dy2st.jit.dispatch.inline_cache_run import UNSEEN, guarded, unseen
from dy2st.jit.serialization import io
from dy2st.jit.tracing import trace as tracing
from dy2st.runtime import signal_delivery
from dy2st.runtime.aot_cache import program_artifacts
from dy2st.runtime.backends.cpu.shape_specialization import ShapeSpecializations
from dy2st.runtime.eager import composite, frequent_ops, native_ops
from dy2st.runtime.signal_delivery import Interrupted, comes_from_handler, delivered, go_on

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")


@pytest.fixture
def handler():
    """Return what sets a handler of SIGALRM for a test."""
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handle: signal.signal(signal.SIGALRM, handle)
    signal.signal(signal.SIGALRM, before)


def raising(*_: Any) -> None:
    raise TimeoutError("over time")


class Handler:
    """A handler that is an object."""

    def __call__(self, *_: Any) -> None:
        raise TimeoutError("over time")

    def method(self, *_: Any) -> None:
        raise TimeoutError("over time")


HANDLERS = [raising, functools.partial(raising, 1), Handler(), Handler().method, lambda *_: raising()]


# ---- at random moments ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("TimeoutError", 12),
        ("KeyboardInterrupt", 12),
        pytest.param("TimeoutError", 150, marks=pytest.mark.soak),
        pytest.param("KeyError", 150, marks=pytest.mark.soak),
        pytest.param("KeyboardInterrupt", 150, marks=pytest.mark.soak),
    ],
)
def test_a_signal_at_any_moment_arrives_and_leaves_nothing_half_done(kind: str, count: int, backend: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.jit.interrupted_calls", kind, str(count), "7"],
        env={**os.environ, "DY2ST_BACKEND": backend, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


# ---- at chosen moments ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("caught", [OSError, TimeoutError, Exception])
@pytest.mark.parametrize("handle", HANDLERS, ids=["function", "partial", "object", "method", "lambda"])
def test_what_catches_such_errors_does_not_catch_it(handler: Any, handle: Any, caught: type[Exception]) -> None:
    def work() -> str:
        try:
            signal.raise_signal(signal.SIGALRM)
        except caught:
            return "caught"
        return "went on"

    handler(handle)
    with pytest.raises(TimeoutError, match="over time") as found:
        delivered(work)
    assert comes_from_handler(found.value)
    assert signal.getsignal(signal.SIGALRM) == handle


def test_what_drops_it_does_not_keep_it_from_arriving(handler: Any) -> None:
    done: list[str] = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGALRM)
        except Interrupted:
            pass
        done.append("dropped")
        go_on()
        done.append("went on")

    handler(raising)
    with pytest.raises(TimeoutError, match="over time"):
        delivered(work)
    assert done == ["dropped"]
    go_on()


class Signalling:
    """Finds a module that sends a signal while Python's own code of imports is at work."""

    def __init__(self) -> None:
        self.exec_module = operator.methodcaller("go")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self) if name == "sends_a_signal" else None  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        module = types.ModuleType(spec.name)
        vars(module)["go"] = functools.partial(signal.raise_signal, signal.SIGALRM)
        return module


def test_a_signal_in_the_middle_of_an_import_arrives_after_it(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [Signalling(), *sys.meta_path])
    handler(raising)
    done: list[Any] = []

    def work() -> None:
        done.append(importlib.import_module("sends_a_signal"))
        time.sleep(10)

    with pytest.raises(TimeoutError, match="over time"):
        delivered(work)
    assert [sys.modules.pop("sends_a_signal")] == done


def test_a_handler_that_raises_nothing_changes_nothing(handler: Any) -> None:
    seen: list[int] = []
    handler(lambda number, frame: seen.append(number))
    assert delivered(lambda: signal.raise_signal(signal.SIGALRM) or 3) == 3
    assert seen == [signal.SIGALRM]


def test_a_handler_that_is_set_meanwhile_stays(handler: Any) -> None:
    kept: list[Any] = []
    handler(raising)
    delivered(lambda: kept.append(signal.signal(signal.SIGALRM, signal.SIG_IGN)))
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
    signal.signal(signal.SIGALRM, kept[0])  # as the user's function does at its end, outside
    with pytest.raises(TimeoutError, match="over time"):
        signal.raise_signal(signal.SIGALRM)


def test_errors_of_the_work_itself_are_its_own(handler: Any) -> None:
    handler(raising)
    with pytest.raises(KeyError, match="its own") as found:
        delivered(lambda: {}["its own"])
    assert not comes_from_handler(found.value)
    assert not signal_delivery._State.is_inside


def test_other_threads_leave_handlers_alone(handler: Any) -> None:
    handler(raising)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: delivered(lambda: found.append(signal.getsignal(signal.SIGALRM))))
    thread.start()
    thread.join()
    assert found == [raising]


def test_a_signal_while_a_function_is_traced_arrives(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.w = self.create_parameter([2])

        @paddle.jit.to_static
        def forward(self, x: Any) -> Any:
            if x.sum() > 0:
                x = x * 2
            return x * self.w

    def interrupted(*given: Any, **named: Any) -> Any:
        monkeypatch.undo()
        signal.raise_signal(signal.SIGALRM)

    handler(raising)
    net, x = Net(), paddle.ones([2])
    before = net.w.numpy().copy()
    monkeypatch.setattr(tracing, "output_aval", interrupted)
    with pytest.raises(TimeoutError, match="over time"):
        net(x)
    assert current().trace is None
    assert (net.w.numpy() == before).all()
    for _ in range(4):
        assert net(x).tolist() == (2 * before).tolist()
    assert len(net.forward.program_cache) == 1


@pytest.mark.parametrize("function", ["save", "load"])
def test_a_signal_while_a_file_is_written_or_read_arrives(handler: Any, function: str, tmp_path: Any) -> None:
    def handle(*_: Any) -> None:
        raise KeyError("from the handler")

    def change(*_: Any) -> Any:
        signal.raise_signal(signal.SIGALRM)

    handler(handle)
    layer, spec = paddle.nn.Linear(2, 2), [paddle.static.InputSpec([None, 2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "to_metadata" if function == "save" else "called_functions", change)
        if function == "load":
            paddle.jit.save(paddle.nn.Linear(2, 2), tmp_path / "m", spec)
        with pytest.raises(KeyError, match="from the handler"):
            paddle.jit.save(layer, tmp_path / "m", spec) if function == "save" else paddle.jit.load(tmp_path / "m")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.dy2st"] * (function == "load")
    assert signal.getsignal(signal.SIGALRM) is handle


def test_a_signal_while_an_answer_is_kept_arrives(handler: Any) -> None:
    class Made:
        made_as = "of a test"

    handler(raising)
    with pytest.raises(TimeoutError, match="over time"):  # which is an OSError
        program_artifacts.answered(Made(), "a question", lambda: caught_here(signal.raise_signal, signal.SIGALRM))  # type: ignore[arg-type]


def caught_here(function: Any, *args: Any) -> None:
    try:
        function(*args)
    except OSError:
        pass


def test_a_signal_where_a_call_is_recognised_arrives(handler: Any) -> None:
    handler(raising)
    scope: dict[str, Any] = {"unseen": unseen, "UNSEEN": UNSEEN, "arrive": signal.raise_signal}
    look = "\n    ".join(["def look(number):", *guarded(["arrive(number)", "{}['gone']"])])
    exec(look, scope)
    with pytest.raises(TimeoutError, match="over time"):
        scope["look"](signal.SIGALRM)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    assert scope["look"](signal.SIGALRM) is UNSEEN


# ---- locks ---------------------------------------------------------------------------------------------------------
def test_a_handler_in_a_handler_arrives(handler: Any) -> None:
    depth: list[int] = []

    def handle(*_: Any) -> None:
        depth.append(1)
        if len(depth) < 3:
            signal.raise_signal(signal.SIGALRM)
        raise TimeoutError("over time")

    handler(handle)
    with pytest.raises(TimeoutError, match="over time"):
        delivered(lambda: signal.raise_signal(signal.SIGALRM))
    assert len(depth) == 3


def test_a_thread_that_a_signal_comes_to_has_been_started(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.set)
    monkeypatch.setattr(thread, "_started", types.SimpleNamespace(
        is_set=lambda: False, set=lambda: None, wait=lambda: signal.raise_signal(signal.SIGALRM)))  # fmt: skip
    handler(raising)
    with pytest.raises(TimeoutError, match="over time"):
        started(thread)
    assert done.wait(10)


def test_the_code_of_a_kind_of_extents_is_made_where_a_signal_arrives(handler: Any, monkeypatch: Any) -> None:
    static = paddle.jit.to_static(lambda x: x + 1, full_graph=True)
    static(paddle.ones([2]))
    plan = ShapeSpecializations(static.concrete_program.main_program)
    monkeypatch.setattr(plan, "_choose", lambda *_: swallowing())
    handler(refusing)

    def swallowing() -> None:
        with contextlib.suppress(ValueError):
            signal.raise_signal(signal.SIGALRM)

    with pytest.raises(ValueError, match="over time"):
        plan.version_for({"n": 2})


def refusing(*_: Any) -> None:
    raise ValueError("over time")


@pytest.mark.parametrize("handle", [raising, refusing])
def test_a_signal_in_the_program_of_a_library_function_arrives(handler: Any, handle: Any) -> None:
    kinds = composite.Kinds(lambda x: x * 2)
    kinds._found["kind"] = lambda x: signal.raise_signal(signal.SIGALRM)
    handler(handle)
    x = paddle.ones([2])
    with pytest.raises((TimeoutError, ValueError), match="over time"):
        kinds.run("kind", [x], lambda: None, (x,), {})


def test_a_signal_in_the_native_code_of_an_op_arrives(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Running:
        def run(self, *_: Any) -> None:
            signal.raise_signal(signal.SIGALRM)

        ended = run

    monkeypatch.setattr(native_ops, "_program_of", lambda *_: Running())
    monkeypatch.setattr(native_ops, "are_large", lambda operands: True)
    handler(refusing)
    with pytest.raises(ValueError, match="over time"):
        native_ops.run_natively(op("tanh"), [], {})
    with pytest.raises(ValueError, match="over time"):
        frequent_ops.ended(Running(), 0, [])


def test_a_fork_does_not_wait_for_a_gate_that_a_signal_left_shut() -> None:
    gate = Gate(level=9)
    gate.__enter__()  # and never out of it again
    gate.close()
    gate.open()
    with gate:
        pass
