"""`jit.save(output_spec=...)` and `jit.TracedLayer`: some outputs of a layer, and a layer traced for inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.static import InputSpec


class Three(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 2), nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return {"b": self.first(x), "a": [self.second(x), x * 2]}


@pytest.mark.parametrize("static", [False, True])
def test_outputs_at_positions_are_saved(tmp_path: Path, static: bool) -> None:
    layer = Three()
    want = layer(x := paddle.ones([5, 3]))
    model = paddle.jit.to_static(layer) if static else layer
    spec = [InputSpec([None, 3])]
    paddle.jit.save(model, tmp_path / "two", spec, output_spec=[2, 0])
    first, second = paddle.jit.load(tmp_path / "two")(x)
    np.testing.assert_allclose(first.numpy(), want["b"].numpy(), rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), want["a"][0].numpy(), rtol=1e-6)
    paddle.jit.save(model, tmp_path / "one", spec, output_spec=[1])
    loaded = paddle.jit.load(tmp_path / "one")
    np.testing.assert_array_equal(loaded(x).numpy(), 2 * x.numpy())
    assert isinstance(model(x), dict)


def test_outputs_of_a_function_and_of_hooks(tmp_path: Path) -> None:
    paddle.jit.save(
        paddle.jit.to_static(lambda x: (x + 1, x + 2)), tmp_path / "f", [InputSpec([None])], output_spec=[1]
    )
    assert paddle.jit.load(tmp_path / "f")(paddle.ones([1])).tolist() == [3.0]
    layer = Three()
    layer.register_forward_post_hook(lambda _layer, _inputs, out: (out["b"], out["b"] * 3))
    paddle.jit.save(layer, tmp_path / "h", [InputSpec([None, 3])], output_spec=[1])
    x = paddle.ones([2, 3])
    np.testing.assert_allclose(paddle.jit.load(tmp_path / "h")(x).numpy(), 3 * layer.first(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(("spec", "kind", "text"), [
    ([3], ValueError, "output_spec names the output 3, forward has 3"),
    ([-1], ValueError, "output_spec names the output -1, forward has 3"),
    ([], ValueError, "output_spec names no output"),
    (["b"], TypeError, "output_spec is a list of positions among the outputs of forward, not"),
])  # fmt: skip
def test_what_is_no_position_is_said(tmp_path: Path, spec: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        paddle.jit.save(Three(), tmp_path / "x", [InputSpec([None, 3])], output_spec=spec)
    assert not (tmp_path / "x.dy2st").exists()


def test_a_loaded_layer_is_saved_as_it_is(tmp_path: Path) -> None:
    paddle.jit.save(Three(), tmp_path / "x", [InputSpec([None, 3])])
    with pytest.raises(ValueError, match="a loaded layer is saved as it is"):
        paddle.jit.save(paddle.jit.load(tmp_path / "x"), tmp_path / "y", output_spec=[0])


def test_a_layer_is_traced_by_inputs(tmp_path: Path) -> None:
    layer = Three()
    x = paddle.ones([2, 3])
    out, traced = paddle.jit.TracedLayer.trace(layer, [x])
    np.testing.assert_allclose(out["b"].numpy(), layer(x)["b"].numpy(), rtol=1e-6)
    assert "matmul" in str(traced.program)
    other = paddle.ones([4, 3])
    (found,) = traced([other])
    np.testing.assert_allclose(found["a"][0].numpy(), layer(other)["a"][0].numpy(), rtol=1e-6)
    traced.save_inference_model(tmp_path / "t", feed=[0], fetch=[1])
    np.testing.assert_array_equal(paddle.jit.load(tmp_path / "t")(other).numpy(), 2 * other.numpy())
    with pytest.raises(ValueError, match=r"the layer needs all of its 1 inputs, not \[\]"):
        traced.save_inference_model(tmp_path / "t", feed=[])
    with pytest.raises(TypeError, match="needs a Layer, not str"):
        paddle.jit.TracedLayer.trace("net", [x])  # type: ignore[arg-type]
