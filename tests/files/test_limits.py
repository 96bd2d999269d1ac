"""What a file may make this process do: bytes, counts and time are bounded before anything is made of it."""

import json
import pickle
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import pickle_machine, safetensors_head, state_files, state_reading, strict_json

SAME_HASH = 2**61 - 1
"""Its multiples have one hash, as far as a dict of ints is concerned."""


def refused(path: Path, message: str, seconds: float = 2.0) -> str:
    began = time.monotonic()
    with pytest.raises(FileFormatError, match=message) as caught:
        paddle.load(str(path))
    assert time.monotonic() - began < seconds
    assert len(str(caught.value)) < 800
    assert "\n" not in str(caught.value)
    return str(caught.value)


def plain(path: Path, header: bytes, data: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def state_file(path: Path, structure: Any) -> Path:
    """Write a state file of our own with checksums that are right."""
    metadata = {"structure": json.dumps(structure)}
    state_files.safetensors_io.write(path, state_files.FORMAT, state_files.VERSION, {}, metadata)
    return path


# ---- keys whose hashes are one -------------------------------------------------------------------------------------
def test_numbers_of_one_hash_are_no_keys_of_a_state_file(tmp_path: Path) -> None:
    path = state_file(tmp_path / "s", {"dict": [[i * SAME_HASH, None] for i in range(60_000)]})
    refused(path, "a number of more than 64 bits as a key")


@pytest.mark.parametrize("protocol", [2, 4])
def test_numbers_of_one_hash_are_no_keys_of_a_pickle(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "s").write_bytes(_pickled_pairs([i * SAME_HASH for i in range(60_000)], protocol))
    refused(tmp_path / "s", "a number of more than 64 bits as a key")


def _pickled_pairs(keys: list[Any], protocol: int) -> bytes:
    """Return the pickle of a dict that Python would take long to make."""
    pairs = b"".join(pickle.dumps(key, 2)[2:-1] + b"N" for key in keys)
    return b"\x80" + bytes([protocol]) + b"}(" + pairs + b"u."


def test_floats_of_one_hash_are_no_keys_of_a_pickle(tmp_path: Path) -> None:
    keys = [float(m << e) for e in range(0, 900, 61) for m in range(1, 1000)]
    (tmp_path / "s").write_bytes(_pickled_pairs(keys, 4))
    refused(tmp_path / "s", "more than 1000 floats as keys")


@pytest.mark.slow
def test_any_keys_that_are_read_are_read_fast(tmp_path: Path) -> None:
    for step in (1, 1 << 12, 1 << 24, 1 << 32, (1 << 40) + 1):
        state = dict.fromkeys(range(0, step * 60_000, step))
        state_files.save(state, tmp_path / "s")
        began = time.monotonic()
        assert state_reading.load(tmp_path / "s") == state
        assert time.monotonic() - began < 3


def test_such_keys_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a key of the object\['a'\] has more than 64 bits, which cannot be saved"):
        paddle.save({"a": {2**64: 1}}, str(tmp_path / "s"))
    paddle.save({2**64 - 1: 1, 1 - 2**64: 2}, str(tmp_path / "s"))
    assert paddle.load(str(tmp_path / "s")) == {2**64 - 1: 1, 1 - 2**64: 2}


# ---- headers -------------------------------------------------------------------------------------------------------
def test_a_long_header_is_not_read(tmp_path: Path) -> None:
    path = plain(tmp_path / "s", b'{"a":[' + b"[]," * (20 << 20) + b"[]]}")
    tracemalloc.start()
    try:
        refused(path, rf"the header is said to have \d+ bytes, the limit is {safetensors_head.MAX_HEADER}")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", [b"[],", b'{"":0},', b"0,"])
def test_a_header_of_very_many_values_is_not_parsed(tmp_path: Path, unit: bytes) -> None:
    count = 2_100_000 if unit.startswith((b"[", b"{")) else 4_100_000
    refused(plain(tmp_path / "s", b'{"a":[' + unit * count + b"0]}"), "the header holds too much: [0-9]+ commas")


def test_a_structure_of_very_many_values_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = state_file(tmp_path / "s", {"list": [0] * 10_000})
    monkeypatch.setattr(strict_json, "MAX_MARKS", 5000)
    refused(path, "the header holds too much")


@pytest.mark.slow
def test_three_hundred_thousand_tensors_are_refused(tmp_path: Path) -> None:
    empty = '"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    header = "{" + ",".join(empty.format(i) for i in range(300_000)) + "}"
    refused(plain(tmp_path / "s", header.encode()), "the header names 300000 tensors, the limit is 100000", 10)


def test_what_would_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors_head, "MAX_TENSORS", 10)
    with pytest.raises(ValueError, match="a file holds 10 tensors at most, with padding 21"):
        paddle.save({str(i): np.zeros(1) for i in range(11)}, str(tmp_path / "s"))
    monkeypatch.undo()
    monkeypatch.setattr(strict_json, "MAX_MARKS", 500)
    with pytest.raises(ValueError, match="the header holds too much"):
        paddle.save([0] * 1000, str(tmp_path / "s"))
    assert not list(tmp_path.iterdir())


# ---- pickles -------------------------------------------------------------------------------------------------------
def test_a_pickle_of_very_many_opcodes_is_left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle_machine, "MAX_OPCODES", 10_000)
    (tmp_path / "s").write_bytes(b"\x80\x04(" + b"}" * 50_000 + b"l.")
    refused(tmp_path / "s", "the pickle has more than 10000 opcodes")


@pytest.mark.parametrize("opcode", [b"\x8d", b"\x8e"])
def test_a_pickle_that_says_it_has_very_many_bytes_takes_no_memory(tmp_path: Path, opcode: bytes) -> None:
    (tmp_path / "s").write_bytes(b"\x80\x04" + opcode + struct.pack("<Q", 1 << 40) + b"abc.")
    tracemalloc.start()
    try:
        refused(tmp_path / "s", "damaged or cut short")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("digits", [b"1" * 10_000, b"-1", b"9" * 30])
def test_a_place_in_the_memo_is_a_small_number(tmp_path: Path, digits: bytes) -> None:
    (tmp_path / "s").write_bytes(b"\x80\x02Np" + digits + b"\n.")
    refused(tmp_path / "s", "damaged")


def test_a_very_large_number_in_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(pickle.dumps({"a": 1 << 20_000}))
    refused(tmp_path / "s", "a number of more than 128 bits")


# ---- texts of errors -----------------------------------------------------------------------------------------------
def test_errors_are_short_whatever_the_file_says(tmp_path: Path) -> None:
    long = "x" * 100_000
    for header in ({long: 3}, {"w": {"dtype": long, "shape": [1], "data_offsets": [0, 1]}}, {"w": [long]}):
        refused(plain(tmp_path / "s", json.dumps(header).encode()), "tensor")
    refused(state_file(tmp_path / "s", {long: 1}), "a node that is none")


def test_the_text_of_an_error_about_a_file_is_bounded() -> None:
    assert str(FileFormatError("short")) == "short"
    text = str(FileFormatError("a" * 5000 + "z" * 5000))
    assert (len(text), text[:2], text[-2:]) == (605, "aa", "zz")
