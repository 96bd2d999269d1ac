"""States that PaddlePaddle saved (tests/peers/paddle_states.py wrote them): the same outputs, the same training."""

from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from tests.peers.paddle_states import LAYERS, flat, inputs, steps

DATA = Path(__file__).parents[1] / "data" / "paddle"
with np.load(DATA / "expected.npz") as _arrays:
    EXPECTED = dict(_arrays)


@pytest.mark.parametrize(("name", "make", "shapes"), LAYERS, ids=[name for name, *_ in LAYERS])
@pytest.mark.proves(
    "nn.TransformerEncoderLayer nn.Transformer nn.TransformerEncoder nn.TransformerDecoder nn.TransformerDecoderLayer"
)
def test_a_layer_gives_what_paddle_gives(name, make, shapes):
    layer = make(paddle.nn)
    layer.eval()
    assert layer.set_state_dict(paddle.load(DATA / f"{name}.pdparams")) == ([], [])
    found = flat(layer(*map(paddle.to_tensor, inputs(shapes))))
    for i, array in enumerate(found):
        np.testing.assert_allclose(array, EXPECTED[f"{name}.{i}"], rtol=1e-5, atol=1e-5)
    assert f"{name}.{len(found)}" not in EXPECTED


def test_training_goes_on_as_in_paddle():
    layer = paddle.nn.Linear(3, 2)
    for p, name in zip(layer.parameters(), ("linear_0.w_0", "linear_0.b_0"), strict=True):
        p.name = name  # as they were named where the state comes from
    layer.set_state_dict(paddle.load(DATA / "step3.pdparams"))
    rate = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    optimizer = paddle.optimizer.AdamW(rate, parameters=layer.parameters())
    optimizer.set_state_dict(paddle.load(DATA / "step3.pdopt"))
    steps(paddle, layer, optimizer, 2)
    for i, p in enumerate(layer.parameters()):
        np.testing.assert_allclose(p.numpy(), EXPECTED[f"step5.{i}"], rtol=1e-5)


def test_the_state_of_an_optimizer_has_the_names_of_paddle():
    state = paddle.load(DATA / "step3.pdopt")
    slots = {name.removeprefix("linear_0.w_0_") for name in state if name.startswith("linear_0.w_0")}
    assert slots == {"moment1_0", "moment2_0", "beta1_pow_acc_0", "beta2_pow_acc_0"}
    assert state["LR_Scheduler"]["last_epoch"] == 3


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_nested_state_of_every_protocol(protocol):
    found = paddle.load(DATA / f"nested{protocol}.pdparams")
    np.testing.assert_array_equal(found["weight"].numpy(), EXPECTED["weight"])
    assert found["b"][0].tolist() == [1, 1]
    assert (found["b"][1], found["c"]) == (3, (1, "x"))
    assert type(found["array"]) is np.ndarray
    assert type(paddle.load(DATA / f"nested{protocol}.pdparams", return_numpy=True)["weight"]) is np.ndarray


def test_small_floats_and_a_tensor_on_its_own():
    found = paddle.load(DATA / "halves.pdparams")
    assert {name: (t.dtype.name, t.tolist()) for name, t in found.items()} == {
        "bfloat16": ("bfloat16", [1.5, -2.0]),
        "float16": ("float16", [0.5]),
        "bool": ("bool", [True, False]),
    }
    np.testing.assert_array_equal(paddle.load(DATA / "one.pdparams").numpy(), EXPECTED["weight"])
    assert "StructuredToParameterName@@" in paddle.load(DATA / "images.pdparams", keep_name_table=True)


def test_the_other_readers_of_states_take_them_too():
    by_name = paddle.static.load_program_state(str(DATA / "step3"))
    assert {name: array.shape for name, array in by_name.items()} == {"weight": (3, 2), "bias": (2,)}
    parameters, state = paddle.fluid.dygraph.load_dygraph(str(DATA / "step3"))
    np.testing.assert_array_equal(parameters["weight"], by_name["weight"])
    assert state["linear_0.w_0_moment1_0"].shape == (3, 2)


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        (lambda nn: nn.LayerNorm([3, 4]), {"weight": [12], "bias": [12]}),
        (lambda nn: nn.PReLU(3), {"_weight": [3]}),
        (lambda nn: nn.Transformer(8, 2, 1, 1, 16).encoder.norm, {"weight": [8], "bias": [8]}),
    ],
)
def test_names_and_shapes_of_states(layer, names):
    assert {name: t.shape for name, t in layer(paddle.nn).state_dict().items()} == names


def test_a_projection_has_no_second_name():
    names = set(paddle.nn.LSTM(3, 4, proj_size=2).state_dict())
    assert "0.cell.weight_ho" in names
    assert "weight_hh_l0" in names
    assert "weight_ho_l0" not in names
