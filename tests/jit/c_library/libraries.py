"""Libraries made for a test, and called from it as C calls them."""

import ctypes
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
NUMBERS = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}


class Options(ctypes.Structure):
    """`NAME_options` of a header."""

    _fields_ = (
        ("weights", ctypes.c_char_p), ("threads", ctypes.c_int), ("most_bytes", ctypes.c_uint64),
        ("seed", ctypes.c_uint64), ("user", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("deallocate", ctypes.c_void_p), ("parallel", ctypes.c_void_p),
    )  # fmt: skip


class Failed(Exception):
    """A function of a library gave a code; the text is the library's."""

    def __init__(self, code: int, text: str):
        self.code = code
        super().__init__(text)


class Instance:
    """An instance of a library; `forward` takes arrays and numbers, and results as arrays to be filled."""

    def __init__(self, folder: Path, name: str, **options: Any):
        self.library: Any = ctypes.CDLL(str(folder / f"lib{name}.so"))
        self.name, self.model = name, ctypes.c_void_p()
        self._error = getattr(self.library, f"{name}_error")
        self._error.restype = ctypes.c_char_p
        given = Options(**options)
        self._checked(getattr(self.library, f"{name}_create")(ctypes.byref(given), ctypes.byref(self.model)))

    def _checked(self, code: int) -> None:
        if code:
            raise Failed(code, (self._error(self.model) or b"").decode())

    def save(self, path: Path) -> None:
        self._checked(getattr(self.library, f"{self.name}_save")(self.model, str(path).encode()))

    def free(self) -> None:
        getattr(self.library, f"{self.name}_free")(self.model)

    def __call__(
        self, inputs: Sequence[Any], results: Sequence[Any], *, function: str = "forward",
        shapes: Mapping[int, tuple[int, ...]] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Return the results, each of the dtype and rank of a stand-in: `("float32", 2)`, or `int`, `float`, `bool`.

        `shapes` says, by the number of an input, what is told of it in the place of its shape.
        """
        fields, values = [], list[Any]()
        for i, x in enumerate(inputs):
            if not isinstance(x, np.ndarray):
                fields.append((f"f{i}", NUMBERS[type(x)]))
                values.append(x)
            elif x.ndim == 0:
                fields.append((f"f{i}", ctypes.c_char * x.itemsize))
                values.append((ctypes.c_char * x.itemsize).from_buffer_copy(x.tobytes()))
            else:
                kind = _tensor(x.ndim, strides=True)
                strides = (0,) * x.ndim if x.flags.c_contiguous else tuple(s // x.itemsize for s in x.strides)
                fields.append((f"f{i}", kind))
                axes = ctypes.c_int64 * x.ndim
                values.append(kind(x.ctypes.data, axes(*(shapes or {}).get(i, x.shape)), axes(*strides)))
        taken = _struct(fields)()
        for (field, kind), x in zip(fields, values, strict=True):
            if isinstance(x, ctypes.Array):
                ctypes.memmove(ctypes.addressof(taken) + getattr(type(taken), field).offset, x, ctypes.sizeof(kind))
            else:
                setattr(taken, field, x)
        given = _struct([(f"r{i}", _kind(r)) for i, r in enumerate(results)])()
        run = getattr(self.library, f"{self.name}_{function}")
        self._checked(run(self.model, ctypes.byref(taken), ctypes.byref(given)))
        return [_value(r, given, f"r{i}") for i, r in enumerate(results)]


def _tensor(rank: int, *, strides: bool) -> Any:
    axes = ctypes.c_int64 * rank
    return _struct([("data", ctypes.c_void_p), ("shape", axes), *([("strides", axes)] if strides else [])])


def _struct(fields: Sequence[tuple[str, Any]]) -> Any:
    return type("Struct", (ctypes.Structure,), {"_fields_": list(fields)})


def _kind(result: Any) -> Any:
    if isinstance(result, type):
        return NUMBERS[result]
    dtype, rank = result
    return _tensor(rank, strides=False) if rank else np.ctypeslib.as_ctypes_type(_unsigned(dtype))


def _unsigned(dtype: str) -> Any:
    return {"float16": np.uint16, "bfloat16": np.uint16}.get(dtype, np.dtype(dtype) if dtype != "bfloat16" else None)


def _value(result: Any, given: Any, field: str) -> Any:
    made = getattr(given, field)
    if isinstance(result, type):
        return made
    dtype, rank = np.dtype(result[0]), result[1]
    if not rank:
        at = ctypes.addressof(given) + getattr(type(given), field).offset
        return np.frombuffer(ctypes.string_at(at, dtype.itemsize), dtype).reshape(())
    shape = tuple(made.shape)
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(made.data, size) if size else b"", dtype).reshape(shape)


def built(function: Any, spec: Sequence[InputSpec] | None, folder: Path, **how: Any) -> Instance:
    """Return an instance of the library of a function or Layer, made for this test."""
    options = {key: how.pop(key) for key in ("threads", "seed", "most_bytes") if key in how}
    paddle.jit.export_library(function, folder, spec, name="model", **{"strict": True, **how})
    return Instance(folder, "model", **options)
