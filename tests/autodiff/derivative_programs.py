"""Ten derivatives of everyday functions, as Programs: what `test_op_counts.py` counts the operations of."""

import numpy as np

import dy2st as paddle
from dy2st.ir.program import Program

AG = paddle.incubate.autograd
NOT_COUNTED = ("constant", "scalar_constant", "detach")
"""What costs nothing when a Program runs, and has no equation of its own in a jaxpr."""


def net(w1, b1, w2, b2, x, y):
    return ((paddle.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2).mean()


def cross_entropy(w, x, onehot):
    z = x @ w
    return -(onehot * (z - paddle.logsumexp(z, 1, keepdim=True))).sum(1).mean()


def layer_norm(x, g, b):
    away = x - x.mean(-1, keepdim=True)
    return (away / paddle.sqrt((away * away).mean(-1, keepdim=True) + 1e-5) * g + b).sum()


def attention(q, k, v):
    return (paddle.nn.functional.softmax(q @ k.T / 2.0, -1) @ v).sum()


def recurrent(w, u, xs):
    h = paddle.zeros([4])
    for x in xs:
        h = paddle.tanh(h @ w + x @ u)
    return h.sum()


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def cosine(a, b):
    return (a * b).sum() / paddle.sqrt((a * a).sum() * (b * b).sum())


def newton(x):
    y = x
    while abs(y * y - x) > 1e-6:
        y = (y + x / y) / 2
    return y


def gaussian(mu, s, x):
    return (((x - mu) / s) ** 2).sum() / 2 + x.shape[0] * paddle.log(s).sum()


def gradient(f, count):
    """Return the function that gives the gradients of `f` at its first `count` arguments."""

    def gradients(*xs):
        fresh = [x.detach() for x in xs[:count]]
        for x in fresh:
            x.stop_gradient = False
        return paddle.grad(f(*fresh, *xs[count:]), fresh)

    return gradients


CASES = {
    "tanh of tanh, gradient": (gradient(lambda x: paddle.tanh(paddle.tanh(x)).sum(), 1), [(5,)]),
    "cubic, gradient": (gradient(lambda x: (x * x * x + 2 * x).sum(), 1), [(5,)]),
    "two-layer net with squared error, gradient": (gradient(net, 4), [(8, 16), (16,), (16, 4), (4,), (32, 8), (32, 4)]),
    "cross entropy of a linear model, gradient": (gradient(cross_entropy, 1), [(8, 4), (32, 8), (32, 4)]),
    "layer norm by hand, gradient": (gradient(layer_norm, 3), [(32, 8), (8,), (8,)]),
    "attention, gradient": (gradient(attention, 3), [(6, 4), (7, 4), (7, 4)]),
    "recurrent net over a sequence, gradient": (gradient(recurrent, 2), [(4, 4), (3, 4), (10, 3)]),
    "Rosenbrock, Hessian times vector": (
        lambda x, v: AG.jvp(lambda y: AG.vjp(rosenbrock, y)[1], x, v)[1],
        [(9,), (9,)],
    ),
    "cosine similarity, gradient": (gradient(cosine, 2), [(5,), (5,)]),
    "Newton's square root, tangent": (lambda x, v: AG.jvp(newton, x, v)[1], [(), ()]),
    "Gaussian likelihood, gradient": (gradient(gaussian, 2), [(5,), (5,), (30, 5)]),
}


def derivative_program(name: str) -> Program:
    """Return the optimised Program of a case, for known shapes."""
    f, shapes = CASES[name]
    specs = [paddle.static.InputSpec(shape, "float32", f"x{i}") for i, shape in enumerate(shapes)]
    static = paddle.jit.to_static(lambda *xs: f(*xs), input_spec=specs, full_graph=True)
    static(*(paddle.to_tensor(np.full(shape, 0.5, "float32")) for shape in shapes))
    return static.concrete_program.compiled.optimised


def count(program: Program) -> int:
    """Count the operations of a Program, those of loops once, but for constants."""
    return sum(operation.name not in NOT_COUNTED for operation in program.walk())
