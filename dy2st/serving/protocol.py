"""The Open Inference Protocol, version 2 (KServe, Triton): the bytes of a request as arrays, and arrays as a response.

    {"id": "7", "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [[1.0, 2.0]]}],
     "outputs": [{"name": "output", "parameters": {"binary_data": true}}]}

With the binary tensor extension the header `Inference-Header-Content-Length` says where the JSON ends. Behind it stand
the elements of all tensors that say `"parameters": {"binary_data_size": n}` in place of `data`: little-endian, by rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, dtype
from dy2st.errors import Dy2stError, FileFormatError
from dy2st.files import strict_json
from dy2st.records import record

LENGTH = "inference-header-content-length"
DATATYPES = {
    "BOOL": "bool", "UINT8": "uint8", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "BF16": "bfloat16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip
_NAMES = {name: datatype for datatype, name in DATATYPES.items()}
MAX_RANK = 32


class Refused(Dy2stError):
    """A request that is answered with an error: its status and a text of one line."""

    def __init__(self, status: int, text: str):
        super().__init__(text if len(text) <= 1000 else text[:1000] + " ...")
        self.status = status


@record(frozen=True)
class Request:
    """What a request asks for. `wanted` maps the outputs that it names, or none, to whether their data are binary."""

    id: str | None
    inputs: dict[str, np.ndarray]
    wanted: dict[str, bool]
    binary: bool
    """Whether outputs are binary where the request does not say so of each."""


def datatype_of(kind: DType) -> str | None:
    """Return the protocol's name of a dtype; None where it has none."""
    return _NAMES.get(kind.name)


# ---- reading -----------------------------------------------------------------------------------------------------
def read_request(body: bytes, header: str | None) -> Request:
    """Return what the bytes of a request say; Refused (400) names what is wrong with them."""
    length = _length(header, len(body))
    try:
        data = strict_json.loads(body[:length].decode(), "the request")
    except (UnicodeDecodeError, FileFormatError) as error:
        raise Refused(400, str(error)) from error
    data = _fields(data, "the request", {"id": str, "parameters": dict, "inputs": list, "outputs": list}, {"inputs"})
    inputs: dict[str, np.ndarray] = {}
    rest = memoryview(body)[length:]
    for said in data["inputs"]:
        name, array, used = _tensor(said, rest)
        if name in inputs:
            raise Refused(400, f"input {name!r:.60} is there twice")
        inputs[name], rest = array, rest[used:]
    if len(rest):
        raise Refused(400, f"{len(rest)} bytes of the request belong to no input")
    binary = _flag(data.get("parameters", {}), "binary_data_output")
    return Request(data.get("id"), inputs, _wanted(data.get("outputs", []), binary), binary)


def _length(header: str | None, size: int) -> int:
    if header is None:
        return size
    if not (header.isascii() and header.isdigit() and len(header) < 16 and int(header) <= size):
        raise Refused(400, f"{LENGTH}: {header!r:.60} is no number of bytes of a body of {size}")
    return int(header)


def _wanted(outputs: Sequence[Any], binary: bool) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for said in outputs:
        said = _fields(said, "an output", {"name": str, "parameters": dict}, {"name"})
        found[said["name"]] = _flag(said.get("parameters", {}), "binary_data", binary)
    return found


def _flag(parameters: Mapping[str, Any], name: str, otherwise: bool = False) -> bool:
    flag = parameters.get(name, otherwise)
    if type(flag) is not bool:
        raise Refused(400, f"parameter {name!r} is true or false, not {flag!r:.60}")
    return flag


def _fields(data: Any, what: str, kinds: Mapping[str, type], needed: set[str]) -> dict[str, Any]:
    if type(data) is not dict:
        raise Refused(400, f"{what} is a JSON object, not {data!r:.60}")
    for name in sorted(needed - data.keys()):
        raise Refused(400, f"{what} has no {name!r}")
    for name, value in data.items():
        if name not in kinds:
            raise Refused(400, f"{what} has a field {name!r:.60}, which is not known")
        if type(value) is not kinds[name]:
            raise Refused(400, f"{name!r} of {what} is a {kinds[name].__name__}, not {value!r:.60}")
    return data


def _tensor(said: Any, rest: memoryview) -> tuple[str, np.ndarray, int]:
    """Return the name and the array of one input, and how many bytes of the binary part are its."""
    kinds = {"name": str, "shape": list, "datatype": str, "parameters": dict, "data": list}
    said = _fields(said, "an input", kinds, {"name", "shape", "datatype"})
    name, shape, datatype = said["name"], said["shape"], said["datatype"]
    where = f"input {name!r:.60}"
    if len(shape) > MAX_RANK or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise Refused(400, f"{where}: {shape!r:.60} is no shape")
    if datatype not in DATATYPES:
        raise Refused(400, f"{where}: {datatype!r:.60} is none of {', '.join(DATATYPES)}")
    kind, count = dtype(DATATYPES[datatype]).numpy, math.prod(shape)
    size = said.get("parameters", {}).get("binary_data_size")
    if (size is None) == ("data" not in said):
        raise Refused(400, f"{where} has either 'data' or the parameter 'binary_data_size'")
    if size is None:
        return name, _from_json(said["data"], shape, count, kind, where), 0
    if type(size) is not int or size != count * kind.itemsize:
        raise Refused(400, f"{where}: {size!r:.60} bytes are no {datatype} of shape {shape}")
    if size > len(rest):
        raise Refused(400, f"{where}: {size} bytes are said to follow, and {len(rest)} do")
    if datatype == "BOOL" and size and max(rest[:size]) > 1:
        raise Refused(400, f"{where}: a byte of a BOOL is 0 or 1")
    return name, np.frombuffer(rest[:size], kind.newbyteorder("<")).astype(kind).reshape(shape), size


def _from_json(data: Any, shape: Sequence[int], count: int, kind: np.dtype[Any], where: str) -> np.ndarray:
    try:
        found = np.array(data)
    except (ValueError, OverflowError) as error:
        raise Refused(400, f"{where}: 'data' is no array ({error})") from error
    if found.shape not in (tuple(shape), (count,)):
        raise Refused(400, f"{where}: 'data' of shape {list(found.shape)} is not of shape {list(shape)}")
    if not count:
        return np.zeros(shape, kind)
    floating = kind.kind not in "biu"
    if found.dtype.kind not in ("iuf" if floating else "b" if kind.kind == "b" else "iu"):
        raise Refused(400, f"{where}: 'data' does not hold the numbers of a {kind}")
    if kind.kind in "iu" and not np.iinfo(kind).min <= found.min() <= found.max() <= np.iinfo(kind).max:
        raise Refused(400, f"{where}: 'data' has a number that {kind} has not")
    with np.errstate(over="ignore"):
        made = found.astype(kind).reshape(shape)
    if floating and not np.isfinite(made.astype(np.float64)).all():
        raise Refused(400, f"{where}: 'data' has a number that is too large for {kind}")
    return made


# ---- writing -----------------------------------------------------------------------------------------------------
def write_response(model: str, request: Request, outputs: Mapping[str, np.ndarray]) -> tuple[bytes, int | None]:
    """Return the body of a response, and how long its JSON is where binary data follow."""
    for name in request.wanted.keys() - outputs.keys():
        raise Refused(400, f"there is no output {name!r:.60}; there are {', '.join(outputs)}")
    listed: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name in request.wanted or outputs:
        array = outputs[name]
        datatype = _NAMES[array.dtype.name]
        said: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(array.shape)}
        if request.wanted.get(name, request.binary):
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            parts.append(little.tobytes())
            said["parameters"] = {"binary_data_size": little.nbytes}
        else:
            said["data"] = _to_json(name, array)
        listed.append(said)
    answer = {"model_name": model, "model_version": "1", "outputs": listed}
    text = strict_json.dumps(answer if request.id is None else {**answer, "id": request.id}).encode()
    return b"".join([text, *parts]), len(text) if parts else None


def _to_json(name: str, array: np.ndarray) -> list[Any]:
    if array.dtype.kind not in "biu":
        array = array.astype(np.float64) if array.dtype.kind != "f" else array
        if not np.isfinite(array).all():
            text = f"output {name!r} has numbers that are not finite, which JSON has not: ask for binary data"
            raise Refused(400, text)
    return array.ravel().tolist()
