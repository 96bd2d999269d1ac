"""Losses over many classes, fractional pooling and beam search: the figures are those of PaddlePaddle 3.3.1."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn import functional as F


def static(function):
    return paddle.jit.to_static(function, full_graph=True)


def both(function, *arguments, rtol=2e-6):
    """Return what a function gives, the same eagerly and as a Program."""
    eager, made = function(*arguments), static(function)(*arguments)
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (eager, made)), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=rtol)
    return eager


def ramp(*shape, by=7, mod=11, over=10.0):
    count = int(np.prod(shape))
    numbers = ((np.arange(count) * by % mod - mod // 2) / over).astype("float32")
    return paddle.to_tensor(numbers.reshape(shape), stop_gradient=False)


def near(tensor, wanted):
    np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.proves("nn.functional.hsigmoid_loss nn.HSigmoidLoss")
def test_choices_in_a_tree():
    x = paddle.to_tensor((np.arange(12).reshape(4, 3) % 5 - 2).astype("float32") / 4, stop_gradient=False)
    weight, label = ramp(4, 3, by=1, mod=7, over=4.0), paddle.to_tensor([[0], [1], [4], [3]])
    bias = paddle.to_tensor([[0.1], [0.2], [-0.3], [0.4]], stop_gradient=False)
    loss = both(lambda *a: F.hsigmoid_loss(a[0], a[1], 5, *a[2:]), x, label, weight, bias)
    near(loss, [[2.357394], [2.079610], [2.145466], [2.185564]])
    loss.sum().backward()
    near(bias.grad, [[1.158118], [0.602366], [0.440903], [0.181242]])
    near(x.grad[0], [-0.484242, -0.439248, -0.394254])
    near(weight.grad[3], [0.369384, -0.276463, -0.231152])
    table = paddle.to_tensor([[0, 2, -1, -1], [0, 1, 2, -1], [0, 1, -1, -1], [0, 1, 2, 3]])
    code = paddle.to_tensor([[0, 1, -1, -1], [1, 0, 0, -1], [1, 1, -1, -1], [0, 0, 1, 1]])
    near(F.hsigmoid_loss(x, label, 5, weight, None, table, code), [[3.151657], [2.912186], [2.651492], [2.378055]])
    layer = paddle.nn.HSigmoidLoss(3, 5)
    layer.weight.set_value(weight)
    layer.bias.set_value(bias)
    near(layer(x, label), loss.numpy())
    assert paddle.nn.HSigmoidLoss(3, 5, is_custom=True).weight.shape == [5, 3]
    with pytest.raises(ValueError, match="give path_table and path_code"):
        F.hsigmoid_loss(x, label, 5, weight, None, table)
    with pytest.raises(ValueError, match="a tree needs two classes"):
        F.hsigmoid_loss(x, label, 1, weight)
    with pytest.raises(ValueError, match="a tree needs two classes"):
        paddle.nn.HSigmoidLoss(3, 1)


@pytest.mark.proves("nn.functional.adaptive_log_softmax_with_loss nn.AdaptiveLogSoftmaxWithLoss")
def test_frequent_classes_before_rare_ones():
    x, label = ramp(5, 8, by=5, mod=13), paddle.to_tensor([0, 2, 4, 7, 11])
    head, bias = ramp(8, 5), ramp(5)
    tails = [[ramp(8, 4), ramp(4, 3)], [ramp(8, 2), ramp(2, 6)]]
    run = lambda x, label: F.adaptive_log_softmax_with_loss(x, label, head, tails, [3, 6, 12], bias)
    out, loss = both(run, x, label)
    near(out, [-1.691197, -1.629541, -2.956434, -3.415193, -3.837883])
    near(loss, 2.70605)
    loss.backward()
    near(x.grad[0], [0.114957, 0.058559, 0.018013, -0.038385, -0.064498, -0.064498, 0.058559, 0.058559])
    near(tails[1][0].grad[0], [0.002726, -0.020786])
    layer = paddle.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0, head_bias=True)
    for own, other in zip(layer.parameters(), [head, bias, *tails[0], *tails[1]], strict=True):
        own.set_value(other)
    near(layer(x, label)[0], out.numpy())
    logs = layer.log_prob(x)
    near(logs.exp().sum(1), np.ones(5))
    near(paddle.take_along_axis(logs, label.unsqueeze(1), 1)[:, 0], out.numpy())
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    near(F.adaptive_log_softmax_with_loss(x[1], label[1], head, tails, [3, 6, 12], bias)[0], -1.629541)
    with pytest.raises(ValueError, match="cutoffs ascend"):
        paddle.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [6, 3])
    with pytest.raises(ValueError, match=r"labels of shape \[5\] do not go"):
        F.adaptive_log_softmax_with_loss(x[0], label, head, tails, [3, 6, 12])


ACTS = np.array([
    [[[.1, .6, .1, .1, .1], [.1, .1, .6, .1, .1], [.1, .1, .2, .8, .1]],
     [[.1, .6, .1, .1, .1], [.1, .1, .2, .1, .1], [.7, .1, .2, .1, .1]]],
    [[[.3, .1, .2, .1, .1], [.2, .1, .6, .1, .1], [.1, .1, .2, .8, .1]],
     [[.1, .6, .5, .1, .1], [.1, .4, .2, .1, .1], [.7, .1, .2, .1, .1]]],
], "float32")  # fmt: skip


@pytest.mark.proves("nn.functional.rnnt_loss nn.RNNTLoss")
def test_all_alignments_of_a_text():
    acts = paddle.to_tensor(ACTS, stop_gradient=False)
    rest = [paddle.to_tensor(n, "int32") for n in ([[1, 2], [3, 0]], [2, 2], [2, 1])]
    run = lambda *a: F.rnnt_loss(*a, fastemit_lambda=0.5, reduction="none")
    loss = both(run, acts, *rest)
    near(loss, [-2.850425, -1.144397])
    static(lambda *a: run(*a).sum())(acts, *rest).backward()
    wanted = [[-0.286383, -1.070425, 0, 0, 0], [-0.286383, 0, -0.640850, 0, 0], [-0.427234, 0, 0, 0, 0]]
    near(acts.grad[0, 0], wanted)
    near(acts.grad[1, 1], [[0, 0, 0, -0.787469, 0], [-1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    near(paddle.nn.RNNTLoss()(acts, *rest), -1.997411)
    near(F.rnnt_loss(acts, *rest, reduction="sum"), -3.994821)
    with pytest.raises(ValueError, match="rnnt_loss needs"):
        F.rnnt_loss(acts[0], *rest)


@pytest.mark.proves("nn.functional.class_center_sample")
def test_classes_that_are_sampled():
    label = paddle.to_tensor([17, 10, 5, 18, 8, 8, 19, 14, 10, 14])
    places, classes = both(lambda label: F.class_center_sample(label, 20, 6), label)
    assert classes.tolist() == [5, 8, 10, 14, 17, 18, 19]
    assert places.tolist() == [4, 2, 0, 5, 1, 1, 6, 3, 2, 3]
    paddle.seed(4)
    places, classes = F.class_center_sample(label, 20, 12)
    assert classes.shape == [12]
    assert paddle.gather(classes, places).tolist() == label.tolist()
    assert classes.tolist() == sorted(set(classes.tolist()))
    paddle.seed(4)
    assert static(lambda x: F.class_center_sample(x, 20, 12))(label)[1].tolist() == classes.tolist()
    with pytest.raises(ValueError, match="30 samples of 20 classes"):
        F.class_center_sample(label, 20, 30)


@pytest.mark.proves(
    "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.FractionalMaxPool2D "
    "nn.FractionalMaxPool3D"
)
def test_windows_at_fractions():
    x = paddle.to_tensor((np.arange(49).reshape(1, 1, 7, 7) * 37 % 50).astype("float32"), stop_gradient=False)
    out, mask = both(lambda x: F.fractional_max_pool2d(x, 5, random_u=0.3, return_mask=True), x)
    assert out[0, 0].tolist() == [[0, 37, 11, 48, 22], [18, 46, 29, 44, 40], [27, 14, 38, 25, 49], [45, 32, 47, 43, 17],
                                  [4, 41, 15, 39, 26]]  # fmt: skip
    assert mask[0, 0, :2].tolist() == [[0, 1, 3, 4, 6], [14, 8, 17, 12, 20]]
    out.sum().backward()
    assert x.grad[0, 0, :2].tolist() == [[1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 1, 0]]
    layer = paddle.nn.FractionalMaxPool2D([3, None], [2, 1], 0.6)
    assert layer(x)[0, 0].tolist() == [[9, 46, 33, 20, 48, 44, 31], [36, 23, 10, 47, 34, 21, 49],
                                       [45, 41, 28, 15, 43, 39, 26]]  # fmt: skip
    y = paddle.to_tensor((np.arange(125).reshape(1, 1, 5, 5, 5) * 37 % 101).astype("float32"))
    out, mask = both(lambda y: F.fractional_max_pool3d(y, 3, random_u=0.3, return_mask=True), y)
    assert out[0, 0, 0].tolist() == [[100, 90, 94], [83, 56, 93], [87, 39, 97]]
    assert mask[0, 0, 2].tolist() == [[76, 102, 79], [111, 87, 114], [90, 117, 98]]
    out = paddle.nn.FractionalMaxPool3D([3, 2, 4], [2, 2, 1], 0.4)(y)
    assert out[0, 0].tolist() == [[[100, 53, 94, 63], [66, 87, 76, 97]], [[48, 85, 58, 95], [98, 34, 92, 44]],
                                  [[64, 85, 74, 95], [98, 50, 91, 60]]]  # fmt: skip
    paddle.seed(3)
    drawn = F.fractional_max_pool2d(x, 4)
    paddle.seed(3)
    assert static(lambda x: F.fractional_max_pool2d(x, 4))(x).tolist() == drawn.tolist()
    with pytest.raises(ValueError, match="random_u lies between 0 and 1"):
        F.fractional_max_pool2d(x, 4, random_u=1.5)
    with pytest.raises(ValueError, match="gives no 7 windows of 2 from 7 elements"):
        F.fractional_max_pool2d(x, 7, 2, 0.5)
    with pytest.raises(ValueError, match="needs a tensor of 5 axes"):
        F.fractional_max_pool3d(x, 4)


class Speller(paddle.nn.Layer):
    """A cell with words before and after it."""

    def __init__(self, cell):
        super().__init__()
        self.table, self.cell, self.out = paddle.nn.Embedding(6, 4), cell(4, 5), paddle.nn.Linear(5, 6)
        self.decoder = paddle.nn.BeamSearchDecoder(self.cell, 0, 1, 3, self.table, self.out)
        for i, p in enumerate(self.parameters()):
            numbers = (np.arange(p.size) * (7 + i) % 13 - 6) / 8
            p.set_value(paddle.to_tensor(numbers.astype("float32").reshape(p.shape)))

    def forward(self, states, longest=6):
        return paddle.nn.dynamic_decode(self.decoder, states, max_step_num=longest, return_length=True)


START = paddle.to_tensor(np.linspace(-1, 1, 10).astype("float32").reshape(2, 5))


@pytest.mark.on_host("its states were made before")
@pytest.mark.proves("nn.BeamSearchDecoder nn.dynamic_decode")
@pytest.mark.parametrize("mode", ["eager", "static"])
def test_the_best_beams(mode):
    how = static if mode == "static" else lambda f: f
    net = Speller(paddle.nn.GRUCell)
    words, states, lengths = how(net.forward)(START)
    assert words[0].tolist() == [[1, 0, 0], *[[1, 1, 0]] * 6]
    assert words[1].tolist() == [[3, 3, 3]] * 3 + [[3, 4, 5]] + [[5, 5, 5]] * 3
    near(states.log_probs, [[-1.785937, -2.172754, -6.598483], [-9.204390, -9.215063, -9.227746]])
    assert lengths.tolist() == [[1, 2, 7], [7, 7, 7]]
    assert how(net.forward)(START, 3)[0].shape == [2, 4, 3]
    net = Speller(paddle.nn.LSTMCell)
    net.out.bias.set_value(np.array([0, 1.5, 0, 0.2, -0.1, 0.3], "float32"))
    words, states, lengths = how(net.forward)((START, START * 0.5))
    assert words.tolist() == [[[1, 0, 5], [1, 1, 1]], [[1, 5, 3], [1, 1, 1]]]
    assert lengths.tolist() == [[1, 2, 2], [1, 2, 2]]
    near(states.cell_states[0].sum(), -1.211587)


class Counting(paddle.nn.Decoder):
    """Counts up; each sequence is over at its own number."""

    def __init__(self, ends):
        self.ends = ends

    def initialize(self, inits):
        return inits, inits, self.ends <= 0

    def step(self, time, inputs, states, **kwargs):
        after = states + 1.0
        return {"now": after, "time": time.astype("float32") + after * 0.0}, after, inputs, after >= self.ends


@pytest.mark.parametrize("mode", ["eager", "static"])
def test_a_decoder_of_ones_own(mode):
    how = static if mode == "static" else lambda f: f
    decoder = Counting(paddle.to_tensor([2.0, 4.0]))
    run = lambda x: paddle.nn.dynamic_decode(decoder, x, impute_finished=True, return_length=True)
    outputs, state, lengths = how(run)(paddle.zeros([2]))
    assert outputs["time"].tolist() == [[0.0, 1.0, 2.0, 3.0]] * 2
    assert (state.tolist(), lengths.tolist()) == ([2.0, 4.0], [2, 4])
    assert decoder.finalize(1, 2, 3) == (1, 2)
    with pytest.raises(NotImplementedError, match=r"Decoder has no initialize\(\)"):
        paddle.nn.dynamic_decode(paddle.nn.Decoder())
    with pytest.raises(NotImplementedError, match=r"Decoder has no step\(\)"):
        paddle.nn.Decoder().step(None, None, None)
    time_major, _ = how(lambda x: paddle.nn.dynamic_decode(decoder, x, output_time_major=True))(paddle.zeros([2]))
    assert time_major["now"].shape == [4, 2]
