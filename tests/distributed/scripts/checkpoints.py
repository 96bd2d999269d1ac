"""Training with weights in parts and sharded state that saves as it goes, and begins where the last checkpoint ends.

    checkpoints.py FOLDER STEPS WAY     prints the losses of all steps; WAY is "sharding", "mp" or "pp"

With DY2ST_KILLS, one rank is killed at a moment that is drawn for each run, so many times.
"""

import os
import signal
import sys
import threading
import time

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st import nn
from dy2st.distributed import fleet
from dy2st.distributed.fleet import meta_parallel as mp

FOLDER, STEPS, WAY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dist.init_parallel_env()
RANK, SIZE = dist.get_rank(), dist.get_world_size()
RUN, KILLS = int(os.environ["DY2ST_RESTARTS"]), int(os.environ.get("DY2ST_KILLS", "0"))


def parts():
    return nn.Sequential(mp.ColumnParallelLinear(4, 8, has_bias=True, gather_output=False), nn.Tanh(),
                         mp.RowParallelLinear(8, 1, input_is_parallel=True))  # fmt: skip


def stages():
    one = mp.LayerDesc
    return mp.PipelineLayer([one(nn.Linear, 4, 8), one(nn.Tanh), one(nn.Linear, 8, 8), one(nn.Linear, 8, 1)],
                            loss_fn=nn.MSELoss())  # fmt: skip


def kill_soon():
    """Kill this process after a while that is drawn, wherever it is by then."""
    time.sleep(np.random.default_rng(RUN).uniform(0.0, float(os.environ["DY2ST_KILL_WITHIN"])))
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    strategy = fleet.DistributedStrategy()
    if SIZE > 1:
        strategy.hybrid_configs = {f"{WAY}_degree": SIZE}
    strategy.sharding_configs = {"stage": 2}
    fleet.init(is_collective=True, strategy=strategy)
    paddle.seed(1)
    net = stages() if WAY == "pp" else parts()
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=2, gamma=0.5)
    optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(schedule, parameters=net.parameters()))
    model = fleet.distributed_model(net)
    state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 0}
    if RANK == 0:
        state["losses"] = []
    try:
        dist.load_state_dict(state, FOLDER)
        optimizer.set_state_dict(state["optimizer"])
    except FileNotFoundError:
        assert RUN <= KILLS
    if RUN < KILLS and np.random.default_rng(100 + RUN).integers(SIZE) == RANK:
        threading.Thread(target=kill_soon, daemon=True).start()
    ways = fleet.get_hybrid_communicate_group()
    data = ways.group("dp", "sharding")
    for step in range(state["step"], STEPS):
        x = np.random.default_rng(step).normal(size=(8, 4)).astype("float32")[data.rank :: data.nranks]
        x, y = paddle.to_tensor(x), paddle.to_tensor(x.sum(1, keepdims=True))
        if WAY == "pp" and SIZE > 1:
            loss = model.train_batch((x, y), optimizer).detach()
        else:
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            loss = loss.detach()
        schedule.step()
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        if RANK == 0:
            state["losses"] = [*state["losses"], float(loss)]
        state |= {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
        dist.save_state_dict(state, FOLDER, async_save=step % 2 == 0, keep=2)
        if KILLS:
            time.sleep(0.02)
    if RANK == 0:
        sys.stdout.write(f"losses {' '.join(f'{loss:.7g}' for loss in state['losses'])}\n")


main()
