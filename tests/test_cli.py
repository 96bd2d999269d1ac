"""The command `dy2st`: what it prints, what it writes, and one line for each error."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.cli import main
from dy2st.passes.simplify.cse import MergeCommonSubexpressions
from tests.jit.saved_models import X, refiner

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X])


def run(capsys: Any, *arguments: Any) -> tuple[int, str, str]:
    try:
        status = main([str(a) for a in arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def test_inspect(model: Path, capsys: Any) -> None:
    status, out, err = run(capsys, "inspect", model.with_suffix(""))
    assert (status, err) == (0, "")
    assert "saved in training mode" in out
    assert "forward(x, goal=1.5)\n  (x: float32[x_0, 3]) -> (float32[" in out
    assert "halve(x)" in out
    assert "linear.weight: float32[3, 3] parameter" in out
    assert "twin.weight: float32[3, 3] parameter (the same as linear.weight)" in out
    assert "program forward" not in out
    assert "program forward" in run(capsys, "inspect", model, "--text")[1]


STAGE_SAYS = {
    "fused": "loops over [",
    "loops": "lanes along [",
    "llvm": "define i32 @dy2st.f.",
    "asm": "ret",
}


@pytest.mark.parametrize("command", ["inspect", "code"])
@pytest.mark.parametrize("stage", STAGE_SAYS)
def test_native_code_at_its_stages(model: Path, capsys: Any, command: str, stage: str) -> None:
    status, out, err = run(capsys, command, model, "--stage", stage)
    assert (status, err) == (0, "")
    assert STAGE_SAYS[stage] in out
    assert "; forward" in out


def test_run_and_write(model: Path, tmp_path: Path, capsys: Any) -> None:
    x = np.ones((4, 3), "float32")
    np.save(tmp_path / "x.npy", x)
    layer = paddle.jit.load(model)
    layer.eval()
    want = layer(paddle.to_tensor(x)).numpy()
    status, out, _ = run(capsys, "run", model, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "o.npz")
    assert (status, out) == (0, f"{tmp_path / 'o.npz'}: output float32[4, 3]\n")
    with np.load(tmp_path / "o.npz") as found:
        np.testing.assert_array_equal(found["output"], want)


def test_run_and_print(model: Path, tmp_path: Path, capsys: Any) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 3), 4.0, "float32"))
    status, out, _ = run(capsys, "run", model, "--method", "halve", "--input", f"x={tmp_path / 'x.npy'}")
    assert (status, out) == (0, "output: float32[1, 3]\n[[0.25 0.25 0.25]]\n")


def test_outputs_in_containers_and_numbers(tmp_path: Path, capsys: Any) -> None:
    def forward(x, by):
        return {"a": [x * by, by], "b": x}

    paddle.jit.save(forward, tmp_path / "f", input_spec=[paddle.static.InputSpec([None]), 3])
    np.save(tmp_path / "x.npy", np.ones(2, "float32"))
    arguments = ("run", tmp_path / "f", "--input", f"x={tmp_path / 'x.npy'}", "--input", "by=3")
    status, _, err = run(capsys, *arguments, "--output", tmp_path / "o.npz")
    assert (status, err) == (0, "")
    with np.load(tmp_path / "o.npz") as found:
        arrays = {name: found[name].tolist() for name in found}
    assert arrays == {"output_a_0": [3, 3], "output_a_1": 3, "output_b": [1, 1]}
    status, _, err = run(capsys, "run", tmp_path / "f", "--input", f"x={tmp_path / 'x.npy'}", "--input", "by=2.5")
    assert (status, err) == (1, "dy2st: argument 'by' was saved as 3 and cannot be 2.5\n")


def test_viz(model: Path, tmp_path: Path, capsys: Any) -> None:
    assert run(capsys, "viz", model)[:2] == (0, f"{tmp_path / 'm.html'}\n")
    assert (tmp_path / "m.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run(capsys, "viz", model, "-o", tmp_path / "m.svg")[0] == 0
    assert (tmp_path / "m.svg").read_text(encoding="utf-8").startswith("<svg")


SOURCE = """
import dy2st as paddle

def halve(x):
    while x.sum() > 1:
        x = x / 2
    return x

class Net(paddle.nn.Layer):
    @paddle.jit.to_static
    def forward(self, x):
        return x if x.sum() > 0 else -x

number = 3
"""


def test_code(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "some_source.py"
    file.write_text(SOURCE)
    status, out, err = run(capsys, "code", f"{file}:halve")
    assert (status, err) == (0, "")
    assert out.startswith("def halve(x):")
    assert "_dy.while_(" in out
    for name in ("Net", "Net.forward"):
        assert run(capsys, "code", f"{file}:{name}")[1].startswith("def forward(self, x):")
    assert str(tmp_path) not in sys.path


def test_help_names_each_command_in_a_line(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = re.findall(r"^    ([a-z-]+)(?:\n {17}| +)\w.+$", capsys.readouterr().out, re.MULTILINE)
    assert len(shown) == len(set(shown)) > 9
    row = next(line for line in README.splitlines() if line.startswith("| The command `dy2st`"))
    assert set(re.findall(r"`([a-z-]+)`", row)) == set(shown)


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "dy2st: the following arguments are required: COMMAND (see dy2st --help)"),
        (["draw"], 2, "invalid choice: 'draw'"),
        (["run", "m", "--input", "x"], 2, "dy2st run: argument --input: 'x' is not NAME=FILE.npy"),
        (["code", "file"], 2, "'file' is not FILE:FUNCTION"),
        (["scale", "m", "--extent", "n=1.5"], 2, "dy2st scale: argument --extent: 'n=1.5' is not NAME=N"),
        (["code", "net.py:f", "--stage", "llvm"], 2, "--stage shows a saved model, and 'net.py:f' is a function"),
        (["inspect", "absent"], 1, "dy2st: absent.dy2st: No such file or directory"),
        (["code", "absent.py:f"], 1, "dy2st: there is no file absent.py"),
    ],
)
def test_wrong_command_lines(capsys: Any, arguments: list[str], status: int, message: str) -> None:
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1


def test_errors_of_models(model: Path, tmp_path: Path, capsys: Any) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 5), "float32"))
    np.save(tmp_path / "o.npy", np.array([object()]), allow_pickle=True)
    x = f"x={tmp_path / 'x.npy'}"
    for arguments, message in (
        (("run", model, "--input", x), "argument 'x' has shape [2, 5]; it was saved as float32[x_0, 3]"),
        (("run", model), "missing a required argument: 'x'"),
        (("run", model, "--input", "y=1"), "missing a required argument: 'x'"),
        (("run", model, "--input", x, "--input", x), "an input was given twice"),
        (("run", model, "--input", "x=some.txt"), "input 'x': 'some.txt' is neither a number nor a .npy file"),
        (("run", model, "--input", "x=some.npy"), "some.npy: No such file or directory"),
        (("run", model, "--input", f"x={tmp_path / 'o.npy'}"), "o.npy is no array that can be read"),
        (("run", model, "--method", "double"), "no method 'double' was saved; there are 'forward', 'halve'"),
        (("inspect", tmp_path / "x.npy"), "not a dy2st file"),
        (("serve", model, "--max-batch", "0"), "limits are positive numbers, and a delay is not negative"),
        (("serve", f"a/b={model}"), "a model's name is a part of an address, and 'a/b' cannot be one"),
        (("scale", model, "--extent", "n=3"), "no extent is named n; there are: x_0"),
        (("scale", model, "--batch", "0"), "batch, extents, micro-batches and bandwidth are positive"),
        (("scale", model, "--bandwidth", "0"), "batch, extents, micro-batches and bandwidth are positive"),
        (("viz", model, "-o", tmp_path / "m.png"), "a picture is written to .html or .svg, not to 'm.png'"),
    ):
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (1, ""), arguments
        assert message in err
        assert err.startswith("dy2st: ")
        assert err.count("\n") == 1


def test_errors_of_sources(tmp_path: Path, capsys: Any) -> None:
    good, bad = tmp_path / "some_source.py", tmp_path / "bad_source.py"
    good.write_text(SOURCE)
    bad.write_text("import nothing_of_this_name")
    for what, message in (
        (f"{good}:absent", f"{good} has no function 'absent'"),
        (f"{good}:number", f"number of {good} is no function but int"),
        (f"{bad}:f", f"{bad} cannot be imported: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ):
        status, _, err = run(capsys, "code", what)
        assert (status, err) == (1, f"dy2st: {message}\n")


TWICE = """program main
func main(%x: float32[N]) {
  %a: float32[N] = exp(%x)
  %b: float32[N] = exp(%x)
  %c: float32[N] = add(%a, %b)
  return %c
}
"""
ONCE = TWICE.replace("  %b: float32[N] = exp(%x)\n", "").replace("%a, %b", "%a, %a")


def test_a_pass_on_a_text(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "twice.txt"
    file.write_text(TWICE)
    assert run(capsys, "pass", "cse", file) == (0, f"# before\n{TWICE}\n# after cse\n{ONCE}", "")
    assert run(capsys, "pass", "--after-only", "cse", file) == (0, ONCE, "")
    assert run(capsys, "pass", "--after-only", "--pipeline", "default", file) == (0, ONCE, "")
    monkeypatch.setattr(sys, "stdin", io.StringIO(ONCE))
    status, out, err = run(capsys, "pass", "cse", "-")
    assert (status, err) == (0, "")
    assert out == f"# before\n{ONCE}\n# after cse\n{ONCE}# nothing has changed\n"


def test_a_pipeline_on_a_saved_model(model: Path, capsys: Any) -> None:
    status, out, err = run(capsys, "pass", "--pipeline", "native", model)
    assert (status, err) == (0, "")
    assert out.count("# before") == out.count("# after native") == 3  # forward, training or not, and halve
    assert "program forward" in run(capsys, "pass", "--pipeline", "specialize", model.with_suffix(""))[1]


def test_the_list_of_passes(capsys: Any) -> None:
    status, out, err = run(capsys, "pass", "--list")
    assert (status, err) == (0, "")
    assert "\ncse                        Compute equal expressions of a block once.\n" in out
    assert "\npipeline default: dce, simplify, constant_fold, cse, " in out


def test_errors_of_passes(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file, bad, wrong = (tmp_path / name for name in ("twice.txt", "bad.txt", "wrong.txt"))
    file.write_text(TWICE)
    bad.write_text(TWICE.replace("%a, %b)", "%a %b)"))
    wrong.write_text(TWICE.replace("%c: float32[N]", "%c: int32[N]"))
    for arguments, status, message in (
        (("fold", file), 2, "there is no pass 'fold'; did you mean 'constant_fold'?"),
        (("--pipeline", "nativ", file), 2, "there is no pipeline 'nativ'; did you mean 'native'?"),
        (("cse",), 2, "give it a pass and a file"),
        (("cse", file, file), 2, "give it a pass and a file"),
        (("cse", bad), 1, f"dy2st: {bad}: expected ')', line 5, column 27; %c: float32[N] = add(%a %b); ^"),
        (("cse", wrong), 1, "declared int32[N], add gives float32[N]"),
        (("cse", tmp_path / "absent.txt"), 1, "absent.txt: No such file or directory"),
    ):
        found, out, err = run(capsys, "pass", *arguments)
        assert (found, out) == (status, ""), arguments
        assert message in err
        assert err.count("\n") == 1
    monkeypatch.setattr(MergeCommonSubexpressions, "apply", lambda self, program: program.block.operations.clear() or 1)
    status, _, err = run(capsys, "pass", "cse", file)
    assert (status, "the pass 'cse' broke a rule of the IR" in err) == (1, True)


def test_as_a_process(model: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "dy2st", "inspect", str(model)], env=environment, timeout=60,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "forward(x, goal=1.5)" in done.stdout


@pytest.mark.slow
def test_a_reader_that_leaves(model: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"'{sys.executable}' -m dy2st inspect '{model}' --text | true"
    done = subprocess.run(["sh", "-c", command], env=environment, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
