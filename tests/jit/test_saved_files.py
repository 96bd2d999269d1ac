"""jit.save and jit.load: what is saved comes back, in a process without the source; a failed save changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit import TranslatedLayer
from dy2st.runtime.tracer.input_spec import InputSpec
from tests.jit.saved_models import Normed, X, refiner, same, there_and_back


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


@pytest.mark.slow
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


def test_what_is_raised_carries_nothing_in_a_file(tmp_path: Path) -> None:
    """Draws before it are state that an error of this process writes back; a file has no place for them."""

    class Stop(Exception):
        pass

    def forward(x):
        x = x + paddle.rand([2])
        for v in x:
            if v > 4.1:
                raise Stop(f"stop {v:.0f}", v)
        return x

    loaded = there_and_back(forward, tmp_path, InputSpec([2]))
    assert loaded(paddle.zeros([2])).shape == [2]
    with pytest.raises(Exception, match="Stop"):
        loaded(paddle.full([2], 8.0))


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
        paddle.jit.save(Remembers(), tmp_path / "m", input_spec=[InputSpec([2])])
    assert [one.filename for one in caught] == [__file__]
    loaded = paddle.jit.load(tmp_path / "m")
    assert loaded(paddle.ones([2])).tolist() == [1, 1]


def test_a_path_that_names_no_file_is_refused_by_load():
    with pytest.raises(TypeError, match="a file to load from is named by a str or a path, not NoneType"):
        paddle.jit.load(None)
    with pytest.raises(ValueError, match="names a folder; add the name of the file"):
        paddle.jit.load("")


@pytest.mark.parametrize(
    ("declared", "message"),
    [("x", "input_spec is a list of what the parameters take, not str"), ([], "input_spec does not fit the param")],
)
def test_an_input_spec_that_fits_no_parameters(tmp_path, declared, message):
    with pytest.raises(TypeError, match=message):
        paddle.jit.save(paddle.nn.Linear(2, 2), tmp_path / "m", input_spec=declared)
