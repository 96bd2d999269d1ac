"""Nets on pictures: one convolution, LeNet (inference and an Adam step), ResNet-18."""

from typing import Any

import numpy as np

from benchmarks.suite.forms import Form, with_training
from benchmarks.suite.names import Jax, Numpy, Onnx
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.steps import ADAM, jax_step, torch_step
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal

LENET = {
    "features.0.weight": (6, 1, 3, 3),
    "features.0.bias": (6,),
    "features.3.weight": (16, 6, 5, 5),
    "features.3.bias": (16,),
    "fc.0.weight": (400, 120),
    "fc.0.bias": (120,),
    "fc.1.weight": (120, 84),
    "fc.1.bias": (84,),
    "fc.2.weight": (84, 10),
    "fc.2.bias": (10,),
}
LENET_FLOPS = 2.0 * (28 * 28 * 6 * 9 + 10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10)  # for one picture


# ---- one convolution ------------------------------------------------------------------------------------------------
def conv_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, w, b = map(paddle.to_tensor, given.values())
    conv2d = paddle.nn.functional.conv2d

    def run(x: Any) -> Any:
        return conv2d(x, w, b)

    return without_gradients(paddle, static(run), x)


def conv_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    x, w, b = map(torch.from_numpy, given.values())
    return inference(torch, compiled(torch.nn.functional.conv2d), x, w, b)


def conv(names: Any, x: Any, w: Any, b: Any) -> Any:
    return names.channel_bias(names.conv(x, w), b)


# ---- LeNet ----------------------------------------------------------------------------------------------------------
def lenet_arrays(random: np.random.Generator, batch: int) -> Arrays:
    weights = layers(random, **LENET)
    pictures = random.standard_normal((batch, 1, 28, 28)).astype("float32")
    return {"x": pictures, "label": random.integers(0, 10, batch)} | weights


def lenet(names: Any, x: Any, *weights: Any) -> Any:
    """Return ten numbers for each picture."""
    w1, b1, w2, b2, *linear = weights
    x = names.max_pool(names.relu(names.channel_bias(names.conv(x, w1, 1, 1), b1)), 2, 2)
    x = names.max_pool(names.relu(names.channel_bias(names.conv(x, w2), b2)), 2, 2)
    x = names.rows(x)
    for at in range(0, len(linear), 2):
        x = names.linear(x, linear[at], linear[at + 1])
    return x


def lenet_layer(paddle: Any, given: Arrays) -> Any:
    """Make Paddle's LeNet with these weights."""
    net = paddle.vision.models.LeNet()
    net.set_state_dict({name: paddle.to_tensor(given[name]) for name in LENET})
    return net


def lenet_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    net = lenet_layer(paddle, given)
    net.eval()
    return without_gradients(paddle, static(net), paddle.to_tensor(given["x"]))


def lenet_torch(torch: Any, x: Any, *weights: Any) -> Any:
    w1, b1, w2, b2, *linear = weights
    functional = torch.nn.functional
    x = functional.max_pool2d(functional.relu(functional.conv2d(x, w1, b1, padding=1)), 2)
    x = functional.max_pool2d(functional.relu(functional.conv2d(x, w2, b2)), 2)
    x = torch.flatten(x, 1)
    for at in range(0, len(linear), 2):
        x = torch.addmm(linear[at + 1], x, linear[at])
    return x


def lenet_inference_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    x, *weights = (torch.from_numpy(given[name]) for name in ("x", *LENET))
    return inference(torch, compiled(lambda x: lenet_torch(torch, x, *weights)), x)


def lenet_jax(jax: Any, given: Arrays) -> Job:
    return jax_inference(jax, lenet, [given[name] for name in ("x", *LENET)])


def jax_inference(jax: Any, model: Any, arrays: list[np.ndarray]) -> Job:
    """Return a compiled call of a model; its weights are arguments, as jax's users have them."""
    run = jax.jit(lambda x, *weights: model(Jax(jax), x, *weights))
    tensors = [jax.numpy.asarray(x) for x in arrays]
    return lambda: run(*tensors)


def onnx_inference(model: Any, arrays: list[np.ndarray]) -> tuple[Any, Arrays]:
    """Return a model whose weights are constants, and its input; the first axis is open."""
    g = graph("model")
    g.input("x", arrays[0], ["batch", *arrays[0].shape[1:]])
    g.result(model(Onnx(g), "x", *arrays[1:]))
    return g.model(), {"x": arrays[0]}


# ---- LeNet's step ---------------------------------------------------------------------------------------------------
def lenet_step_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    net = form.model(lenet_layer(paddle, given))

    def loss_of(x: Any, label: Any) -> Any:
        return paddle.nn.functional.cross_entropy(net(x), label)

    step = form.step(loss_of, net.parameters(), ADAM)
    x, label = paddle.to_tensor(given["x"]), paddle.to_tensor(given["label"])
    return lambda: step(x, label)


def lenet_step_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any, label: Any) -> Any:
        return torch.nn.functional.cross_entropy(lenet_torch(torch, x, *weights), label)

    step = torch_step(torch, compiled, loss_of, [given[name] for name in LENET], ADAM)
    x, label = torch.from_numpy(given["x"]), torch.from_numpy(given["label"])
    return lambda: step(x, label)


def lenet_step_jax(jax: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any, label: Any) -> Any:
        chances = jax.nn.log_softmax(lenet(Jax(jax), x, *weights))
        return -jax.numpy.take_along_axis(chances, label[:, None], 1).mean()

    step = jax_step(jax, loss_of, [given[name] for name in LENET], ADAM)
    x, label = jax.numpy.asarray(given["x"]), jax.numpy.asarray(given["label"])
    return lambda: step(x, label)


def cross_entropy_numpy(scores: np.ndarray, label: np.ndarray) -> Any:
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return -np.log(chances[np.arange(len(label)), label]).mean()


ROWS = (
    Row(
        "conv",
        "convolution of 1x3x32x32 by 2 filters of 3x3",
        lambda random, n, size: normal(random, x=(n, 3, size, size), w=(2, 3, 3, 3), b=(2,)),
        {"n": 1, "size": 32},
        {"n": 2, "size": 5},
        with_paddle(conv_paddle)
        | with_torch(conv_torch)
        | with_jax(lambda jax, given: jax_inference(jax, conv, list(given.values())))
        | with_onnx(lambda given: onnx_inference(conv, list(given.values()))),
        lambda given: conv(Numpy(), *given.values()),
        lambda n, size: Work(2.0 * n * 2 * 27 * (size - 2) ** 2, 4.0 * n * (3 * size**2 + 2 * (size - 2) ** 2)),
    ),
    Row(
        "lenet",
        "LeNet, batch 64, inference",
        lenet_arrays,
        {"batch": 64},
        {"batch": 2},
        with_paddle(lenet_paddle)
        | with_torch(lenet_inference_torch)
        | with_jax(lenet_jax)
        | with_onnx(lambda given: onnx_inference(lenet, [given[name] for name in ("x", *LENET)])),
        lambda given: lenet(Numpy(), *(given[name] for name in ("x", *LENET))),
        lambda batch: Work(batch * LENET_FLOPS, 4.0 * (batch * 784 + 61_610)),
    ),
    Row(
        "lenet-step",
        "LeNet, batch 64, Adam step",
        lenet_arrays,
        {"batch": 64},
        {"batch": 2},
        with_training(lenet_step_paddle) | with_torch(lenet_step_torch) | with_jax(lenet_step_jax),
        lambda given: cross_entropy_numpy(lenet(Numpy(), *(given[name] for name in ("x", *LENET))), given["label"]),
        lambda batch: Work(3 * batch * LENET_FLOPS, 4.0 * (batch * 784 + 6 * 61_610)),
        tolerance=1e-3,
    ),
)
