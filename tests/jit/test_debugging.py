"""Debuggers stop in the user's own function with the user's values; profilers show it under its own name."""

import cProfile
import pstats
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.jit.dispatch.fallback_warning import FallbackWarning

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import pdb
import dy2st as paddle

@paddle.jit.to_static{how}
def scale(x):
    doubled = x * 2
    if doubled.sum() > 0:
        {stop}
        doubled = doubled + 1
    return doubled

print(scale(paddle.to_tensor([1.0, 2.0])).tolist())
print(scale(paddle.to_tensor([-1.0, -2.0])).tolist())
"""


@pytest.mark.parametrize("how", ["", "(full_graph=True)"])
@pytest.mark.parametrize("stop", ["breakpoint()", "pdb.set_trace()"])
def test_a_debugger_stops_in_the_users_function(stop: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(stop=stop, how=how))
    commands = "p doubled.tolist()\np sorted(locals())\nn\nn\np doubled.tolist()\nc\n"
    done = subprocess.run(
        [sys.executable, str(path)], input=commands, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
        env={"PYTHONPATH": "."},
    )  # fmt: skip
    assert "script.py(9)scale()\n-> doubled = doubled + 1\n" in done.stdout
    assert "(Pdb) [2.0, 4.0]\n(Pdb) ['doubled', 'x']\n" in done.stdout
    assert "(Pdb) [3.0, 5.0]\n" in done.stdout
    assert done.stdout.endswith("[3.0, 5.0]\n[-2.0, -4.0]\n")
    assert done.stderr.count("FallbackWarning") == 1
    assert "stops in the function itself, which runs eagerly for that" in done.stderr
    assert f"{path}:8" in done.stderr


def stub(calls: list[int]) -> Any:
    def set_trace() -> None:
        calls.append(1)

    set_trace.__module__ = "ipdb"
    return set_trace


def test_a_debugger_in_a_function_that_is_called() -> None:
    calls: list[int] = []
    ipdb = types.SimpleNamespace(set_trace=stub(calls))

    def inner(x: Any) -> Any:
        ipdb.set_trace()
        return x * 2

    @paddle.jit.to_static(full_graph=True)
    def outer(x: Any) -> Any:
        return inner(x) + 1 if x > 0 else x

    with pytest.warns(FallbackWarning, match=r"`.*outer`.* runs eagerly, without a Program: .*set_trace\(\) stops in"):
        assert float(outer(paddle.to_tensor(1.0))) == 3.0
    assert calls == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(outer(paddle.to_tensor(2.0))) == 5.0
    assert calls == [1, 1]


def test_a_debugger_under_another_name() -> None:
    calls: list[int] = []
    stop = stub(calls)
    stop.__module__ = "of_a_tool"

    def f(x: Any) -> Any:
        stop()
        return x * 2

    with pytest.warns(FallbackWarning, match=r"set_trace\(\) stops in the function itself"):
        assert float(paddle.jit.to_static(f)(paddle.to_tensor(1.0))) == 2.0
    assert calls == [1]


def profiled(run: Any) -> dict[tuple[str, str], int]:
    """Return how often each function of this file was called, by file and name."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats: Any = pstats.Stats(profile)
    return {(file, name): count for (file, _, name), (count, *_) in stats.stats.items()}


def test_a_converted_function_has_its_name_and_file_in_profiles() -> None:
    @paddle.jit.to_static
    def model(x: Any) -> Any:
        while x.sum() > 1:
            x = x / 2
        return x

    x = paddle.to_tensor([4.0, 4.0])
    assert profiled(lambda: model(x))[__file__, "model"] >= 1
    model(x)
    found = profiled(lambda: [model(x) for _ in range(5)])
    assert found[__file__, "model"] == 5


def test_a_method_and_a_layer_have_their_names_in_profiles() -> None:
    class Net(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x

    net = paddle.jit.to_static(Net())
    x = paddle.to_tensor([4.0, 4.0])
    net(x)
    assert profiled(lambda: net(x))[__file__, "forward"] == 1
