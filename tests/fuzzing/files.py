"""Changed Programs as files that `jit.load` reads: their checksums are right."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import dy2st as paddle
from dy2st.files import program_file
from dy2st.ir.program import Program
from tests.fuzzing.corpus import operands

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where to write files that nobody keeps: no disk is waited for."""


def metadata_of(data: Any) -> Any:
    """Return what `jit.save` writes beside a Program; None for one that takes or gives something else than tensors."""
    block = data["functions"].get(data["entry"])
    if block is None:
        return None
    given = [t for _, t in block["arguments"]]
    types = [*given, *(t for o in block["operations"] for _, t in o["results"])]
    made = [types[i] if type(i) is int and i < len(types) else "none" for i in block["results"]]
    if not made or not all(_is_tensor(t) for t in (*given, *made)):
        return None
    names = [f"a{i}" for i in range(len(given))]
    tensors = [{"tensor": [t, False]} for t in made]
    call = {
        "function": data["entry"], "mode": None, "arguments": [[n, {"input": i}] for i, n in enumerate(names)],
        "inputs": len(names), "state": [], "output": tensors[0] if len(made) == 1 else {"tuple": tensors},
        "seeded": [], "writes": [],
    }  # fmt: skip
    methods = {"forward": {"parameters": [[n, "either"] for n in names], "programs": [call]}}
    return {"kind": "layer", "training": False, "state": [], "methods": methods}


def _is_tensor(text: str) -> bool:
    return text[-1:] == "]" and "<" not in text and "None" not in text


def in_file(data: Any, arrays: dict[str, Any], metadata: Any) -> Any:
    """Write a Program to a file and load it."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        return paddle.jit.load(program_file.write(Path(folder) / "changed", data, arrays, metadata))


def called(layer: Any, program: Program, rng: random.Random) -> str:
    """Call what was loaded, natively from the second call on."""
    with mock.patch.dict(os.environ, {"DY2ST_BACKEND": "native"}):
        for _ in range(3):
            given = operands(program, rng)
            if given is None:
                return "no operands"
            layer(*map(paddle.to_tensor, given))
    return "ran from a file"
