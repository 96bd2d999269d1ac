"""Training that saves each step and goes on from there; rank 1 is killed at some steps of the first runs."""

import os
import signal
import sys

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist

FOLDER, KILLED_AT = sys.argv[1], [int(at) for at in sys.argv[2:]]
dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RUN = int(os.environ["DY2ST_RESTARTS"])


def main():
    paddle.seed(1)
    model = paddle.DataParallel(paddle.nn.Linear(4, 1))
    optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters())
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 0}
    path = f"{FOLDER}/checkpoint"
    if os.path.exists(path):
        state = paddle.load(path)
        model.set_state_dict(state["model"])
        optimizer.set_state_dict(state["optimizer"])
    for step in range(int(state["step"]), 6):
        x = np.random.default_rng(step).normal(size=(8, 4)).astype("float32")
        mine = paddle.to_tensor(x[RANK::SIZE])
        loss = ((model(mine) - mine.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        if RANK == 1 and RUN < len(KILLED_AT) and step == KILLED_AT[RUN]:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
        optimizer.clear_grad()
        if RANK == 0:
            paddle.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, path)
        dist.barrier()
    total = loss.detach()
    dist.all_reduce(total, dist.ReduceOp.AVG)
    if RANK == 0:
        sys.stdout.write(f"loss {float(total):.6f}\n")


main()
