"""`paddle.inference`: predictors of models that `jit.save` wrote here, and of those that PaddlePaddle saved.

Switches of hardware and of Paddle's optimizer are accepted and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.files import program_file
from dy2st.functions.shape.from_data import to_tensor
from dy2st.jit.serialization.io import load
from dy2st.missing import missing_in
from dy2st.paddle_files.loading import found, layer_of, read_graph
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
    """The files of a model: its path, with or without ".dy2st", ".json" or ".pdmodel", and that of its parameters.

    The second path is needed where the parameters of a model of PaddlePaddle do not stand beside it.
    """

    Precision = PrecisionType

    def __init__(self, prog_file: str | None = None, params_file: str | None = None):
        self._path, self._params, self._ir_optim, self._threads = prog_file, params_file, True, 1

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Say which files they are."""
        self._path, self._params = prog_file, params_file

    def set_prog_file(self, path: str) -> None:
        """Say which file the model is."""
        self._path = path

    def set_params_file(self, path: str) -> None:
        """Say which file has the parameters."""
        self._params = path

    def model_dir(self) -> str | None:
        """Return the path of the model."""
        return self._path

    prog_file = model_dir

    def params_file(self) -> str | None:
        """Return the path of the parameters."""
        return self._params

    def switch_ir_optim(self, x: bool = True) -> None:
        """Keep what is said: Programs are optimized in any case."""
        self._ir_optim = bool(x)

    def ir_optim(self) -> bool:
        """Return what `switch_ir_optim` said."""
        return self._ir_optim

    def set_cpu_math_library_num_threads(self, cpu_math_library_num_threads: int) -> None:
        """Keep the number: `paddle.set_num_threads` sets that of the process."""
        self._threads = int(cpu_math_library_num_threads)

    def cpu_math_library_num_threads(self) -> int:
        """Return what `set_cpu_math_library_num_threads` said."""
        return self._threads

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

    share_external_data = copy_from_cpu

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
        self._layer, inputs, outputs = _read(str(config.model_dir()), config.params_file())
        self._layer.eval()
        self._inputs = {name: Handle(name) for name in inputs}
        self._outputs = {name: Handle(name) for name in outputs}

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
        if len(self._outputs) != len(listed):
            self._outputs = {f"output_{i}": Handle(f"output_{i}") for i in range(len(listed))}
        for handle, tensor in zip(self._outputs.values(), listed, strict=True):
            handle.copy_from_cpu(tensor.numpy())
        return True if inputs is None else listed

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs, in order; those of the model's file, or `output_0` and so on."""
        return list(self._outputs)

    def get_output_handle(self, name: str) -> Handle:
        """Return an output, which has the array of the last run."""
        return self._outputs[name]

    def clone(self) -> Predictor:
        """Return a predictor of the same model with inputs of its own."""
        made = object.__new__(Predictor)
        made._layer = self._layer
        made._inputs = {name: Handle(name) for name in self._inputs}
        made._outputs = {name: Handle(name) for name in self._outputs}
        return made

    def clear_intermediate_tensor(self) -> None:
        """Give back memory that runs keep: none."""

    try_shrink_memory = clear_intermediate_tensor


class PredictorPool:
    """Predictors of one model, one for each thread."""

    def __init__(self, config: Config, size: int = 1):
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, idx: int) -> Predictor:
        """Return the predictor of that number; Paddle writes it so."""
        return self._predictors[idx]

    retrieve = retrive


def _read(path: str, weights: str | None) -> tuple[Any, list[str], list[str]]:
    """Return the layer of a model, the names of its inputs and of its outputs."""
    ours = program_file.found(path)
    model = None if ours.is_file() and ours.name.endswith(program_file.SUFFIX) else found(path)
    if model is not None:
        graph = read_graph(model, weights)
        return layer_of(graph, str(model)), [one.name for one in graph.inputs], graph.outputs
    layer = load(path)
    method = layer._methods["forward"]
    count = max(call.outputs() for call, _ in method.programs())
    return layer, list(method.signature.parameters), [f"output_{i}" for i in range(count)]


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
