"""State dicts: `paddle.save` and `paddle.load` of layers, optimizers and nested containers."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.tracer.input_spec import InputSpec
from tests.jit.saved_models import Chooser, Refiner, X, refiner, same


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


class Blurred(paddle.nn.Layer):
    """A filter that is no parameter, nor a buffer."""

    def __init__(self):
        super().__init__()
        self.filter = paddle.arange(27.0).reshape([3, 1, 3, 3])

    def forward(self, x):
        return paddle.nn.functional.conv2d(x, self.filter, padding=1, groups=3)


@pytest.mark.parametrize("shape", [[2, 3, 5, 5], [None, 3, None, None]])
def test_a_filter_outside_whose_extents_python_needs_is_saved(tmp_path, shape):
    net, x = Blurred(), paddle.rand([2, 3, 5, 5])
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[paddle.static.InputSpec(shape, "float32")])
    assert paddle.allclose(paddle.jit.load(str(tmp_path / "net"))(x), net(x)).item()
