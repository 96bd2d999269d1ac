"""1.x's eager mode: guard, to_variable, layers, dropout by train() and eval(), checkpoints, ProgramTranslator."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.fluid as fluid
import dy2st.fluid.dygraph.nn as nn

F32 = np.float32


class Policy(fluid.dygraph.Layer):
    def __init__(self, name_scope):
        super().__init__(name_scope)
        self.affine1 = nn.FC(self.full_name(), size=8)
        self.affine2 = nn.FC(self.full_name(), size=2)

    def forward(self, x):
        x = fluid.layers.reshape(x, shape=[1, 4])
        x = fluid.layers.dropout(self.affine1(x), 0.5)
        self.seen = fluid.layers.relu(x)
        return fluid.layers.softmax(self.affine2(self.seen), axis=1)


@pytest.fixture
def state():
    return fluid.dygraph.to_variable(np.array([0.1, -0.2, 0.3, -0.4], F32))


def test_guard_runs_eagerly_in_static_mode():
    paddle.enable_static()
    with fluid.dygraph.guard():
        assert fluid.in_dygraph_mode()
        assert fluid.layers.elementwise_add(np.array([1]), np.array([2])).numpy().tolist() == [3]
    assert not fluid.in_dygraph_mode()


def test_guard_with_a_place_gives_it_back():
    with fluid.dygraph.guard(fluid.CPUPlace()):
        assert paddle.get_device() == "cpu"
    assert paddle.get_device() == "cpu"


def test_imperative_mode_is_switched():
    fluid.disable_imperative()
    assert not fluid.dygraph.enabled()
    fluid.enable_imperative(fluid.CPUPlace())
    assert fluid.dygraph.enabled()


def test_to_variable_keeps_the_dtype_and_a_tensor_itself():
    made = fluid.dygraph.to_variable(np.array([1.0]), name="x")
    assert (made.dtype, made.name) == (paddle.float64, "x")
    assert fluid.dygraph.to_variable(made) is made
    assert fluid.dygraph.to_variable([1, 2], dtype="float32").dtype == paddle.float32


def test_to_variable_refuses_other_things():
    with pytest.raises(TypeError, match="to_variable takes an array, a list or a number, not str"):
        fluid.dygraph.to_variable("x")


def test_layers_have_numbered_names():
    names = [Policy("policy").full_name() for _ in range(2)]
    assert [name.rpartition("_")[0] for name in names] == ["policy", "policy"]
    assert names[0] != names[1]


def test_fc_makes_its_parameters_at_the_first_call(rng):
    fc = nn.FC("fc", size=3, num_flatten_dims=2, act="relu")
    assert fc.parameters() == []
    x = rng.normal(size=(2, 5, 4, 1)).astype(F32)
    out = fc(x).numpy()
    want = np.maximum(x.reshape(2, 5, 4) @ fc.weight.numpy() + fc.bias.numpy(), 0)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    assert [name for name, _ in fc.named_parameters()] == ["weight", "bias"]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: nn.FC("fc", size=0), "size must be a positive int"),
        (lambda: nn.FC("fc", size=2)(paddle.ones([3])), "the input needs more axes than 1"),
        (lambda: nn.Pool2D(2, "sum"), "pool_type must be 'max' or 'avg'"),
        (lambda: nn.Pool2D(), "pool_size must be given"),
        (lambda: nn.PRelu("some"), "mode must be 'all', 'channel' or 'element'"),
        (lambda: nn.PRelu("channel"), "mode 'channel' needs channel"),
        (lambda: nn.PRelu("element"), "mode 'element' needs input_shape"),
        (lambda: nn.Embedding([4, 2], padding_idx=4), "padding_idx 4 is outside of 4 rows"),
        (lambda: nn.Linear(2, 2, act="jump")(paddle.ones([1, 2])), "no activation is named 'jump'"),
    ],
)
def test_bad_arguments(act, text):
    with pytest.raises(ValueError, match=text):
        act()


def test_fc_without_known_extents_says_what_to_do():
    fc = nn.FC("fc", size=2)
    static = paddle.jit.to_static(lambda x: fc(x[x > 0].reshape([1, -1])), full_graph=True)
    with pytest.raises(paddle.errors.TraceError, match="FC makes its parameters at its first call"):
        static(paddle.ones([3, 4]))


def test_backward_gives_gradients_as_arrays(state):
    policy = Policy("policy")
    fluid.layers.reduce_mean(fluid.layers.log(policy(state))).backward()
    gradients = [p.gradient() for p in policy.parameters()]
    assert len(gradients) == 4
    assert all(np.isfinite(g).all() for g in gradients)


def test_dropout_follows_the_innermost_running_layer(state):
    policy = Policy("policy")
    policy.eval()
    first = policy(state).numpy()
    np.testing.assert_array_equal(first, policy(state).numpy())
    hidden = policy.affine1(paddle.reshape(state, [1, 4])).numpy() * 0.5
    np.testing.assert_allclose(policy.seen.numpy(), np.maximum(hidden, 0), rtol=1e-5)
    policy.train()
    dropped = [policy(state).numpy() for _ in range(8)]
    assert any((d != dropped[0]).any() for d in dropped)


def test_dropout_under_to_static_follows_train_and_eval(state):
    policy = Policy("policy")
    policy(state)
    want = {}
    for mode in (True, False):
        policy.train(mode)
        paddle.seed(4)
        want[mode] = policy(state).numpy()
    paddle.jit.to_static(policy, full_graph=True)
    for mode in (False, True, False):
        policy.train(mode)
        paddle.seed(4)
        np.testing.assert_allclose(policy(state).numpy(), want[mode], rtol=1e-5)
    assert len(policy.forward.program_cache) == 2


def test_downgrade_in_infer_scales_where_it_does_not_drop():
    x = paddle.ones([1000])
    out = fluid.layers.dropout(x, 0.25).numpy()
    assert set(out.tolist()) == {0.0, 1.0}
    assert 0.7 < out.mean() < 0.8
    assert fluid.layers.dropout(x, 0.25, is_test=True).numpy().tolist() == [0.75] * 1000
    up = fluid.layers.dropout(x, 0.25, dropout_implementation="upscale_in_train").numpy()
    assert {round(v, 5) for v in up.tolist()} == {0.0, round(4 / 3, 5)}


def test_dropout_with_a_seed_repeats():
    x = paddle.ones([50])
    one, two = (fluid.layers.dropout(x, 0.5, seed=7).numpy() for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert 0 < one.sum() < 50


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dropout_implementation": "x"}, "dropout_implementation must be"),
        ({"dropout_prob": 1.5, "seed": 3}, "dropout_prob must be between 0 and 1"),
        ({"dropout_prob": -0.5}, "p must be between 0 and 1"),
    ],
)
def test_bad_dropout(arguments, text):
    with pytest.raises(ValueError, match=text):
        fluid.layers.dropout(paddle.ones([2]), **{"dropout_prob": 0.5, **arguments})


LAYERS = {
    "Conv2D": (lambda: nn.Conv2D(2, 4, 3, padding=1, groups=2, act="relu"), (2, 2, 5, 5), (2, 4, 5, 5)),
    "Conv3D": (lambda: nn.Conv3D(1, 2, 2), (1, 1, 3, 3, 3), (1, 2, 2, 2, 2)),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(2, 3, 2, stride=2, act="tanh"), (1, 2, 3, 3), (1, 3, 6, 6)),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(1, 2, 2), (1, 1, 2, 2, 2), (1, 2, 3, 3, 3)),
    "Pool2D": (lambda: nn.Pool2D(2, "avg", 2), (1, 2, 4, 4), (1, 2, 2, 2)),
    "Pool2D global max": (lambda: nn.Pool2D(global_pooling=True), (1, 2, 4, 4), (1, 2, 1, 1)),
    "Pool2D global avg": (lambda: nn.Pool2D(pool_type="avg", global_pooling=True), (1, 2, 4, 4), (1, 2, 1, 1)),
    "Linear": (lambda: nn.Linear(4, 3, act="sigmoid"), (2, 4), (2, 3)),
    "BatchNorm": (lambda: nn.BatchNorm(3, act="relu"), (4, 3, 2, 2), (4, 3, 2, 2)),
    "LayerNorm": (lambda: nn.LayerNorm([4], shift=False, act="relu"), (2, 4), (2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(4, 2), (2, 4, 3, 3), (2, 4, 3, 3)),
    "InstanceNorm": (lambda: nn.InstanceNorm(3), (2, 3, 4, 4), (2, 3, 4, 4)),
    "PRelu all": (lambda: nn.PRelu("all"), (2, 3, 4, 4), (2, 3, 4, 4)),
    "PRelu channel": (lambda: nn.PRelu("channel", channel=3), (2, 3, 4, 4), (2, 3, 4, 4)),
    "PRelu element": (lambda: nn.PRelu("element", input_shape=[-1, 3, 4]), (2, 3, 4), (2, 3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_the_same_in_a_program(name, rng):
    make, given, shape = LAYERS[name]
    layer = make()
    x = paddle.to_tensor(rng.normal(size=given).astype(F32), stop_gradient=False)
    results = []
    for _ in range(2):
        out = layer(x)
        out.square().sum().backward()
        results.append([out.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in layer.parameters())])
        x.clear_grad()
        layer.clear_gradients()
        paddle.jit.to_static(layer, full_graph=True)
    assert results[0][0].shape == shape
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)


def test_embedding_and_bilinear(rng):
    table = nn.Embedding([5, 3], padding_idx=-1)
    out = table(paddle.to_tensor([[0, 4]])).numpy()
    np.testing.assert_array_equal(out, [[table.weight.numpy()[0], np.zeros(3)]])
    product = nn.BilinearTensorProduct(2, 3, 4)
    x, y = rng.normal(size=(5, 2)).astype(F32), rng.normal(size=(5, 3)).astype(F32)
    want = np.einsum("bi,kij,bj->bk", x, product.weight.numpy(), y) + product.bias.numpy()
    np.testing.assert_allclose(product(paddle.to_tensor(x), paddle.to_tensor(y)).numpy(), want, rtol=1e-4, atol=1e-5)


def test_dropout_layer_is_used_by_its_mode():
    layer = nn.Dropout(0.5)
    assert set(layer(paddle.ones([100])).numpy().tolist()) == {0.0, 1.0}
    layer.eval()
    assert layer(paddle.ones([2])).tolist() == [0.5, 0.5]


def test_layers_take_a_dtype():
    assert nn.Linear(2, 3, dtype="float64")(paddle.ones([1, 2], "float64")).dtype == paddle.float64


def test_checkpoints_hold_parameters_and_optimizer_state(tmp_path):
    layer = nn.Linear(2, 3)
    optimizer = fluid.optimizer.AdamOptimizer(0.1, parameter_list=layer.parameters())
    loss = fluid.layers.reduce_mean(layer(paddle.ones([1, 2])))
    loss.backward()
    optimizer.minimize(loss)
    layer.clear_gradients()
    path = str(tmp_path / "model")
    fluid.save_dygraph(layer.state_dict(), path)
    fluid.save_dygraph(optimizer.state_dict(), path)
    parameters, state = fluid.load_dygraph(path)
    other = nn.Linear(2, 3)
    other.set_dict(parameters)
    np.testing.assert_array_equal(other.weight.numpy(), layer.weight.numpy())
    assert state.keys() == optimizer.state_dict().keys()
    (tmp_path / "model.pdopt").unlink()
    assert fluid.load_dygraph(path + ".pdparams")[1] is None


def test_bad_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="there is neither"):
        fluid.load_dygraph(str(tmp_path / "gone"))
    with pytest.raises(TypeError, match="save_dygraph needs a state dict, not list"):
        fluid.save_dygraph([], str(tmp_path / "x"))
    with pytest.raises(ValueError, match="needs a file name at the end of the path"):
        fluid.save_dygraph({}, str(tmp_path) + "/")


def doubled(x):
    if x > 0:
        return x * 2
    return x


def test_program_translator():
    translator = fluid.dygraph.ProgramTranslator.get_instance()
    x = paddle.to_tensor(3.0)
    assert float(translator.get_output(doubled, x)) == float(translator.get_func(doubled)(x)) == 6.0
    assert "if" in translator.get_code(doubled)
    assert "cond" in str(translator.get_program(doubled, x))
    static = fluid.dygraph.declarative(doubled)
    translator.enable(False)
    try:
        assert not translator.enable_to_static
        assert float(static(x)) == 6.0
        assert len(static.program_cache) == 0
    finally:
        translator.enable(True)
    with pytest.raises(TypeError, match="takes a function, not int"):
        translator.get_output(3)
