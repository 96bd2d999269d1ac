"""Collectives as steps of Programs: as eagerly, with derivatives, in branches and loops, under vmap, from a file."""

import sys
import tempfile

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist

dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def static(function):
    return paddle.jit.to_static(function, full_graph=True)


def numbers(*shape, seed=RANK):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape), "float64", stop_gradient=False)


def summed(x):
    y = x * 2
    dist.all_reduce(y)
    return y


def highest(x):
    y = x * x
    dist.all_reduce(y, dist.ReduceOp.MAX)
    return y


def sent_around(x):
    y = x + 0
    dist.broadcast(y, SIZE - 1)
    z = x * 3
    dist.reduce(z, 0)
    return y * z


def gathered(x):
    parts = []
    dist.all_gather(parts, x * x)
    return paddle.concat(parts) * paddle.concat(parts[::-1])


def exchanged(x):
    given, mine = [x * (i + 1) for i in range(SIZE)], []
    dist.alltoall(mine, given)
    out = paddle.zeros_like(x)
    dist.reduce_scatter(out, [m * m for m in mine])
    return out


def scattered(x):
    out = paddle.zeros_like(x)
    dist.scatter(out, [paddle.full_like(x, i) for i in range(1, SIZE + 1)] if RANK == 0 else None, 0)
    parts = []
    dist.gather(x, parts, SIZE - 1)
    return out * x if not parts else out * x + sum(parts).detach() * 0


def in_branches(x):
    total = x.sum()
    dist.all_reduce(total)
    if total > 0:
        dist.all_reduce(x := x * 2)
    else:
        dist.broadcast(x := x + 0, 0)
    for _ in range(3):
        dist.all_reduce(x := x / SIZE)
    return x


FUNCTIONS = (summed, highest, sent_around, gathered, exchanged, scattered, in_branches)


def check(function):
    """Values and first and second derivatives of a function are the same eagerly and as a Program."""
    program = static(function)
    for turn in range(3):
        x = numbers(2, 3, seed=RANK + 10 * turn)
        results = []
        for one in (function, program):
            out = one(x)
            (slope,) = paddle.grad((out * out).sum(), x, create_graph=True)
            (curve,) = paddle.grad((slope * slope).sum(), x)
            results.append([t.numpy() for t in (out, slope, curve)])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=function.__name__)


def check_against_differences(function):
    """The gradient is that of the sum of what all ranks give: moved along one direction, all ranks move."""
    x, step = numbers(2, 3), 1e-6
    direction = numbers(2, 3, seed=RANK + 50).detach()
    (slope,) = paddle.grad(function(x).sum(), x)
    inner = (slope * direction).sum()
    dist.all_reduce(inner)
    difference = (function(x + step * direction).sum() - function(x - step * direction).sum()).detach() / (2 * step)
    dist.all_reduce(difference)
    np.testing.assert_allclose(float(inner), float(difference), rtol=1e-6, atol=1e-8, err_msg=function.__name__)


def check_lanes():
    """Lanes of a tensor are exchanged as one tensor."""
    x = numbers(4, 2, 3)
    for function in (summed, gathered, exchanged):
        made = paddle.incubate.autograd.vmap(function)(x)
        wanted = paddle.stack([function(x[i]) for i in range(4)])
        np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=1e-12, err_msg=function.__name__)


class Net(paddle.nn.Layer):
    def forward(self, x):
        return gathered(summed(x))


def check_file():
    with tempfile.TemporaryDirectory() as folder:
        net = Net()
        paddle.jit.save(net, f"{folder}/net", input_spec=[paddle.static.InputSpec([None, 3], "float64")])
        loaded = paddle.jit.load(f"{folder}/net")
        x = numbers(2, 3)
        np.testing.assert_allclose(loaded(x).numpy(), net(x).numpy(), rtol=1e-12)
        dist.barrier()


def main():
    for function in FUNCTIONS:
        check(function)
        check_against_differences(function)
    check_lanes()
    check_file()
    sys.stdout.write(f"rank {RANK} of {SIZE}: all right\n")


main()
