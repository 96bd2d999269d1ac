"""State dicts through files: the same nesting, the same arrays, no pickle."""

import collections
import math
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import program_file as files
from dy2st.files import safetensors_io, state_files
from tests.shares import examples


def through(path: Path, obj: Any) -> Any:
    state_files.save(obj, path)
    return state_files.load(path)


@pytest.mark.proves("save load")
def test_a_state_dict(tmp_path: Path) -> None:
    path = tmp_path / "m.pdparams"
    state = {"fc.weight": np.eye(2, dtype=np.float32), "fc.bias": np.zeros(2), "step": 7}
    found = through(path, state)
    assert list(found) == list(state)
    assert np.array_equal(found["fc.weight"], state["fc.weight"])
    assert found["step"] == 7
    with safe_open(path, "numpy") as file:
        assert {"fc.weight", "fc.bias"} <= set(file.keys())


def test_nesting_and_every_scalar(tmp_path: Path) -> None:
    obj = {
        "lr": 0.1, 3: [1, True, None, "é\ud800"], True: (), "inf": (math.inf, -math.inf),
        "deep": {"a": [{"b": np.array(2)}]}, "": -0.0, "~": np.array([1.5]), "big": 2**100,
    }  # fmt: skip
    found = through(tmp_path / "s", obj)
    assert found["deep"]["a"][0]["b"].shape == ()
    assert found["~"].tolist() == [1.5]
    del obj["deep"], found["deep"], obj["~"], found["~"]
    assert found == obj
    assert [type(key) for key in found] == [type(key) for key in obj]
    assert math.copysign(1, found[""]) == -1
    assert math.isnan(through(tmp_path / "s", math.nan))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(1 - 2**64, 2**64 - 1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(TREES)
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_of_scalars(tmp_path: Path, tree: Any) -> None:
    assert repr(through(tmp_path / "s", tree)) == repr(tree)


def test_names_that_collide(tmp_path: Path) -> None:
    obj = {"a": {"b": np.array(1)}, "a.b": np.array(2), "__metadata__": np.array(3), "~": np.array(4), "": np.array(5)}
    found = through(tmp_path / "s", obj)
    assert [int(found["a"]["b"]), *(int(found[k]) for k in list(obj)[1:])] == [1, 2, 3, 4, 5]


def test_an_array_in_two_places_is_stored_once(tmp_path: Path) -> None:
    shared = np.zeros(1000)
    found = through(tmp_path / "s", {"a": shared, "b": [shared]})
    assert found["a"] is found["b"][0]
    assert (tmp_path / "s").stat().st_size < 2 * shared.nbytes


def test_the_caller_says_what_a_tensor_is(tmp_path: Path) -> None:
    class Tensor:
        def __init__(self, array: np.ndarray):
            self.array = array

    state_files.save(
        [Tensor(np.ones(3))], tmp_path / "s", lambda value: value.array if isinstance(value, Tensor) else None
    )
    (found,) = state_files.load(tmp_path / "s", Tensor)
    assert isinstance(found, Tensor)
    assert found.array.tolist() == [1, 1, 1]


def test_an_ordered_dict_comes_back_as_a_dict(tmp_path: Path) -> None:
    found = through(tmp_path / "s", collections.OrderedDict(b=1, a=np.float32(2)))
    assert type(found) is dict
    assert list(found) == ["b", "a"]


@pytest.mark.parametrize(
    ("obj", "kind", "message"),
    [
        ({"a": [1, {2}]}, TypeError, r"the object\['a'\]\[1\] is of type set, which cannot be saved: tensors, arrays"),
        (object(), TypeError, "the object is of type object, which cannot be saved"),
        ({"a": {None: 1}}, TypeError, r"a key of the object\['a'\] is of type NoneType"),
        ([1j], TypeError, "is of type complex, which cannot be saved"),
        (np.array(["a"]), TypeError, "arrays of dtype <U1 cannot become tensors"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, obj: Any, kind: type[Exception], message: str) -> None:
    path = tmp_path / "s"
    state_files.save(1, path)
    with pytest.raises(kind, match=message):
        state_files.save(obj, path)
    assert state_files.load(path) == 1


def test_what_holds_itself(tmp_path: Path) -> None:
    obj: list[Any] = []
    obj.append(obj)
    with pytest.raises(ValueError, match="nested more than 100 deep cannot be saved"):
        state_files.save(obj, tmp_path / "s")


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(pickle.dumps({"w": np.zeros(3)}))
    with pytest.raises(FileFormatError, match="not a dy2st file but a pickle, which is not read"):
        state_files.load(path)


def test_a_program_file_is_not_a_state_file(tmp_path: Path) -> None:
    files.write(tmp_path / "m", {}, {}, {})
    with pytest.raises(FileFormatError, match="not a file of the format 'dy2st-state' but 'dy2st'"):
        state_files.load(tmp_path / "m.dy2st")


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ('{"tensor":"x"}', r"the structure has a node that is none: \{'tensor': 'x'\}"),
        ('{"tensor":["w"]}', "the structure has a node that is none"),
        ('{"float":"1"}', "the structure has a node that is none"),
        ('{"object":"os"}', "the structure has a node that is none"),
        ('{"list":3}', "the structure has a node that is none"),
        ("[]", r"the structure has a node that is none: \[\]"),
        ("{}", "the structure has a node that is none"),
        ('{"dict":[1]}', "a dict that is not made of keys and values"),
        ('{"dict":[[1.5,1]]}', "a dict that is not made of keys and values"),
        ('{"dict":[["a",1],["a",2]]}', "a dict with a key twice"),
        ('{"list":[' * 102 + "1" + "]}" * 102, "the structure is nested more than 100 deep"),
        ("NaN", "the structure is not valid JSON: NaN is not a number of JSON"),
    ],
)
def test_hostile_structures(tmp_path: Path, structure: str, message: str) -> None:
    metadata = {"structure": structure}
    safetensors_io.write(tmp_path / "s", state_files.FORMAT, state_files.VERSION, {"w": np.zeros(2)}, metadata)
    with pytest.raises(FileFormatError, match=message):
        state_files.load(tmp_path / "s")


def test_metadata_that_are_missing(tmp_path: Path) -> None:
    safetensors_io.write(tmp_path / "s", state_files.FORMAT, state_files.VERSION, {}, {})
    with pytest.raises(FileFormatError, match="the metadata structure is expected"):
        state_files.load(tmp_path / "s")


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    state_files.save({"w": np.arange(3)}, path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match="s: "):
            state_files.load(path)
    path.write_bytes(struct.pack("<Q", 10**9) + whole[8:])
    with pytest.raises(FileFormatError, match="the header is said to have 1000000000 bytes"):
        state_files.load(path)


def test_numbers_and_arrays_stay_what_they_were(tmp_path: Path) -> None:
    """Arrays become tensors where nothing in the file is one, as PaddlePaddle has it; NumPy's numbers never do."""
    mixed = {"a": np.float32(1.5), "b": [np.arange(3), np.int64(3)], "t": paddle.ones([2]), "n": {"x": np.bool_(True)}}
    paddle.save(mixed, tmp_path / "mixed")
    found = paddle.load(tmp_path / "mixed")
    assert (type(found["a"]), type(found["b"][0]), type(found["b"][1])) == (np.float32, np.ndarray, np.int64)
    assert (found["a"], found["b"][0].tolist(), found["b"][1], found["n"]["x"]) == (1.5, [0, 1, 2], 3, True)
    assert isinstance(found["t"], paddle.Tensor)
    assert isinstance(paddle.load(tmp_path / "mixed", return_numpy=True)["t"], np.ndarray)
    paddle.save([np.arange(2), {"x": np.zeros(1), "s": np.float64(2.5)}], tmp_path / "arrays")
    first, second = paddle.load(tmp_path / "arrays")
    assert isinstance(first, paddle.Tensor)
    assert isinstance(second["x"], paddle.Tensor)
    assert type(second["s"]) is np.float64
    paddle.save(np.float32(2), tmp_path / "one")
    assert type(paddle.load(tmp_path / "one")) is np.float32


def test_a_number_with_axes_is_refused(tmp_path: Path) -> None:
    metadata = {"structure": '{"scalar":"w"}'}
    safetensors_io.write(tmp_path / "m", state_files.FORMAT, state_files.VERSION, {"w": np.ones(2)}, metadata)
    with pytest.raises(FileFormatError, match="the structure has a number of 1 axes"):
        state_files.load(tmp_path / "m")
