"""What a function keeps is bounded: its Programs, their machine code, and what is traced for numbers and functions."""

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch.program_cache import MOST_PROGRAMS
from dy2st.jit.dispatch.retrace_warning import RetraceWarning
from dy2st.runtime.backends.cpu.compile_link.image_loader import loaded

NUMBERS = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)


def x_of(*values: float) -> Any:
    return paddle.to_tensor([*map(float, values)])


def scaled(x: Any, word: str) -> Any:
    return x * len(word)


def quietly(f: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        return f()


def test_there_are_at_most_64_programs_and_one_warning_names_the_argument() -> None:
    f = paddle.jit.to_static(scaled)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for i in range(MOST_PROGRAMS + 40):
            assert f(x_of(1, i), "x" * i).tolist() == [i, i * i]
    assert len(f.program_cache) == MOST_PROGRAMS == 64
    assert len(found) == 1
    assert found[0].filename == __file__
    assert "because `word` is 'xxxxxxxxxxxxxxx', was ''" in str(found[0].message)
    assert "Of more than 64 Programs those are dropped that were not called lately." in str(found[0].message)


def test_programs_that_are_called_stay() -> None:
    f = paddle.jit.to_static(scaled, max_programs=4)

    def calls() -> None:
        for i in range(40):
            assert f(x_of(1), "x" * i).tolist() == [i]
            assert f(x_of(i), "often").tolist() == [5 * i]

    quietly(calls)
    assert len(f.program_cache) == 4
    often = [p for p in f.program_cache if p.values["word"] == "often"]
    assert [p.calls for p in often] == [40]
    told = f.explain()
    assert told.calls == 80
    assert "37 programs beyond 4 dropped, not called lately" in str(told)
    assert f(x_of(2), "x" * 39).tolist() == [78]


def test_a_call_that_comes_back_after_its_program_was_dropped() -> None:
    f = paddle.jit.to_static(scaled, max_programs=2)
    for _ in range(3):
        for i in range(3):
            for k in range(4):
                assert quietly(lambda i=i, k=k: f(x_of(k), "x" * i)).tolist() == [i * k]
    assert len(f.program_cache) == 2


@pytest.mark.parametrize("most", [0, -1, 2.0, "4"])
def test_max_programs_is_a_positive_int(most: Any) -> None:
    with pytest.raises(ValueError, match="max_programs is an int of at least 1"):
        paddle.jit.to_static(scaled, max_programs=most)


@pytest.mark.slow
@pytest.mark.one_tier("counts what is loaded")
def test_machine_code_goes_with_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    f, counts = paddle.jit.to_static(scaled, max_programs=2), list[tuple[int, int]]()
    for i in range(12):
        for k in range(3):
            assert quietly(lambda i=i, k=k: f(x_of(k, 1), "x" * i)).tolist() == [i * k, i]
        gc.collect()
        counts.append((loaded.images, loaded.bytes))
    assert counts[-1][0] == counts[3][0]
    assert counts[-1][1] <= counts[3][1] + 4096


@pytest.mark.slow
@pytest.mark.one_tier("counts what is loaded")
def test_models_that_are_made_trained_and_dropped_leave_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    def trained() -> None:
        net = paddle.nn.Linear(3, 2)
        optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())

        @paddle.jit.to_static
        def step(x: Any) -> Any:
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        for _ in range(3):
            step(paddle.ones([2, 3]))

    trained()
    gc.collect()
    images, size = loaded.images, loaded.bytes
    for _ in range(6):
        trained()
        gc.collect()
        assert (loaded.images, loaded.bytes) == (images, size)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_numpy_scalar_is_an_input_from_the_second_value_on(kind: Any, dtype: str) -> None:
    def f(x: Any, k: Any) -> Any:
        return x * k + (k - x) / 2, x < k, paddle.maximum(x, paddle.to_tensor(1).astype(dtype)) * [k, k][1]

    static = paddle.jit.to_static(f)
    for i in range(1, 12):
        x = paddle.to_tensor([i, 2]).astype(dtype)
        for found, wanted in zip(static(x, kind(i * 1.1)), f(x, kind(i * 1.1)), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert len(static.program_cache) == 2


USES: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic of NumPy": lambda x, k: x * (k + 1) / 3,
    "reflected": lambda x, k: x * (2 * k),
    "comparison": lambda x, k: x * 2 if k > 0.1 else x,
    "truth": lambda x, k: x * 2 if k else x,
    "type": lambda x, k: x * 2 if type(k) is np.float32 else x,
    "isinstance": lambda x, k: x * 2 if isinstance(k, np.floating) else x,
    "dtype": lambda x, k: x * k.dtype.itemsize,
    "text": lambda x, k: x * len(f"{k}"),
    "str": lambda x, k: x * len(str(k)),
    "result": lambda x, k: (x, k),
    "in a list": lambda x, k: [x, [k]],
    "float": lambda x, k: x * float(k),
    "item": lambda x, k: x * (k.item() + 1),
    "square root": lambda x, k: x * np.sqrt(k),
    "joined": lambda x, k: x * (k if x.sum() > 3 else 1.0),
    "array": lambda x, k: x * np.array([k, 1])[0],
    "loop": lambda x, k: [x * k for _ in range(3)][-1],
}


@pytest.mark.parametrize("use", USES)
def test_a_numpy_scalar_is_what_it_is_for_the_function(use: str) -> None:
    f = USES[use]
    static = paddle.jit.to_static(f)
    for i in range(8):
        x, k = x_of(i, 1), np.float32(i * 0.1)
        found, wanted = quietly(lambda x=x, k=k: static(x, k)), f(x, k)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, (tuple, list)) else [(found, wanted)]
        for a, b in pairs:
            assert type(a) is type(b)
            if isinstance(b, list):
                assert [*map(type, a)] == [*map(type, b)]
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_function_made_anew_from_call_to_call_is_the_same_one() -> None:
    class Holder:
        act: Any = None

    holder = Holder()

    def f(x: Any) -> Any:
        before = holder.act
        holder.act = lambda y: y * 2
        return x if before is None else before(x)

    static = paddle.jit.to_static(f, full_graph=True)
    assert [float(static(x_of(k))) for k in range(20)] == [0, *(2 * k for k in range(1, 20))]
    assert len(static.program_cache) == 2


FACTOR = 2.0


def test_a_function_that_leaves_a_program_reads_globals_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, Any] = {}

    def f(x: Any) -> Any:
        held["g"] = lambda y: y * FACTOR
        return x + 1

    def use(x: Any) -> Any:
        return held["g"](x)

    static, using = paddle.jit.to_static(f, full_graph=True), paddle.jit.to_static(use, full_graph=True)
    for factor in (2.0, 3.0, 4.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert float(static(x_of(factor))) == factor + 1
        assert float(held["g"](x_of(10))) == 10 * factor
        assert [float(using(x_of(k))) for k in range(3)] == [0, factor, 2 * factor]


def test_a_list_that_is_cleared_and_filled_again_is_not_read() -> None:
    class Holder:
        def __init__(self) -> None:
            self.p: list[Any] = []
            self.d: dict[str, Any] = {}

    holder = Holder()

    def f(x: Any) -> Any:
        y = x + 1
        holder.p.clear()
        holder.p.append([y, y * 2])
        holder.d.clear()
        holder.d["y"] = y
        return holder.p[0][1] + holder.d["y"]

    static = paddle.jit.to_static(f, full_graph=True)
    mine = holder.p
    for k in range(20):
        assert float(static(x_of(k))) == 3 * (k + 1)
        assert holder.p is mine
        assert [[float(x) for x in row] for row in holder.p] == [[k + 1, 2 * (k + 1)]]
        assert float(holder.d["y"]) == k + 1
    assert len(static.program_cache) == 1


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_a_layer_whose_weight_is_made_anew_is_traced_for_one_program(norm: str) -> None:
    results: list[list[Any]] = []
    for is_static in (False, True):
        paddle.seed(0)
        layer = getattr(paddle.nn.utils, norm)(paddle.nn.Linear(2, 2))
        f: Any = lambda x, layer=layer: layer(layer(x))
        f = paddle.jit.to_static(f, full_graph=True) if is_static else f
        optimizer, found = paddle.optimizer.SGD(0.1, parameters=layer.parameters()), list[Any]()
        for i in range(8):
            loss = (f(paddle.ones([3, 2]) * (i + 1)) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            found += [float(loss), layer.weight.numpy()]  # as it was computed, nothing of the trace
        results.append(found)
        if is_static:
            assert len(f.program_cache) <= 3
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
