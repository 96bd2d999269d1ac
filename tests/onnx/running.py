"""Write a Program as an ONNX model, check the model, and run it in onnxruntime."""

import importlib

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package `onnx` (extra `onnx`) is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the package `onnxruntime` (extra `onnx`) is not installed")

from dy2st.onnx.exporting import _count, model_of  # noqa: E402 (it is of no use without the package)
from dy2st.onnx.package import onnx_package  # noqa: E402

NO_KERNEL = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state").NotImplemented


def session(model):
    """A session on a checked model: bytes, or the path of a file."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def written(program):
    """The model of a Program, as bytes."""
    count = sum(map(_count, (v.type for v in program.block.results)))
    for i, argument in enumerate(program.block.arguments):
        argument.name = f"in_{i}"
    model, arrays = model_of(onnx_package(), program, [], [f"out_{i}" for i in range(count)])
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items())
    return model.SerializeToString()


def run(program, arguments):
    """The results of a Program in onnxruntime, a leaf each."""
    opened = session(written(program))
    feeds = dict(zip([i.name for i in opened.get_inputs()], [as_leaf(a) for a in arguments], strict=True))
    return opened.run(None, feeds)


def as_leaf(x):
    """An array for a tensor or a number, a list of arrays for a list."""
    return [as_leaf(item) for item in x] if isinstance(x, list) else np.asarray(x)
