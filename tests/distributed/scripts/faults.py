"""A rank dies, raises, hangs, or comes with another shape or another collective."""

import os
import signal
import sys
import time

import dy2st as paddle
from dy2st import distributed as dist

dist.init_parallel_env()
RANK = dist.get_rank()
x = paddle.ones([4])
if sys.argv[1] == "hangs at once":
    if RANK == 1:
        time.sleep(1000)
    dist.barrier()
dist.all_reduce(x)


def fail(what):
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raises where nobody reads":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if what.startswith("raises"):
        raise ValueError("a bad sample")
    if what == "hangs":
        time.sleep(1000)
    if what == "leaves":
        sys.exit(0)
    if what == "shape":
        dist.all_reduce(paddle.ones([5]))
    if what == "op":
        dist.broadcast(paddle.ones([4]), 0)
    if what == "first line of a program":
        paddle.jit.to_static(in_program, full_graph=True)(paddle.ones([5]))


def in_program(y):
    dist.all_reduce(y)
    return y


if RANK == 1:
    fail(sys.argv[1])
if sys.argv[1] == "first line of a program":
    paddle.jit.to_static(in_program, full_graph=True)(x)
dist.all_reduce(x)
dist.barrier()
