"""ResNet-18 on pictures of 64 x 64: inference, and a train step."""

from typing import Any

import numpy as np

from benchmarks.suite.forms import RATE, Form, with_training
from benchmarks.suite.names import Jax, Numpy, Onnx
from benchmarks.suite.nets import eagerly
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers

WIDTHS = 64, 128, 256, 512
STAGES = tuple((f"layer{stage + 1}.{turn}", stage, turn) for stage in range(4) for turn in range(2))


def convolutions() -> dict[str, tuple[int, int, int]]:
    """Return output channels, input channels and size of each convolution, by name."""
    found = {"conv1": (64, 3, 7)}
    for name, stage, turn in STAGES:
        width, before = WIDTHS[stage], WIDTHS[stage - (turn == 0 and stage > 0)]
        found |= {f"{name}.conv1": (width, before, 3), f"{name}.conv2": (width, width, 3)}
        if before != width:
            found[f"{name}.downsample.0"] = (width, before, 1)
    return found


def norm_of(convolution: str) -> str:
    """Return the name of the normalisation that follows."""
    return convolution.replace("conv", "bn").replace("downsample.0", "downsample.1")


def arrays(random: np.random.Generator, batch: int, size: int) -> Arrays:
    given = {"x": random.standard_normal((batch, 3, size, size)).astype("float32")}
    for name, (out, into, window) in convolutions().items():
        given |= layers(random, **{f"{name}.weight": (out, into, window, window)})
        for part, low in (("weight", 0.5), ("bias", 0.0), ("_mean", 0.0), ("_variance", 0.5)):
            given[f"{norm_of(name)}.{part}"] = (low + random.random(out)).astype("float32")
    return given | layers(random, **{"fc.weight": (512, 1000), "fc.bias": (1000,)})


def work(batch: int, size: int) -> Work:
    flops, weights = 0.0, 0.0
    for name, (out, into, window) in convolutions().items():
        stage = int(name[5]) - 1 if name.startswith("layer") else -1
        side = size // 2 if stage < 0 else size >> (stage + 2)
        weights += out * into * window * window
        flops += 2.0 * side * side * out * into * window * window
    return Work(batch * (flops + 2 * 512_000), 4.0 * (weights + 512_000 + batch * 3 * size * size))


def resnet(names: Any, w: dict[str, Any]) -> Any:
    """Return a thousand numbers for each picture."""

    def normed(x: Any, name: str, stride: int = 1) -> Any:
        kernel = w[f"{name}.weight"]
        x = names.conv(x, kernel, stride, kernel.shape[2] // 2)
        return names.batch_norm(x, *(w[f"{norm_of(name)}.{p}"] for p in ("weight", "bias", "_mean", "_variance")))

    x = names.max_pool(names.relu(normed(w["x"], "conv1", 2)), 3, 2, 1)
    for name, stage, turn in STAGES:
        stride = 2 if stage and not turn else 1
        inner = normed(names.relu(normed(x, f"{name}.conv1", stride)), f"{name}.conv2")
        x = normed(x, f"{name}.downsample.0", stride) if f"{name}.downsample.0.weight" in w else x
        x = names.relu(names.add(inner, x))
    return names.linear(names.mean_of_pixels(x), w["fc.weight"], w["fc.bias"])


class Torch:
    """The operations of torch that the model needs."""

    def __init__(self, torch: Any, training: bool = False):
        self.torch, self.functional, self.training = torch, torch.nn.functional, training
        self.relu, self.add = torch.relu, torch.add

    def conv(self, x: Any, w: Any, stride: int, padding: int) -> Any:
        return self.functional.conv2d(x, w, None, stride, padding)

    def batch_norm(self, x: Any, w: Any, b: Any, mean: Any, variance: Any) -> Any:
        return self.functional.batch_norm(x, mean, variance, w, b, training=self.training)

    def max_pool(self, x: Any, size: int, stride: int, padding: int) -> Any:
        return self.functional.max_pool2d(x, size, stride, padding)

    def mean_of_pixels(self, x: Any) -> Any:
        return x.mean((2, 3))

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return self.torch.addmm(b, x, w)


def resnet_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    net = paddle.vision.models.resnet18()
    net.set_state_dict({name: paddle.to_tensor(x) for name, x in given.items() if name != "x"})
    net.eval()
    return without_gradients(paddle, static(net), paddle.to_tensor(given["x"]))


def resnet_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    w = {name: torch.from_numpy(x) for name, x in given.items()}
    run = compiled(lambda x: resnet(Torch(torch), w | {"x": x}))
    return inference(torch, run, w["x"])


def resnet_jax(jax: Any, given: Arrays) -> Job:
    run = jax.jit(lambda w: resnet(Jax(jax), w))
    w = {name: jax.numpy.asarray(x) for name, x in given.items()}
    return lambda: run(w)


def resnet_onnx(given: Arrays) -> tuple[Any, Arrays]:
    g = graph("resnet")
    g.input("x", given["x"], ["batch", *given["x"].shape[1:]])
    g.result(resnet(Onnx(g), given | {"x": "x"}))
    return g.model(), {"x": given["x"]}


# ---- a train step ---------------------------------------------------------------------------------------------------
def step_arrays(random: np.random.Generator, batch: int, size: int) -> Arrays:
    return {"label": random.integers(0, 1000, batch)} | arrays(random, batch, size)


def step_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    net = paddle.vision.models.resnet18()
    net.set_state_dict({name: paddle.to_tensor(array) for name, array in given.items() if name not in ("x", "label")})
    net.train()
    optimizer = paddle.optimizer.Momentum(RATE, 0.9, parameters=net.parameters())
    net, cross_entropy = form.model(net), paddle.nn.functional.cross_entropy

    @form.whole
    def step(x: Any, label: Any) -> Any:
        loss = cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    x, label = paddle.to_tensor(given["x"]), paddle.to_tensor(given["label"])
    return lambda: step(x, label)


def step_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    w = {name: torch.from_numpy(array.copy()) for name, array in given.items()}
    trained = [w[name].requires_grad_() for name in w if name.endswith(("weight", "bias"))]
    optimizer, names = torch.optim.SGD(trained, RATE, momentum=0.9), Torch(torch, training=True)

    def step() -> Any:
        loss = torch.nn.functional.cross_entropy(resnet(names, w), w["label"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


STEP = with_training(step_paddle, minimize=False) | with_torch(step_torch, compiled=False)


def row(batch: int) -> Row:
    return Row(
        f"resnet-{batch}",
        f"ResNet-18 on 64x64, batch {batch}",
        arrays,
        {"batch": batch, "size": 64},
        {"batch": 1, "size": 32},
        with_paddle(resnet_paddle) | with_torch(resnet_torch) | with_jax(resnet_jax) | with_onnx(resnet_onnx),
        lambda given: resnet(Numpy(), given),
        work,
        tolerance=1e-3,
        first_call=1.0,
    )


ROWS = (
    row(1),
    row(8),
    Row(
        "resnet-step",
        "ResNet-18 on 64x64, batch 8, Momentum step",
        step_arrays,
        {"batch": 8, "size": 64},
        {"batch": 2, "size": 64},
        STEP,
        eagerly(STEP),
        tolerance=5e-3,
        first_call=1.0,
    ),
)
