"""A classifier trained by several processes: each takes its share of every batch, gradients are averaged.

Run it with `python -m dy2st.distributed.launch --nproc_per_node 4 examples/many_processes.py`, or as one process with
`python3 examples/many_processes.py`: the losses are the same to rounding. It needs the extra `mpi`.
"""

from __future__ import annotations

import argparse

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st import nn


def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of two interleaved spirals and which one each is of."""
    rng = np.random.default_rng(0)
    turn, label = rng.uniform(0.5, 3.0, count), rng.integers(0, 2, count)
    angle = 2 * turn + np.pi * label
    x = np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) + rng.normal(0, 0.05, (count, 2))
    return x.astype("float32"), label


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--batch", type=int, default=64, help="samples of all processes together")
    chosen = options.parse_args()
    dist.init_parallel_env()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    model = paddle.DataParallel(net)
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    xs, ys = samples(1024)
    for number in range(chosen.steps):
        chosen_rows = np.arange(number * chosen.batch, (number + 1) * chosen.batch) % len(xs)
        mine = chosen_rows[rank::ranks]
        loss = step(paddle.to_tensor(xs[mine]), paddle.to_tensor(ys[mine])).detach()
        if number % 50 == 49 or number == chosen.steps - 1:
            dist.all_reduce(loss, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {number + 1}: loss {float(loss):.5f}")
    right = float((net(paddle.to_tensor(xs)).argmax(1) == paddle.to_tensor(ys)).astype("float32").mean())
    if rank == 0:
        print(f"{ranks} processes, {100 * right:.1f} % right")


if __name__ == "__main__":
    main()
