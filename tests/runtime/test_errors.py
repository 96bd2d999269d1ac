"""What eager mode says of tensors that do not fit, and of values of a Program that got out of it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.ir.builder import Builder
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.tape.grad_mode import no_grad

V, M = paddle.arange(3.0), paddle.arange(6.0).reshape([2, 3])
Case = tuple[Callable[[], Any], type[Exception], str]


def freed() -> None:
    x = paddle.to_tensor([1.0], stop_gradient=False)
    y = (x * x).sum()
    y.backward()
    y.backward()


def changed_after_use() -> None:
    x = paddle.to_tensor([1.0], stop_gradient=False)
    y = x * 1.0
    z = paddle.exp(y) * y
    y.add_(paddle.to_tensor([1.0]))
    z.backward()


CASES: list[Case] = [
    (lambda: V.clone().add_(M), ValueError, "a value of shape [2, 3] cannot be written into a tensor of [3]"),
    (lambda: inplace.write(V.clone(), M), ValueError,
     "an in-place operation cannot change the shape: the result has [2, 3], the tensor [3]"),
    (lambda: inplace.write(V.clone(), V.astype("float64")), TypeError,
     "an in-place operation keeps the dtype float32, the result has float64"),
    (lambda: no_grad()(3), TypeError, "only a function can be decorated, not int"),
    (freed, RuntimeError, "was freed"),
    (changed_after_use, RuntimeError, "was changed in place after it was used"),
    (lambda: Builder().nonsense, KeyError, "no op is named 'nonsense'"),
    (lambda: Builder().__nonsense__, AttributeError, "__nonsense__"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), CASES, ids=[case[2] for case in CASES])
def test_a_misuse_is_named(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


LEAKED: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda t, n: t + 1, "a tensor of a Program that is being built was used outside of it"),
    (lambda t, n: V.add(t), "a tensor of a Program that is being built was used outside of it"),
    (lambda t, n: V.clone().copy_(t), "a tensor of a Program that is being built was written outside of it"),
    (lambda t, n: t.numpy(), "a tensor of a Program that is being built has no value yet, but"),
    (lambda t, n: V * n, "a symbolic value (Scalar) was used outside of its Program"),
]


@pytest.mark.parametrize(("use", "text"), LEAKED, ids=["operator", "method", "written", "numpy", "number"])
def test_a_value_that_left_its_program_is_named(use: Callable[[Any, Any], Any], text: str) -> None:
    @paddle.jit.not_to_static
    def keep(t: Any, n: Any) -> None:
        vars(keep)["kept"] = t, n

    def f(x: Any) -> Any:
        keep(x * 2, x.shape[0])
        return x

    paddle.jit.to_static(f, input_spec=[paddle.static.InputSpec([None], "float32")])(V)
    with pytest.raises(Dy2stError, match=re.escape(text)):
        use(*vars(keep)["kept"])
