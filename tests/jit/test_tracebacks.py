"""What a user sees of an error under `to_static`: his own frames, the part of the line, his names, what to do."""

import linecache
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

import dy2st as paddle

VECTOR, MATRIX = [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
HOUSE = Path(paddle.__file__).parent


class Thing:
    weight = None


thing = Thing()


class Refused(Exception):
    def __init__(self, code, value):
        super().__init__(code, value)
        self.code = code


def two(a, b):
    return a + b


def inner(t):
    return t.reshape([2, 2])


def middle(t):
    for _ in range(2):
        t = inner(t)
    return t


def unset(x):
    if x.sum() < 0:
        scale = x * 2
    return x * scale


def unset_after_a_loop(x):
    for i in range(int(x[0]) - 1):
        last = x * i
    return last


def shape_in_a_loop(m):
    for _ in range(3):
        m = m @ m
    return m


def shape_in_a_tensor_loop(m):
    i = paddle.to_tensor(0)
    while i < 3:
        m = m @ paddle.to_tensor([[1.0, 2.0]])
        i += 1
    return m


def shapes_that_do_not_broadcast(x):
    y = paddle.concat([x, x])
    return x + y if x.sum() > 0 else x


def another_shape(x):
    if x.sum() > 0:
        return x.reshape([2, 2])
    return x


def another_dtype(x):
    if x.sum() > 0:
        return paddle.nn.functional.embedding(x, paddle.ones([4, 2]))
    return x


def text_is_added(x):
    if x.sum() > 0:
        return x + "a"
    return x


def none_is_called(x):
    return thing.weight(x) if x.sum() > 0 else x


def an_index(x):
    if x.sum() > 0:
        return x[5]
    return x


def an_index_of_the_run(x):
    i = int(x.sum())
    return x[i] * 2


def too_many_indices(x):
    return x[0, 1]


def an_attribute(x):
    y = x * 2
    return y.foo if x.sum() > 0 else y


def a_method(x):
    if x.sum() > 0:
        return x.summ()
    return x


def a_name_of_the_module(x):
    return paddle.nn.functional.rellu(x)


def a_name(x):
    if x.sum() > 0:
        return x + nothing  # noqa: F821
    return x


def a_failing_assert(x):
    assert x.sum() < 0, f"the sum is {x.sum().item()}"
    return x


def an_exception_of_a_branch(x):
    if x.sum() > 0:
        raise Refused(3, x.sum().item())
    return x


def arguments_of_a_function(x):
    if x.sum() > 0:
        return two(x)
    return x


def not_iterable(x):
    for part in thing.weight:
        x = x + part
    return x


def too_many_to_unpack(x):
    a, b = x * 2
    return a + b


def division_by_zero(x):
    n = int(x.sum()) - 6
    return x * (5 // n)


def a_key(x):
    found = {}
    if x.sum() < 0:
        found["a"] = x
    return found["a"]


def pop_of_an_empty_list(x):
    rows = []
    for v in x:
        if v > 9:
            rows.append(v)
    return rows.pop()


def a_test_on_many(x):
    while x > 0:
        x = x - 1
    return x


def in_functions_that_are_called(x):
    return middle(x) if x.sum() > 0 else x


def in_a_comprehension(x):
    return [v.reshape([2]) for v in x]


def recursion_without_an_end(x):
    return recursion_without_an_end(x + 1) if x.sum() > 0 else x


ONE = "only a tensor of one element has a Python value, this one has shape [3]; reduce it first"
UNSET = "cannot access local variable '{}' where it is not associated with a value"
CASES: list[tuple[Any, Any, list[str], str]] = [
    (unset, VECTOR, ["scale"], f"UnboundLocalError: {UNSET.format('scale')}"),
    (unset_after_a_loop, VECTOR, ["last"], f"UnboundLocalError: {UNSET.format('last')}"),
    (shape_in_a_loop, MATRIX, ["m @ m"], "ValueError: matmul: the inner extents differ: [2, 3] and [2, 3]"),
    (shape_in_a_tensor_loop, MATRIX, ["m @ paddle.to_tensor([[1.0, 2.0]])"], "ValueError: matmul: the inner extents"),
    (shapes_that_do_not_broadcast, VECTOR, ["x + y"], "ValueError: operands could not be broadcast together"),
    (another_shape, VECTOR, ["x.reshape([2, 2])"], "ValueError: cannot reshape a tensor of shape [3] into [2, 2]"),
    (another_dtype, VECTOR, ["*"], "TypeError: embedding: the indices must be integers, not float32"),
    (text_is_added, VECTOR, ["*"], "TypeError: unsupported operand type(s) for +: 'Tensor' and 'str'"),
    (none_is_called, VECTOR, ["*"], "TypeError: 'NoneType' object is not callable"),
    (an_index, VECTOR, ["x[5]"], "IndexError: index: index 5 is out of range for axis 0 of extent 3"),
    (an_index_of_the_run, VECTOR, ["x[i]"], "IndexError: index: index 6 is out of range for axis 0 of extent 3"),
    (too_many_indices, VECTOR, ["x[0, 1]"], "IndexError: too many indices: the tensor has 1 axes, but 2 were indexed"),
    (an_attribute, VECTOR, ["*"], "a Tensor has no attribute 'foo'; did you mean 'floor'?"),
    (a_method, VECTOR, ["*"], "a Tensor has no attribute 'summ'; did you mean 'sum'?"),
    (a_name_of_the_module, VECTOR, ["paddle.nn.functional.rellu"], "AttributeError: module 'dy2st.nn.functional'"),
    (a_name, VECTOR, ["*"], "NameError: name 'nothing' is not defined"),
    (a_failing_assert, VECTOR, ["*"], "AssertionError: the sum is 6.0"),
    (an_exception_of_a_branch, VECTOR, ["*"], "tests.jit.test_tracebacks.Refused: (3, 6.0)"),
    (arguments_of_a_function, VECTOR, ["*"], "TypeError: two() missing 1 required positional argument: 'b'"),
    (not_iterable, VECTOR, ["*"], "TypeError: 'NoneType' object is not iterable"),
    (too_many_to_unpack, VECTOR, ["*"], "ValueError: too many values to unpack (expected 2)"),
    (division_by_zero, VECTOR, ["5 // n"], "ZeroDivisionError: integer division or modulo by zero"),
    (a_key, VECTOR, ['found["a"]'], "KeyError: 'a'"),
    (pop_of_an_empty_list, VECTOR, ["rows.pop()"], "IndexError: pop from empty list"),
    (a_test_on_many, VECTOR, ["x > 0"], f"ValueError: {ONE}"),
    (in_functions_that_are_called, VECTOR, ["middle(x)", "inner(t)", "t.reshape([2, 2])"], "ValueError: cannot"),
    (in_a_comprehension, VECTOR, ["*"], "ValueError: cannot reshape a tensor of shape []"),
]  # fmt: skip


def raised(function: Any, *values: Any) -> BaseException:
    static = paddle.jit.to_static(function, full_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception) as caught:  # noqa: PT011 (any kind: the test looks at it)
            static(*map(paddle.to_tensor, values))
    return caught.value


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error without those of this test."""
    found = list(traceback.extract_tb(error.__traceback__))
    return found[next(i for i, f in enumerate(found) if f.name == "raised") + 1 :]


def part(frame: traceback.FrameSummary) -> str:
    """Return the part of the line that carets stand under; `*` for the whole line."""
    line = linecache.getline(frame.filename, frame.lineno or 0)
    segment = line[frame.colno : frame.end_colno] if frame.colno is not None else line
    return segment.strip()


@pytest.mark.parametrize(("function", "value", "parts", "text"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_an_error_shows_the_users_frames_only(function: Any, value: Any, parts: list[str], text: str) -> None:
    error = raised(function, value)
    seen = frames(error)
    assert [f.filename for f in seen] == [__file__] * len(parts), [f.filename for f in seen]
    for frame, wanted in zip(seen, parts, strict=True):
        assert wanted in ("*", part(frame))
    assert text in "".join(traceback.format_exception_only(error))
    assert str(HOUSE) not in "".join(traceback.format_exception(error))


def test_the_second_call_says_the_same() -> None:
    static = paddle.jit.to_static(an_index, full_graph=True)
    texts: list[str] = []
    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            static(paddle.to_tensor(VECTOR))
        texts.append("".join(traceback.format_exception(caught.value)))
    assert texts[0] == texts[1] == texts[2]
    assert str(HOUSE) not in texts[0]


def test_a_recursion_without_an_end() -> None:
    error = raised(recursion_without_an_end, VECTOR)
    assert isinstance(error, RecursionError)
    seen = frames(error)
    assert {(f.filename, f.name) for f in seen} == {(__file__, "recursion_without_an_end")}
    assert "is called too deeply; does its recursion end?" in str(error)


def test_arguments_that_do_not_fit() -> None:
    text = "".join(traceback.format_exception(raised(unset, VECTOR, VECTOR)))
    assert text.endswith("TypeError: unset() takes 1 positional argument but 2 were given\n")
    assert "During handling" not in text
    assert str(HOUSE) not in text


def test_a_coroutine_that_is_called() -> None:
    async def later(x):
        return x

    def f(x):
        return later(x)

    error = raised(f, VECTOR)
    assert "`test_a_coroutine_that_is_called.<locals>.later` cannot be converted: an `async def` runs on" in str(error)
    assert [part(f) for f in frames(error)] == ["later(x)"]


def test_a_long_line_and_one_of_several_lines() -> None:
    def f(x, w):
        return (
            x.sum()
            + x @ w + 1.0 * x.sum() + 2.0 * x.sum() + 3.0 * x.sum() + 4.0 * x.sum() + 5.0 * x.sum() + 6.0 * x.sum()
        )  # fmt: skip

    (frame,) = frames(raised(f, VECTOR, [1.0, 2.0]))
    assert part(frame) == "x @ w"


def test_an_error_of_a_method_and_of_a_layer() -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.fc = paddle.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.fc(x) if x.sum() > 0 else x

    error = raised(Net(), VECTOR)
    assert [part(f) for f in frames(error)] == ["self.fc(x)"]


def test_an_error_after_loading_has_a_line_without_its_calls(tmp_path: Path) -> None:
    class Net(paddle.nn.Layer):
        def forward(self, x: Any, i: Any) -> Any:
            return x[i] * 2

    spec = [paddle.static.InputSpec([None], "float32"), paddle.static.InputSpec([], "int64")]
    paddle.jit.save(Net(), tmp_path / "net", input_spec=spec)
    loaded = paddle.jit.load(tmp_path / "net")
    with pytest.raises(IndexError, match="index 7 is out of range") as caught:
        loaded(paddle.to_tensor(VECTOR), paddle.to_tensor(7))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (Path(last.filename).name, last.name) == (Path(__file__).name, "forward")
