"""Modules under Paddle's paths: their names are those that stand elsewhere here."""

import importlib
import subprocess
import sys

import pytest

import dy2st as paddle
from dy2st.paths import PATHS, submodule


@pytest.mark.parametrize("path", PATHS)
def test_a_module_of_the_table_has_names(path):
    module = importlib.import_module(f"dy2st.{path}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert module.__all__ == dir(module) != []


@pytest.mark.parametrize(
    ("path", "name", "public"),
    [
        ("nn.layer.transformer", "MultiHeadAttention", "nn.MultiHeadAttention"),
        ("nn.layer.layers", "Layer", "nn.Layer"),
        ("nn.functional.common", "linear", "nn.functional.linear"),
        ("nn.loss", "CrossEntropyLoss", "nn.CrossEntropyLoss"),
        ("tensor.creation", "full", "full"),
        ("base.framework", "Variable", "Tensor"),
        ("base.core", "CPUPlace", "CPUPlace"),
        ("base.dygraph.base", "to_variable", "fluid.dygraph.to_variable"),
        ("common_ops_import", "check_type", "framework.check_type"),
        ("framework.random", "get_rng_state", "get_rng_state"),
        ("distributed.fleet.base.role_maker", "PaddleCloudRoleMaker", "distributed.fleet.PaddleCloudRoleMaker"),
        ("static.input", "InputSpec", "static.InputSpec"),
        ("utils.dlpack", "from_dlpack", "from_dlpack"),
    ],
)
def test_a_name_is_the_public_one(path, name, public):
    found = getattr(importlib.import_module(f"dy2st.{path}"), name)
    wanted = seen = paddle
    for part in public.split("."):
        wanted = getattr(wanted, part)
    for part in path.split("."):
        seen = getattr(seen, part)
    assert found is wanted is getattr(seen, name)


def test_a_path_is_found_as_an_attribute_without_an_import():
    code = "import dy2st as p; print(p.nn.layer.rnn.LSTM.__name__, p.base.core.VarDesc.VarType.FP32)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "LSTM paddle.float32\n"


def test_what_is_not_in_the_table_is_missing():
    assert submodule("dy2st.nn", "Linear") is None
    with pytest.raises(AttributeError, match="did you mean 'MultiHeadAttention'"):
        _ = paddle.nn.layer.transformer.MultiheadAttention
    with pytest.raises(ModuleNotFoundError, match=r"dy2st\.nn\.layer\.attention"):
        importlib.import_module("dy2st.nn.layer.attention")


def test_a_module_that_calls_it_paddle_asks_for_the_release_of_the_interface():
    import dy2st

    assert eval("paddle.__version__", {"paddle": dy2st}) == paddle.version.full_version == "3.3.0"
    assert eval("dy2st.__version__", {"dy2st": dy2st}) == paddle.version.dy2st


@pytest.mark.parametrize("name", ["cholesky", "det", "qr", "svd", "solve", "matrix_power", "pinv", "lstsq", "eigvalsh"])
def test_functions_of_linalg_have_their_old_place(name):
    assert getattr(paddle, name) is getattr(paddle.linalg, name)
