"""State that torch saved: what is read of it, and that a hostile file is one clear error and runs nothing.

The files of `tests/data/torch/` are torch's own (`tests/peers/torch_states.py`).
"""

import pickle
import random
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import stored_zip, torch_state

DATA = Path(__file__).parents[1] / "data" / "torch"


# ---- what torch wrote ----------------------------------------------------------------------------------------------
def test_a_checkpoint_with_all_that_stands_around_the_weights() -> None:
    found = paddle.load(DATA / "checkpoint.pt")
    assert [found[name] for name in ("epoch", "best", "name", "device", "size")] == [3, 0.5, "é", "cpu", (2, 3)]
    assert {name: t.shape for name, t in found["model"].items()} == {"weight": [2, 3], "bias": [2]}
    assert found["optimizer"]["param_groups"][0]["lr"] == 0.01
    assert found["optimizer"]["state"][0]["exp_avg"].shape == [2, 3]
    np.testing.assert_array_equal(found["seen"], np.arange(3.0))  # it was an array there too


@pytest.mark.parametrize("name", ["views.pt", "stream.pth"])
def test_views_have_memory_of_their_own_and_what_is_one_tensor_stays_one(name: str) -> None:
    found = paddle.load(DATA / name, return_numpy=True)
    whole = np.arange(24.0, dtype="float32").reshape(4, 6)
    wanted = {"whole": whole, "again": whole, "t": whole.T, "column": whole[:, 2], "corner": whole[2:, 3:]}
    wanted |= {"expanded": [[1, 2]] * 3, "empty": np.zeros((0, 3)), "scalar": 5, "parameter": [1, 1]}
    for key, array in wanted.items():
        np.testing.assert_array_equal(found[key], array)
    found["whole"][:] = 0
    np.testing.assert_array_equal(found["t"], whole.T)
    tensors = paddle.load(DATA / name)
    assert tensors["whole"] is tensors["again"]
    assert tensors["tied"][0] is tensors["tied"][1]
    if name == "stream.pth":
        assert (found["b"].dtype.name, found["b"].tolist()) == ("bfloat16", [1, 1])


def test_all_dtypes() -> None:
    for name, tensor in paddle.load(DATA / "dtypes.pt").items():
        assert tensor.dtype.name == name
        assert tensor.tolist() == [False, True, True] if name == "bool" else tensor.tolist() == [0, 1, 2]


# ---- files made by hand --------------------------------------------------------------------------------------------
def said(value: Any) -> bytes:
    """Return the opcodes that push a value."""
    return pickle.dumps(value, 2)[2:-1]


def named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def storage(key: Any = "0", count: Any = 6, kind: str = "FloatStorage") -> bytes:
    return b"(" + said("storage") + named("torch", kind) + said(key) + said("cpu") + said(count) + b"tQ"


def tensor(shape: Any, strides: Any, offset: Any = 0, of: bytes = storage()) -> bytes:
    hooks = named("collections", "OrderedDict") + b")R"
    place = said(offset) + said(shape) + said(strides)
    return named("torch._utils", "_rebuild_tensor_v2") + b"(" + of + place + b"\x89" + hooks + b"tR"


def pickled(value: bytes) -> bytes:
    return b"\x80\x02}" + said("w") + value + b"s."


def archive(path: Path, value: bytes, data: bytes = np.arange(6, dtype="<f4").tobytes(), **more: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for name, content in {"data.pkl": pickled(value), "data/0": data, **more}.items():
            out.writestr(f"x/{name}", content)
    return path


def refused(path: Path, message: str, seconds: float = 5.0) -> None:
    began = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=message) as caught:
            paddle.load(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < seconds
    assert len(str(caught.value)) < 800
    assert "\n" not in str(caught.value)


def test_the_files_made_here_are_read(tmp_path: Path) -> None:
    found = paddle.load(archive(tmp_path / "x", tensor((2, 2), (1, 2), 1)), return_numpy=True)
    np.testing.assert_array_equal(found["w"], [[1, 3], [2, 4]])


def test_the_other_byte_order(tmp_path: Path) -> None:
    path = archive(tmp_path / "x", tensor((6,), (1,)), np.arange(6, dtype=">f4").tobytes(), byteorder=b"big")
    assert paddle.load(path)["w"].tolist() == [0, 1, 2, 3, 4, 5]
    refused(archive(tmp_path / "y", tensor((6,), (1,)), byteorder=b"middle"), "byteorder is b'middle', neither")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (tensor((7,), (1,)), "reaches outside of its storage '0', which has 6 elements"),
        (tensor((2, 3), (4, 1)), "reaches outside of its storage"),
        (tensor((1,), (1,), 6), "reaches outside of its storage"),
        (tensor((0,), (1,), 7), "reaches outside of its storage"),
        (tensor((2,), (1 << 59,)), "reaches outside of its storage"),
        (tensor((2,), (-1,), 3), "no sizes"),
        (tensor((2,), (1,), -1), "no sizes"),
        (tensor((True,), (1,)), "no sizes"),
        (tensor([2], (1,)), "no sizes"),
        (tensor((1,) * 65, (1,) * 65), "no sizes"),
        (tensor((2,), (1, 1)), "no possible shape"),
        (tensor((1 << 31, 1 << 31, 0), (1, 1, 1)), "no possible shape"),
        (tensor((1 << 30,), (0,)), "the tensors would be larger than the file"),
        (tensor((6,), (1,), of=storage(count=7)), "has 24 bytes, not 28"),
        (tensor((6,), (1,), of=storage(count=-1)), "a storage has the length -1"),
        (tensor((6,), (1,), of=storage(count=1 << 61)), "a storage has the length"),
        (tensor((6,), (1,), of=storage(key=0)), "a storage has the length"),
        (tensor((6,), (1,), of=storage(key="../../etc/passwd")), r"no file 'x/data/../../etc/passwd'"),
        (tensor((6,), (1,), of=storage(key="1")), "no file 'x/data/1'"),
        (tensor((6,), (1,), of=storage(kind="QInt8Storage")), "it names 'torch.QInt8Storage'"),
        (tensor((6,), (1,), of=said("0")), "a tensor without a storage"),
        (storage(), "a storage that is no tensor's"),
        (said(("module", 1)) + b"Q", r"an object \('module',\) outside of it that is no storage"),
        (said("0") + b"Q", "damaged"),
        (tensor((24,), (1,), of=storage(count=24, kind="BoolStorage")), "neither 0 nor 1"),
        (b"(" + tensor((6,), (1,)) + tensor((6,), (1,), of=storage(kind="IntStorage")) + b"t", "says two things of"),
        (b"]q\x01h\x01a", "nested more than 100 deep"),
        (named("os", "system") + said(("true",)) + b"R", "it names 'os.system', which is not looked up; save tensors"),
        (named("builtins", "getattr") + b")R", "it names 'builtins.getattr'"),
        (named("torch", "float32"), "more than data"),
        (named("torch", "Size") + said((1,)) + b"R", "torch.Size that is no tuple"),
        (named("torch", "device") + said((1,)) + b"R", "torch.device that is none"),
        (named("torch._utils", "_rebuild_parameter") + said((1, True, 2)) + b"R", "a parameter that is no tensor"),
        (named("torch._utils", "_rebuild_tensor_v2") + b")R", "with what it does not take"),
        (b"}" + said({"a": 1}) + b"b", "sets the state of a dict"),
    ],
)  # fmt: skip
def test_hostile_pickles(tmp_path: Path, value: bytes, message: str) -> None:
    refused(archive(tmp_path / "x", value), message)


def test_a_pickled_module_is_not_read() -> None:
    refused(DATA / "module.pt", r"it names 'torch.nn.modules.linear.Linear'.* save .* module.state_dict\(\)")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_compressed_file_is_not_unpacked(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w", method) as out:
        out.writestr("x/data.pkl", bytes(64 << 20))
    refused(tmp_path / "x", "the file 'x/data.pkl' of the archive is compressed")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "x/../../y", "x\\y"])
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as out:
        out.writestr("x/data.pkl", b"")
        out.writestr(name, b"")
    refused(tmp_path / "x", "a file whose name leads out of it")


def test_files_that_are_one_another(tmp_path: Path) -> None:
    """Entries that name the same bytes are how an archive without compression becomes large."""
    data = bytearray(archive(tmp_path / "x", tensor((6,), (1,)), bytes(1000)).read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    data[second + 42 : second + 46] = bytes(4)
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "the files of the archive overlap")


def test_a_name_twice(tmp_path: Path) -> None:
    path = archive(tmp_path / "x", tensor((6,), (1,)), yz=b"")
    path.write_bytes(path.read_bytes().replace(b"x/data/0", b"x/yz\0\0\0\0").replace(b"x/yz\0\0\0\0", b"x/data/0"))
    with zipfile.ZipFile(path, "a") as out, pytest.warns(UserWarning, match="Duplicate name"):
        out.writestr("x/data/0", b"")
    refused(path, "the archive's directory is damaged at the file 'x/data/0'")


def test_a_million_files_are_not_listed(tmp_path: Path) -> None:
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1_000_000, 1_000_000, 46_000_000, 4)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, 4, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    (tmp_path / "x").write_bytes(stored_zip.START + record + locator + end)
    refused(tmp_path / "x", "the archive has 1000000 files, the limit is 100000")
    few = record.replace(struct.pack("<Q", 1_000_000), struct.pack("<Q", 10))
    (tmp_path / "x").write_bytes(stored_zip.START + few + locator + end)
    refused(tmp_path / "x", "the archive's directory is said to have 46000000 bytes at byte 4")


def test_archives_of_others(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as out:
        out.writestr("x/readme", b"")
    refused(tmp_path / "x", "that torch.save has not written")
    refused(archive(tmp_path / "y", said(1), **{"constants.pkl": b""}), r"a TorchScript archive, which holds code")


def test_altered_data_are_noticed(tmp_path: Path) -> None:
    data = bytearray((DATA / "gru.pt").read_bytes())
    data[data.index(b"data/0", 1) + 100] ^= 1
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "the file 'gru/data/0' of the archive was altered: its checksum differs")


@pytest.mark.parametrize("name", ["views.pt", "stream.pth"])
def test_any_damage_is_one_error(tmp_path: Path, name: str) -> None:
    """A damaged file is refused, or what is read of it is data."""
    whole, chance, refusals = (DATA / name).read_bytes(), random.Random(1), 0
    for turn in range(150):
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(turn % 3):
                data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "x").write_bytes(data)
        try:
            paddle.load(tmp_path / "x")
        except FileFormatError:
            refusals += 1
    assert refusals > 75


# ---- streams -------------------------------------------------------------------------------------------------------
def stream(
    path: Path, value: bytes, keys: Any = ("0",), count: int = 6, version: int = 1001, more: bytes = b""
) -> Path:
    head = torch_state.MAGIC + pickle.dumps(version, 2) + pickle.dumps({"little_endian": True}, 2)
    data = struct.pack("<Q", count) + np.arange(6, dtype="<f4").tobytes() + more
    path.write_bytes(head + pickled(value) + pickle.dumps(list(keys), 2) + data)
    return path


def test_streams_made_by_hand(tmp_path: Path) -> None:
    assert paddle.load(stream(tmp_path / "x", tensor((6,), (1,))))["w"].tolist() == [0, 1, 2, 3, 4, 5]
    value = tensor((6,), (1,))
    refused(stream(tmp_path / "x", value, version=1), "of the version 1, which is not 1001")
    refused(stream(tmp_path / "x", value, count=7), "the storage '0' is not what the file's pickle says of it")
    refused(stream(tmp_path / "x", value, keys=["1"]), "the storage '1' is not what")
    refused(stream(tmp_path / "x", value, keys=[1]), "the list of the file's storages is none")
    refused(stream(tmp_path / "x", value, keys=["0", "0"], more=bytes(32)), "the storage '0' is not what")
    refused(stream(tmp_path / "x", value, more=b"1"), "bytes behind the file's storages")
    huge = tensor((1 << 40,), (1,), of=storage(count=1 << 40))
    refused(stream(tmp_path / "x", huge, count=1 << 40), "the storage '0' reaches over the file's end")
    refused(stream(tmp_path / "x", value, keys=[], more=b""), "bytes behind the file's storages")
