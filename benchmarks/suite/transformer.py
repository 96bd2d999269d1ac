"""A transformer's encoder layer, norms after the sums: inference and an Adam step."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.suite.forms import Form, with_training
from benchmarks.suite.names import Jax, Numpy
from benchmarks.suite.pictures import jax_inference, onnx_inference
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.steps import ADAM, jax_step, torch_step
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal

HEADS = 8
PARTS = "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "linear1", "linear2"
NORMS = "norm1", "norm2"
WEIGHTS = tuple(f"{part}.{kind}" for part in (*PARTS, *NORMS) for kind in ("weight", "bias"))


def arrays(random: np.random.Generator, batch: int, turns: int, width: int) -> Arrays:
    shapes = {f"{part}.weight": (width, width) for part in PARTS[:4]} | {f"{part}.bias": (width,) for part in PARTS[:4]}
    shapes |= {"linear1.weight": (width, 4 * width), "linear1.bias": (4 * width,)}
    shapes |= {"linear2.weight": (4 * width, width), "linear2.bias": (width,)}
    norms = normal(random, **{f"{part}.{kind}": (width,) for part in NORMS for kind in ("weight", "bias")})
    norms |= {f"{part}.weight": norms[f"{part}.weight"] + 1 for part in NORMS}
    return normal(random, x=(batch, turns, width), y=(batch, turns, width)) | layers(random, **shapes) | norms


def work(batch: int, turns: int, width: int) -> Work:
    flops = 2.0 * batch * turns * (12 * width * width + 2 * turns * width)
    return Work(flops, 4.0 * (12 * width * width + 2 * batch * turns * width))


def work_of_step(batch: int, turns: int, width: int) -> Work:
    return Work(3 * work(batch, turns, width).flops, 4.0 * (6 * 12 * width * width + 2 * batch * turns * width))


def block(names: Any, turns: int, x: Any, *weights: Any) -> Any:
    """Attention, sum, norm; two linear layers, sum, norm."""
    wq, bq, wk, bk, wv, bv, wo, bo, w1, b1, w2, b2, n1, c1, n2, c2 = weights
    width = bq.shape[0]
    heads = (-1, turns, HEADS, width // HEADS)
    q, k, v = (names.reshape(names.linear(x, w, b), heads) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    q, k, v = names.transpose(q, (0, 2, 1, 3)), names.transpose(k, (0, 2, 3, 1)), names.transpose(v, (0, 2, 1, 3))
    chances = names.softmax(names.scale(names.matmul(q, k), (width // HEADS) ** -0.5))
    mixed = names.reshape(names.transpose(names.matmul(chances, v), (0, 2, 1, 3)), (-1, turns, width))
    x = names.layer_norm(names.add(x, names.linear(mixed, wo, bo)), n1, c1)
    inner = names.linear(names.relu(names.linear(x, w1, b1)), w2, b2)
    return names.layer_norm(names.add(x, inner), n2, c2)


def block_torch(torch: Any, x: Any, *weights: Any) -> Any:
    wq, bq, wk, bk, wv, bv, wo, bo, w1, b1, w2, b2, n1, c1, n2, c2 = weights
    functional, width = torch.nn.functional, x.shape[-1]
    q, k, v = (
        (x @ w + b).unflatten(-1, (HEADS, width // HEADS)).transpose(1, 2) for w, b in ((wq, bq), (wk, bk), (wv, bv))
    )
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    x = functional.layer_norm(x + (mixed @ wo + bo), [width], n1, c1)
    return functional.layer_norm(x + (functional.relu(x @ w1 + b1) @ w2 + b2), [width], n2, c2)


def layer(package: Any, given: Arrays) -> Any:
    """Make Paddle's or torch's layer with these weights."""
    width = given["x"].shape[2]
    sizes = width, HEADS, 4 * width
    if package.__name__ != "torch":
        net = package.nn.TransformerEncoderLayer(*sizes, dropout=0.0)
        net.set_state_dict({name: package.to_tensor(given[name]) for name in WEIGHTS})
        return net
    net = package.nn.TransformerEncoderLayer(*sizes, dropout=0.0, batch_first=True)
    tensors = {name: package.from_numpy(given[name].T.copy()) for name in WEIGHTS}
    for kind in ("weight", "bias"):
        parts = [tensors.pop(f"self_attn.{which}_proj.{kind}") for which in "qkv"]
        tensors[f"self_attn.in_proj_{kind}"] = package.cat(parts)
    net.load_state_dict(tensors)
    return net


def inference_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    net = layer(paddle, given)
    net.eval()
    return without_gradients(paddle, static(net), paddle.to_tensor(given["x"]))


def inference_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    if compiled is not torch.compile:
        return inference(torch, layer(torch, given).eval(), torch.from_numpy(given["x"]))
    weights = [torch.from_numpy(given[name]) for name in WEIGHTS]
    return inference(torch, compiled(lambda x: block_torch(torch, x, *weights)), torch.from_numpy(given["x"]))


def step_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    net = form.model(layer(paddle, given))

    def loss_of(x: Any, y: Any) -> Any:
        return paddle.nn.functional.mse_loss(net(x), y)

    step = form.step(loss_of, net.parameters(), ADAM)
    x, y = paddle.to_tensor(given["x"]), paddle.to_tensor(given["y"])
    return lambda: step(x, y)


def step_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.mse_loss(block_torch(torch, x, *weights), y)

    step = torch_step(torch, compiled, loss_of, [given[name] for name in WEIGHTS], ADAM)
    x, y = torch.from_numpy(given["x"]), torch.from_numpy(given["y"])
    return lambda: step(x, y)


def step_jax(jax: Any, given: Arrays) -> Job:
    turns = given["x"].shape[1]

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        return ((block(Jax(jax), turns, x, *weights) - y) ** 2).mean()

    step = jax_step(jax, loss_of, [given[name] for name in WEIGHTS], ADAM)
    x, y = jax.numpy.asarray(given["x"]), jax.numpy.asarray(given["y"])
    return lambda: step(x, y)


def model(given: Arrays) -> Any:
    """Return the model as a function of (names, x, *weights), for sequences of one length."""
    turns = given["x"].shape[1]
    return lambda names, x, *weights: block(names, turns, x, *weights)


def taken(given: Arrays) -> list[np.ndarray]:
    return [given[name] for name in ("x", *WEIGHTS)]


def block_numpy(given: Arrays) -> Any:
    return model(given)(Numpy(), *taken(given))


SIZES = {"batch": 8, "turns": 128, "width": 256}
TINY = {"batch": 2, "turns": 3, "width": 16}
row = partial(Row, arrays=arrays, sizes=SIZES, tiny=TINY)

ROWS = (
    row(
        "transformer",
        "transformer block, d=256, T=128, B=8, inference",
        sides=with_paddle(inference_paddle)
        | with_torch(inference_torch)
        | with_jax(lambda jax, given: jax_inference(jax, model(given), taken(given)))
        | with_onnx(lambda given: onnx_inference(model(given), taken(given))),
        reference=block_numpy,
        work=work,
    ),
    row(
        "transformer-step",
        "transformer block, d=256, T=128, B=8, Adam step",
        sides=with_training(step_paddle) | with_torch(step_torch) | with_jax(step_jax),
        reference=lambda given: ((block_numpy(given) - given["y"]) ** 2).mean(),
        work=work_of_step,
        tolerance=1e-3,
    ),
)
