"""In-place forms: memory, versions, views, history, and what a pull-back refuses."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError
from dy2st.functions.inplace import INPLACE
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.recording.recorder import Recorder
from dy2st.shapes import symbol

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "polygamma": (1,), "multigammaln": (1,), "renorm": (2.0, 0, 0.5),
    "addmm": (np.ones((1, 2)), np.ones((2, 3))), "baddbmm": (np.ones((1, 2)), np.ones((2, 3))),
    "clip": (0.3, 0.6), "clamp": (0.3, 0.6), "lerp": (0.5, 0.5), "scale": (2.0, 1.0),
    "cumprod": (0,), "masked_fill": (np.array([True, False, True]), 9.0), "put_along_axis": (np.array([1]), 5.0, 0),
    "masked_scatter": (np.array([True, False, True]), np.array([7.0, 8.0])),
    "index_add": (np.array([1]), 0, np.array([4.0])),
    "index_fill": (np.array([1]), 0, 4.0), "index_put": ([np.array([1])], np.array([4.0])),
    "scatter": (np.array([1]), np.array([4.0])), "scatter_add": (0, np.array([1]), np.array([4.0])),
}  # fmt: skip
TWO_OPERANDS = """
    add subtract multiply divide floor_divide remainder mod floor_mod pow hypot ldexp copysign equal not_equal
    gammainc gammaincc less_than less less_equal greater_than greater_equal logical_and logical_or logical_xor
""".split()
OF_BOOLS = [n for n in TWO_OPERANDS if n.startswith(("equal", "not", "less", "greater", "logical"))] + ["logical_not"]
SHAPES = {"reshape": ([3, 1],), "squeeze": (), "unsqueeze": (0,), "flatten": (), "transpose": ([0],), "t": ()}
DRAWN = (
    "uniform_",
    "normal_",
    "exponential_",
    "bernoulli_",
    "where_",
    "cast_",
    "copy_",
    "fill_",
    "zero_",
    "fill_diagonal_",
    "fill_diagonal_tensor_",
    "log_normal_",
    "cauchy_",
    "geometric_",
)
BITS = [n for n in INPLACE if n.startswith(("bitwise", "gcd", "lcm"))]
FORMS = [n[:-1] for n in INPLACE if n not in DRAWN and n not in BITS and n[:-1] not in SHAPES]


def arguments(name: str) -> tuple[Any, ...]:
    given = ARGUMENTS.get(name, (0.5,) if name in TWO_OPERANDS else ())

    def tensors(value: Any) -> Any:
        if isinstance(value, list):
            return [tensors(v) for v in value]
        return paddle.to_tensor(value) if isinstance(value, np.ndarray) else value

    return tuple(map(tensors, given))


def fresh(name: str) -> paddle.Tensor:
    x = np.array([0.25, 0.5, 0.75]) + (1.0 if name == "acosh" else 0.0)
    return paddle.to_tensor(x.reshape(1, 3) if name in ("tril", "triu", "addmm", "baddbmm") else x)


@pytest.mark.parametrize("name", [n for n in FORMS if n not in OF_BOOLS])
def test_a_form_writes_what_the_function_gives(name: str) -> None:
    x = fresh(name)
    view = x[0:1]
    want = getattr(paddle, name)(fresh(name), *arguments(name)).astype("float64").numpy()
    assert getattr(x, f"{name}_")(*arguments(name)) is x
    np.testing.assert_array_equal(x.numpy(), want)
    np.testing.assert_array_equal(view.numpy(), want[:1])
    assert x.inplace_version == 1
    assert x.dtype == "float64"


@pytest.mark.parametrize("name", OF_BOOLS)
def test_a_form_that_gives_bools_leaves_bools(name: str) -> None:
    x = paddle.to_tensor([0.0, 0.5, 0.75])
    want = getattr(paddle, name)(paddle.to_tensor([0.0, 0.5, 0.75]), *arguments(name)).tolist()
    assert getattr(x, f"{name}_")(*arguments(name)) is x
    assert (x.tolist(), x.dtype) == (want, "bool")


def test_a_form_that_gives_floats_leaves_floats() -> None:
    x = paddle.to_tensor([1, 2])
    assert x.divide_(paddle.to_tensor([2, 4])).dtype == "float32"
    assert x.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match=r"a value of shape \[2, 1, 2\] cannot be written into a tensor of \[2\]"):
        paddle.to_tensor([1, 2]).divide_(paddle.ones([2, 1, 1]))


@pytest.mark.parametrize("name", BITS)
def test_a_form_on_bits_writes_what_the_function_gives(name: str) -> None:
    x, given = (
        paddle.to_tensor([6, 3]),
        () if name in ("bitwise_not_", "bitwise_invert_") else (paddle.to_tensor([1, 2]),),
    )
    want = getattr(paddle, name[:-1])(paddle.to_tensor([6, 3]), *given).tolist()
    assert getattr(x, name)(*given).tolist() == want


@pytest.mark.parametrize(("name", "given"), SHAPES.items())
def test_a_form_that_changes_the_shape_keeps_the_memory(name: str, given: Any) -> None:
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    array = x.payload
    want = getattr(x, name)(*given).shape
    assert getattr(x, f"{name}_")(*given) is x
    assert x.shape == want
    x.zero_()
    assert array.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.proves("Tensor.fill_diagonal_ Tensor.copy_ Tensor.fill_ Tensor.cast_ cast_ where_")
def test_fill_copy_cast_and_diagonal() -> None:
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.fill_diagonal_(9.0).tolist() == [[9.0, 2.0], [3.0, 9.0]]
    assert x.copy_(paddle.to_tensor([5, 6])).tolist() == [[5.0, 6.0], [5.0, 6.0]]
    assert x.fill_(2).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert x.cast_("int32").dtype == "int32"
    y = paddle.to_tensor([1.0, 2.0])
    assert paddle.where_(paddle.to_tensor([True, False]), y, paddle.to_tensor([8.0, 9.0])) is y
    assert y.tolist() == [1.0, 9.0]
    with pytest.raises(ValueError, match="needs a matrix and wrap=False"):
        y.fill_diagonal_(1.0)


@pytest.mark.parametrize("name", ["uniform_", "normal_", "exponential_", "bernoulli_"])
def test_a_random_form_repeats_after_the_seed(name: str) -> None:
    paddle.seed(3)
    x = getattr(paddle.zeros([50]), name)()
    paddle.seed(3)
    y = getattr(paddle.zeros([50]), name)()
    assert x.tolist() == y.tolist()
    assert len(set(x.tolist())) > 1


@pytest.mark.proves("Tensor.set_value")
def test_assign_set_value_and_increment() -> None:
    x = paddle.zeros([2])
    assert paddle.assign(np.array([1.0, 2.0]), x) is x
    assert x.tolist() == [1.0, 2.0]
    x.set_value(np.array([3, 4]))
    assert x.tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match=r"the value has shape \[3\], the tensor \[2\]"):
        x.set_value(np.zeros(3))
    counter = paddle.zeros([1], "int64")
    assert paddle.increment(counter, 2) is counter
    assert counter.item() == 2


def test_a_leaf_that_needs_a_gradient_refuses_a_write_while_gradients_are_on() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with pytest.raises(RuntimeError, match="a leaf that needs a gradient cannot be changed in place"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="a leaf that needs a gradient"):
        x[0] = 3.0
    with pytest.raises(RuntimeError, match="a view of a leaf that needs a gradient"):
        x[0:1].zero_()
    with paddle.no_grad():
        x.add_(1.0)
    x.set_value([5.0, 6.0])
    assert (x.tolist(), x.is_leaf, x.stop_gradient) == ([5.0, 6.0], True, False)


def test_history_follows_a_write() -> None:
    w = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    x = w * 2.0
    x.multiply_(w)
    x.tanh_()
    x.add_(1.0)
    x.sum().backward()
    want = 4 * w.numpy() * (1 - np.tanh(2 * w.numpy() ** 2) ** 2)
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-5)


def test_a_constant_tensor_takes_history_with_a_write() -> None:
    w = paddle.to_tensor([3.0], stop_gradient=False)
    buffer = paddle.zeros([2, 2])
    buffer[0, 1] = w * w
    assert not buffer.stop_gradient
    (buffer * 5.0).sum().backward()
    assert w.grad.tolist() == [30.0]


@pytest.mark.parametrize("take_view", [
    lambda t: t[1], lambda t: t[1:, 0], lambda t: t.reshape([6])[3:5], lambda t: t.transpose([1, 0])[2],
    lambda t: t.unsqueeze(0)[0, 1], lambda t: t[1:2].squeeze(0),
])  # fmt: skip
def test_a_write_through_a_view_reaches_the_base_and_its_history(take_view: Any) -> None:
    values = np.arange(6, dtype=np.float64).reshape(2, 3) + 1
    w, v = paddle.to_tensor(values, stop_gradient=False), paddle.to_tensor(2.0, stop_gradient=False)
    y = w * 3.0
    take_view(y).copy_(v.astype("float64") * 10.0)
    mask = np.zeros_like(values, dtype=bool)
    marked = paddle.to_tensor(mask)
    take_view(marked).fill_(True)
    mask = marked.numpy()
    np.testing.assert_array_equal(y.numpy(), np.where(mask, 20.0, values * 3))
    (y * y).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.where(mask, 0.0, 18 * values))
    assert v.grad.item() == 400.0 * mask.sum()


def test_a_view_taken_before_a_write_to_the_base_has_the_new_history() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 1.0
    view = x[0:1]
    x.multiply_(5.0)
    (view * view).sum().backward()
    assert w.grad.tolist() == [50.0, 0.0]


def test_a_pull_back_that_needs_overwritten_elements_refuses() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 2.0
    y = x * x
    x.add_(1.0)
    with pytest.raises(AutodiffError, match="operand 0 of 'mul' was changed in place after it was used"):
        y.sum().backward()
    x = w * 2.0
    z = x.exp()
    z.zero_()
    x = w * 2.0
    z = x.exp()
    u = z + 1.0
    with paddle.no_grad():
        z.add_(1.0)
    with pytest.raises(AutodiffError, match="result 0 of 'exp' was changed in place"):
        u.sum().backward()


def test_an_operand_that_is_also_the_tensor_written_is_what_it_was() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 2.0
    x.multiply_(x)
    x.sum().backward()
    assert w.grad.tolist() == [8.0, 16.0]


def test_a_pull_back_that_does_not_need_them_goes_on() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 2.0
    y = x + 1.0
    x.zero_()
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_detach_shares_memory_and_version_but_no_history() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 2.0
    y = x * x
    d = x.detach()
    assert d.stop_gradient
    d.zero_()
    assert x.tolist() == [0.0, 0.0]
    assert x.inplace_version == d.inplace_version == 1
    with pytest.raises(AutodiffError, match="changed in place"):
        y.sum().backward()


def test_flip_and_expand_share_no_memory() -> None:
    x = paddle.to_tensor([1.0, 2.0])
    others = [x.flip([0]), x.expand([2, 2]), x.clone(), x.astype("float32"), x.split(2)[0], x.diag(), x + 0]
    x.zero_()
    assert all(t.sum().item() != 0 for t in others)


def test_plus_equals_binds_a_new_tensor() -> None:
    x = paddle.to_tensor([1.0])
    y = x
    y += 1.0
    assert (x.item(), y.item()) == (1.0, 2.0)


@pytest.mark.on_host("memory of a device is never read-only")
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: paddle.zeros([2]).add_(paddle.zeros([3, 2])), ValueError, r"shape \[3, 2\] cannot be written into"),
        (lambda: INPLACE["exp_"](3.0), TypeError, "needs a Tensor, not float"),
        (lambda: paddle.from_numpy(np.broadcast_to(np.zeros(1), (2,))).zero_(), ValueError, "read-only"),
    ],
)
def test_refusals_say_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_forms_are_recorded_into_a_program() -> None:
    b = Builder()
    x = Tensor(b.argument(TensorType(paddle.float32, (symbol("N"), 2))))
    with replaced(trace=(recorder := Recorder(b))):
        y = x + 0.0
        y[0].add_(10.0)
        y.multiply_(2.0)
        b.block.results = [recorder.value_of(y)]
    array = np.array([[1, 2], [3, 4]], np.float32)
    (got,) = Compiled(Program({"main": b.block})).run([array], np)
    assert got.tolist() == [[22.0, 24.0], [6.0, 8.0]]


def test_every_form_has_a_name_and_a_sentence() -> None:
    for name, form in INPLACE.items():
        assert form.__name__ == name
        assert inspect.getdoc(form)
