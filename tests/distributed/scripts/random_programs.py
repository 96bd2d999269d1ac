"""Random programs of collectives, against NumPy that does what all ranks do: eagerly and as Programs, with gradients.

Each rank makes the same program of a seed. A tensor of a program has one shape on all ranks; for NumPy it is a list of
what each has.
"""

import sys

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist

FIRST, COUNT = int(sys.argv[1]), int(sys.argv[2])
dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def all_reduce(x, _):
    y = x + 0
    dist.all_reduce(y)
    return y


def all_reduce_np(xs, _):
    return [sum(xs)] * SIZE


def highest(x, _):
    y = x + 0
    dist.all_reduce(y, dist.ReduceOp.MAX)
    return y


def highest_np(xs, _):
    return [np.max(xs, 0)] * SIZE


def broadcast(x, root):
    y = x + 0
    dist.broadcast(y, root)
    return y


def broadcast_np(xs, root):
    return [xs[root]] * SIZE


def reduce(x, root):
    y = x + 0
    dist.reduce(y, root)
    return y


def reduce_np(xs, root):
    return [sum(xs) if r == root else x for r, x in enumerate(xs)]


def gathered(x, _):
    parts = []
    dist.all_gather(parts, x)
    return sum(p * (i + 1) for i, p in enumerate(parts))


def gathered_np(xs, _):
    return [sum(p * (i + 1) for i, p in enumerate(xs))] * SIZE


def exchanged(x, root):
    parts = []
    dist.alltoall(parts, [x * (i + 1 + root) for i in range(SIZE)])
    return parts[0] - sum(parts[1:])


def exchanged_np(xs, root):
    return [xs[0] * (r + 1 + root) - sum(x * (r + 1 + root) for x in xs[1:]) for r in range(SIZE)]


def scattered(x, root):
    out = paddle.zeros_like(x)
    dist.reduce_scatter(out, [x * (i + root) for i in range(SIZE)])
    return out


def scattered_np(xs, root):
    return [sum(xs) * (r + root) for r in range(SIZE)]


def blocks(x, _):
    y = paddle.concat([x] * SIZE)
    out = paddle.zeros_like(y)
    dist.alltoall_single(out, y)
    return out[: x.shape[0]] * 2


def blocks_np(xs, _):
    return [xs[0] * 2] * SIZE


def branch(x, root):
    total = x.sum()
    dist.all_reduce(total)
    if total > root:
        x = all_reduce(x, root) / SIZE
    else:
        x = broadcast(x, root)
    return x


def branch_np(xs, root):
    return [sum(xs) / SIZE] * SIZE if sum(x.sum() for x in xs) > root else [xs[root]] * SIZE


def loop(x, root):
    count = paddle.to_tensor(0)
    while count < root + 1:
        x = all_reduce(x, root) / (2 * SIZE)
        count = count + 1
    return x


def loop_np(xs, root):
    for _ in range(root + 1):
        xs = [sum(xs) / (2 * SIZE)] * SIZE
    return xs


STEPS = ((all_reduce, all_reduce_np), (highest, highest_np), (broadcast, broadcast_np), (reduce, reduce_np),
         (gathered, gathered_np), (exchanged, exchanged_np), (scattered, scattered_np), (blocks, blocks_np),
         (branch, branch_np), (loop, loop_np))  # fmt: skip


def plan(rng):
    """Return steps: which collective, of which of the tensors so far, with which rank; and what it meets."""
    return [(int(rng.integers(len(STEPS))), int(rng.integers(i + 1)), int(rng.integers(SIZE)), int(rng.integers(i + 1)))
            for i in range(int(rng.integers(2, 7)))]  # fmt: skip


def run(x, steps, which):
    made = [x]
    for step, taken, root, met in steps:
        found = STEPS[step][which](made[taken], root)
        if which == 0:
            made.append(found * 0.5 + made[met])
        else:
            made.append([f * 0.5 + m for f, m in zip(found, made[met])])
    return made[-1]


def check(seed):
    rng = np.random.default_rng(seed)
    steps, shape = plan(rng), tuple(int(e) for e in rng.integers(1, 4, rng.integers(1, 3)))
    xs = [rng.normal(size=shape) for _ in range(SIZE)]
    wanted = run(xs, steps, 1)[RANK]

    def program(x):
        return run(x, steps, 0)

    slopes = []
    for function in (program, paddle.jit.to_static(program, full_graph=True)):
        x = paddle.to_tensor(xs[RANK], stop_gradient=False)
        out = function(x)
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}: {steps}")
        slopes.append(paddle.grad((out * out).sum(), x)[0].numpy())
    np.testing.assert_allclose(*slopes, rtol=1e-9, atol=1e-9, err_msg=f"gradients of seed {seed}: {steps}")


for number in range(FIRST, FIRST + COUNT):
    check(number)
sys.stdout.write(f"rank {RANK}: {COUNT} programs\n")
