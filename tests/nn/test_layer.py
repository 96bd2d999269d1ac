"""Layer: what it owns, state dicts, modes, hooks, moving, printing."""

import copy
import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.scale = self.create_parameter([3], default_initializer=nn.initializer.Constant(2.0))
        self.register_buffer("steps", paddle.zeros([1]))
        self.register_buffer("scratch", paddle.zeros([1]), persistable=False)

    def forward(self, x):
        self.steps = self.steps + 1
        return self.fc(x) * self.scale


@pytest.mark.proves("nn.Layer nn.Module nn.Parameter")
def test_attributes_are_registered_by_kind():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "fc.weight", "fc.bias"]
    assert [n for n, _ in net.named_buffers()] == ["steps", "scratch"]
    assert [n for n, _ in net.named_sublayers()] == ["fc"]
    net.fc = None
    assert len(net.parameters()) == 1
    net.extra = nn.Linear(1, 1)
    del net.extra
    assert not hasattr(net, "extra")


def test_a_buffer_that_is_assigned_stays_a_buffer():
    net = Net()
    net(paddle.ones([1, 2]))
    assert float(net.steps) == 1.0
    assert "steps" in dict(net.named_buffers())


@pytest.mark.proves("nn.Layer.parameters")
def test_a_shared_parameter_is_listed_once_and_saved_under_both_names():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(net.parameters()) == 3
    assert {"0.weight", "1.weight"} <= set(net.state_dict())


def test_state_dict_leaves_out_what_is_not_persistable():
    net = Net()
    assert list(net.state_dict()) == ["scale", "steps", "fc.weight", "fc.bias"]
    assert "scratch" in net.to_static_state_dict()


@pytest.mark.proves("nn.Layer.state_dict nn.Layer.set_state_dict")
def test_state_goes_to_another_layer():
    one, two = Net(), Net()
    assert two.set_state_dict({k: v.numpy() for k, v in one.state_dict().items()}) == ([], [])
    np.testing.assert_array_equal(two.fc.weight.numpy(), one.fc.weight.numpy())


def test_what_does_not_fit_is_skipped_with_a_warning():
    net = Net()
    state = {**net.state_dict(), "fc.weight": np.zeros((3, 3)), "other": np.zeros(1)}
    del state["scale"]
    with pytest.warns(UserWarning, match="Skip loading for") as record:
        missing, unexpected = net.set_state_dict(state)
    assert (sorted(missing), sorted(unexpected)) == (["fc.weight", "scale"], ["fc.weight", "other"])
    texts = " ".join(str(w.message) for w in record)
    assert "receives a shape [3, 3], but the expected shape is [2, 3]" in texts
    assert "scale is not found in the provided dict" in texts


@pytest.mark.proves("nn.Layer.train nn.Layer.eval")
def test_train_and_eval_reach_all_below():
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    net.eval()
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.train()
    assert all(layer.training for layer in net.sublayers(include_self=True))


def test_apply_goes_from_below():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    net.apply(lambda layer: seen.append(type(layer).__name__))
    assert seen == ["Linear", "ReLU", "Sequential"]


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_hooks_change_inputs_and_outputs_until_removed(static):
    layer = nn.Linear(2, 2)
    plain = layer(paddle.ones([1, 2])).numpy()
    before = layer.register_forward_pre_hook(lambda _, inputs: (inputs[0] * 2,))
    after = layer.register_forward_post_hook(lambda _, inputs, out: out + 1)
    run = paddle.jit.to_static(lambda x: layer(x), full_graph=True) if static else layer
    bias = layer.bias.numpy()
    np.testing.assert_allclose(run(paddle.ones([1, 2])).numpy(), (plain - bias) * 2 + bias + 1, rtol=1e-5)
    before.remove()
    after.remove()
    before.remove()
    np.testing.assert_allclose(layer(paddle.ones([1, 2])).numpy(), plain)


def test_a_hook_can_be_put_first():
    layer, seen = nn.Linear(1, 1), []
    layer.register_forward_pre_hook(lambda *_: seen.append("second"))
    layer.register_forward_pre_hook(lambda *_: seen.append("first"), prepend=True)
    layer(paddle.ones([1, 1]))
    assert seen == ["first", "second"]


def test_a_cast_keeps_the_tensors_and_integer_buffers():
    net = Net()
    net.register_buffer("count", paddle.to_tensor([1]))
    weight = net.fc.weight
    net.to(dtype="float64")
    assert net.fc.weight is weight
    assert (weight.dtype, net.count.dtype) == (paddle.float64, paddle.int64)
    assert net.float().fc.weight.dtype == paddle.float32


def test_a_deep_copy_has_parameters_and_hooks_of_its_own():
    net = Net()
    twin = copy.deepcopy(net)
    twin.fc.weight.set_value(paddle.zeros([2, 3]))
    assert float(net.fc.weight.abs().sum()) > 0
    assert twin.fc.weight is dict(twin.named_parameters())["fc.weight"]


def test_repr_shows_the_tree():
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU())) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, dtype=float32)\n  (1): ReLU()\n)"
    )


def test_two_threads_run_one_layer():
    net, results = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), {}
    x = [paddle.ones([2, 4]) * k for k in range(4)]
    want = [net(t).numpy() for t in x]

    def work(k):
        results[k] = [net(x[k]).numpy() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    for k in range(4):
        for got in results[k]:
            np.testing.assert_array_equal(got, want[k])


class Late(nn.Layer):
    def __init__(self):
        self.fc = nn.Linear(1, 1)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (Late, RuntimeError, r"call super\(\).__init__\(\) before the attribute 'fc'"),
        (lambda: nn.Layer()(1), NotImplementedError, "Layer has no `forward`"),
        (lambda: Net().nothing, AttributeError, "Net has no attribute 'nothing'"),
        (lambda: setattr(Net(), "scale", 3), TypeError, "'scale' is a Parameter of this layer"),
        (lambda: setattr(Net(), "steps", 3), TypeError, "buffer 'steps' takes a Tensor or None, not int"),
        (lambda: Net().add_parameter("p", paddle.ones([1])), TypeError, "must be a Parameter or None"),
        (lambda: Net().add_sublayer("p", 3), TypeError, "must be a Layer or None, not int"),
        (lambda: Net().register_buffer("b", 3), TypeError, "must be a Tensor or None, not int"),
        (lambda: Net().register_buffer("a.b", paddle.ones([1])), KeyError, "needs a name without dots"),
        (lambda: Net().register_buffer("fc", paddle.ones([1])), KeyError, "has an attribute 'fc' already"),
        (lambda: Net().create_parameter([-1]), ValueError, "must be known and not negative"),
        (lambda: Net().create_parameter(["x"]), TypeError, "must be ints"),
        (lambda: Net().create_parameter([1], attr=3), TypeError, "a parameter attribute is a ParamAttr"),
        (lambda: paddle.ParamAttr(name=3), TypeError, "name must be a str or None, not int"),
        (lambda: nn.LayerList([3]), TypeError, "must be a Layer or None, not int"),
        (lambda: nn.LayerList([nn.ReLU()])[1], IndexError, "place 1 is outside of 1 items"),
        (lambda: nn.LayerList().insert(2, nn.ReLU()), IndexError, "place 2 is outside of 0 layers"),
        (lambda: nn.LayerList().insert(0, 3), TypeError, "LayerList holds Layers, not int"),
        (lambda: nn.LayerDict([("a",)]), ValueError, "needs pairs of a key and a layer"),
        (lambda: nn.ParameterDict()["a"], KeyError, "a"),
    ],
)
def test_bad_use(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_no_parameter_where_the_attribute_is_false():
    assert nn.Linear(2, 3, bias_attr=False).bias is None


@pytest.mark.proves("nn.Layer.create_parameter")
def test_attributes_of_parameters():
    attr = paddle.ParamAttr("named", nn.initializer.Constant(3.0), 0.5, paddle.regularizer.L2Decay(0.1), False)
    weight = nn.Linear(2, 3, weight_attr=attr).weight
    assert (weight.name, weight.optimize_attr["learning_rate"], weight.trainable) == ("named", 0.5, False)
    assert float(weight.min()) == 3.0
    assert weight.regularizer.coeff == 0.1


@pytest.mark.proves(
    "nn.LayerList nn.LayerDict nn.ParameterList nn.ParameterDict nn.Sequential nn.ModuleList nn.ModuleDict"
)
def test_containers_are_lists_and_dicts():
    layers = nn.LayerList([nn.Linear(1, 1), nn.ReLU()])
    layers.insert(1, nn.Tanh())
    layers.extend([nn.GELU()])
    assert [type(x).__name__ for x in layers] == ["Linear", "Tanh", "ReLU", "GELU"]
    del layers[0]
    assert list(layers._sub_layers) == ["0", "1", "2"]
    assert len(layers[1:]) == 2
    named = nn.LayerDict({"a": nn.ReLU()})
    named["b"] = nn.Tanh()
    assert (list(named), "b" in named, type(named.pop("a")).__name__, len(named)) == (["a", "b"], True, "ReLU", 1)
    parameters = nn.ParameterList([paddle.create_parameter([1], "float32")])
    assert len(parameters.append(paddle.create_parameter([2], "float32"))) == 2
    assert [p.shape for p in parameters] == [[1], [2]]
    assert nn.ParameterDict({"w": parameters[0]})["w"] is parameters[0]


def test_a_state_dict_that_is_no_dict():
    with pytest.raises(TypeError, match="a state dict maps names to tensors, it is not int 3"):
        paddle.nn.Linear(2, 2).set_state_dict(3)
