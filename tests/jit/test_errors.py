"""What `to_static`, saved methods and the conversion say when something cannot be: the exception and its text."""

import collections
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.static import InputSpec

ELSEWHERE = io.StringIO()
Pair = collections.namedtuple("Pair", "a b")


def tensor(*values: float) -> Any:
    return paddle.to_tensor(np.array(values, "float32"))


def text_of_a_variant(x):
    y = (1, 2) if x.sum() > 0 else "a"
    return x, f"{y}"


def text_of_a_named_tuple(x):
    print(Pair(x, 1))
    return x


def text_as_a_key(x):
    return {f"{x.sum()}": 1}


def text_that_is_compared(x):
    return x if f"{int(x.sum())}" == "3" else -x


def text_that_is_searched(x):
    return "3" in f"{x.sum()}"


def a_method_of_text(x):
    return f"{x.sum()}".strip()


def a_function_of_one_branch(x):
    return (lambda v: v * x) if x.sum() > 0 else abs


def a_class_with_a_tensor(x):
    class Kept:
        value = x * 2

    return Kept


def text_as_a_number(x):
    return float(f"{x.sum().item()}")


def text_in_a_library(x):
    return re.match("3", f"{x.sum().item()}")


def hash_of_a_symbolic_number(x):
    return hash(int(x.sum()))


def len_of_a_scalar(x):
    return len(x.sum())


def iteration_over_a_scalar(x):
    for y in x.sum():
        x = x + y
    return x


def print_to_a_file(x):
    print(x, file=ELSEWHERE)
    return x


def a_symbolic_key_is_set(x):
    d = {}
    d[int(x.sum())] = 1
    return x


def ten_different_things(x):
    y = None
    for n in range(10):
        if x.sum() > n:
            y = (x,) * n
    return x, y


def zip_of_bytes(x):
    for _, _ in zip(x[x > 0], b"ab"):
        x = x + 1
    return x


class Stop(BaseException):
    pass


def no_ordinary_exception(x):
    if x.sum() < 0:
        raise Stop
    return x


def no_ordinary_exception_in_a_loop(x):
    for _ in range(int(x.sum()) - 3):
        raise Stop
    return x


def a_step_of_zero(x):
    for _ in range(0, int(x.sum()), 0):
        x = x + 1
    return x


def a_range_of_floats(x):
    for _ in range(float(x.sum())):
        x = x + 1
    return x


OUTSIDE = paddle.to_tensor([1.0, 2.0], stop_gradient=False)


def a_hook_of_a_traced_tensor(x):
    y = x * OUTSIDE
    y.register_hook(lambda g: g)
    return y


def an_outside_tensor_stops(x):
    OUTSIDE.stop_gradient = True
    return x * OUTSIDE


def a_generator_of_python(x):
    later = (y for y in x[x > 0])
    return next(later)


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (text_of_a_variant, "the text of a value that is one of several things"),
    (text_of_a_named_tuple, "the text of a Pair that holds tensors"),
    *((f, "text with symbolic values was needed as a Python str")
      for f in (text_as_a_key, text_that_is_compared, text_that_is_searched, a_method_of_text,
                text_as_a_number, text_in_a_library)),
    (a_function_of_one_branch, "a function that holds tensors of the Program leaves the function"),
    (a_class_with_a_tensor, "a type that holds tensors of the Program leaves the function"),
    (hash_of_a_symbolic_number, "the hash of a value that only the run will tell was needed"),
    (len_of_a_scalar, "len() of a 0-D tensor"),
    (iteration_over_a_scalar, "iteration over a 0-D tensor"),
    (print_to_a_file, "print(file=...) inside a Program"),
    (a_symbolic_key_is_set, "a symbolic int was used as a new key of a dict"),
    (ten_different_things, "a value would be one of more than 8 different things"),
    (zip_of_bytes, "zip() of a bytes with something whose length only the run will tell"),
    (a_hook_of_a_traced_tensor, "register_hook() inside of a function of Programs"),
    (an_outside_tensor_stops, "stop_gradient of a tensor from outside is changed by a function of Programs"),
    (a_generator_of_python, "the length of a tensor was needed as a Python int"),
    (no_ordinary_exception, "Stop is raised on a path that only the run will take"),
    (no_ordinary_exception_in_a_loop, "Stop is raised on a path that only the run will take"),
    (a_step_of_zero, "range() arg 3 must not be zero"),
    (a_range_of_floats, "'float' object cannot be interpreted as an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "text"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_cannot_be_a_program_is_said(function: Callable[[Any], Any], text: str) -> None:
    converted = paddle.jit.to_static(function, full_graph=True, input_spec=[InputSpec([None], "float32")])
    with pytest.raises((Dy2stError, TypeError, ValueError), match=re.escape(text)):
        converted(tensor(1, 2))


def test_to_static_takes_what_can_be_called() -> None:
    with pytest.raises(TypeError, match="to_static takes a function, a method or a Layer, not int"):
        paddle.jit.to_static(3)
    with pytest.raises(TypeError, match="to_static\\(\\) got an unexpected keyword argument 'speed'"):
        paddle.jit.to_static(lambda x: x, speed=1)


def test_enable_to_static_takes_a_bool() -> None:
    with pytest.raises(TypeError, match="enable_to_static takes True or False, not 1"):
        paddle.jit.enable_to_static(1)  # type: ignore[arg-type]


def test_a_function_without_a_signature() -> None:
    with pytest.raises(Dy2stError, match="has no signature that can be read"):
        paddle.jit.to_static(dict.update)


def test_a_program_before_the_first_call() -> None:
    converted = paddle.jit.to_static(lambda x: x)
    with pytest.raises(
        RuntimeError, match="no Program was traced yet: call the function once, or give it an input_spec"
    ):
        _ = converted.concrete_program


def test_an_argument_that_the_input_spec_does_not_fit() -> None:
    converted = paddle.jit.to_static(lambda x: x, input_spec=[InputSpec([None, 2], "float32")])
    with pytest.raises(ValueError, match=re.escape("argument 'x' has shape [3], its InputSpec says [-1, 2]")):
        converted(tensor(1, 2, 3))
    with pytest.raises(TypeError, match="argument 'x' is int64, its InputSpec says float32"):
        converted(paddle.zeros([1, 2], "int64"))


class Scaled(paddle.nn.Layer):
    def forward(self, x: Any, by: Any = None) -> Any:
        return x if by is None else x * by


def test_arguments_of_a_saved_method(tmp_path: Path) -> None:
    path = tmp_path / "scaled"
    paddle.jit.save(Scaled(), path, input_spec=[InputSpec([None], "float32")])
    loaded = paddle.jit.load(path)
    assert loaded(tensor(1)).tolist() == [1.0]
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        loaded()
    with pytest.raises(ValueError, match=r"argument 'by' was saved as None and cannot be 2\.0"):
        loaded(tensor(1), 2.0)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'q'"):
        loaded(tensor(1), q=1)


class OpenEnded(paddle.nn.Layer):
    def forward(self, *parts: Any, **named: Any) -> Any:
        return parts[0] * named["by"]


def test_open_arguments_of_a_saved_method(tmp_path: Path) -> None:
    layer = OpenEnded()
    static = paddle.jit.to_static(layer)
    static(tensor(1), by=tensor(2))
    loaded = paddle.jit.load(paddle.jit.save(static, tmp_path / "open"))
    assert loaded(tensor(1), by=tensor(2)).tolist() == [2.0]
    with pytest.raises(ValueError, match="argument 'named' was saved as a dict with the keys 'by', not a dict"):
        loaded(tensor(1))
    with pytest.raises(ValueError, match="argument 'parts' was saved as a tuple of 1 items, not a tuple of 2 items"):
        loaded(tensor(1), tensor(1), by=tensor(2))
