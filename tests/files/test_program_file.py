"""Program files: any reader of safetensors opens them, and no damage goes unnoticed."""

import errno
import hashlib
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from dy2st.dtypes import ALL
from dy2st.errors import FileFormatError
from dy2st.files import program_file as files
from dy2st.files import safetensors_head, safetensors_io
from dy2st.ir.checker.check import check
from dy2st.ir.equality import structurally_equal
from dy2st.ir.serialize import from_json, to_json
from tests.ir import programs
from tests.shares import examples

PROGRAM = {"entry": "main", "functions": {"main": {"arguments": [], "operations": [], "results": []}}}
TENSORS = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False]), "s": np.array(2.5)}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return files.write(tmp_path / "m", PROGRAM, TENSORS, {"name": "net"})


# ---- what is written is read back ----------------------------------------------------------------------------------
def test_round_trip(small: Path) -> None:
    assert small.name == "m.dy2st"
    for path in (small, small.with_suffix(""), str(small)):
        metadata, program, tensors = files.read(path)
        assert (metadata, program) == ({"name": "net"}, PROGRAM)
        assert {name: array.tolist() for name, array in tensors.items()} == {k: v.tolist() for k, v in TENSORS.items()}


@pytest.mark.parametrize("name", [t.name for t in ALL])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2, 3, 2)])
def test_every_dtype_and_shape(tmp_path: Path, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    array = np.asarray(rng.normal(size=shape) * 9).astype(name)
    files.write(tmp_path / "m", PROGRAM, {"first": np.zeros(3, np.uint8), "x": array, "last": array}, {})
    found = files.read(tmp_path / "m")[2]["x"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def test_arrays_that_are_not_contiguous(tmp_path: Path) -> None:
    array = np.arange(24.0).reshape(4, 6)[::2, ::-1].T
    files.write(tmp_path / "m", PROGRAM, {"x": array, "c": array * 1j, "v": np.broadcast_to(np.float32(3), (2, 2))}, {})
    found = files.read(tmp_path / "m")[2]
    assert np.array_equal(found["x"], array)
    assert np.array_equal(found["c"], array * 1j)
    assert found["v"].tolist() == [[3, 3], [3, 3]]


def test_tensors_are_aligned_and_read_only(small: Path) -> None:
    tensors = files.read(small)[2]
    for array in tensors.values():
        assert array.ctypes.data % safetensors_io.ALIGNMENT == 0
        assert not array.flags.writeable
        assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        tensors["w"][0] = 1


def test_private_tensors_can_be_written_and_the_file_stays(small: Path) -> None:
    before = small.read_bytes()
    files.write(small, PROGRAM, {**TENSORS, "none": np.zeros((0, 2))}, {"name": "net"})
    written = small.read_bytes()
    assert written != before
    tensors = files.read(small, private=True)[2]
    tensors["w"][...] = 7
    tensors["none"][...] = 1
    assert tensors["w"].tolist() == [[7, 7, 7], [7, 7, 7]]
    assert small.read_bytes() == written
    assert files.read(small)[2]["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_file_that_was_renamed(small: Path) -> None:
    other = small.rename(small.with_name("model.bin"))
    assert files.found(other) == other
    assert files.read(other)[0] == {"name": "net"}
    assert files.found(small) == small


def test_tensors_outlive_the_file(small: Path) -> None:
    tensor = files.read(small)[2]["w"]
    files.write(small, PROGRAM, {"w": np.zeros((2, 3), np.float32)}, {})
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    small.unlink()
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_any_reader_of_safetensors_opens_it(small: Path) -> None:
    with safe_open(small, "numpy") as file:
        assert [name for name in file.keys() if not name.startswith("~")] == ["b", "s", "w"]
        assert np.array_equal(file.get_tensor("w"), TENSORS["w"])
        metadata = file.metadata()
    assert json.loads(metadata["program"]) == PROGRAM
    data = {name: json.loads(text) for name, text in metadata.items() if text[0] in "{["}
    assert data == {"complex": [], "program": PROGRAM, "metadata": {"name": "net"}}
    assert metadata["program_sha256"] == hashlib.sha256(metadata["program"].encode()).hexdigest()
    assert (metadata["format"], metadata["version"]) == ("dy2st", "1")


def test_complex_tensors_are_pairs_for_other_readers(tmp_path: Path) -> None:
    files.write(tmp_path / "m", PROGRAM, {"c": np.array([1 + 2j])}, {})
    with safe_open(tmp_path / "m.dy2st", "numpy") as file:
        assert file.get_tensor("c").tolist() == [[1, 2]]


@pytest.mark.parametrize("name", programs.every())
def test_programs_through_files(tmp_path: Path, name: str) -> None:
    program = programs.every()[name]
    data, arrays = to_json(program)
    files.write(tmp_path / "m", data, arrays, {})
    _, data, tensors = files.read(tmp_path / "m")
    check(program)  # types are made anew by who reads
    assert structurally_equal(from_json(data, tensors), program, names=True)


# ---- what is refused when writing ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tensors", "metadata", "kind", "message"),
    [
        ({"w": [1.0]}, {}, TypeError, "tensor 'w' of a file must be a NumPy array, not list"),
        ({"w": np.array(["a"])}, {}, TypeError, "arrays of dtype <U1 cannot become tensors"),
        ({"": np.zeros(1)}, {}, ValueError, "a tensor in a file cannot be named ''"),
        ({"~0": np.zeros(1)}, {}, ValueError, "a tensor in a file cannot be named '~0'"),
        ({"__metadata__": np.zeros(1)}, {}, ValueError, "cannot be named '__metadata__'"),
        ({}, {"a": float("nan")}, ValueError, "not JSON compliant"),
        ({}, {"a": object()}, ValueError, "metadata must be plain JSON data"),
    ],
)
def test_what_cannot_be_written(
    small: Path, tensors: Any, metadata: dict[str, Any], kind: type[Exception], message: str
) -> None:
    before = small.read_bytes()
    with pytest.raises(kind, match=message):
        files.write(small, PROGRAM, tensors, metadata)
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]


def test_a_header_that_no_reader_takes_is_not_written(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors_head, "MAX_HEADER", 100)
    with pytest.raises(ValueError, match=r"the header would have \d+ bytes, the limit is 100"):
        files.write(small, PROGRAM, {}, {})


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_error_leaves_the_old_file(small: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = small.read_bytes()
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left on device"):
        files.write(small, PROGRAM, {"w": np.ones(1000)}, {})
    monkeypatch.undo()
    assert small.read_bytes() == before
    assert os.listdir(small.parent) == [small.name]


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        files.write(tmp_path / "nowhere" / "m", PROGRAM, {}, {})
    with pytest.raises(FileNotFoundError, match=r"m\.dy2st"):
        files.read(tmp_path / "m")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.dy2st").write_text("old")
    (tmp_path / "m.dy2st").symlink_to(tmp_path / "real.dy2st")
    files.write(tmp_path / "m", PROGRAM, {}, {})
    assert (tmp_path / "m.dy2st").is_symlink()
    assert files.read(tmp_path / "real")[1] == PROGRAM


# ---- damage --------------------------------------------------------------------------------------------------------
FEW_OR_ALL = [pytest.param(11, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]


@pytest.mark.parametrize("step", FEW_OR_ALL)
def test_every_truncation_is_noticed(small: Path, step: int) -> None:
    whole = small.read_bytes()
    for length in range(0, len(whole), step):
        small.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"m\.dy2st: "):
            files.read(small)


@pytest.mark.parametrize("step", FEW_OR_ALL)
def test_every_altered_byte_is_noticed(small: Path, step: int) -> None:
    whole = bytearray(small.read_bytes())
    for at in range(0, len(whole), step):
        for flip in (0x01, 0x20, 0x80):
            whole[at] ^= flip
            small.write_bytes(whole)
            with pytest.raises(FileFormatError, match=r"m\.dy2st: "):
                files.read(small)
            whole[at] ^= flip
    small.write_bytes(whole)
    files.read(small)


@given(st.data())
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_cut_out_doubled_or_replaced_are_noticed(small: Path, data: st.DataObject) -> None:
    whole = small.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    damaged = whole[:start] + data.draw(st.binary(max_size=12)) + whole[end:]
    if damaged == whole:
        return
    other = small.with_name("damaged.dy2st")
    other.write_bytes(damaged)
    with pytest.raises(FileFormatError, match=r"damaged\.dy2st: "):
        files.read(other)


def test_errors_are_one_line(small: Path) -> None:
    small.write_bytes(b"\x80\x04pickle" * 4)
    with pytest.raises(FileFormatError) as info:
        files.read(small)
    assert str(info.value).count("\n") == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty or cut short"),
        (b"abc", "the file is empty or cut short"),
        (b"\x80\x04\x95" + b"x" * 20, "not a dy2st file but a pickle, which is not read because reading one can run"),
        (b"PK\x03\x04" + b"x" * 20, r"not a dy2st file but a zip archive \(a PyTorch file\?\)"),
        (b"\x00" * 40, "not a dy2st file$"),
        (struct.pack("<Q", 1 << 62) + b"{" * 20, "the header is said to have 4611686018427387904 bytes"),
        (struct.pack("<Q", 2) + b"{}", "not a dy2st file: its header has no metadata"),
        (struct.pack("<Q", 2) + b"{]", "the header is not valid JSON"),
        (struct.pack("<Q", 3) + b"{\xff}", "the header is not UTF-8 text"),
        (struct.pack("<Q", 21) + b'{"__metadata__": {}} ', "not a file of the format 'dy2st' but of another"),
    ],
)
def test_files_that_are_not_ours(small: Path, content: bytes, message: str) -> None:
    small.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        files.read(small)


def test_a_header_past_the_limit_is_not_read(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors_head, "MAX_HEADER", 100)
    with pytest.raises(FileFormatError, match=r"the header is said to have \d+ bytes"):
        files.read(small)


# ---- hostile files: the checksums are right, the content is not ------------------------------------------------------
Header = dict[str, Any]


def forge(path: Path, change: Callable[[Header], Any], data: bytes = b"", raw: Callable[[str], str] = str) -> None:
    """Write a file whose header `change` has altered, with checksums that fit."""
    whole = path.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header: Header = json.loads(whole[8 : 8 + size])
    data = data or whole[8 + size :]
    header["__metadata__"]["header_sha256"] = "0" * 64
    header["__metadata__"]["data_sha256"] = hashlib.sha256(data).hexdigest()
    change(header)
    text = header["__metadata__"].get("program", "")
    header["__metadata__"]["program_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    encoded = raw(json.dumps(header, separators=(",", ":"))).encode()
    head = struct.pack("<Q", len(encoded)) + encoded
    digest = hashlib.sha256(head).hexdigest()
    path.write_bytes(head.replace(b"0" * 64, digest.encode()) + data)


def test_a_forged_file_that_nothing_changed_is_read(small: Path) -> None:
    forge(small, lambda header: None)
    assert files.read(small)[1] == PROGRAM


def say(name: str, **said: Any) -> Callable[[Header], None]:
    return lambda header: header[name].update(said)


def tell(name: str, text: Any) -> Callable[[Header], None]:
    return lambda header: header["__metadata__"].update({name: text})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tell("version", "2"), "the file has version 2 of the format; this dy2st reads up to 1"),
        (tell("version", "one"), "'one' is no version of the format"),
        (tell("version", "-1"), "'-1' is no version of the format"),
        (tell("format", "other"), "not a file of the format 'dy2st' but 'other'"),
        (tell("format", 3), "not a dy2st file: its header has no metadata"),
        (tell("more", "x"), "the metadata program, program_sha256, metadata are expected"),
        (tell("program", '{"a": NaN}'), "the Program is not valid JSON: NaN is not a number of JSON"),
        (tell("program", '{"a": -Infinity}'), "-Infinity is not a number of JSON"),
        (tell("program", '{"a": 1e999}'), "the number 1e999 is too large"),
        (tell("program", '{"a": 1, "a": 2}'), "the Program is not valid JSON: the key 'a' is there twice"),
        (tell("program", '{"a":' * 10**5), "the Program is nested too deeply"),
        (tell("program", '{"a": ' + "9" * 5000 + "}"), "the Program is not valid JSON"),
        (tell("program", "[]"), "the Program is not a JSON object"),
        (tell("metadata", "3"), "the metadata is not a JSON object"),
        (tell("complex", '["w"]'), "tensor 'w' is said to be complex and is not stored so"),
        (tell("complex", '["z"]'), "tensor 'z' is said to be complex and is not stored so"),
        (tell("complex", "3"), "tensor None is said to be complex"),
        (lambda header: header["__metadata__"].pop("complex"), "its metadata have no checksums"),
        (lambda header: header.update(w=3), "tensor 'w': dtype, shape and data_offsets are expected"),
        (say("w", more=1), "tensor 'w': dtype, shape and data_offsets are expected"),
        (say("w", dtype="F8"), "tensor 'w' has the unknown dtype 'F8'"),
        (say("w", dtype=["F32"]), "tensor 'w' has the unknown dtype"),
        (say("w", dtype="F64"), "and dtype float64 cannot have 24 bytes"),
        (say("w", shape=[3, 3]), r"tensor 'w' of shape \[3, 3\] and dtype float32 cannot have 24 bytes"),
        (say("w", shape=[-2, -3]), r"tensor 'w' has no possible shape: \[-2, -3\]"),
        (say("w", shape=[True, 6]), "tensor 'w' has no possible shape"),
        (say("w", shape=6), "tensor 'w' has no possible shape: 6"),
        (say("w", shape=[0, 1 << 62, 1 << 62]), "tensor 'w' has no possible shape"),
        (say("w", shape=[1] * 65), "tensor 'w' has no possible shape"),
        (say("w", data_offsets=[0]), r"tensor 'w' has no offsets: \[0\]"),
        (say("w", data_offsets=[-24, 0]), "tensor 'w' has no offsets"),
        (say("w", data_offsets=[24.0, 48.0]), "tensor 'w' has no offsets"),
        (say("w", data_offsets=[24, 0]), "cannot have -24 bytes"),
        (say("w", data_offsets=[8, 32]), "starts at byte 8 of the data, not at 0"),
        (say("b", data_offsets=[0, 2]), "tensor 'w' starts at byte 0 of the data, not at 2"),
        (say("s", data_offsets=[1 << 40, (1 << 40) + 8]), "tensor 's' starts at byte 1099511627776"),
        (lambda header: header.pop("s"), r"the tensors take \d+ bytes, the file has \d+"),
        (lambda header: header.update(t=header["s"]), "tensor 't' starts at byte"),
    ],
)
def test_hostile_headers(small: Path, change: Callable[[Header], Any], message: str) -> None:
    forge(small, change)
    with pytest.raises(FileFormatError, match=message):
        files.read(small)


def test_a_tensor_that_is_there_twice(small: Path) -> None:
    entry = '"w":{"dtype":"F32"'
    forge(small, lambda header: None, raw=lambda text: text.replace(entry, f'"w":3,{entry}'))
    with pytest.raises(FileFormatError, match="the header is not valid JSON: the key 'w' is there twice"):
        files.read(small)


def test_a_header_nested_too_deep(small: Path) -> None:
    forge(small, lambda header: None, raw=lambda text: '{"a":' + "[" * 10**5)
    with pytest.raises(FileFormatError, match="the header is nested too deeply"):
        files.read(small)


def test_a_checksum_of_the_program_that_differs(small: Path) -> None:
    digest = hashlib.sha256(json.dumps(PROGRAM, separators=(",", ":")).encode()).hexdigest()
    forge(small, lambda header: None, raw=lambda text: text.replace(digest, "1" * 64))
    with pytest.raises(FileFormatError, match="the Program was altered: its checksum differs"):
        files.read(small)


def test_bytes_that_are_no_bool(small: Path) -> None:
    whole = small.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + size])
    data = bytearray(whole[8 + size :])
    data[header["b"]["data_offsets"][0]] = 7
    forge(small, lambda header: None, data=bytes(data))
    with pytest.raises(FileFormatError, match="tensor 'b' is bool and has a byte that is neither 0 nor 1"):
        files.read(small)
