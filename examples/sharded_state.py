"""A character model trained by several processes that share the optimizer's state, and go on from checkpoints.

Each process keeps the Adam state of some parameters, and their gradients; a checkpoint is written beside training, and
a job that begins again, in any number of processes, goes on from the last one:

    python -m dy2st.distributed.launch --nproc_per_node 4 --max-restarts 3 examples/sharded_state.py --folder /tmp/c

As one process (`python3 examples/sharded_state.py`) the losses are the same to rounding. It needs the extra `mpi`.
"""

from __future__ import annotations

import argparse
import contextlib

import numpy as np

import dy2st as paddle
from dy2st import distributed as dist
from dy2st import nn
from dy2st.distributed.sharding import group_sharded_parallel

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the slow red hen "
LETTERS = sorted(set(TEXT))


def batch(number: int, rows: int, length: int) -> np.ndarray:
    """Return pieces of the text, one letter longer than what is read of them, as numbers of letters."""
    starts = np.random.default_rng(number).integers(0, len(TEXT), rows)
    doubled = TEXT * 2
    return np.array([[LETTERS.index(c) for c in doubled[at : at + length + 1]] for at in starts])


class Speller(nn.Layer):
    """Scores of the next letter, by the letters so far."""

    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Embedding(len(LETTERS), width)
        self.past = nn.GRU(width, width)
        self.scores = nn.Linear(width, len(LETTERS))

    def forward(self, letters: paddle.Tensor) -> paddle.Tensor:
        states, _ = self.past(self.table(letters))
        return self.scores(states)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--rows", type=int, default=16, help="pieces of text of all processes together")
    options.add_argument("--folder", help="where checkpoints are; none are written without it")
    chosen = options.parse_args()
    dist.init_parallel_env()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    paddle.seed(0)
    net = Speller(32)
    clip = nn.ClipGradByGlobalNorm(1.0)
    adam = paddle.optimizer.Adam(0.02, parameters=net.parameters(), grad_clip=clip)
    model, optimizer, _ = group_sharded_parallel(net, adam, level="os_g")

    @paddle.jit.to_static
    def step(letters):
        scores = model(letters[:, :-1])
        loss = nn.functional.cross_entropy(scores.reshape([-1, len(LETTERS)]), letters[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 0}
    if chosen.folder:
        with contextlib.suppress(FileNotFoundError):  # the first run
            dist.load_state_dict(state, chosen.folder)
    for number in range(state["step"], chosen.steps):
        loss = step(paddle.to_tensor(batch(number, chosen.rows, 12)[rank::ranks])).detach()
        if number % 20 == 19 or number == chosen.steps - 1:
            dist.all_reduce(loss, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {number + 1}: loss {float(loss):.4f}", flush=True)
            if chosen.folder:
                state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": number + 1}
                dist.save_state_dict(state, chosen.folder, async_save=True, keep=2)
    kept = sum(t.size for states in optimizer._accumulators.values() for t in states.values())
    print(f"rank {rank} of {ranks} keeps {kept} numbers of Adam's state")


if __name__ == "__main__":
    main()
