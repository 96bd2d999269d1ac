"""`paddle.inference`: predictors of models that `jit.save` wrote here.

Switches of hardware and of Paddle's optimizer are accepted and change nothing; a file of Paddle's own is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.functions.shape.from_data import to_tensor
from dy2st.jit.serialization.io import load
from dy2st.missing import missing_in
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.version import full_version

__getattr__ = missing_in(__name__)

_SWITCHES = ("enable_", "disable_", "switch_", "set_", "exp_", "delete_", "pass_", "collect_", "turn_")


class PrecisionType:
    """In which dtype a predictor computes: that of the model."""

    Float32, Int8, Half, Bfloat16 = range(4)


class PlaceType:
    """Where a predictor computes."""

    UNK, CPU, GPU, XPU, CUSTOM = range(-1, 4)


class Config:
    """The file of a model: its path, with or without ".dy2st"; a second path, of parameters, is not needed."""

    Precision = PrecisionType

    def __init__(self, prog_file: str | None = None, params_file: str | None = None):
        self._path = prog_file

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Say which file it is."""
        self._path = prog_file

    def model_dir(self) -> str | None:
        """Return the path."""
        return self._path

    prog_file = model_dir

    def use_gpu(self) -> bool:
        """Return False: `paddle.set_device` chooses the device."""
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_SWITCHES):
            return lambda *args, **keywords: None
        raise AttributeError(f"a Config has no {name!r}", name=name)


class Handle:
    """An input or an output of a predictor."""

    def __init__(self, name: str):
        self._name, self._array = name, np.empty([0], "float32")

    def name(self) -> str:
        """Return its name."""
        return self._name

    def copy_from_cpu(self, data: Any) -> None:
        """Give an input its array."""
        self._array = np.array(data)

    def copy_to_cpu(self) -> np.ndarray:
        """Return the array of an output."""
        return self._array

    def reshape(self, shape: Sequence[int]) -> None:
        """Give an input a shape, of which `copy_from_cpu` has the values."""
        self._array = np.zeros(shape, self._array.dtype)

    def shape(self) -> list[int]:
        """Return the shape."""
        return list(self._array.shape)

    def type(self) -> np.dtype[Any]:
        """Return the dtype."""
        return self._array.dtype


class Predictor:
    """Runs a saved model on arrays: inputs by name, `run`, outputs by name; or `run` with a list of arrays."""

    def __init__(self, config: Config):
        if config.model_dir() is None:
            raise ValueError("a predictor needs the path of a model: Config(path)")
        self._layer = load(str(config.model_dir()))
        self._layer.eval()
        names = list(self._layer._methods["forward"].signature.parameters)
        self._inputs = {name: Handle(name) for name in names}
        self._outputs: dict[str, Handle] = {}

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs, in order."""
        return list(self._inputs)

    def get_input_handle(self, name: str) -> Handle:
        """Return an input."""
        return self._inputs[name]

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """Run the model; return True, or the outputs where the inputs are given here."""
        arrays = [h.copy_to_cpu() for h in self._inputs.values()] if inputs is None else inputs
        with no_grad():
            out = self._layer(*(to_tensor(a) for a in arrays))
        listed = list(out.values()) if isinstance(out, dict) else list(out) if isinstance(out, (list, tuple)) else [out]
        self._outputs = {f"output_{i}": Handle(f"output_{i}") for i in range(len(listed))}
        for handle, tensor in zip(self._outputs.values(), listed, strict=True):
            handle.copy_from_cpu(tensor.numpy())
        return True if inputs is None else listed

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs of the last run, in order."""
        return list(self._outputs)

    def get_output_handle(self, name: str) -> Handle:
        """Return an output of the last run."""
        return self._outputs[name]

    def clone(self) -> Predictor:
        """Return a predictor of the same model with inputs of its own."""
        made = object.__new__(Predictor)
        made._layer, made._outputs = self._layer, {}
        made._inputs = {name: Handle(name) for name in self._inputs}
        return made

    def clear_intermediate_tensor(self) -> None:
        """Give back memory that runs keep: none."""

    try_shrink_memory = clear_intermediate_tensor


def create_predictor(config: Config) -> Predictor:
    """Return a predictor of a model.

    >>> import tempfile, dy2st as paddle
    >>> folder = tempfile.TemporaryDirectory()
    >>> layer = paddle.nn.ReLU()
    >>> _ = paddle.jit.save(layer, folder.name + "/relu", input_spec=[paddle.static.InputSpec([None])])
    >>> create_predictor(Config(folder.name + "/relu")).run([[-1.0, 2.0]])[0].tolist()
    [0.0, 2.0]
    >>> folder.cleanup()
    """
    return Predictor(config)


def get_trt_compile_version() -> tuple[int, int, int]:
    """Return zeros: there is no TensorRT."""
    return 0, 0, 0


get_trt_runtime_version = get_trt_compile_version


def get_version() -> str:
    """Return the release of Paddle whose interface this is."""
    return f"version: {full_version}"
