"""Where the source of a function under `to_static` may stand: each way, from the definition to the Program."""

import importlib
import linecache
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import ConversionError
from dy2st.jit.dispatch.fallback_warning import FallbackWarning

ROOT = Path(__file__).parents[2]
SOURCE = """\
import dy2st as paddle

@paddle.jit.to_static
def halve(x):
    while x.sum() > 1:
        x = x / 2
    return x
"""
CALL = """\
y = halve(paddle.to_tensor([4.0, 4.0]))
print(y.tolist(), len(halve.program_cache), halve.explain().fallbacks)
"""


def run(*arguments: str, text: str = "") -> str:
    """Run Python on its own; return what it prints to both streams."""
    command = [sys.executable, "-W", "always", *arguments]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False, env={"PYTHONPATH": "."}
    )
    return done.stdout + done.stderr


def converted(f: Any) -> Any:
    """Call a static function on tensors that it halves; nothing may fall back."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = f(paddle.to_tensor([4.0, 4.0]))
    assert y.tolist() == [0.5, 0.5]
    assert "while_loop" in str(f.concrete_program.main_program)
    return f


@pytest.mark.slow
def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SOURCE + CALL)
    assert run(str(path)) == "[0.5, 0.5] 1 []\n"


def test_python_c() -> None:
    assert run("-c", SOURCE + CALL) == "[0.5, 0.5] 1 []\n"


@pytest.mark.slow
def test_a_prompt_that_keeps_no_source_falls_back_with_the_reason() -> None:
    text = SOURCE.replace("    return x\n", "    return x\n\n") + CALL
    said = run("-i", "-q", text=text)
    assert "[0.5, 0.5] " in said
    if sys.version_info < (3, 13):  # newer prompts keep it
        assert "FallbackWarning: `halve` (<stdin>:1) runs eagerly" in said
        assert "its source is not kept by this prompt (use a file, a notebook or IPython)" in said


def cell(text: str, name: str, keep: bool = True) -> dict[str, Any]:
    """Run a text as a notebook runs a cell: under a name of its own, with its lines in linecache."""
    if keep:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    around: dict[str, Any] = {"__name__": "cell"}
    exec(compile(text, name, "exec"), around)
    return around


@pytest.mark.parametrize("name", ["<ipython-input-3-abcdef>", "/tmp/ipykernel_1/123.py", "<made by a template>"])
def test_a_notebook_cell_and_exec_with_linecache(name: str) -> None:
    converted(cell(SOURCE, name)["halve"])


def test_a_cell_that_is_run_again_with_another_text() -> None:
    name = "<ipython-input-4-abcdef>"
    first = cell(SOURCE, name)["halve"]
    second = cell(SOURCE.replace("x / 2", "x / 4"), name)["halve"]
    assert second(paddle.to_tensor([4.0, 4.0])).tolist() == [0.25, 0.25]
    with pytest.warns(FallbackWarning, match="its source is not the text that it was made from"):
        assert first(paddle.to_tensor([4.0, 4.0])).tolist() == [0.5, 0.5]


def test_exec_without_linecache_falls_back_with_the_reason() -> None:
    halve = cell(SOURCE, "<nowhere>", keep=False)["halve"]
    with pytest.warns(FallbackWarning, match="its source is not kept: it was made by `exec` or `eval` \\(<nowhere>\\)"):
        assert halve(paddle.to_tensor([4.0, 4.0])).tolist() == [0.5, 0.5]
    assert len(halve.explain().fallbacks) == 1


def test_no_source_with_full_graph_raises() -> None:
    text = SOURCE.replace("to_static", "to_static(full_graph=True)")
    halve = cell(text, "<nowhere else>", keep=False)["halve"]
    with pytest.raises(ConversionError, match="`halve` cannot be converted: its source is not kept"):
        halve(paddle.to_tensor([4.0]))


def test_a_zipped_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "package.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zipped_halves/__init__.py", SOURCE)
    monkeypatch.syspath_prepend(str(path))
    converted(importlib.import_module("zipped_halves").halve)


def test_two_lambdas_on_a_line() -> None:
    up, down = [paddle.jit.to_static(f) for f in (lambda x: x + 1 if x > 0 else x, lambda x: x - 1 if x > 0 else x)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [float(f(paddle.to_tensor(v))) for f in (up, down) for v in (2.0, -2.0)]
    assert found == [3.0, -2.0, 1.0, -2.0]


def test_a_file_that_is_edited_after_its_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "edited_halves.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    halve = importlib.import_module("edited_halves").halve
    path.write_text("# a line more\n" + SOURCE)
    with pytest.warns(FallbackWarning, match="its source is not the text that it was made from") as caught:
        assert halve(paddle.to_tensor([4.0, 4.0])).tolist() == [0.5, 0.5]
    assert "Import or run the file again after editing it." in str(caught[0].message)


def test_a_function_that_was_converted_before_its_file_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "converted_halves.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    halve = converted(importlib.import_module("converted_halves").halve)
    path.write_text("# a line more\n" + SOURCE)
    halve(paddle.to_tensor([[4.0, 4.0]]))
    assert len(halve.program_cache) == 2
    assert halve.explain().fallbacks == []
