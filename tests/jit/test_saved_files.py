"""jit.save and jit.load: what is saved comes back, in a process without the source; a failed save changes nothing."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError, TraceError
from dy2st.jit import TranslatedLayer
from dy2st.static.input_spec import InputSpec
from tests.jit.saved_models import Chooser, Normed, Refiner, X, refiner


def same(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def there_and_back(layer: Any, folder: Path, *specs: Any) -> TranslatedLayer:
    paddle.jit.save(layer, folder / "m", input_spec=list(specs) or None)
    return paddle.jit.load(folder / "m")


# ---- what comes back ---------------------------------------------------------------------------------------------
def test_values_in_every_shape_and_mode(tmp_path: Path) -> None:
    layer = refiner()
    loaded = there_and_back(layer, tmp_path, X)
    for training in (True, False):
        layer.train(training)
        loaded.train(training)
        for rows in (1, 2, 7):
            x = paddle.randn([rows, 3]) * 3
            paddle.seed(11)
            want = layer(x)
            paddle.seed(11)
            same(loaded(x), want)
            same(loaded.last, layer.last)
    assert int(loaded.calls) == int(layer.calls) == 6


def test_one_file_and_its_name(tmp_path: Path) -> None:
    made = paddle.jit.save(refiner(), str(tmp_path / "m"), input_spec=[X])
    assert made == tmp_path / "m.dy2st"
    assert os.listdir(tmp_path) == ["m.dy2st"]
    assert isinstance(paddle.jit.load(tmp_path / "m.dy2st"), TranslatedLayer)


def test_folders_are_made(tmp_path: Path) -> None:
    there_and_back(refiner(), tmp_path / "a" / "b", X)
    assert (tmp_path / "a" / "b" / "m.dy2st").is_file()


def test_a_file_by_another_name(tmp_path: Path) -> None:
    paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X]).rename(tmp_path / "model.bin")
    assert isinstance(paddle.jit.load(tmp_path / "model.bin"), TranslatedLayer)


def test_a_process_without_the_source(tmp_path: Path) -> None:
    layer = refiner()
    layer.eval()
    x = paddle.randn([4, 3])
    np.savez(tmp_path / "x.npz", x=x.numpy(), want=layer(x).numpy())
    paddle.jit.save(layer, tmp_path / "m", input_spec=[X])
    code = (
        "import sys, numpy as np, dy2st as paddle\n"
        "m = paddle.jit.load('m')\n"
        "data = np.load('x.npz')\n"
        "np.testing.assert_allclose(m(paddle.to_tensor(data['x'])).numpy(), data['want'], rtol=1e-6)\n"
        "assert not any(name.startswith('tests') for name in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(paddle.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr


def test_a_file_names_no_class_module_or_path(tmp_path: Path) -> None:
    content = paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X]).read_bytes()
    for word in (b"Refiner", b"tests.jit", str(Path(__file__).parent).encode(), b"Dropout"):
        assert word not in content


def test_a_function_with_state_in_its_closure(tmp_path: Path) -> None:
    inner = paddle.nn.Linear(3, 2)
    scale = paddle.to_tensor(3.0)

    def model(x):
        if x.sum() > 0:
            return inner(x) * scale
        return -inner(x)

    loaded = there_and_back(model, tmp_path, InputSpec([None, 3]))
    for sign in (1.0, -1.0):
        same(loaded(paddle.ones([2, 3]) * sign), model(paddle.ones([2, 3]) * sign))
    assert {"inner.weight", "inner.bias"} <= set(loaded.state_dict())


def test_a_bound_method(tmp_path: Path) -> None:
    layer = refiner()
    loaded = there_and_back(layer.halve, tmp_path, X)
    same(loaded(paddle.ones([4, 3])), layer.halve(paddle.ones([4, 3])))


def test_kinds_of_calls_that_were_made(tmp_path: Path) -> None:
    @paddle.jit.to_static
    def total(*tensors, scale=1):
        out = tensors[0] * scale
        for t in tensors[1:]:
            out = out + t
        return out

    one, two = paddle.ones([2]), paddle.ones([2, 2])
    total(one)
    total(two, two, scale=3)
    loaded = there_and_back(total, tmp_path)
    assert loaded(one).tolist() == [1, 1]
    assert loaded(two, two, scale=3).tolist() == [[4, 4], [4, 4]]
    with pytest.raises(ValueError, match="no saved Program of 'forward' takes these arguments"):
        loaded(one, one)


def test_structured_arguments_and_outputs(tmp_path: Path) -> None:
    def forward(batch, mode="sum", *, weights=(1, 2)):
        pair = batch["pair"]
        return {"out": [pair[0] * weights[0], (pair[1] * weights[1], mode)], "none": None, "kind": pair[0].dtype}

    spec = {"pair": [InputSpec([None]), InputSpec([None])]}
    loaded = there_and_back(forward, tmp_path, spec)
    batch = {"pair": [paddle.ones([2]), paddle.ones([3])]}
    found = loaded(batch)
    assert found["out"][0].tolist() == [1, 1]
    assert found["out"][1][0].tolist() == [2, 2, 2]
    assert found["out"][1][1] == "sum"
    assert (found["none"], found["kind"]) == (None, paddle.float32)
    with pytest.raises(ValueError, match="argument 'mode' was saved as 'sum' and cannot be 'mean'"):
        loaded(batch, "mean")
    with pytest.raises(ValueError, match=r"argument 'batch\['pair'\]' was saved as a list of 2 items, not a list of 1"):
        loaded({"pair": [paddle.ones([2])]})
    with pytest.raises(ValueError, match="saved as a dict with the keys 'pair', not a dict with the keys 'other'"):
        loaded({"other": 1})


def test_hooks_are_saved(tmp_path: Path) -> None:
    layer = paddle.nn.Linear(3, 2)
    layer.register_forward_post_hook(lambda layer, inputs, output: output * 2)
    loaded = there_and_back(layer, tmp_path, InputSpec([None, 3]))
    same(loaded(paddle.ones([1, 3])), layer(paddle.ones([1, 3])))


def test_modes_that_differ(tmp_path: Path) -> None:
    layer = Normed()
    loaded = there_and_back(layer, tmp_path, InputSpec([None, 4]))
    x = paddle.randn([6, 4]) * 2 + 1
    same(loaded(x), layer(x))
    same(loaded.state_dict()["norm._mean"], layer.norm._mean)
    layer.eval()
    loaded.eval()
    same(loaded(x), layer(x))


def test_a_number_in_forward_that_changes_is_warned_of(tmp_path: Path) -> None:
    class Counts(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def forward(self, x):
            self.count += 1
            return x * self.count

    layer = paddle.jit.to_static(Counts())
    for _ in range(3):
        layer(paddle.ones([2]))
    with pytest.warns(UserWarning, match="forward changes the Python number 'count' that it also reads"):
        loaded = there_and_back(layer, tmp_path, InputSpec([2]))
    assert loaded(paddle.ones([2])).tolist() == [4, 4]
    assert (loaded.count, layer.count) == (4, 3)


def test_arguments_that_forward_changes_are_warned_of(tmp_path: Path) -> None:
    def forward(x, seen):
        seen.append(x)
        x.add_(paddle.ones([2]))
        return x

    with pytest.warns(UserWarning, match="a loaded layer will not change") as caught:
        loaded = there_and_back(forward, tmp_path, InputSpec([2]), [])
    texts = sorted(str(one.message) for one in caught)
    assert texts == [
        "a loaded layer will not change a list or dict that is an argument, as forward does",
        "a loaded layer will not change the elements of an argument, as forward does",
    ]
    assert loaded(paddle.ones([2]), []).tolist() == [2, 2]


def test_a_mode_that_cannot_be_traced_is_warned_of(tmp_path: Path) -> None:
    class Picky(paddle.nn.Layer):
        def forward(self, x):
            if not self.training:
                raise RuntimeError("only for training")
            return x

    with pytest.warns(UserWarning, match="is saved for training only: traced for evaluation it raised RuntimeError"):
        loaded = there_and_back(Picky(), tmp_path, InputSpec([2]))
    assert loaded(paddle.ones([2])).tolist() == [1, 1]


def test_a_list_that_a_loaded_layer_does_not_have_is_warned_of(tmp_path: Path) -> None:
    class Remembers(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(x)
            return x

    with pytest.warns(UserWarning, match="will not change a list that was there before the call") as caught:
        loaded = there_and_back(Remembers(), tmp_path, InputSpec([2]))
    assert [one.filename for one in caught] == [__file__]
    assert loaded(paddle.ones([2])).tolist() == [1, 1]


# ---- what cannot be saved ------------------------------------------------------------------------------------------
class Odd(paddle.nn.Layer):
    def forward(self, x):
        return x, object


class Pair:
    def __init__(self, first: Any) -> None:
        self.first = first


def later(x):
    return x.tolist()


@pytest.mark.parametrize(
    ("model", "spec", "kind", "message"),
    [
        (3, None, TypeError, "jit.save takes a Layer or a function, not int"),
        (refiner, None, ValueError, "has no Program yet: give jit.save an input_spec"),
        (Odd(), [X], TypeError, "the output holds an object of type type, which cannot be saved"),
        (lambda x: Pair(x), [X], TypeError, "the output holds an object that forward makes, which cannot be saved"),
        (later, [X], TraceError, "`later` cannot be saved because it cannot become a Program"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, model: Any, spec: Any, kind: type[Exception], message: str) -> None:
    old = paddle.jit.save(refiner(), tmp_path / "m", input_spec=[X]).read_bytes()
    with pytest.raises(kind, match=message):
        paddle.jit.save(model, tmp_path / "m", input_spec=spec)
    assert os.listdir(tmp_path) == ["m.dy2st"]
    assert (tmp_path / "m.dy2st").read_bytes() == old


def test_what_always_raises(tmp_path: Path) -> None:
    def forward(x):
        print("before")
        raise KeyError("never")

    with pytest.raises((TraceError, KeyError), match="never"):
        paddle.jit.save(forward, tmp_path / "m", input_spec=[X])
    assert not os.listdir(tmp_path)


def test_reserved_attributes(tmp_path: Path) -> None:
    class Sets(paddle.nn.Layer):
        def forward(self, x):
            self.program = x
            return x

    with pytest.raises(ValueError, match="sets the attribute 'program', which loaded layers have themselves"):
        paddle.jit.save(Sets(), tmp_path / "m", input_spec=[X])


def test_reserved_methods(tmp_path: Path) -> None:
    class Has(paddle.nn.Layer):
        def forward(self, x):
            return x

        @paddle.jit.to_static(input_spec=[X])
        def program(self, x):
            return x

    with pytest.raises(ValueError, match="a method cannot be saved under the name 'program'"):
        paddle.jit.save(Has(), tmp_path / "m", input_spec=[X])


@pytest.mark.parametrize(("path", "message"), [("", "names a folder"), ("some/", "names a folder")])
def test_paths_without_a_name(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paddle.jit.save(refiner(), path, input_spec=[X])
    with pytest.raises(ValueError, match=message):
        paddle.save({}, path)


def test_what_is_no_path() -> None:
    with pytest.raises(TypeError, match="a file to save to is named by a str or a path, not int"):
        paddle.jit.save(refiner(), 3, input_spec=[X])


def test_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save\(\) got an unexpected keyword argument 'inputs'"):
        paddle.jit.save(refiner(), tmp_path / "m", inputs=[X])
    with pytest.raises(TypeError, match=r"load\(\) got an unexpected keyword argument 'mode'"):
        paddle.jit.load(tmp_path / "m", mode="r")


def test_the_layer_is_as_it_was(tmp_path: Path) -> None:
    layer = refiner()
    layer.drop.eval()
    state = {name: t.numpy() for name, t in layer.state_dict().items()}
    rng = paddle.get_rng_state()
    paddle.jit.save(layer, tmp_path / "m", input_spec=[X])
    assert (layer.training, layer.drop.training, layer.linear.training) == (True, False, True)
    assert not hasattr(layer, "last")
    assert rng == paddle.get_rng_state()
    for name, t in layer.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), state[name])


# ---- what cannot be loaded -----------------------------------------------------------------------------------------
def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"m\.dy2st"):
        paddle.jit.load(tmp_path / "m")
    with pytest.raises(FileNotFoundError, match=r"m\.pdparams"):
        paddle.load(tmp_path / "m.pdparams")


def test_damage_is_one_clear_error(tmp_path: Path) -> None:
    path = paddle.jit.save(Chooser(), tmp_path / "m", input_spec=[InputSpec([None, 4]), InputSpec([])])
    whole = path.read_bytes()
    for at in range(0, len(whole), 997):
        path.write_bytes(whole[:at])
        with pytest.raises(FileFormatError, match=r"m\.dy2st: .+") as caught:
            paddle.jit.load(path)
        assert "\n" not in str(caught.value)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match=r"m\.dy2st: .+"):
            paddle.jit.load(path)


def test_a_state_file_is_no_layer(tmp_path: Path) -> None:
    paddle.save({"w": paddle.ones([2])}, tmp_path / "m.dy2st")
    with pytest.raises(FileFormatError, match="not a file of the format 'dy2st' but 'dy2st-state'"):
        paddle.jit.load(tmp_path / "m")


# ---- state dicts ---------------------------------------------------------------------------------------------------
def test_state_dicts(tmp_path: Path) -> None:
    layer, other = refiner(), refiner(seed=9)
    paddle.save(layer.state_dict(), tmp_path / "m.pdparams")
    assert other.set_state_dict(paddle.load(tmp_path / "m.pdparams")) == ([], [])
    for name, t in layer.state_dict().items():
        same(other.state_dict()[name], t)


def test_optimizers_go_on_where_they_were(tmp_path: Path) -> None:
    x = paddle.ones([2, 4])
    ends = []
    for stop in (False, True):
        paddle.seed(4)
        layer = paddle.nn.Linear(4, 1)
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        for step in range(4):
            if stop and step == 2:
                paddle.save({"layer": layer.state_dict(), "step": step}, tmp_path / "l")
                paddle.save(optimizer.state_dict(), tmp_path / "o")
                layer.set_state_dict(paddle.load(tmp_path / "l")["layer"])
                optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
                optimizer.set_state_dict(paddle.load(tmp_path / "o"))
            layer(x).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        ends.append(layer.weight.numpy())
    np.testing.assert_array_equal(*ends)


def test_nested_containers_and_numpy(tmp_path: Path) -> None:
    shared = paddle.ones([2])
    data = {"a": [shared, (1, 2.5, None)], 3: {"b": np.arange(3)}, "flag": True, "again": shared}
    paddle.save(data, tmp_path / "d")
    found = paddle.load(tmp_path / "d")
    assert found["a"][0] is found["again"]
    assert found["a"][1] == (1, 2.5, None)
    assert found[3]["b"].tolist() == [0, 1, 2]
    assert type(paddle.load(tmp_path / "d", return_numpy=True)["again"]) is np.ndarray


def test_loaded_tensors_can_be_written(tmp_path: Path) -> None:
    paddle.save(paddle.ones([3]), tmp_path / "t")
    t = paddle.load(tmp_path / "t")
    t.set_value(paddle.zeros([3]))
    t[1] = 5.0
    assert t.tolist() == [0, 5, 0]
    assert paddle.load(tmp_path / "t").tolist() == [1, 1, 1]


def test_the_state_dict_of_a_saved_layer(tmp_path: Path) -> None:
    layer = refiner()
    paddle.jit.save(layer, tmp_path / "m", input_spec=[X])
    found = paddle.load(tmp_path / "m")
    assert found.keys() == layer.state_dict().keys()
    same(found["linear.weight"], layer.linear.weight)


def test_objects_that_no_state_file_holds(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"the object\['layer'\] is of type Refiner, which cannot be saved"):
        paddle.save({"layer": Refiner()}, tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_unknown_options_of_state_files(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"save\(\) got an unexpected keyword argument 'format'"):
        paddle.save({}, tmp_path / "m", format=3)
    with pytest.raises(TypeError, match=r"load\(\) got an unexpected keyword argument 'safe'"):
        paddle.load(tmp_path / "m", safe=True)


def test_two_threads_save_and_load_one_file(tmp_path: Path) -> None:
    layer = Chooser()
    spec = [InputSpec([None, 4]), InputSpec([])]
    paddle.jit.save(layer, tmp_path / "m", input_spec=spec)
    x, failed = paddle.ones([2, 4]), []
    want = layer(x, paddle.ones([])).numpy()

    def work() -> None:
        try:
            for _ in range(5):
                paddle.jit.save(layer, tmp_path / "m", input_spec=spec)
                np.testing.assert_allclose(paddle.jit.load(tmp_path / "m")(x, paddle.ones([])).numpy(), want, rtol=1e-6)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    [t.join(30) for t in threads]
    assert not failed
    assert os.listdir(tmp_path) == ["m.dy2st"]
