"""Hand-built Programs as bytes: the Program alone, and the values of its parameters apart.

    {"kind": "program", "results": ["fc_0.tmp_0", ...], "arguments": [["feed", "x"], ["parameter", "fc_0.w_0"]]}

The bytes are those of the files that `save_inference_model` and `paddle.save` write: data, which run nothing.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import atomic, program_file, regular, safetensors_head, state_files
from dy2st.ir.serialize import CONSTANT, from_json, to_json
from dy2st.runtime.eager import device
from dy2st.static.model_files import checked, program_of, pruned, set_program_state, variables
from dy2st.static.program import Program, default_main_program
from dy2st.static.scope import global_scope

KIND = "program"


def serialize_program(feed_vars: Any, fetch_vars: Any, *, program: Program | None = None, **configs: Any) -> bytes:
    """Return as bytes what computes `fetch_vars` from `feed_vars`, in evaluation, without values of parameters.

    Raises TypeError for what are no variables, ValueError where other data are needed too.
    """
    _no_configs("serialize_program", configs, ("legacy_format",))
    _, data, constants, metadata = _inference(feed_vars, fetch_vars, program)
    return program_file.to_bytes(data, constants, metadata)


def serialize_persistables(
    feed_vars: Any, fetch_vars: Any, executor: Any, *, program: Program | None = None, **configs: Any
) -> bytes:
    """Return as bytes the values, in the global scope, of what `serialize_program` leaves out of the same Program.

    Raises RuntimeError where the startup program was not run.
    """
    _no_configs("serialize_persistables", configs, ())
    whole, _, _, metadata = _inference(feed_vars, fetch_vars, program)
    names = [name for role, name in metadata["arguments"] if role in ("parameter", "state")]
    out = io.BytesIO()
    values = {name: device.move(whole.recorder.holder(name).array, device.CPU) for name in names}
    state_files.save_to(out, values)
    return out.getvalue()


def deserialize_program(data: bytes) -> Program:
    """Return the Program that `serialize_program` made bytes of; its fetched variables have the names they had.

    Its parameters have the values that the scope has for their names: `deserialize_persistables` puts them there.
    FileFormatError says what is wrong with bytes that are damaged, newer, or not ours.

    >>> import numpy as np
    >>> import dy2st as paddle
    >>> from dy2st import static
    >>> paddle.enable_static()
    >>> with static.program_guard(static.Program()):
    ...     x = static.data("x", [None], "float32")
    ...     y = x * 2
    ...     content = static.serialize_program([x], [y])
    >>> program = static.deserialize_program(content)
    >>> static.Executor().run(program, feed={"x": np.ones(2, "float32")}, fetch_list=[y.name])[0].tolist()
    [2.0, 2.0]
    >>> paddle.disable_static()
    """
    metadata, written, arrays = program_file.from_bytes(_bytes(data, "deserialize_program"))
    with regular.errors_of("the bytes"):
        constants = {name: array for name, array in arrays.items() if name.startswith(CONSTANT)}
        made = from_json(written, constants, ())
        arguments, results = checked(metadata, made, None, KIND)
    return program_of(made, arguments, results, None, global_scope())[0]


def deserialize_persistables(program: Program, data: bytes, executor: Any) -> Program:
    """Put the values that `serialize_persistables` made bytes of into the global scope; return the Program.

    Raises ValueError for a value whose shape is not that of the Program, or where one is not there.
    """
    with safetensors_head.opened_bytes(_bytes(data, "deserialize_persistables")) as found:
        values = state_files.state_of(found, lambda array: array)
        if type(values) is not dict or not all(isinstance(v, np.ndarray) for v in values.values()):
            raise FileFormatError("the values of a Program are arrays by name")
    if absent := [name for name in program.recorder.states if name not in values]:
        raise ValueError(f"the bytes have no value for the variable {absent[0]}")
    set_program_state(program, values)
    return program


def normalize_program(program: Program, feed_vars: Any, fetch_vars: Any, **configs: Any) -> Program:
    """Return a Program that computes `fetch_vars` from `feed_vars`, in evaluation, and nothing else."""
    _no_configs("normalize_program", configs, ("skip_prune_program",))
    if not isinstance(program, Program):
        raise TypeError(f"normalize_program needs a paddle.static.Program, not {type(program).__name__}")
    return deserialize_program(serialize_program(feed_vars, fetch_vars, program=program))


def save_to_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file, whole or not at all; TypeError for anything else."""
    with atomic.replacing(Path(path)) as out:
        out.write(_bytes(content, "save_to_file"))


def load_from_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file."""
    return Path(path).read_bytes()


def _inference(feed_vars: Any, fetch_vars: Any, program: Program | None) -> tuple[Program, Any, Any, dict[str, Any]]:
    """Return the whole Program for evaluation, the part that is asked for with its constants, and what it takes."""
    feeds, fetches = variables(feed_vars, "feed_vars"), variables(fetch_vars, "fetch_vars")
    whole = (program or default_main_program()).clone(for_test=True)
    made, arguments = pruned(whole.recorder, fetches, [t.name for t in feeds])
    data, constants = to_json(made)
    metadata = {"kind": KIND, "arguments": [list(a) for a in arguments], "results": [t.name for t in fetches]}
    return whole, data, constants, metadata


def _bytes(content: Any, function: str) -> bytes:
    if not isinstance(content, bytes):
        raise TypeError(f"{function} takes bytes, not {type(content).__name__}")
    return content


def _no_configs(function: str, given: dict[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
