"""State that Paddle pickled: what is read of it, and that a hostile file is one clear error and runs nothing."""

import collections
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dy2st.errors import FileFormatError
from dy2st.files import pickled_state, state_reading
from dy2st.files.pickled_state import Named
from tests.shares import examples

CORE = b"numpy._core.multiarray"


def through(folder: Path, obj: Any, protocol: int = 4) -> Any:
    (folder / "x.pdparams").write_bytes(pickle.dumps(obj, protocol=protocol))
    return pickled_state.load(folder / "x.pdparams")


def refused(folder: Path, data: bytes, message: str) -> None:
    (folder / "x.pdparams").write_bytes(data)
    with pytest.raises(FileFormatError, match=message) as caught:
        pickled_state.load(folder / "x.pdparams")
    assert str(caught.value).startswith(str(folder / "x.pdparams"))
    assert "\n" not in str(caught.value)


class Reduced:
    """Pickles as the call that it is given."""

    def __init__(self, *how: Any):
        self.how = how

    def __reduce__(self) -> Any:
        return self.how


# ---- what is read ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_containers_and_arrays(tmp_path: Path, protocol: int) -> None:
    obj = {
        "w": np.arange(6, dtype="float32").reshape(2, 3), "e": np.zeros((0, 3)), "s": np.array(2, "int64"),
        "l": [1, -2.5, None, True, "é", 2**70], 3: (), "o": collections.OrderedDict(a=(1, 2)), "n": np.float64(0.25),
        "b": np.array([True, False]), "c": np.array([1 + 2j], "complex64"), "f": np.asfortranarray(np.eye(2, 3)),
    }  # fmt: skip
    found = through(tmp_path, obj, protocol)
    assert list(found) == list(obj)
    for key, want in obj.items():
        if isinstance(want, np.ndarray):
            assert (found[key].dtype, found[key].shape) == (want.dtype, want.shape)
        np.testing.assert_equal(found[key], want)
    assert type(found["o"]) is dict
    assert type(found["n"]) is np.float64
    found["w"][0, 0] = 7.0  # it can be written to


def test_the_other_byte_order(tmp_path: Path) -> None:
    found = through(tmp_path, np.array([1, 2], ">i4"))
    assert found.tolist() == [1, 2]
    assert found.dtype == np.dtype("int32")


def test_names_of_tensors_and_static_tensors(tmp_path: Path) -> None:
    array = np.ones(2, "float32")
    obj = {"named": Reduced(tuple, (("linear_0.w_0", array),)), "static": Reduced(eval, ("data", {"data": array}))}
    found = through(tmp_path, obj)
    assert isinstance(found["named"], Named)
    assert found["named"].name == "linear_0.w_0"
    np.testing.assert_array_equal(found["static"], array)


def test_what_stands_twice_is_one_object(tmp_path: Path) -> None:
    array = np.ones(2)
    inner = [array, array]
    found = through(tmp_path, {"a": inner, "b": inner})
    assert found["a"] is found["b"]
    assert found["a"][0] is found["a"][1]


def test_arrays_that_were_cut_are_put_together(tmp_path: Path) -> None:
    whole = np.arange(10.0)
    parts = {"w@@.0": whole[:4], "w@@.1": whole[4:8], "w@@.2": whole[8:]}
    table = {"w": {"OriginShape": (5, 2), "slices": list(parts)}}
    found = through(tmp_path, {"b": np.zeros(1), **parts, "UnpackBigParamInfor@@": table}, 2)
    assert list(found) == ["b", "w"]
    np.testing.assert_array_equal(found["w"], whole.reshape(5, 2))


def test_pickles_of_python_2_and_numpy_1(tmp_path: Path) -> None:
    data = (
        b"\x80\x02}q\x00U\x01wq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87R"
        b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x08\x00\x00\x80?\x00\x00\x00@tbs."
    )
    (tmp_path / "x.pdparams").write_bytes(data)
    assert pickled_state.load(tmp_path / "x.pdparams")["w"].tolist() == [1.0, 2.0]


def test_tensors_are_made_of_named_arrays_alone_where_there_are_any(tmp_path: Path) -> None:
    path = tmp_path / "x.pdparams"
    plain, named = np.zeros(1), Reduced(tuple, (("w", np.ones(1)),))
    path.write_bytes(pickle.dumps({"array": plain, "tensor": [named], state_reading.NAME_TABLE: {"tensor": "w"}}))
    found = state_reading.load(path, lambda array: ("made", array.tolist()))
    assert found == {"array": plain, "tensor": [("made", [1.0])]}
    assert state_reading.NAME_TABLE in state_reading.load(path, keep_name_table=True)
    path.write_bytes(pickle.dumps(({"array": plain}, 3)))
    assert state_reading.load(path, lambda _: "made") == ({"array": "made"}, 3)


def test_16_bits_are_bfloat16(tmp_path: Path) -> None:
    path = tmp_path / "x.pdparams"
    path.write_bytes(pickle.dumps({"w": np.array([0x3FC0, 0xC000, 0x7F80], "uint16")}))
    found = state_reading.load(path)["w"]
    assert (found.dtype.name, found.tolist()) == ("bfloat16", [1.5, -2.0, np.inf])


# ---- hostile files -----------------------------------------------------------------------------------------------
CALLED: list[str] = []


def bad_call(*_: Any) -> None:
    CALLED.append("called")


@pytest.mark.parametrize(
    "how",
    [
        (os.system, ("true",)),
        (bad_call, ()),
        (eval, ("__import__('os')", {})),
        (eval, ("data", {"data": 3})),
        (getattr, ("a", "b")),
        (np.load, ("file",)),
        (collections.OrderedDict, ([("a", 1)],)),
        (tuple, ([1, 2],)),
        (np.dtype, ("O",)),
        (np.dtype, ([("a", "f4")],)),
        (bytearray, (10**9,)),
        (list, ((1, 2),)),
    ],
    ids=lambda how: how[0].__name__,
)
def test_calls_are_refused_and_not_made(tmp_path: Path, how: Any) -> None:
    CALLED.clear()
    message = "the pickle holds more than data|the pickle calls|which is not read"
    refused(tmp_path, pickle.dumps({"w": Reduced(*how)}, 4), message)
    assert CALLED == []


OBJECT_ARRAY = pickle.dumps(np.array([{}], dtype=object), 4)
CLASS = pickle.dumps(Path("x"), 4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty or cut short"),
        (b"\x80\x05.", "pickles up to protocol 4 are read, this one has protocol 5"),
        (b"\x80\x04", "the pickle is damaged or cut short"),
        (b"\x80\x04\xff.", "the pickle is damaged or cut short: at position 2"),
        (b"\x80\x04.", "it ends with something left over"),
        (b"\x80\x04K\x01K\x02.", "it ends with something left over"),
        (b"\x80\x04(K\x01.", "it ends with something left over"),
        (b"\x80\x04K\x01.K\x02.", r"there are bytes behind the end of the pickle"),
        (b"\x80\x04h\x07.", "takes from its stack what is not there"),
        (b"\x80\x04\x86.", "takes from its stack what is not there"),
        (b"\x80\x04t.", "takes from its stack what is not there"),
        (b"\x80\x04K\x01K\x02a.", "takes from its stack what is not there"),
        (b"\x80\x04}(K\x01u.", "a dict whose keys are neither texts nor numbers"),
        (b"\x80\x04})K\x01s.", "a dict whose keys are neither texts nor numbers"),
        (b"\x80\x04(K\x01d.", "a dict whose keys are neither texts nor numbers"),
        (b"\x80\x04K\x010.", "it has the opcode POP"),
        (b"\x80\x04\x82\x01.", "it has the opcode EXT1"),
        (b"\x80\x04\x8f.", "it has the opcode EMPTY_SET"),
        (b"\x80\x04K\x01Q.", "it has the opcode BINPERSID"),
        (b"\x80\x04}}b.", "it sets the state of a dict"),
        (b"\x80\x04cos\nsystem\n.", "it names 'os.system', which is not looked up"),
        (b"\x80\x04cnumpy\nndarray\n)R.", "it calls numpy.ndarray"),
        (b"\x80\x04cnumpy\nndarray\n.", "a dtype, a function or raw bytes stand among its values"),
        (b"\x80\x04c" + CORE + b"\n_reconstruct\n)R.", "_reconstruct with what it does not take"),
        (b"\x80\x04C\x02ab.", "a dtype, a function or raw bytes stand among its values"),
        (b"\x80\x04]" + b"]" * 200 + b"a" * 200 + b".", "the data are nested more than 100 deep"),
        (b"\x80\x04]\x94h\x00a.", "the data are nested more than 100 deep"),
        (OBJECT_ARRAY, "an array has the dtype 'O8', which is not read"),
        (CLASS, "it names 'pathlib|it has the opcode"),
    ],
)
def test_hostile_files(tmp_path: Path, data: bytes, message: str) -> None:
    refused(tmp_path, data, message)


def array_of(shape: tuple[int, ...], code: bytes, data: bytes, state: bytes = b"") -> bytes:
    """Return the pickle of an array that says what it is given."""
    extents = b"(" + b"".join(b"J" + struct.pack("<i", e) for e in shape) + b"t"
    order = state or b"(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    dtype = b"cnumpy\ndtype\n\x8c" + bytes([len(code)]) + code + b"\x89\x88\x87R" + order
    head = b"\x80\x04c" + CORE + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    return head + b"(K\x01" + extents + dtype + b"\x89C" + bytes([len(data)]) + data + b"tb."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (array_of((3,), b"f4", b"\0" * 8), r"shape \(3,\) and dtype float32 cannot have 8 bytes"),
        (array_of((2**31 - 1,) * 4, b"f4", b""), "cannot have 0 bytes"),
        (array_of((0, 2**31 - 1, 2**31 - 1, 2**31 - 1), b"f4", b""), "cannot have 0 bytes"),
        (array_of((-1,), b"f4", b"\0" * 4), r"an array has no possible shape: \(-1,\)"),
        (array_of((1,) * 65, b"f4", b"\0" * 4), "an array has no possible shape"),
        (array_of((2,), b"b1", b"\0\2"), "an array is bool and has a byte that is neither 0 nor 1"),
        (array_of((1,), b"V8", b"\0" * 8), "an array has the dtype 'V8', which is not read"),
        (array_of((1,), b"f4", b"\0" * 4, b"(K\x03\x8c\x01!NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"), "otherwise"),
        (array_of((1,), b"f4", b"\0" * 4, b"(K\x01tb"), "makes an array otherwise than NumPy and Paddle do"),
        (b"\x80\x04c" + CORE + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R.", "makes an array otherwise"),
        (b"\x80\x04c" + CORE + b"\n_reconstruct\nK\x01K\x00\x85C\x01b\x87R.", "makes an array otherwise"),
    ],
)
def test_arrays_that_cannot_be(tmp_path: Path, data: bytes, message: str) -> None:
    refused(tmp_path, data, message)


def test_a_small_file_does_not_become_a_large_one(tmp_path: Path) -> None:
    head = b"c" + CORE + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    dtype = b"cnumpy\ndtype\n\x8c\x02u1\x89\x88\x87R(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x94"
    block = b"B" + struct.pack("<I", 4096) + b"\0" * 4096 + b"\x94"
    again = head + b"(K\x01M\x00\x10\x85h\x00\x89h\x01tb"
    refused(tmp_path, b"\x80\x04(" + dtype + block + again * 50 + b"l.", "the arrays would be larger than the file")
    text = b"X" + struct.pack("<I", 4096) + b"a" * 4096 + b"\x94\x8c\x06latin1\x94"
    encode = b"c_codecs\nencode\nh\x00h\x01\x86R"
    refused(tmp_path, b"\x80\x04(" + text + encode * 50 + b"l.", "the arrays would be larger than the file")


def test_lists_that_hold_the_same_list_over_and_over_take_no_longer(tmp_path: Path) -> None:
    doubled = b"]\x94" + b"".join(b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86\x94" for i in range(90))
    path = tmp_path / "x.pdparams"
    path.write_bytes(b"\x80\x04(" + doubled + b"l.")
    deepest = state_reading.load(path)[-1]
    assert deepest[0] is deepest[1]
    shape = b"h" + bytes([90])
    dtype = b"cnumpy\ndtype\n" + shape + b"\x85R"
    refused(tmp_path, b"\x80\x04(" + doubled + dtype + b"l.", r"an array has the dtype \(\(.*\.\.\..*which is not read")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "the table of the arrays that were cut is none"),
        ({"w": 3}, "the parts of the array 'w' are not there"),
        ({"w": {"OriginShape": (2,), "slices": ["no"]}}, "the parts of the array 'w' are not there"),
        ({"w": {"OriginShape": [2], "slices": ["a"]}}, "the parts of the array 'w' are not there"),
        ({"w": {"OriginShape": (3,), "slices": ["a"]}}, r"do not make the shape \(3,\)"),
        ({"w": {"OriginShape": (-2, -1), "slices": ["a"]}}, r"do not make the shape \(-2, -1\)"),
    ],
)
def test_cut_arrays_that_do_not_fit(tmp_path: Path, table: Any, message: str) -> None:
    refused(tmp_path, pickle.dumps({"a": np.zeros(2), "UnpackBigParamInfor@@": table}), message)


def loaded_or_refused(path: Path) -> None:
    """Load a file, of which plain data may come, or one clear error."""
    try:
        found = pickled_state.load(path)
    except FileFormatError as error:
        found = str(error)
    assert type(found) in (dict, list, tuple, str, int, float, bool, np.ndarray, Named, type(None))


WHOLE = pickle.dumps({"w": np.arange(6.0), "n": [np.float64(1), (1, "a")], "t": {"a": None}}, 4)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_damage_is_one_clear_error(tmp_path: Path, at: int, put: bytes, taken: int) -> None:
    path = tmp_path / "x.pdparams"
    path.write_bytes(WHOLE[:at] + put + WHOLE[at + taken :])
    loaded_or_refused(path)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_are_one_clear_error_or_data(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.pdparams"
    path.write_bytes(b"\x80\x04" + data)
    loaded_or_refused(path)
