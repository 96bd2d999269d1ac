"""A loaded layer is a layer: parameters, training, any derivative, modes, methods, saving it again."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit import TranslatedLayer
from dy2st.runtime.tracer.input_spec import InputSpec
from tests.jit.saved_models import Chooser, X, refiner


def saved(layer: Any, folder: Path, *specs: Any) -> TranslatedLayer:
    paddle.jit.save(layer, folder / "m", input_spec=list(specs) or None)
    return paddle.jit.load(folder / "m")


@pytest.fixture
def chooser(tmp_path: Path) -> tuple[Chooser, TranslatedLayer]:
    layer = Chooser()
    return layer, saved(layer, tmp_path, InputSpec([None, 4], name="x"), InputSpec([], name="both"))


def test_state_dict_and_names(tmp_path: Path) -> None:
    layer = refiner()
    loaded = saved(layer, tmp_path, X)
    assert loaded.state_dict().keys() == layer.state_dict().keys()
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in layer.named_parameters()]
    assert loaded.twin.weight is loaded.linear.weight
    assert "scratch" in dict(loaded.named_buffers())
    assert loaded.scale.tolist() == [2.0]
    assert loaded.set_state_dict(refiner(seed=8).state_dict()) == ([], [])


@pytest.mark.proves("jit.TranslatedLayer jit.load jit.save")
def test_training_goes_on(chooser: Any) -> None:
    layer, loaded = chooser
    x = paddle.randn([5, 4])
    ends = []
    for model in (layer, loaded):
        optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters())
        for both in (1.0, 0.0, 1.0):
            model(x, paddle.to_tensor(both)).backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        ends.append(np.concatenate([p.numpy().ravel() for p in model.parameters()]))
    np.testing.assert_allclose(*ends, rtol=1e-5)


def test_what_did_not_run_has_no_gradient(chooser: Any) -> None:
    _, loaded = chooser
    loaded(paddle.ones([2, 4]), paddle.to_tensor(-1.0)).backward()
    assert loaded.first.weight.grad is not None
    assert loaded.second.weight.grad is None


def test_frozen_parameters(chooser: Any) -> None:
    _, loaded = chooser
    loaded.first.weight.stop_gradient = True
    loaded(paddle.ones([2, 4]), paddle.to_tensor(1.0)).backward()
    assert loaded.first.weight.grad is None
    assert loaded.first.bias.grad is not None


def test_second_order(tmp_path: Path) -> None:
    def power(v):
        while v < 8:
            v = v**2
        return v

    loaded = saved(power, tmp_path, InputSpec([]))
    v = paddle.to_tensor(2.0, stop_gradient=False)
    (first,) = paddle.grad(loaded(v), v, create_graph=True)
    (second,) = paddle.grad(first, v)
    assert (float(first), float(second)) == (32.0, 48.0)


def test_no_grad(chooser: Any) -> None:
    _, loaded = chooser
    with paddle.no_grad():
        assert loaded(paddle.ones([2, 4]), paddle.to_tensor(1.0)).stop_gradient


def test_methods_by_name(tmp_path: Path) -> None:
    layer = refiner()
    loaded = saved(layer, tmp_path, X)
    x = paddle.ones([4, 3])
    np.testing.assert_array_equal(loaded.halve(x).numpy(), layer.halve(x).numpy())
    assert repr(loaded) == "TranslatedLayer(forward(x, goal=1.5), halve(x))"
    assert repr(loaded.halve) == "<saved method halve(x), 1 programs>"
    assert "while_loop" in str(loaded.program("halve"))
    assert "while_loop" in str(loaded.program())
    with pytest.raises(ValueError, match="no method 'double' was saved; there are 'forward', 'halve'"):
        loaded.program("double")


def test_parts_compute_nothing(tmp_path: Path) -> None:
    loaded = saved(refiner(), tmp_path, X)
    with pytest.raises(NotImplementedError, match="only the whole layer was saved, not each of its parts"):
        loaded.linear(paddle.ones([1, 3]))


def test_saved_again(tmp_path: Path, chooser: Any) -> None:
    layer, loaded = chooser
    with paddle.no_grad():
        loaded.first.weight.set_value(paddle.zeros([4, 1]))
    loaded.eval()
    again = saved(loaded, tmp_path / "again")
    x, both = paddle.ones([3, 4]), paddle.to_tensor(1.0)
    np.testing.assert_array_equal(again(x, both).numpy(), loaded(x, both).numpy())
    assert float(again.first.weight.abs().sum()) == 0.0
    assert not again.training
    assert float(layer.first.weight.abs().sum()) > 0.0


def test_tied_weights_stay_tied_through_two_files(tmp_path: Path) -> None:
    again = saved(saved(refiner(), tmp_path, X), tmp_path / "again")
    assert again.twin.weight is again.linear.weight


def test_a_deep_copy_has_weights_of_its_own(chooser: Any) -> None:
    _, loaded = chooser
    twin = copy.deepcopy(loaded)
    x, both = paddle.ones([2, 4]), paddle.to_tensor(1.0)
    before = loaded(x, both).numpy()
    with paddle.no_grad():
        twin.first.weight.set_value(twin.first.weight + 1)
    np.testing.assert_array_equal(loaded(x, both).numpy(), before)
    assert (twin(x, both).numpy() > before).all()


def test_random_numbers_go_on(tmp_path: Path) -> None:
    loaded = saved(paddle.nn.Dropout(0.5), tmp_path, InputSpec([None]))
    x = paddle.ones([50])
    paddle.seed(2)
    first, second = loaded(x).numpy(), loaded(x).numpy()
    paddle.seed(2)
    np.testing.assert_array_equal(loaded(x).numpy(), first)
    assert (first != second).any()


def test_a_loaded_layer_inside_of_another_trace(chooser: Any) -> None:
    layer, loaded = chooser

    def step(model: Any):
        def run(x, both):
            loss = x.sum()
            if both > 0:
                loss = model(x, both) * 2
            loss.backward()
            return loss

        return paddle.jit.to_static(run, full_graph=True)

    x, both = paddle.randn([3, 4]), paddle.to_tensor(1.0)
    for model in (layer, loaded):
        model.clear_gradients()
    np.testing.assert_allclose(step(loaded)(x, both).numpy(), step(layer)(x, both).numpy(), rtol=1e-6)
    np.testing.assert_allclose(loaded.second.weight.grad.numpy(), layer.second.weight.grad.numpy(), rtol=1e-6)


def test_a_loaded_layer_as_part_of_a_saved_one(tmp_path: Path) -> None:
    class Around(paddle.nn.Layer):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) + 1

    inner = saved(refiner(), tmp_path, X)
    inner.eval()
    around = saved(Around(inner), tmp_path / "around", X)
    around.eval()
    x = paddle.randn([4, 3])
    np.testing.assert_allclose(around(x).numpy(), inner(x).numpy() + 1, rtol=1e-6)
    assert "inner.linear.weight" in around.state_dict()
    assert int(around.inner.calls) == 1


def test_a_loaded_layer_in_a_hand_built_program(chooser: Any) -> None:
    _, loaded = chooser
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program()):
        x, both = paddle.static.data("x", [2, 4]), paddle.static.data("both", [])
        with pytest.raises(RuntimeError, match="a loaded layer cannot be called while a Program is built by hand"):
            loaded(x, both)


# ---- calls that are refused ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((np.ones((2, 4), "float32"), 1.0), TypeError, "argument 'both' takes a tensor, not 1.0"),
        ((np.ones((2, 4), "float32"), np.float32(1)), TypeError, "argument 'both' takes a tensor"),
        ((np.ones((2, 5), "float32"), np.ones((), "float32")), ValueError, r"'x' has shape \[2, 5\]; it was saved as"),
        ((np.ones((2, 4), "float64"), np.ones((), "float32")), TypeError, "argument 'x' is float64; it was saved as"),
        (("text", np.ones((), "float32")), TypeError, "argument 'x' takes a tensor, not 'text'"),
        ((np.ones((2, 4), "float32"),), TypeError, "missing a required argument: 'both'"),
    ],
)
def test_bad_calls(chooser: Any, arguments: Any, kind: type[Exception], message: str) -> None:
    _, loaded = chooser
    with pytest.raises(kind, match=message):
        loaded(*arguments)
    assert loaded(paddle.ones([0, 4]), paddle.to_tensor(0.0)).shape == []


def test_state_that_no_longer_fits(chooser: Any, tmp_path: Path) -> None:
    _, loaded = chooser
    loaded.first.weight = paddle.nn.Linear(5, 1).weight
    with pytest.raises(TypeError, match=r"'first\.weight' of the loaded layer is now float32\[5, 1\]; its Program"):
        loaded(paddle.ones([2, 4]), paddle.to_tensor(0.0))
    loaded.first.weight = None
    with pytest.raises(TypeError, match=r"'first\.weight' of the loaded layer is no longer a tensor but NoneType"):
        loaded(paddle.ones([2, 4]), paddle.to_tensor(0.0))
    with pytest.raises(TypeError, match=r"'first\.weight' of the loaded layer is no longer a tensor but NoneType"):
        paddle.jit.save(loaded, tmp_path / "again")


def test_state_of_another_dtype_is_not_saved(chooser: Any, tmp_path: Path) -> None:
    _, loaded = chooser
    loaded.double()
    with pytest.raises(TypeError, match=r"'first\.weight' of the loaded layer is now float64"):
        paddle.jit.save(loaded, tmp_path / "again")


def test_the_same_tensor_twice(tmp_path: Path) -> None:
    @paddle.jit.to_static
    def product(a, b):
        return a * b

    x = paddle.ones([2])
    product(x, x)
    loaded = saved(product, tmp_path)
    assert loaded(x, x).tolist() == [1, 1]
    with pytest.raises(ValueError, match="argument 'b' was the same tensor as another argument when it was saved"):
        loaded(x, paddle.ones([2]))


def test_numbers_that_were_left_open(tmp_path: Path) -> None:
    @paddle.jit.to_static
    def scaled(x, by):
        return x * by

    x = paddle.ones([2])
    scaled(x, 2.0)
    scaled(x, 3.0)
    loaded = saved(scaled, tmp_path)
    assert loaded(x, 5.0).tolist() == [5, 5]
    assert loaded(x, 4).tolist() == [4, 4]
    with pytest.raises(ValueError, match="'by' was saved as a Python float and cannot be a tensor"):
        loaded(x, x)
    with pytest.raises(ValueError, match="'by' was saved as a Python float, not bool"):
        loaded(x, True)


def test_errors_of_a_run_name_the_line_of_the_source(tmp_path: Path) -> None:
    def forward(x):
        if x.sum() > 0:
            raise ValueError("too much")
        return x

    loaded = saved(forward, tmp_path, InputSpec([None]))
    with pytest.raises(ValueError, match="too much") as caught:
        loaded(paddle.ones([2]))
    assert "test_translated_layer.py" in str(caught.traceback[-1].path)
    assert loaded(-paddle.ones([2])).tolist() == [-1, -1]


def test_handlers_of_a_loaded_program_catch(tmp_path):
    def f(x):
        y, seen = x * 2, 0
        try:
            assert (x > -2).all(), "too low"
            y = x * 3
            try:
                if x.sum() < 1:
                    raise ValueError("small")
                if x.sum() > 9:
                    raise KeyError("large")
            except ValueError:
                seen = seen + 1
            y = y + 1
        except (AssertionError, OSError):
            seen = seen + 10
        return y, seen

    paddle.jit.save(paddle.jit.to_static(f), str(tmp_path / "m"), input_spec=[paddle.static.InputSpec([None])])
    loaded = paddle.jit.load(str(tmp_path / "m"))
    for values in ([1.0, 2.0], [0.5, -1.0], [-5.0, 0.0]):
        x = paddle.to_tensor(values)
        (y, seen), (want, count) = loaded(x), f(x)
        assert (y.tolist(), seen) == (want.tolist(), count)
    with pytest.raises(KeyError, match="large"):
        loaded(paddle.to_tensor([5.0, 6.0]))
