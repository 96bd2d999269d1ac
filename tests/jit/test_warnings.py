"""`warnings.warn` in a Program: in each run, on the path that runs, at the user's line."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import TraceError


def warned(call: Any, *arguments: Any, how: Any = "always") -> list[tuple[str, str, int]]:
    """Return the warnings of a call: class, text and line in this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(how)
        call(*arguments)
    assert {w.filename for w in found} <= {__file__}
    return [(w.category.__name__, str(w.message), w.lineno) for w in found]


def on_one_path(x):
    if x.sum() > 0:
        warnings.warn("large", stacklevel=1)
    return x


def with_values(x):
    for v in x:
        if v > 1:
            warnings.warn(f"{v.item():.1f} is large", RuntimeWarning, stacklevel=1)
    return x


def an_instance(x):
    warnings.warn(DeprecationWarning("old"), stacklevel=1)
    return x


def helper(x):
    warnings.warn("of the caller", stacklevel=2)
    return x * 2


def for_the_caller(x):
    while x.sum() < 10:
        x = helper(x.abs() + 1)
    return x


def for_the_caller_of_all(x):
    warnings.warn("outside", stacklevel=2)
    return x


FUNCTIONS = [on_one_path, with_values, an_instance, for_the_caller, for_the_caller_of_all]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_program_warns_as_eager_code_does(function: Any) -> None:
    static = paddle.jit.to_static(function, full_graph=True)
    for value in ([1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [3.0, 0.5, 4.0]):
        assert warned(static, paddle.to_tensor(value)) == warned(function, paddle.to_tensor(value))
    assert len(static.program_cache) == 1


def test_python_remembers_what_it_has_shown() -> None:
    def f(x):
        warnings.warn("only once", stacklevel=1)
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    x = paddle.to_tensor(1.0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            static(x)
    assert [str(w.message) for w in found] == ["only once"]


def test_a_warning_that_is_an_error() -> None:
    static = paddle.jit.to_static(on_one_path, full_graph=True)
    static(paddle.to_tensor([-1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="large"):
            static(paddle.to_tensor([1.0]))


def test_a_class_of_the_users() -> None:
    class Own(UserWarning):
        pass

    def f(x):
        warnings.warn("mine", Own, stacklevel=1)
        return x

    with pytest.raises(TraceError, match="a Program cannot warn of a Own"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor(1.0))


def test_inside_of_catch_warnings() -> None:
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("unseen", stacklevel=1)
        return x

    with pytest.raises(TraceError, match=r"warnings\.warn\(\) inside of warnings\.catch_warnings\(\)"):
        paddle.jit.to_static(f, full_graph=True)(paddle.to_tensor(1.0))


def test_a_saved_program_warns_and_names_no_folder(tmp_path: Path) -> None:
    class Net(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return on_one_path(x) * 2

    path = paddle.jit.save(Net(), tmp_path / "net", input_spec=[paddle.static.InputSpec([None], "float32")])
    loaded = paddle.jit.load(path)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert loaded(paddle.to_tensor([1.0])).tolist() == [2.0]
    assert [(str(w.message), w.filename) for w in found] == [("large", "test_warnings.py")]
    assert str(Path(__file__).parent).encode() not in Path(path).read_bytes()
