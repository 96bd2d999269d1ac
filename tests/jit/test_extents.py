"""Extents that Python needs are fixed, one Program for each; the others stay open."""

import functools
import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue, TraceError
from dy2st.nn import functional as F
from dy2st.static import InputSpec

SHAPES = [(2, 3), (3, 3), (2, 3), (4, 5), (3, 3), (2, 3), (3, 4)]
T = paddle.to_tensor


@functools.lru_cache
def kept(n):
    return T(np.ones(n, "float32"))


@paddle.jit.not_to_static
def turns(n):
    return sum(float(i) for i in range(n))


@paddle.jit.not_to_static
def typed(n):
    return 2.0 if isinstance(n, int) else -1.0


def name_of(n):
    return type(n).__name__


@paddle.jit.not_to_static
def named(n, k):
    return float(len(name_of(n)) + 10 * (type(k["k"]) is int))


@paddle.jit.not_to_static
def caught(n):
    try:
        return float(int(n))
    except Exception:
        return -1.0


def of_rows(x):
    rows = {}
    for i in range(x.shape[0]):
        rows[f"row{i}"] = x[i] * i
    return paddle.stack([rows[f"row{i}"] for i in range(x.shape[0])])


def filled(x):
    rows = [None] * x.shape[0]
    for i in range(x.shape[0]):
        rows[i] = x[i] * i
    return paddle.stack(rows)


def in_branch(x):
    if x.sum() > 0:
        return x * T(np.arange(x.shape[0], dtype="float32")).sum()
    return x - 1


def in_loop(x):
    i = T(0)
    while i < 3:
        x = x + T(np.ones(x.shape[0], "float32")).sum()
        i = i + 1
    return x


FORMS = {
    "zeros": (lambda x: x + T(np.ones(x.shape[0], "float32")).reshape([-1, 1]), 3),
    "eye": (lambda x: T(np.eye(x.shape[0], dtype="float32")) @ x, 3),
    "other axis": (lambda x: x * T(np.arange(x.shape[1], dtype="float32")), 3),
    "both": (lambda x: x + T(np.ones(tuple(x.shape), "float32")), 4),
    "pool": (lambda x: F.max_pool2d(x.unsqueeze([0, 1]), (x.shape[0], 1)), 3),
    "split": (lambda x: sum(p * (i + 1) for i, p in enumerate(paddle.split(x, x.shape[0]))), 3),
    "chunk": (lambda x: paddle.chunk(x, x.shape[0])[0], 3),
    "unbind": (lambda x: paddle.unbind(x)[-1], 3),
    "topk": (lambda x: paddle.topk(x, k=x.shape[-1])[0], 3),
    "dict": (lambda x: x * {x.shape[0]: 3.0}[x.shape[0]], 3),
    "set": (lambda x: x * len({x.shape[0], 99}), 3),
    "not converted": (lambda x: x * turns(x.shape[0]), 3),
    "its type": (lambda x: x * typed(x.shape[0]), 3),
    "the name of its type": (lambda x: x * named(x.shape[0], {"k": x.shape[1]}), 4),
    "its error": (lambda x: x * caught(x.shape[0]), 3),
    "list": (lambda x: x * T([2.0] * x.shape[1]), 3),
    "slice": (lambda x: x * sum([1.0, 2.0, 3.0, 4.0][: x.shape[0]]), 3),
    "format": (lambda x: x * len("{}-{}".format(x.shape[0], 1)), 3),  # noqa: UP032 (the method is meant)
    "key": (lambda x: x * {"k2": 2.0}.get(f"k{x.shape[0]}", 5.0), 3),
    "lru_cache": (lambda x: x * kept(x.shape[1]), 3),
    "sum": (lambda x: x + np.ones(x.shape[0] + 1).sum(), 3),
    "quotient": (lambda x: x + np.ones(x.shape[0] // 2).sum(), 3),
    "smallest": (lambda x: x + np.ones(min(x.shape[0], 3)).sum(), 3),
    "concatenated": (lambda x: x + np.ones(paddle.concat([x, x]).shape[0]).sum(), 3),
    "sliced": (lambda x: x + np.ones((x[1:] * 2).shape[0]).sum(), 3),
    "transposed": (lambda x: x * T(np.arange(x.T.shape[0], dtype="float32")), 3),
    "comb": (lambda x: x * len(bytes(x.shape[0])), 3),
    "rows": (of_rows, 3),
    "filled": (filled, 3),
    "branch": (in_branch, 3),
    "loop": (in_loop, 3),
    "an operation": (lambda x: x * x.shape[0] / x.shape[-1] ** 0.5, 1),
    "nothing": (lambda x: x * np.ones(x.shape[0] - x.shape[0] + 2).sum(), 1),
}


def data(shape, seed=0):
    return paddle.to_tensor(np.random.RandomState(seed).rand(*shape).astype("float32"), stop_gradient=False)


@pytest.mark.parametrize("form", FORMS)
def test_a_program_for_each_extent_that_python_needs(form):
    function, programs = FORMS[form]
    static = paddle.jit.to_static(function, full_graph=True)
    for i, shape in enumerate(SHAPES * 2):
        x, y = data(shape, i), data(shape, i)
        wanted, found = function(x), static(y)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
        wanted.sum().backward()
        found.sum().backward()
        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-5)
    assert len(static.program_cache) == programs
    assert static.explain().eager_calls == 0


def test_calls_that_alternate_in_threads():
    def f(x):
        return x * T(np.arange(x.shape[0], dtype="float32")).reshape([-1, 1]) + x.shape[1]

    static, wrong = paddle.jit.to_static(f, full_graph=True), []

    def work(step):
        for i in range(60):
            x = data([(2, 3), (3, 3), (2, 5), (1, 1)][(i * step + i // 7) % 4], i)
            if not np.allclose(static(x).numpy(), f(x).numpy()):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(step,)) for step in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(static.program_cache) == 3


def test_a_tensor_from_outside():
    class Kept(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("h", paddle.ones([2]))

        def forward(self, x):
            return x + float(np.arange(self.h.shape[0]).sum())

    layer = paddle.jit.to_static(Kept(), full_graph=True)
    for n in (2, 3, 2, 5, 3):
        layer.h = paddle.ones([n])
        assert float(layer(paddle.zeros([1]))) == n * (n - 1) / 2


def test_what_the_run_alone_tells_is_refused():
    def f(x):
        return x + np.ones(paddle.nonzero(x).shape[0]).sum()

    with pytest.raises(NeedsPythonValue, match="a symbolic int was needed"):
        paddle.jit.to_static(f, full_graph=True)(data((2, 3)))


def test_names_of_arguments_that_look_like_items():
    def f(xs, xs_1, s0):
        return xs_1.shape[0] - xs[1].shape[0], s0.shape[0]

    found = paddle.jit.to_static(f)([paddle.ones([2]), paddle.ones([3])], paddle.ones([1]), paddle.ones([4]))
    assert [int(n) for n in found] == [-2, 4]


def test_a_declared_extent_that_python_needs(tmp_path):
    def f(x):
        return x + np.ones(x.shape[0]).sum()

    with pytest.raises(TraceError, match="axis 0 of `x` is declared as any extent, and Python needs the number"):
        paddle.jit.save(paddle.jit.to_static(f), str(tmp_path / "f"), input_spec=[InputSpec([None, 3])])


def test_long_loops_are_not_recorded_turn_by_turn():
    static = paddle.jit.to_static(of_rows, full_graph=True)
    with pytest.raises(TraceError, match="the turns of this loop, which are more than 256"):
        static(data((300, 2)))
