"""`saved_tensors_hooks`: what is packed and unpacked, that gradients stay what they are, and the errors."""

import gc
import weakref

import numpy as np
import pytest

import dy2st as paddle
from dy2st.autograd import saved_tensors_hooks
from dy2st.errors import AutodiffError


def tensor(x, **options):
    return paddle.to_tensor(np.asarray(x, dtype="float64"), stop_gradient=False, **options)


class Log:
    """Hooks that copy to NumPy and count."""

    def __init__(self):
        self.packed, self.unpacked = [], []

    def pack(self, t):
        self.packed.append(list(t.shape))
        return t.numpy().copy()

    def unpack(self, array):
        self.unpacked.append(list(array.shape))
        return paddle.to_tensor(array)


def run(f, *inputs, hooks=None):
    """The output, the gradients, and the gradients of the sum of the gradients' squares."""
    if hooks is None:
        out = f(*inputs)
    else:
        with hooks:
            out = f(*inputs)
    first = paddle.grad([out], inputs, create_graph=True)
    second = paddle.grad([sum((g * g).sum() for g in first)], inputs, allow_unused=True)
    return [out.numpy(), *(g.numpy() for g in first), *(g.numpy() for g in second if g is not None)]


FUNCTIONS = {
    "elementwise": lambda x, y: (paddle.exp(x) * paddle.sin(y) / (1 + x * x)).sum(),
    "matmul": lambda x, y: (paddle.matmul(x, y.t()) ** 2).sum(),
    "softmax": lambda x, y: (paddle.nn.functional.softmax(x * y) * y).sum(),
    "sort": lambda x, y: (paddle.sort(x * y)[:, 0] * paddle.topk(x, 2)[0][:, 1]).sum(),
    "views": lambda x, y: (x[0] * y.reshape([3, 2])[:, 1] * x.transpose([1, 0])[:, 1]).sum(),
    "program": paddle.jit.to_static(lambda x, y: (paddle.tanh(x) * paddle.exp(y)).sum(), full_graph=True),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradients_are_the_same_to_the_second_order(f):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(2, 3)) for _ in range(2)]
    want = run(f, *map(tensor, arrays))
    log = Log()
    got = run(f, *map(tensor, arrays), hooks=saved_tensors_hooks(log.pack, log.unpack))
    assert log.packed
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.proves("autograd.saved_tensors_hooks")
def test_what_the_gradient_needs_is_packed_and_no_more():
    log, x, y = Log(), tensor([1.0, 2.0]), tensor([3.0, 4.0])
    with saved_tensors_hooks(log.pack, log.unpack):
        z = paddle.exp(x + y).sum()
    assert log.packed == [[2]]
    assert log.unpacked == []
    z.backward()
    assert log.unpacked == [[2]]


def test_hooks_see_constants_as_such():
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(t.stop_gradient) or t, lambda t: t):
        paddle.sin(tensor([1.0]))
    assert seen == [True]


def test_what_is_unpacked_is_what_counts():
    x = tensor([1.0, 2.0])
    with saved_tensors_hooks(lambda t: t, lambda t: t * 0 + 10):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_nothing_is_packed_outside_or_without_gradients():
    log = Log()
    with saved_tensors_hooks(log.pack, log.unpack):
        paddle.sin(paddle.to_tensor([1.0]))
        with paddle.no_grad():
            paddle.sin(tensor([1.0]))
    paddle.sin(tensor([1.0]))
    assert log.packed == []


def test_the_inner_hooks_count():
    outer, inner, x = Log(), Log(), tensor([1.0])
    with saved_tensors_hooks(outer.pack, outer.unpack):
        with saved_tensors_hooks(inner.pack, inner.unpack):
            paddle.sin(x)
        paddle.cos(x)
    assert (len(inner.packed), len(outer.packed)) == (1, 1)


def test_hooks_end_with_an_exception():
    log = Log()
    with pytest.raises(KeyError), saved_tensors_hooks(log.pack, log.unpack):
        raise KeyError
    paddle.sin(tensor([1.0]))
    assert log.packed == []


def test_operations_in_hooks_are_not_packed():
    calls, x = [], tensor([2.0])

    def pack(t):
        calls.append(1)
        return (t * t, paddle.sin(t))

    with saved_tensors_hooks(pack, lambda pair: paddle.sqrt(pair[0])):
        y = paddle.sin(x)
    y.backward()
    assert len(calls) == 1
    assert float(x.grad) == pytest.approx(np.cos(2.0))


def test_what_was_packed_is_not_kept():
    x = tensor(np.ones(1000))
    with saved_tensors_hooks(lambda t: t.numpy().astype("float16"), lambda a: paddle.to_tensor(a.astype("float64"))):
        middle = paddle.sin(x)
        kept = weakref.ref(middle.payload)
        y = paddle.exp(middle).sum()
    del middle
    gc.collect()
    assert kept() is None
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(np.sin(1)) * np.cos(1), rtol=1e-3)


def test_a_py_layer_packs_what_it_saves():
    class Cube(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            x, nothing = ctx.saved_tensor()
            assert nothing is None
            return dy * 3 * x * x

    log, x = Log(), tensor([2.0])
    with saved_tensors_hooks(log.pack, log.unpack):
        y = Cube.apply(x)
        z = Cube.apply(0 - (0 - x))
    (first,) = paddle.grad([y + z], [x], create_graph=True)
    (second,) = paddle.grad([first], [x])
    assert log.packed == [[1], [1]]
    assert (float(first), float(second)) == (24.0, 24.0)


@pytest.mark.parametrize(("pack", "unpack", "which"), [(3, len, "pack_hook"), (len, None, "unpack_hook")])
def test_hooks_are_callable(pack, unpack, which):
    with pytest.raises(TypeError, match=f"saved_tensors_hooks: {which} must be callable"):
        saved_tensors_hooks(pack, unpack)


def with_unpack(unpack):
    x = tensor([1.0, 2.0])
    with saved_tensors_hooks(lambda t: t, unpack):
        return paddle.sin(x).sum()


def test_an_unpack_hook_that_gives_no_tensor():
    with pytest.raises(TypeError, match="an unpack hook must return a Tensor, not ndarray"):
        with_unpack(lambda t: t.numpy()).backward()


@pytest.mark.parametrize("change", [lambda t: t[:1], lambda t: t.astype("float32")])
def test_an_unpack_hook_that_gives_another_tensor(change):
    with pytest.raises(ValueError, match=r"an unpack hook returned .* but what was packed has shape \[2\] and dtype"):
        with_unpack(change).backward()


@pytest.mark.parametrize("which", ["operand", "result"])
def test_an_overwritten_value_is_refused(which):
    x = tensor([1.0, 2.0]) * 1.0
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = paddle.sin(x) if which == "operand" else paddle.exp(x)
    (x if which == "operand" else y).detach()[...] = 0.0
    with pytest.raises(AutodiffError, match=f"{which} 0 of '(sin|exp)' was changed in place"):
        y.sum().backward()


def test_taylor_mode_needs_more_than_was_kept():
    def f(x):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            return paddle.sin(x)

    with pytest.raises(AutodiffError, match="'sin' was recorded under saved_tensors_hooks or recompute"):
        paddle.incubate.autograd.jet(f, tensor([1.0]), order=2)


def test_no_program_can_run_the_hooks():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            return paddle.sin(x)

    with pytest.raises(paddle.errors.NeedsPythonValue, match="its hooks are Python, which no Program can run"):
        f(tensor([1.0]))


def test_a_converted_function_with_hooks_runs_eagerly():
    log = Log()

    @paddle.jit.to_static
    def f(x):
        with saved_tensors_hooks(log.pack, log.unpack):
            return paddle.sin(x)

    x = tensor([1.0])
    with pytest.warns(UserWarning, match="saved_tensors_hooks"):
        y = f(x)
    y.backward()
    assert (len(log.packed), len(log.unpacked)) == (1, 1)


def test_no_elements():
    log, x = Log(), tensor(np.zeros((0, 2)))
    with saved_tensors_hooks(log.pack, log.unpack):
        y = paddle.sin(x).sum()
    y.backward()
    assert x.grad.shape == [0, 2]
