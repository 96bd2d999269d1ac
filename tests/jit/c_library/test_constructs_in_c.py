"""What a Program may have, it has in a library too: the same bits as in Python under strict mode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.c_library.signature import NoFormInC
from dy2st.runtime.backends.cpu.standalone import NotStandalone
from dy2st.static import InputSpec
from tests.jit.c_library.libraries import Failed, built, needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(7)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(dtype)


def in_python(function: Any, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    run = paddle.jit.to_static(function, strict=True)
    made = run(*(paddle.to_tensor(x) if isinstance(x, np.ndarray) else x for x in inputs))
    return [t.numpy() if hasattr(t, "numpy") else t for t in (made if isinstance(made, (list, tuple)) else [made])]


def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return n, steps


def until_small(x):
    while paddle.sum(paddle.abs(x)) > 1.0:
        x = x * 0.5 if paddle.max(x) > 2.0 else x - paddle.tanh(x) * 0.25
    return x


def running_sums(x):
    rows = []
    total = paddle.zeros([x.shape[1]])
    for row in x:
        total = total + paddle.exp(row)
        if paddle.sum(row) > 0:
            rows.append(total)
    return paddle.stack(rows), len(rows)


def half(x, y):
    return paddle.matmul(x, y) + paddle.sin(x), x.astype("float32")


def integers(x, i):
    return paddle.gather(x, i) * 3 - 1, x // 2, paddle.argmax(x), (x > 2).astype("uint8")


def noise(x):
    return x + paddle.randn(x.shape), paddle.randint(0, 100, [5]), paddle.randperm(7)


def softmaxed(x):
    return paddle.nn.functional.softmax(x, axis=-1), paddle.nn.functional.layer_norm(x, [x.shape[-1]])


def broadcast(x, y):
    return x + y


@pytest.mark.parametrize(
    ("function", "spec", "inputs", "results"),
    [
        (collatz, [InputSpec([], "int64")], [np.int64(27)], [("int64", 0), ("int64", 0)]),
        (until_small, [InputSpec([None])], [normal(9) * 4], [("float32", 1)]),
        (running_sums, [InputSpec([None, 3])], [normal(20, 3)], [("float32", 2), int]),
        (
            half, [InputSpec([None, 4], "float16"), InputSpec([4, 4], "float16")],
            [normal(5, 4, dtype="float16"), normal(4, 4, dtype="float16")], [("float16", 2), ("float32", 2)],
        ),
        (
            integers, [InputSpec([None], "int32"), InputSpec([None], "int64")],
            [np.arange(9, dtype=np.int32), np.array([3, 0, 8])],
            [("int32", 1), ("int32", 1), ("int64", 0), ("uint8", 1)],
        ),
        (softmaxed, [InputSpec([None, None])], [normal(7, 130)], [("float32", 2), ("float32", 2)]),
        (broadcast, [InputSpec([None, None]), InputSpec([None])], [normal(7, 13), normal(13)], [("float32", 2)]),
        (broadcast, [InputSpec([None, None]), InputSpec([None])], [normal(7, 13), normal(1)], [("float32", 2)]),
    ],
)  # fmt: skip
def test_a_library_gives_the_bits_of_python(
    function: Any, spec: list[InputSpec], inputs: list[Any], results: list[Any], tmp_path: Path
) -> None:
    inputs = [np.asarray(x) for x in inputs]
    library = built(function, spec, tmp_path)
    wanted = in_python(function, *inputs)
    for _ in range(2):
        for got, want in zip(library(inputs, results), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    library.free()


def test_random_numbers_are_those_of_the_seed(tmp_path: Path) -> None:
    results: list[Any] = [("float32", 1), ("int64", 1), ("int64", 1)]
    library = built(noise, [InputSpec([None])], tmp_path, seed=11)
    run = paddle.jit.to_static(noise, strict=True)
    paddle.seed(11)
    x = normal(6)
    for _ in range(3):  # each call draws anew
        for got, want in zip(library([x], results), run(paddle.to_tensor(x)), strict=True):
            np.testing.assert_array_equal(got, want.numpy())
    library.free()


def test_the_number_of_turns_is_an_argument(tmp_path: Path) -> None:
    def scaled(x, turns, by):
        for _ in range(turns):
            x = x * by
        return x, turns + 1

    spec = [InputSpec([None, 2]), InputSpec([], "int32"), InputSpec([])]
    library = built(scaled, spec, tmp_path)
    x = normal(3, 2)
    for turns in (0, 4):
        got, count = library([x, np.array(turns, np.int32), np.array(0.5, np.float32)], [("float32", 2), ("int32", 0)])
        np.testing.assert_array_equal(got, x * np.float32(0.5**turns))
        assert count == turns + 1
    library.free()


# ---- what is refused, and errors -----------------------------------------------------------------------------------
def wrong_sign(x):
    if paddle.sum(x) < 0:
        raise ValueError("the sum is to be positive")
    assert paddle.max(x) < 100, "too large"
    return x


def picked(x, i):
    return x[i]


def first_fit(x):
    kept = []
    for row in x:
        if paddle.sum(row) > 0:
            kept.append(row)
    return kept[0]


def test_errors_have_a_code_and_the_line(tmp_path: Path) -> None:
    library = built(wrong_sign, [InputSpec([None])], tmp_path)
    with pytest.raises(Failed, match=r"ValueError: the sum is to be positive \(.*_in_c.py:\d+\)") as error:
        library([np.array([-1, 0], np.float32)], [("float32", 1)])
    assert error.value.code == 2
    with pytest.raises(Failed, match=r"AssertionError: too large \(.*:\d+\)"):
        library([np.array([1000, 0], np.float32)], [("float32", 1)])
    good = np.array([3, 4], np.float32)
    np.testing.assert_array_equal(library([good], [("float32", 1)])[0], good)
    library.free()


def test_an_index_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    library = built(picked, [InputSpec([None]), InputSpec([], "int64")], tmp_path / "picked")
    assert library([normal(4), np.array(-1)], [("float32", 0)])
    with pytest.raises(Failed, match=r"index: .* \(.*:\d+\)"):
        library([normal(4), np.array(4)], [("float32", 0)])
    library.free()
    library = built(first_fit, [InputSpec([None, 2])], tmp_path / "first")
    with pytest.raises(Failed, match=r"list_\w+: .* \(.*:\d+\)"):
        library([-np.ones((3, 2), np.float32)], [("float32", 1)])
    library.free()


def test_inputs_are_looked_at(tmp_path: Path) -> None:
    library = built(lambda x, y: x + y, [InputSpec([None, 3]), InputSpec([None, 3])], tmp_path)
    result: list[Any] = [("float32", 2)]
    with pytest.raises(Failed, match="input 'x': extent 4 of axis 1 is to be 3"):
        library([normal(2, 4), normal(2, 3)], result)
    with pytest.raises(Failed, match="input 'x': extent -1 of axis 0"):
        library([normal(2, 3), normal(2, 3)], result, shapes={0: (-1, 3)})
    wide = normal(6, 3)
    np.testing.assert_array_equal(library([wide[::2], wide[::-2]], result)[0], wide[::2] + wide[::-2])
    library.free()


def test_memory_has_a_limit(tmp_path: Path) -> None:
    library = built(lambda x: paddle.matmul(x, x) + 1.0, [InputSpec([None, None])], tmp_path, most_bytes=100_000)
    result: list[Any] = [("float32", 2)]
    library([normal(20, 20)], result)
    with pytest.raises(Failed, match="most_bytes") as error:
        library([normal(400, 400)], result)
    assert error.value.code == 3
    library([normal(20, 20)], result)
    library.free()


def shown(x):
    print(x)
    return x


def test_what_only_python_can_run_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(NotStandalone, match=r"print at .*test_constructs_in_c.py:\d+"):
        built(shown, [InputSpec([None])], tmp_path)
    with pytest.raises(NotStandalone, match=r"inverse at .*:\d+"):
        built(lambda x: paddle.linalg.inv(x), [InputSpec([3, 3])], tmp_path)


def test_a_list_of_any_length_is_no_output(tmp_path: Path) -> None:
    def rows(x):
        return [row for row in x if paddle.sum(row) > 0]

    with pytest.raises(NoFormInC, match="output"):
        built(rows, [InputSpec([None, 2])], tmp_path)
