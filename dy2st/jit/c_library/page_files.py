"""What stands around a library's WebAssembly: the table in it, the ES module that reads it, types, a page.

model.wasm     no imports; a custom section `dy2st` has the table (`table`), so it tells by itself how it is called
model.mjs      the same text for every library
model.d.ts     what TypeScript knows of it
index.html     a form for its inputs
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dy2st.ir.types import ScalarType
from dy2st.jit.c_library.c_source import Entry, Library
from dy2st.jit.c_library.signature import CValue, NoFormInC
from dy2st.shapes import Dim

_ARRAYS = {
    "bool": "Uint8Array", "uint8": "Uint8Array", "int8": "Int8Array", "int16": "Int16Array", "int32": "Int32Array",
    "int64": "BigInt64Array", "float16": "Uint16Array", "bfloat16": "Uint16Array", "float32": "Float32Array",
    "float64": "Float64Array",
}  # fmt: skip
_NUMBERS = {"int": "int64", "float": "float64", "bool": "bool"}
_TAKEN = frozenset({"constructor", "functions", "another"})
"""What a model of JavaScript has beside its functions, and no library in C."""


def with_table(wasm: bytes, library: Library) -> bytes:
    """Return a module with a custom section that has the table."""
    name, content = b"dy2st", json.dumps(table(library), ensure_ascii=False, separators=(",", ":")).encode()
    section = bytes([len(name)]) + name + content
    return wasm + b"\0" + _leb128(len(section)) + section


def table(library: Library) -> dict[str, Any]:
    """Return what module.mjs is to know: functions with their values, and the file of weights."""
    return {
        "version": 1,
        "functions": [
            {
                "name": method(entry),
                "inputs": [_told(v, "input") for v in entry.given],
                "outputs": [_told(v, "output") for v in entry.made],
            }
            for entry in library.entries
        ],
        "header": library.weights.header.decode(),
        "bytes": len(library.weights.data),
    }


def method(entry: Entry) -> str:
    """Return what a function is called in JavaScript.

    >>> method(Entry("another", (), (), (), ()))
    'another_'
    """
    return f"{entry.name}_" if entry.name in _TAKEN else entry.name


def _told(v: CValue, what: str) -> dict[str, Any]:
    shape = [None if isinstance(extent, Dim) else extent for extent in v.extents] if v.rank else []
    return {"name": v.field, "dtype": _dtype(v, what), "shape": shape}


def _dtype(v: CValue, what: str) -> str:
    dtype = _NUMBERS[v.type.kind] if isinstance(v.type, ScalarType) else v.type.dtype.name
    if dtype not in _ARRAYS:
        raise NoFormInC(f"{what} '{v.name}' is {v.type}: JavaScript has no array of {dtype}")
    return dtype


def _leb128(number: int) -> bytes:
    """Return a number as WebAssembly writes it.

    >>> _leb128(300).hex()
    'ac02'
    """
    made = bytearray()
    while number >= 128:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


# ---- texts ---------------------------------------------------------------------------------------------------------
def module(library: Library) -> str:
    """Return the ES module."""
    return (
        _read("module.mjs").replace("MODEL.wasm", f"{library.name}.wasm").replace("model.wasm", f"{library.name}.wasm")
    )


def page(library: Library) -> str:
    """Return a page with a form for each function."""
    return _read("index.html").replace("MODEL", html.escape(library.name))


def _read(file: str) -> str:
    return (Path(__file__).parent / "page" / file).read_text(encoding="utf-8")


_TYPES = """\
// Made by `dy2st build --target wasm32`.

/** Elements in row-major order. Halves (float16, bfloat16) are their bits. */
export interface Tensor<Data> {
  data: Data;
  shape: number[];
}

export interface Options {
  /** Of random numbers, as paddle.seed takes it. */
  seed?: number | bigint;
  /** What a run may hold beside its inputs; 0: no limit. */
  mostBytes?: number | bigint;
  /** The bytes of a safetensors file that `save` gave, or of that beside the model. */
  weights?: Uint8Array;
}

export interface Value {
  name: string;
  dtype: string;
  shape: (number | null)[];
}

export interface Told {
  name: string;
  inputs: Value[];
  outputs: Value[];
}

export declare class ModelError extends Error {
  code: "INVALID" | "FAILED" | "NO_MEMORY" | "BUSY" | "BAD_FILE";
}
"""
_END = """
  /** The functions, with the names, dtypes and shapes (null: any extent) of their values. */
  readonly functions: readonly Told[];
  /** Return another model that shares the code, with a state of its own. */
  another(options?: Options): Model;
  /** Return the weights as they are now, as the bytes of a safetensors file. */
  save(): Uint8Array;
  /** Give the memory of this model back. */
  free(): void;
}

/** Return a model; without a source, that of the file beside the module. */
export declare function load(
  source?: string | URL | Response | Promise<Response> | ArrayBuffer | Uint8Array | WebAssembly.Module,
  options?: Options,
): Promise<Model>;
"""


def types(library: Library) -> str:
    """Return the types of the ES module."""
    texts = [_TYPES]
    methods: list[str] = []
    for entry in library.entries:
        title = "".join(word.capitalize() for word in entry.name.split("_"))
        texts.append(_interface(f"{title}Inputs", entry.given, is_input=True))
        texts.append(_interface(f"{title}Outputs", entry.made, is_input=False))
        optional = "" if entry.given else "?"
        methods.append(f"  {method(entry)}(inputs{optional}: {title}Inputs): {title}Outputs;")
    return "\n".join([*texts, "export declare class Model {", *methods]) + _END


def _interface(name: str, values: Sequence[CValue], *, is_input: bool) -> str:
    lines = [line for v in values for line in _field(v, is_input=is_input)]
    return "\n".join([f"export interface {name} {{", *lines, "}", ""])


def _field(v: CValue, *, is_input: bool) -> Iterator[str]:
    dtype = _dtype(v, "input" if is_input else "output")
    yield f"  /** {str(v.type).replace('*/', '* /')} */"
    scalar = {"bool": "boolean", "int64": "bigint"}.get(dtype, "number")
    if not v.rank:
        yield f"  {v.field}: {'number | bigint' if is_input and dtype == 'int64' else scalar};"
        return
    kind = f"Tensor<{_ARRAYS[dtype]}>"
    if not is_input:
        yield f"  {v.field}: {kind};"
        return
    numbers = {"bool": "boolean[]", "int64": "(number | bigint)[]"}.get(dtype, "number[]")
    kinds = [f"Tensor<{_ARRAYS[dtype]} | {numbers}>", *([_ARRAYS[dtype], numbers] if v.rank == 1 else [])]
    yield f"  {v.field}: {' | '.join(kinds)};"
