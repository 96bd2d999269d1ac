"""What cannot be saved or loaded by `jit.save` and `jit.load`: one clear error, and the layer is as it was."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError, TraceError
from dy2st.runtime.tracer.input_spec import InputSpec
from tests.jit.saved_models import Chooser, X, refiner


class Odd(paddle.nn.Layer):
    def forward(self, x):
        return x, object


def later(x):
    return x.tolist()


@pytest.mark.parametrize(
    ("model", "spec", "kind", "message"),
    [
        (3, None, TypeError, "jit.save takes a Layer or a function, not int"),
        (refiner, None, ValueError, "has no Program yet: give jit.save an input_spec"),
        (Odd(), [X], TypeError, "the output holds an object of type type, which cannot be saved"),
        (lambda x: f"{x.sum()}", [X], TypeError, "the output holds a text with values of the run, which cannot be"),
        (lambda x: {1}, [X], TypeError, "the output holds an object of type set, which cannot be saved"),
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
