"""Libraries as WebAssembly, called from node as JavaScript calls them; arrays come and go as their bits."""

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

HAS_ZIG = importlib.util.find_spec("ziglang") is not None
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed, which compiles C to WebAssembly")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
_PRELUDE = """
import { readFileSync } from "node:fs";
import { load, ModelError } from "./model.mjs";
const KINDS = {
  bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  float16: Uint16Array, float32: Float32Array, float64: Float64Array,
};
const taken = ({ dtype, hex, shape }) => {
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  const data = new KINDS[dtype](bytes.buffer);
  if (shape.length) return { data, shape };
  return dtype === "bool" ? data[0] !== 0 : data[0];
};
const bits = (value) => {
  if (typeof value !== "object") return { plain: String(value), kind: typeof value };
  return { hex: Buffer.from(value.data.buffer).toString("hex"), shape: value.shape, kind: value.data.constructor.name };
};
const given = (inputs) => Object.fromEntries(Object.entries(inputs).map(([name, told]) => [name, taken(told)]));
const got = (call) => {
  try {
    return Object.fromEntries(Object.entries(call()).map(([name, value]) => [name, bits(value)]));
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return { error: error.message, code: error.code };
  }
};
const told = JSON.parse(readFileSync("told.json"));
const print = (value) => console.log(JSON.stringify(value));
"""
_ARRAYS = {
    "Uint8Array": np.uint8, "Int8Array": np.int8, "Int16Array": np.int16, "Int32Array": np.int32,
    "BigInt64Array": np.int64, "Uint16Array": np.float16, "Float32Array": np.float32, "Float64Array": np.float64,
}  # fmt: skip


def built(function: Any, spec: Sequence[InputSpec] | None, folder: Path, **how: Any) -> Path:
    """Build a function or Layer for this test, and return the folder."""
    paddle.jit.export_library(function, folder, spec, name="model", target="wasm32", **{"strict": True, **how})
    return folder


def in_node(folder: Path, script: str, told: Any = None) -> list[Any]:
    """Run a script, which has `load`, `given`, `got` and `told`, and return what it prints."""
    (folder / "script.mjs").write_text(_PRELUDE + script)
    (folder / "told.json").write_text(json.dumps(told))
    ran = subprocess.run(["node", "script.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert not ran.returncode, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def told(**inputs: Any) -> dict[str, Any]:
    """Return inputs as `given` reads them."""
    arrays = {name: np.asarray(x) for name, x in inputs.items()}
    return {
        name: {"dtype": x.dtype.name, "hex": np.ascontiguousarray(x).tobytes().hex(), "shape": list(x.shape)}
        for name, x in arrays.items()
    }


def array(value: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Return a result as it was printed."""
    if "plain" in value:
        kinds = {"bigint": np.int64, "number": np.float64, "boolean": np.bool_}
        text = value["plain"]
        return np.array(text == "true" if value["kind"] == "boolean" else kinds[value["kind"]](text))
    return np.frombuffer(bytes.fromhex(value["hex"]), _ARRAYS[value["kind"]]).reshape(value["shape"])


def calls(folder: Path, *inputs: dict[str, Any], function: str = "forward", options: str = "{}") -> list[Any]:
    """Return what calls of one model give, one after the other: lists of arrays, or errors as dictionaries."""
    script = f"""
    const model = await load(undefined, {options});
    for (const inputs of told) print(got(() => model.{function}(given(inputs))));
    """
    printed = in_node(folder, script, [told(**given) for given in inputs])
    return [r if "error" in r else [array(v) for v in r.values()] for r in printed]
