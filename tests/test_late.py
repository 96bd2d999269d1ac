"""Names that load on first use are the ones that type checkers are told of."""

import ast
import subprocess
import sys
import types
from pathlib import Path

import pytest

import dy2st as paddle
from dy2st.late import late_names, types_of

LATE = ["dy2st.jit"]


def names_for_type_checkers(package):
    """Return the names that a package imports under TYPE_CHECKING, with their modules."""
    tree = ast.parse(Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {a.name: str(node.module) for node in imports for a in node.names}


@pytest.mark.parametrize("package", LATE)
def test_late_names_are_those_that_type_checkers_see(package):
    found = names_for_type_checkers(package)
    assert found
    for name, module in found.items():
        assert getattr(sys.modules[package], name) is getattr(sys.modules[module], name)
        assert f"{package}.{name}" not in sys.modules, "a module of that name would stand in its place"


def test_a_late_name_is_kept_in_its_package(monkeypatch):
    package = types.ModuleType("json")
    monkeypatch.setitem(sys.modules, "json", package)
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "json.inner", types.SimpleNamespace(answer=42))
    assert late_names("json", {"inner": "answer"})("answer") == 42
    assert vars(package)["answer"] == 42


def test_an_unknown_name_is_refused_with_a_hint():
    with pytest.raises(AttributeError, match=r"module 'dy2st.jit' has no attribute 'lod'; did you mean 'load'"):
        paddle.jit.lod


def test_types_of_modules_that_nobody_imported_are_left_out():
    assert types_of("builtins:range", "no_such_module:Thing", "sys:NoSuchThing") == (range,)


def test_late_names_are_listed():
    assert {"load", "save", "to_static", "verify"} <= set(dir(paddle.jit))


def test_an_import_loads_no_more_than_every_call_needs():
    unused = [
        "dy2st.static",
        "dy2st.optimizer",
        "dy2st.files",
        "dy2st.jit.serialization.export",
        "dy2st.jit.verifying",
        "dataclasses",
        "dy2st.transformers.pipeline",
        "gast",
        "llvmlite",
        "numpy.random",
        "decimal",
        "difflib",
    ]
    code = f"import dy2st, sys; print([name for name in {unused} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_what_is_imported_first_loads_no_module_of_resources():
    """`importlib.abc`, whose bases a finder may do without, loads twenty modules: half of the time of an import."""
    code = "import numpy, sys; before = {*sys.modules}; import dy2st; print(*{'importlib.abc', 'tempfile'} & "
    code += "({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
