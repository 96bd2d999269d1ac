"""What runs public projects beside PaddlePaddle: cases of a checkout, stubs, and how what is found is told."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest

from benchmarks.projects import alias, side
from benchmarks.projects.__main__ import _cause, _report
from benchmarks.projects.cases import _example, cases_of


def test_cases_of_a_checkout(tmp_path):
    arch = tmp_path / "ppcls" / "arch" / "backbone"
    arch.mkdir(parents=True)
    (arch / "__init__.py").write_text("import sys\nfrom .zoo.small import Small_288, Large\nfrom .base import Layer\n")
    (tmp_path / "ppcls" / "__init__.py").write_text("")
    cases = {case["name"]: case for case in cases_of(tmp_path)}
    assert list(cases) == ["import ppcls", "import ppcls.arch.backbone", "zoo.small.Small_288"]
    assert "Small_288(class_num=10)" in cases["zoo.small.Small_288"]["source"]
    assert "[2, 3, 288, 288]" in cases["zoo.small.Small_288"]["source"]
    assert "zoo.small.Large" in {case["name"] for case in cases_of(tmp_path, every=True)}
    with pytest.raises(SystemExit, match="is no checkout of PaddleClas, PARL or PaddleScience"):
        cases_of(arch)


def test_an_example_ends_with_the_call_of_what_it_made():
    text = "Net.\n\n>>> net = Net(\n...     3)\n>>> x = rand([2])\n>>> y = net(x, 1)\n>>> print(y)\n[2]\n"
    assert _example(text) == "net = Net(3)\nx = rand([2])\nmodel, inputs = net, (x, 1,)\n"
    assert _example(">>> net = Net(3)\n>>> net(x=1)") == ""
    assert _example(">>> net = (") == _example("no example") == ""


def test_stubs_are_for_what_is_imported_outside_of_try(tmp_path):
    (tmp_path / "a.py").write_text("import numpy, surely_absent_a.b\ntry:\n    import surely_absent_b\nexcept E: ...\n")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe this is no source")
    assert alias.absent_packages(tmp_path) == {"surely_absent_a"}
    found = alias.Stubs({"surely_absent_a"})
    module = types.ModuleType("m")
    spec = found.find_spec("surely_absent_a.b", None)
    assert spec is not None
    assert found.find_spec("numpy", None) is None
    module = found.create_module(spec)
    assert isinstance(module.Anything.of_it, type)
    assert module.decorator(3)(len) is len
    with pytest.raises(AttributeError):
        _ = module.__file__


def test_paddle_is_dy2st_and_its_modules_stay_themselves():
    code = (
        "import sys; from benchmarks.projects.alias import PaddleIsDy2st; sys.meta_path.insert(0, PaddleIsDy2st())\n"
        "import paddle, paddle.nn.functional as F, dy2st\n"
        "from paddle.nn.layer.rnn import LSTM\n"
        "print(paddle is dy2st, F is dy2st.nn.functional, F.__spec__.name, LSTM is dy2st.nn.LSTM)\n"
        "try:\n    import paddle.surely_absent\nexcept ImportError as e:\n    print(e.name)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "True", "dy2st.nn.functional", "True", "paddle.surely_absent"]


def test_arrays_are_compared_by_kind_and_relative_to_their_largest_number():
    there = {"output 0": np.array([100.0, 1.0]), "gradient w": np.array([1.0, 2.0])}
    side._compare({**there, "output 0": np.array([100.005, 1.0])}, there, "output")
    with pytest.raises(ValueError, match=r"output 0 differs by 5\.0e-04 of its largest number"):
        side._compare({"output 0": np.array([100.05, 1.0])}, there, "output")
    with pytest.raises(ValueError, match=r"gradient w is float64\[1\] here and float64\[2\] there"):
        side._compare({"gradient w": np.zeros(1)}, there, "gradient")
    with pytest.raises(ValueError, match="gradient w is missing here"):
        side._compare({}, there, "gradient")
    side._compare({**there, "gradient unused": np.zeros(2)}, there, "gradient")


def test_the_report_groups_reasons(capsys):
    cases = [{"name": name, "kind": "model"} for name in ("a", "b", "c", "d")]
    good = dict.fromkeys(("build", "forward", "gradients", "static", "full_graph", "save", "train"), "")
    results = {
        "a": good,
        "b": {**good, "static": "TraceError: at most 8 [m.py:3]"},
        "c": {**good, "static": "TraceError: at most 9 [n.py:4]"},
    }
    known = {**{key: {"valid": ""} for key in "abc"}, "d": {"valid": "ImportError: no module [x.py:1]"}}
    _report("Project", cases, known, results)
    said = capsys.readouterr().out
    assert "Project: 4 cases, of which PaddlePaddle runs 3" in said
    assert "| static | 3 | 1 |" in said
    assert "| save | 3 | 3 |" in said
    assert "2 x static: TraceError: at most N" in said
    assert "1 x valid: ImportError: no module" in said


def test_a_cause_has_no_place_and_no_numbers():
    assert _cause("ValueError: output 3 differs by 1.0e-03 [a/b.py:7]") == "ValueError: output differs by N "
    assert json.dumps(_cause("")) == '""'
