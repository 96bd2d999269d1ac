"""`QAT`, `PTQ` and their configuration: which layers change, what they compute, and what is deployed.

Values and kinds of layers were compared with PaddlePaddle 3.3.1 (its QAT.convert fails on quanters without zero
points); here they are held by formulas of their own.
"""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn.quant import Stub
from dy2st.nn.quant.quanted_layers import QuantedConv2D, QuantedLinear
from dy2st.quantization import PTQ, QAT, BaseQuanter, ObserveWrapper, QuantConfig, quanter
from dy2st.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver, HistObserver, KLObserver
from dy2st.quantization.quanters import FakeQuanterWithAbsMaxObserver

SPEC = [paddle.static.InputSpec([None, 16])]


def net():
    paddle.seed(3)
    return paddle.nn.Sequential(paddle.nn.Linear(16, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 4))


def rounded(x, scale, most=127):
    """Steps of scale / most, what is beyond the scale moved to it; halves away from zero."""
    steps = np.clip(x, -scale, scale) * (most / scale)
    return np.trunc(steps + np.copysign(0.5, steps)) * scale / most


def test_moving_average_and_straight_gradient(rng):
    layer = FakeQuanterWithAbsMaxObserver(moving_rate=0.5)._instance(None)
    state, accum = 1.0, 1.0
    for _ in range(3):
        x = paddle.to_tensor(rng.normal(size=(4, 5)).astype(np.float32) * 3, stop_gradient=False)
        y = layer(x)
        state, accum = 0.5 * state + 1, 0.5 * accum + np.abs(x.numpy()).max()
        assert np.isclose(layer.scales().numpy(), accum / state)
        assert np.allclose(y.numpy(), rounded(x.numpy(), accum / state), atol=1e-5)
        (dx,) = paddle.grad((y * y).sum(), x)
        assert np.allclose(dx.numpy(), 2 * y.numpy(), atol=1e-5), "also where x is beyond the scale"
    layer.eval()
    layer(paddle.full([2], 100.0))
    assert np.isclose(layer.scales().numpy(), accum / state), "evaluation changes no scale"


def test_training_eager_and_static_are_the_same(rng):
    batches = rng.normal(size=(4, 6, 16)).astype(np.float32)
    q = FakeQuanterWithAbsMaxObserver()
    found = []
    for static in (False, True):
        model = QAT(QuantConfig(activation=q, weight=q)).quantize(net())
        sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters())

        def step(x, model=model, sgd=sgd):
            loss = (model(x) ** 2).mean()
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            return loss

        step = paddle.jit.to_static(step, full_graph=True) if static else step
        losses = [float(step(paddle.to_tensor(b))) for b in batches]
        found.append((losses, {n: t.numpy() for n, t in model.state_dict().items()}))
    assert np.allclose(found[0][0], found[1][0], rtol=1e-5)
    assert found[0][1].keys() == found[1][1].keys()
    assert "0.weight_quanter._scale" in found[0][1]
    assert all(np.allclose(t, found[1][1][name], atol=1e-5) for name, t in found[0][1].items())


def test_deployed_after_training(rng, tmp_path):
    q = FakeQuanterWithAbsMaxObserver()
    qat = QAT(QuantConfig(activation=q, weight=q))
    model = qat.quantize(net())
    x = paddle.to_tensor(rng.normal(size=(6, 16)).astype(np.float32))
    for _ in range(30):
        model(x)
    model.eval()
    wanted = model(x).numpy()
    kept, deployed = qat.convert(model, remain_weight=True), qat.convert(model)
    assert "0.weight" in kept.state_dict()
    assert "0.weight" not in deployed.state_dict()
    assert deployed[0].quant_weight.dtype is paddle.int8
    assert deployed[0].quant_weight.shape == [8, 16]
    path = paddle.jit.save(deployed, tmp_path / "m", input_spec=SPEC)
    for one in (kept, deployed, paddle.jit.load(path)):
        assert np.allclose(one(x).numpy(), wanted, atol=1e-4)
    assert type(model[0]) is QuantedLinear
    assert not model[0].converted, "convert made a copy"


@pytest.mark.parametrize("factory", [AbsmaxObserver, HistObserver, KLObserver])
def test_rounding_a_trained_model(factory, rng):
    model = net().eval()
    ptq = PTQ(QuantConfig(activation=factory(), weight=AbsmaxObserver()))
    watched = ptq.quantize(model)
    batches = rng.normal(size=(5, 64, 16)).astype(np.float32)
    for batch in batches:
        assert np.array_equal(watched(paddle.to_tensor(batch)).numpy(), model(paddle.to_tensor(batch)).numpy())
    scale, largest = float(watched[0].activation_quanter.scales()), np.abs(batches).max()
    assert np.isclose(scale, largest) if factory is AbsmaxObserver else 0.4 * largest < scale <= largest * 1.001
    deployed = ptq.convert(watched)
    x = paddle.to_tensor(batches[0])
    error = np.linalg.norm(deployed(x).numpy() - model(x).numpy()) / np.linalg.norm(model(x).numpy())
    assert error < (0.02 if factory is AbsmaxObserver else 0.06)
    w = model[0].weight.numpy()
    wanted = rounded(batches[0], scale) @ rounded(w, np.abs(w).max()) + model[0].bias.numpy()
    found = deployed[0](x).numpy()  # a number in the middle between two steps may go either way
    assert np.abs(found - wanted).max() <= scale / 127 * np.abs(w).max() + 1e-4
    assert np.isclose(found, wanted, atol=1e-4).mean() > 0.9


def test_convolutions(rng, tmp_path):
    model = paddle.nn.Sequential(paddle.nn.Conv2D(2, 3, 3, padding=1, padding_mode="reflect"), paddle.nn.AvgPool2D(2))
    x = paddle.to_tensor(rng.normal(size=(2, 2, 6, 6)).astype(np.float32))
    model.eval()
    ptq = PTQ(QuantConfig(activation=None, weight=AbsmaxObserver()))
    watched = ptq.quantize(model)
    assert type(watched[0]) is QuantedConv2D
    assert type(watched[1]) is paddle.nn.AvgPool2D
    watched(x)
    deployed = ptq.convert(watched)
    assert deployed[0].weight.dtype is paddle.int8
    w = model[0].weight.numpy()
    model[0].weight.set_value(rounded(w, np.abs(w).max()))
    assert np.allclose(deployed(x).numpy(), model(x).numpy(), atol=1e-5)
    path = paddle.jit.save(deployed, tmp_path / "m", input_spec=[paddle.static.InputSpec([None, 2, 6, 6])])
    assert np.allclose(paddle.jit.load(path)(x).numpy(), model(x).numpy(), atol=1e-5)


def test_groups_of_a_weight(rng):
    model = paddle.nn.Sequential(paddle.nn.Linear(128, 4)).eval()
    ptq = PTQ(QuantConfig(activation=None, weight=GroupWiseWeightObserver(group_size=64)))
    watched = ptq.quantize(model)
    x = paddle.to_tensor(rng.normal(size=(3, 128)).astype(np.float32))
    watched(x)
    deployed = ptq.convert(watched)
    assert deployed[0].quant_scale.shape == [2, 4]
    assert np.allclose(deployed(x).numpy(), model(x).numpy(), atol=0.05)
    kept = ptq.convert(watched, remain_weight=True)
    assert np.allclose(kept(x).numpy(), deployed(x).numpy(), atol=1e-4)
    with pytest.raises(ValueError, match="has no groups of 64 inputs"):
        GroupWiseWeightObserver(group_size=64)._instance(None)(paddle.ones([65, 2]))
    with pytest.raises(ValueError, match="64 or 128 elements, not 32"):
        GroupWiseWeightObserver(group_size=32)._instance(None)


class Block(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc, self.stub = paddle.nn.Linear(4, 4), Stub()

    def forward(self, x):
        return self.stub(self.fc(x)) + x


def kinds(model):
    return {name: type(layer).__name__ for name, layer in model.named_sublayers()}


def test_what_a_configuration_says_of_which_layers():
    a, w = AbsmaxObserver(), AbsmaxObserver(quant_bits=4)
    model = paddle.nn.Sequential(Block(), paddle.nn.ReLU(), paddle.nn.Linear(4, 4), paddle.nn.Linear(4, 4)).eval()
    config = QuantConfig(activation=None, weight=None)
    config.add_type_config(Block, activation=a)
    config.add_layer_config(model[2], weight=w)
    config.add_name_config(model[3].full_name(), activation=a, weight=w)
    ptq = PTQ(config)
    found = ptq.quantize(model)
    assert kinds(found[0]) == {
        "fc": "QuantedLinear", "fc.activation_quanter": "AbsmaxObserverLayer", "stub": "QuanterStub",
        "stub._observer": "AbsmaxObserverLayer",
    }  # fmt: skip
    assert type(found[1]) is paddle.nn.ReLU, "nothing was said of it"
    assert found[2].activation_quanter is None
    assert found[2].weight_quanter.bit_length() == 4
    assert found[3].activation_quanter is not None
    assert repr(ptq) == "Sequential(\n  (0): Block(), activation: AbsmaxObserver(quant_bits=8)\n  weight: None\n)"
    assert "Layer prefix config:" in str(config)
    everywhere = PTQ(QuantConfig(activation=a, weight=None)).quantize(model)
    assert type(everywhere[1]) is ObserveWrapper
    leaf = QuantConfig(activation=a, weight=None)
    leaf.add_customized_leaf(Block)
    assert type(PTQ(leaf).quantize(model)[0]) is ObserveWrapper


@quanter("Doubling")
class DoublingLayer(BaseQuanter):
    def __init__(self, layer, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, input):
        return input * self.factor

    def scales(self):
        return None


class Twice(paddle.nn.Layer):
    def __init__(self, layer, config):
        super().__init__()
        self.linear, self.quanter = layer, config.activation._instance(layer)

    def forward(self, x):
        return self.linear(self.quanter(x))


def test_quanters_and_layers_of_ones_own():
    config = QuantConfig(activation=Doubling(factor=4.0), weight=None)  # noqa: F821 (declared by the decorator)
    config.add_qat_layer_mapping(paddle.nn.Linear, Twice)
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2, bias_attr=False))
    x = paddle.ones([1, 2])
    assert np.allclose(QAT(config).quantize(model)(x).numpy(), 4 * model(x).numpy(), atol=1e-5)
    with pytest.raises(TypeError, match="two types of layers"):
        config.add_qat_layer_mapping(paddle.nn.Linear, 3)


def test_modes_are_asked_for():
    config = QuantConfig(activation=None, weight=AbsmaxObserver())
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        PTQ(config).quantize(net())
    with pytest.raises(ValueError, match=r"call model\.train\(\) first"):
        QAT(config).quantize(net().eval())


def test_paddles_paths():
    import dy2st.nn.quant.qat as qat

    assert qat.QuantedLinear is QuantedLinear
    assert paddle.nn.quant.format.LinearQuanter is not None
