"""Programs that tests of what runs them share."""

import dy2st as paddle


def program_of(function, *inputs):
    """Return the Program of a function for some arrays."""
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


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
