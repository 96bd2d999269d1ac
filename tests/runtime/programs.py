"""Programs that tests of what runs them share."""

import numpy as np

import dy2st as paddle

X = np.linspace(-1, 2, 6, dtype="float32").reshape(2, 3)
WANT = float(np.tanh(X).sum())
"""What `straight` makes of `X`."""


def program_of(function, *inputs):
    """Return the Program of a function for some arrays."""
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def straight(x):
    """Run without a branch or a loop."""
    return paddle.tanh(x).sum()


def looping(x):
    """Run for a number of turns that only the run knows."""
    while x.sum() < 100:
        x = x + 1
    return x


def counting(turns):
    """Return a function that adds 1 so many times."""

    def f(x):
        for _ in range(turns):
            x = x + 1
        return x

    return f
