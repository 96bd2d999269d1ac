"""`jit.verify`: agreement, every kind of difference, the line that it names, and that it leaves no trace."""

import functools
import random
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Mismatch
from dy2st.ir.opdef import lookup
from dy2st.jit import static_function
from dy2st.jit.verifying import Verification
from dy2st.jit.verifying.culprits import RepeatableCall
from dy2st.runtime.eager import dispatch
from dy2st.runtime.executor import executable

calls: list[int] = []
total = 0


def tensor(*values: float) -> Any:
    return paddle.to_tensor(np.array(values, "float32"), stop_gradient=False)


def line_of(function: Callable[..., Any], text: str) -> int:
    """Return the number of the first line of a function that holds a text."""
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(n for n, line in enumerate(lines, 1) if n >= first and text in line)


def wrong_in_programs(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Any], Any]) -> None:
    """Make an op give something else where a Program runs than in eager mode."""
    kind: Any = type(lookup(name))
    right = kind.eval

    @functools.wraps(right)
    def eval(self: Any, *operands: Any, **attributes: Any) -> Any:
        made = right(self, *operands, **attributes)
        eagerly = dispatch._evaluate.__code__, dispatch.quietly_run.__code__
        return made if sys._getframe(1).f_code in eagerly else change(made)

    monkeypatch.setattr(kind, "eval", eval)


class Net(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.count, self.seen = paddle.nn.Linear(2, 2), 0, []
        self.register_buffer("mean", paddle.zeros([1]))
        self.drop = paddle.nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        global total
        self.count += 1
        total += 1
        calls.append(self.count)
        self.seen.append("x")
        self.mean += x.mean().detach()
        print("mean", self.mean)
        y = self.drop(self.fc(x))
        while y.abs().sum() < 10:
            y = y * 2 + 0.1
        return y, {"count": self.count}


def test_a_layer_with_all_kinds_of_state_agrees() -> None:
    report = paddle.jit.verify(Net(), tensor(1, 2))
    assert report, str(report)
    assert report.check() is report
    assert report.compared["prints"] == 2
    assert report.compared["gradients"] == 3
    assert str(report).startswith("Net: eager and static agree (prints 2, result 4, state ")


def test_everything_is_as_it_was() -> None:
    net, x = Net(), tensor(1, 2)
    weight, draw, python = net.fc.weight.numpy(), paddle.get_rng_state(), random.getstate()
    calls.clear()
    assert paddle.jit.verify(net, x)
    assert (net.count, net.seen, calls, total) == (0, [], [], 0)
    assert net.state_dict()["mean"].tolist() == [0.0]
    assert (net.fc.weight.numpy() == weight).all()
    assert net.fc.weight.grad is None
    assert x.grad is None
    assert (paddle.get_rng_state(), random.getstate()) == (draw, python)


def test_arguments_that_are_written_are_as_before() -> None:
    def f(x: Any, rows: list[Any], named: dict[str, Any]) -> Any:
        x[0] = 5.0
        rows.append(x)
        named["n"] = len(rows)
        return x * 2

    x, rows, named = paddle.to_tensor([1.0, 2.0]), [1], {"a": 1}
    assert paddle.jit.verify(f, x, rows, named=named)
    assert (x.tolist(), rows, named) == ([1.0, 2.0], [1], {"a": 1})


def test_a_static_function_and_a_method() -> None:
    class Scale:
        by = 2.0

        def run(self, x: Any) -> Any:
            return x * self.by if x.sum() > 0 else x

    assert paddle.jit.verify(Scale().run, tensor(1, 2))
    assert paddle.jit.verify(paddle.jit.to_static(Scale().run), tensor(-1, -2))


def test_the_same_exception_agrees() -> None:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            raise ValueError(f"sum {x.sum().item():.1f}")
        return x

    report = paddle.jit.verify(f, tensor(1, 2))
    assert report
    assert report.compared["exception"] == 1


def test_a_whole_training_step_agrees() -> None:
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())

    def train(x: Any) -> Any:
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    before = layer.weight.numpy()
    assert paddle.jit.verify(train, tensor(1, 2)).check()
    assert (layer.weight.numpy() == before).all()


def in_a_loop(x: Any) -> Any:
    y = x * 2
    for v in y:
        z = paddle.cumsum(v + y)
        y = y + z / 10
    return y.exp()


@pytest.mark.one_tier("eval is made wrong")
def test_a_wrong_op_is_named_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_in_programs(monkeypatch, "cumsum", lambda made: made + 1)
    report = paddle.jit.verify(in_a_loop, tensor(1, 2))
    assert not report
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(in_a_loop, "paddle.cumsum")
    assert "`cumsum` gave float32[2]" in report.culprit.reason
    with pytest.raises(Mismatch, match=r"z = paddle\.cumsum\(v \+ y\)"):
        report.check()


@pytest.mark.one_tier("eval is made wrong")
def test_a_wrong_dtype_is_named_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_in_programs(monkeypatch, "cumsum", lambda made: made.astype("float64"))
    report = paddle.jit.verify(in_a_loop, tensor(1, 2))
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(in_a_loop, "paddle.cumsum")
    assert "float64[2]" in report.culprit.reason


def two_lines(x: Any) -> Any:
    y = x * 3
    z = y + x
    return z * y


def test_a_wrong_pass_is_named_by_the_line_that_it_spoils(monkeypatch: pytest.MonkeyPatch) -> None:
    right = executable.optimise

    def spoiled(program: Any) -> Any:
        made = right(program)
        for operation in made.walk():
            if operation.name == "add":
                operation.op = lookup("sub")
        return made

    monkeypatch.setattr(executable, "optimise", spoiled)
    report = paddle.jit.verify(two_lines, tensor(1, 2))
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(two_lines, "z = y + x")
    assert "in the optimised Program" in report.culprit.reason


def steps(x: Any) -> Any:
    y = x * 3
    z = paddle.erf(y)
    w = z.sum()
    return w * 2


def test_a_wrong_derivative_is_named_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paddle.jit.verify(steps, tensor(0.1, 0.2))  # eager mode keeps the derivatives that it made
    kind: Any = type(lookup("erf"))
    right = kind.jvp

    def jvp(self: Any, b: Any, *rest: Any, **attributes: Any) -> Any:
        made = right(self, b, *rest, **attributes)
        first = made[0] if isinstance(made, (list, tuple)) else made
        doubled = b.add(first, first)
        return [doubled] if isinstance(made, (list, tuple)) else doubled

    monkeypatch.setattr(kind, "jvp", jvp)
    report = paddle.jit.verify(steps, tensor(0.1, 0.2))
    assert {d.kind for d in report.differences} == {"gradients"}
    assert report.differences[0].name == "argument 0.grad"
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(steps, "paddle.erf")


def test_state_that_an_exception_leaves_names_the_line_that_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_function, "leave_as_eager", lambda *_: None)
    kept = {"n": 0}

    def f(x: Any) -> Any:
        kept["n"] += 1
        return x[7]

    report = paddle.jit.verify(f, tensor(1, 2))
    assert [(d.kind, d.name, d.eager, d.static) for d in report.differences] == [
        ("state", "kept['n']", "int 1", "int 0")
    ]
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(f, "return x[7]")
    assert kept == {"n": 0}


def test_a_scheduler_of_the_learning_rate() -> None:
    layer = paddle.nn.Linear(2, 1)
    rate = paddle.optimizer.lr.StepDecay(0.1, 2)
    optimizer = paddle.optimizer.SGD(rate, parameters=layer.parameters())

    def train(x: Any) -> Any:
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    assert paddle.jit.verify(train, tensor(1, 2)).check()


def test_what_cannot_be_a_program_is_named_by_its_line() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return hash(int(y.sum())), y

    report = paddle.jit.verify(f, tensor(1, 2))
    assert [d.kind for d in report.differences] == ["conversion"]
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(f, "return hash")


@paddle.jit.not_to_static
def impure(x: Any) -> Any:
    calls.append(0)
    return x * (1 if len(calls) % 2 else 2)


def test_state_that_unconverted_code_changes_is_changed_by_each_call() -> None:
    def f(x: Any) -> Any:
        return impure(x)

    calls.clear()
    report = paddle.jit.verify(f, tensor(1, 2))
    assert report.check()
    assert calls == []


def test_a_python_type_that_differs_names_the_return(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return y, int(x.sum())

    made = executable.Compiled.run

    def run(self: Any, *inputs: Any) -> list[Any]:
        return [float(r) if type(r) is int else r for r in made(self, *inputs)]

    monkeypatch.setattr(executable.Compiled, "run", run)
    report = paddle.jit.verify(f, tensor(1, 2), gradients=False)
    (found,) = report.differences
    assert (found.kind, found.name, found.eager, found.static) == ("result", "[1]", "int 3", "float 3.0")
    assert report.culprit is not None
    assert report.culprit.location.line == line_of(f, "return y, int")


def test_something_that_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="verify takes a function, a method or a Layer, not int"):
        paddle.jit.verify(3)  # type: ignore[arg-type]


def test_tolerances() -> None:
    assert paddle.jit.verify(two_lines, tensor(1, 2), rtol=0.0, atol=0.0)


def test_nan_and_empty_inputs_agree() -> None:
    assert paddle.jit.verify(two_lines, tensor(float("nan"), float("inf")))
    assert paddle.jit.verify(two_lines, tensor())


def test_warnings_are_compared() -> None:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            warnings.warn("large", stacklevel=1)
        return x

    report = paddle.jit.verify(f, tensor(1, 2))
    assert report or {d.kind for d in report.differences} <= {"warnings", "conversion"}


def test_two_threads() -> None:
    found: list[Verification] = []

    def run() -> None:
        found.append(paddle.jit.verify(two_lines, tensor(1, 2)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [r.agrees for r in found] == [True, True], found


def test_the_report_shows_the_source() -> None:
    def f(x: Any) -> Any:
        return {int(x.sum()): x}

    text = str(paddle.jit.verify(f, tensor(1, 2)))
    assert re.search(r"first line that differs: .*test_verify\.py:\d+\n    return \{int", text)


def test_a_difference_that_no_line_has(monkeypatch: pytest.MonkeyPatch) -> None:
    made = executable.Compiled.run

    def run(self: Any, *inputs: Any) -> list[Any]:
        return [r + 1 if type(self) is executable.Compiled else r for r in made(self, *inputs)]

    monkeypatch.setattr(executable.Compiled, "run", run)
    report = paddle.jit.verify(two_lines, tensor(1, 2).detach())
    assert report.culprit is None
    assert "no line differs, operation by operation" in str(report)


def counted(x: Any, n: Any) -> Any:
    i, total = paddle.to_tensor(0), x * 0
    while i < n:
        total = total + x * i
        i = i + 1
    return total


def test_later_calls_have_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[float], int]] = []
    run = RepeatableCall.static

    def spoiled(self: RepeatableCall) -> Any:
        x, n = self.inputs
        seen.append((x.tolist(), int(n)))
        return run(self) * (1 if int(n) == 3 else 2)

    x, n = paddle.to_tensor([1.0, 2.0, 3.0]), paddle.to_tensor(3)
    assert paddle.jit.verify(counted, x, n, calls=4)
    monkeypatch.setattr(RepeatableCall, "static", spoiled)
    assert paddle.jit.verify(counted, x, n)
    found = paddle.jit.verify(counted, x, n, calls=3)
    assert "of the third call " in str(found)
    assert seen[-1] == ([3.0, 1.0, 2.0], 4)
    assert (x.tolist(), int(n)) == ([1.0, 2.0, 3.0], 3)


@pytest.mark.parametrize("calls", [0, 5, "2"])
def test_a_number_of_calls_that_is_none_is_refused(calls: Any) -> None:
    with pytest.raises(ValueError, match="from 1 to 4"):
        paddle.jit.verify(counted, calls=calls)


def chaotic(x: Any) -> Any:
    for _ in range(60):
        x = 3.9 * x * (1 - x)
    return x


def test_rounding_that_the_function_amplifies_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    run = RepeatableCall.static

    def rounded(self: RepeatableCall) -> Any:
        (x,) = self.inputs
        x[...] = x * (1 + 2e-7)
        return run(self)

    x = paddle.to_tensor(np.linspace(0.1, 0.9, 8, dtype="float32"))
    monkeypatch.setattr(RepeatableCall, "static", rounded)
    assert paddle.jit.verify(chaotic, x, gradients=False).agrees
    assert not paddle.jit.verify(chaotic, x, gradients=False, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(RepeatableCall, "static", lambda self: run(self) + 20)
    assert not paddle.jit.verify(chaotic, x, gradients=False)


def test_an_input_that_was_made_of_others_keeps_its_tape() -> None:
    x = tensor(1.0, 2.0)
    y = x * 2
    report = paddle.jit.verify(steps, y)
    assert report
    assert "gradients 1" in str(report)
    assert x.grad is None
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


def test_first_calls_are_verified_in_the_middle_of_a_tape() -> None:
    static = paddle.jit.to_static(lambda t: paddle.tanh(t) * 3)
    want = tensor(1.0, 2.0)
    (paddle.tanh(want * 2) * 3).sum().backward()
    paddle.jit.verify_first_calls(1)
    try:
        x = tensor(1.0, 2.0)
        static(x * 2).sum().backward()
    finally:
        paddle.jit.verify_first_calls(0)
    np.testing.assert_allclose(x.grad.numpy(), want.grad.numpy(), rtol=1e-6)
