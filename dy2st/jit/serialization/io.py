"""`jit.save` and `jit.load`, and `paddle.save` and `paddle.load` of tensors: files that hold data and run nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.files import generations, plain_safetensors, program_file, regular, state_files, state_reading
from dy2st.ir.context import current
from dy2st.ir.serialize import CONSTANT, from_json, to_json
from dy2st.jit.serialization.chosen_outputs import checked_positions
from dy2st.jit.serialization.export import saved_layer
from dy2st.jit.serialization.schema import called_functions, from_metadata, to_metadata
from dy2st.jit.serialization.translated_layer import TranslatedLayer, now, reserved
from dy2st.kinds import is_dict, is_sequence
from dy2st.runtime.eager import device
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.signal_delivery import delivering

_IGNORED = ("combine_params", "clip_extra", "skip_forward", "with_hook", "skip_prune_program", "use_program_cache")
"""Options of Paddle that make no difference here: one file has everything, and the Program is saved as it is."""


@delivering
def save(layer: Any, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None, **configs: Any) -> Path:
    """Save a Layer or a function with its control flow to `<path>.dy2st`; return that path.

    Every method under `to_static` is traced anew, in training and in evaluation mode, for the inputs that `input_spec`
    (or that of `to_static`) declares, or else for the kinds of calls made so far. The file is written whole or not at
    all; the layer stays as it was. `output_spec`, a list of ints, keeps of the outputs of `forward` (those of dicts in
    the order of their keys) the ones at these positions: a list of them, or the one itself. Raises TraceError where a
    method cannot become a Program, TypeError where a file cannot hold an output, ValueError where there is nothing to
    say what the inputs are.

    >>> import tempfile
    >>> import dy2st as paddle
    >>> from dy2st.runtime.tracer.input_spec import InputSpec
    >>> @paddle.jit.to_static(input_spec=[InputSpec([None])])
    ... def halve(x):
    ...     while x.sum() > 1:
    ...         x = x / 2
    ...     return x
    >>> folder = tempfile.TemporaryDirectory()
    >>> print(paddle.jit.save(halve, folder.name + "/halve").name)
    halve.dy2st
    >>> paddle.jit.load(folder.name + "/halve")(paddle.to_tensor([2.0, 2.0])).tolist()
    [0.5, 0.5]
    >>> folder.cleanup()
    """
    _check_configs("save", configs, (*_IGNORED, "output_spec"))
    target, output_spec = _target(path), checked_positions(configs.get("output_spec"))
    if input_spec is not None and not is_sequence(input_spec):
        raise TypeError(f"input_spec is a list of what the parameters take, not {type(input_spec).__name__}")
    if isinstance(layer, TranslatedLayer):
        if output_spec is not None:
            raise ValueError(
                "output_spec chooses among the outputs of a layer's code: a loaded layer is saved as it is"
            )
        saved = now(layer)
    else:
        saved = saved_layer(layer, input_spec, reserved, output_spec)
    program, arrays = to_json(saved.program)
    tensors = {t.name: t.array for t in saved.state.values() if t.same is None}
    names = {name: _free(name, arrays) for name in tensors}
    metadata = to_metadata(saved, names)
    target.parent.mkdir(parents=True, exist_ok=True)
    return program_file.write(target, program, {**arrays, **{names[n]: a for n, a in tensors.items()}}, metadata)


@delivering
def load(path: str | os.PathLike[str], **configs: Any) -> TranslatedLayer:
    """Load what `jit.save` wrote; return a layer that runs, trains and saves without the class that was saved.

    So it does for a model of PaddlePaddle, `<path>.json` or `<path>.pdmodel` with `<path>.pdiparams` beside it (or the
    file that `params_filename` names), where there is no `<path>.dy2st`. FileFormatError says in one line what is
    wrong with a file that is damaged, newer, or not ours;
    FileNotFoundError names a file that is not there.
    """
    _check_configs("load", configs, ("model_filename", "params_filename"))
    target = program_file.found(_target(path, "load from"))
    foreign = paddle_model(target if target.is_file() else path, configs.get("model_filename"))
    if foreign is not None:
        return current().process.paddle_files().load(foreign, beside(foreign, configs.get("params_filename")))
    metadata, data, arrays = program_file.read(target, private=True)
    with regular.errors_of(target):
        constants = {name: _read_only(array) for name, array in arrays.items() if name.startswith(CONSTANT)}
        program = from_json(data, constants, called_functions(metadata))
        return TranslatedLayer(from_metadata(metadata, program, arrays))


def paddle_model(path: str | os.PathLike[str], name: str | None = None) -> Path | None:
    """Return the model of PaddlePaddle that a path, or a name in the folder of the path, is; None where it is none."""
    if str(path).endswith(program_file.SUFFIX) or current().process.paddle_files is None:
        return None
    return current().process.paddle_files().found(path if name is None else Path(path).parent / name)


def beside(model: Path, name: str | None) -> Path | None:
    """Return the file of that name in the folder of a model."""
    return None if name is None else model.parent / name


@delivering
def save_state(obj: Any, path: str | os.PathLike[str], protocol: int = 4, **configs: Any) -> None:
    """Save a state dict, or any dicts, lists and tuples of tensors, arrays and Python scalars, to a file.

    The file is a safetensors file, written whole or not at all; nothing is pickled (`protocol` is accepted as Paddle
    has it and changes nothing). TypeError names the place of what is neither of these. A path that ends in
    `.safetensors` gets the plain form for other programs, without checksums; it holds a dict of tensors and no more.
    Whole Layers and Programs are saved by `paddle.jit.save` and `paddle.static.save`.

    >>> import tempfile
    >>> import dy2st as paddle
    >>> folder = tempfile.TemporaryDirectory()
    >>> linear = paddle.nn.Linear(3, 2)
    >>> paddle.save(linear.state_dict(), folder.name + "/linear.pdparams")
    >>> missing, unexpected = linear.set_state_dict(paddle.load(folder.name + "/linear.pdparams"))
    >>> missing, unexpected
    ([], [])
    >>> folder.cleanup()
    """
    _check_configs("save", configs, ("use_binary_format", "pickle_protocol"))
    target = _target(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.name.endswith(plain_safetensors.SUFFIX):
        plain_safetensors.save(_tensors_by_name(obj), target)
    else:
        state_files.save(obj, target, _to_array)


@delivering
def load_state(path: str | os.PathLike[str], return_numpy: bool = False, **configs: Any) -> Any:
    """Return what `paddle.save` wrote, tensors as tensors (as NumPy arrays with `return_numpy`).

    Files that PaddlePaddle's own `save` pickled (`.pdparams`, `.pdopt`) are read without unpickling: they run nothing.
    So are those of `torch.save` (`.pt`, `.pth`, `.bin`), whose state `paddle.interop.load_torch_state` takes. Any other
    safetensors file gives its tensors by name, and a file that `paddle.jit.save` wrote its state dict.
    bfloat16 becomes float32. FileFormatError says what is wrong with a file that is damaged, newer, or holds more than
    data.
    """
    _check_configs("load", configs, ("keep_name_table", "safetensors"))
    place = device.current_place()

    def make(array: np.ndarray) -> Any:
        return array if return_numpy else Tensor(device.move(array, place))

    target = Path(path)
    if target.suffix == generations.SECOND:
        target = generations.second_file(str(target.with_suffix("")))
    if not target.exists() and program_file.file_name(target).exists():
        target = program_file.file_name(target)
    if target.name.endswith(program_file.SUFFIX):
        return {name: t.numpy() if return_numpy else t for name, t in load(target).state_dict().items()}
    return state_reading.load(target, make, bool(configs.get("keep_name_table")))


@delivering
def save_pair(parameters: Any, state: Any, stem: str) -> None:
    """Save parameters to `<stem>.pdparams` and what belongs to them to `<stem>.pdopt`, both or neither."""
    Path(stem).parent.mkdir(parents=True, exist_ok=True)
    generations.save(parameters, state, stem, _to_array)


@delivering
def load_pair(stem: str, with_second: bool = True) -> tuple[Any, Any]:
    """Return what `save_pair` wrote, of one save, whatever becomes of later ones; None for a second file not there."""
    return generations.load(stem, load_state, with_second)


def _check_configs(function: str, given: dict[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def _target(path: object, purpose: str = "save to") -> Path:
    if not program_file.is_path(path):
        raise TypeError(f"a file to {purpose} is named by a str or a path, not {type(path).__name__}")
    if not os.path.basename(path):
        raise ValueError(f"{os.fspath(path)!r} names a folder; add the name of the file")
    return Path(path)


def _to_array(value: Any) -> np.ndarray | None:
    if isinstance(value, Tensor):
        return device.move(value.array("a file"), device.CPU)
    return state_files.as_array(value)


def _tensors_by_name(obj: Any) -> dict[str, np.ndarray]:
    """Return a dict of tensors as arrays; TypeError for anything else."""
    arrays = {name: _to_array(t) for name, t in obj.items()} if is_dict(obj) else {}
    found = {name: array for name, array in arrays.items() if isinstance(name, str) and array is not None}
    if not is_dict(obj) or len(found) < len(obj):
        what = next((repr(name) for name in arrays if name not in found), f"a {type(obj).__name__}")
        raise TypeError(f"a .safetensors file holds tensors by name and no more: {what} cannot be saved to it")
    return found


def _free(name: str, taken: Any) -> str:
    """Return the name of a tensor of the file: that of the state unless a constant or the format has it."""
    while name in taken or name.startswith(("~", "__metadata__")):
        name = f"state.{name}"
    return name


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
