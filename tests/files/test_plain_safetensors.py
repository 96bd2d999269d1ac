"""Plain safetensors files, as other programs write and read them, and how state files are told apart."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import plain_safetensors, state_reading

STATE = {
    "fc.weight": np.arange(6, dtype="float32").reshape(3, 2).T,
    "~odd name": np.array([1, 2], "int64"),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3), "float16"),
    "mask": np.array([True, False, True]),
}


def same(found: dict[str, Any], want: dict[str, Any]) -> None:
    assert found.keys() == want.keys()
    for name, array in want.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_other_programs_read_what_is_written(tmp_path: Path) -> None:
    plain_safetensors.save(STATE, tmp_path / "s.safetensors")
    same(safetensors.numpy.load_file(tmp_path / "s.safetensors"), STATE)


def test_what_other_programs_write_is_read(tmp_path: Path) -> None:
    contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in STATE.items()}
    safetensors.numpy.save_file(contiguous, tmp_path / "s.safetensors")
    found = state_reading.load(tmp_path / "s.safetensors")
    same(found, STATE)
    found["scalar"][...] = 3.0
    assert state_reading.load(tmp_path / "s.safetensors")["scalar"] == 2.5


def written(path: Path, header: Any, data: bytes = b"", padding: int = 0) -> Path:
    text = json.dumps(header).encode() + b" " * padding
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_bfloat16_and_complex_numbers(tmp_path: Path) -> None:
    header = {
        "b": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "c": {"dtype": "C64", "shape": [1], "data_offsets": [4, 12]},
    }
    found = state_reading.load(written(tmp_path / "s", header, b"\xc0\x3f\x00\xc0" + struct.pack("<2f", 1, 2)))
    assert (found["b"].dtype.name, found["b"].tolist()) == ("bfloat16", [1.5, -2.0])
    assert found["c"].tolist() == [1 + 2j]


@pytest.mark.parametrize("length", [0x80, 0x180, 0x480])
def test_a_header_whose_length_begins_as_a_pickle(tmp_path: Path, length: int) -> None:
    header = {"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    path = written(tmp_path / "s", header, b"\7", length - len(json.dumps(header)))
    assert path.read_bytes()[:1] == b"\x80"
    assert state_reading.load(path)["w"].tolist() == [7]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], "not a dy2st file"),
        ({"w": 3}, "tensor 'w': dtype, shape and data_offsets are expected"),
        ({"w": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, "has the unknown dtype 'F8_E4M3'"),
        ({"w": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 1]}}, "cannot have 1 bytes"),
        ({"w": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, "starts at byte 1 of the data, not at 0"),
        ({}, "the tensors take 0 bytes, the file has 1"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, header: Any, message: str) -> None:
    path = written(tmp_path / "s", header, b"\0")
    with pytest.raises(FileFormatError, match=message) as caught:
        state_reading.load(path)
    assert str(caught.value).startswith(str(path))


def test_the_suffix_chooses_the_plain_form(tmp_path: Path) -> None:
    layer = paddle.nn.Linear(3, 2)
    paddle.save(layer.state_dict(), tmp_path / "m.safetensors")
    assert set(safetensors.numpy.load_file(tmp_path / "m.safetensors")) == {"weight", "bias"}
    other = paddle.nn.Linear(3, 2)
    assert other.set_state_dict(paddle.load(tmp_path / "m.safetensors")) == ([], [])
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())


@pytest.mark.parametrize(
    ("obj", "what"),
    [({"lr": 0.1}, "'lr'"), ({3: np.zeros(1)}, "3"), ([np.zeros(1)], "a list"), ({"a": {"b": np.zeros(1)}}, "'a'")],
)
def test_the_plain_form_holds_no_more_than_tensors(tmp_path: Path, obj: Any, what: str) -> None:
    with pytest.raises(TypeError, match=f"holds tensors by name and no more: {what} cannot be saved to it"):
        paddle.save(obj, tmp_path / "m.safetensors")
