"""Loss curves of data parallel training, a line each: eagerly, as a Program, with gradients of two parts summed up.

Each step has the same global batch, of which each rank takes its rows.
"""

import sys
from contextlib import nullcontext

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st.distributed import fleet

fleet.init(is_collective=True)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(6, 8)
        self.norm = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(paddle.nn.BatchNorm1D(8))
        self.second = paddle.nn.Linear(8, 1)
        self.unused = paddle.nn.Linear(2, 2)

    def forward(self, x):
        return self.second(paddle.tanh(self.norm(self.first(x))))


def batches():
    rng = np.random.default_rng(0)
    for _ in range(8):
        x = rng.normal(size=(16, 6)).astype("float32")
        y = (x[:, :1] * x[:, 1:2]).astype("float32")
        rows = slice(RANK, None, SIZE)
        yield paddle.to_tensor(x[rows]), paddle.to_tensor(y[rows])


def curve(mode):
    paddle.seed(RANK)  # DataParallel gives all ranks the parameters of rank 0
    model = fleet.distributed_model(Net())
    optimizer = paddle.optimizer.Adam(
        0.05, parameters=model.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)
    )
    optimizer = fleet.distributed_optimizer(optimizer)

    def step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    def accumulated(x, y):
        half = x.shape[0] // 2
        losses = []
        with model.no_sync() if SIZE > 1 else nullcontext():
            loss = ((model(x[:half]) - y[:half]) ** 2).mean() / 2
            loss.backward()
        losses.append(loss)
        loss = ((model(x[half:]) - y[half:]) ** 2).mean() / 2
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return losses[0] + loss

    run = {"eager": step, "static": paddle.jit.to_static(step, full_graph=True), "accumulated": accumulated}[mode]
    losses = []
    for x, y in batches():
        loss = run(x, y).detach()
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        losses.append(float(loss))
    if RANK == 0:
        sys.stdout.write(" ".join(f"{loss:.9g}" for loss in losses) + "\n")


for way in ("eager", "static", "accumulated"):
    curve(way)
