"""What loops settled on is kept: a later trace begins with it, comes to the same Program, or begins anew."""

import marshal
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.location import Location
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.tracer.loops import loop_state_cache
from dy2st.runtime.tracer.loops.loop_carried_state import TracedLoop
from dy2st.runtime.tracer.loops.loop_state_cache import CachedLoopState
from dy2st.runtime.tracer.values.abstract import Const, Items, ListOf, Number

W = np.ones((2, 3), "float32")


@pytest.fixture(autouse=True)
def folder(tmp_path: Any, monkeypatch: Any) -> Any:
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def attempts(monkeypatch: Any) -> list[int]:
    """Return a list that grows by one for each trace of a body."""
    seen: list[int] = []
    real = TracedLoop._attempt
    monkeypatch.setattr(TracedLoop, "_attempt", lambda loop, *args: (seen.append(1), real(loop, *args))[1])
    return seen


def traced(function: Any, attempts: list[int]) -> tuple[int, str, Any]:
    """Trace a function anew; return how often bodies were traced, what stands for the Program, and the results."""
    attempts.clear()
    static = paddle.jit.to_static(function, full_graph=True)
    found = static(paddle.to_tensor(W))
    program = static.concrete_program.main_program
    results = [np.asarray(x) for x in (found if isinstance(found, (list, tuple)) else [found])]
    return len(attempts), f"{fingerprint(program)}", results


def counting(x):
    t, h = 0, x[0]
    while t < x.shape[0]:
        h = h + x[t]
        t += 1
    return h


def growing(x):
    y = x * 1.0
    while y.sum() < 50:
        y = y + paddle.ones([1, 1])
        y = paddle.concat([y, y])
    return y


def listing(x):
    found, y, stop = [], x[0], False
    while not stop:
        y = y * 2
        found.append(y)
        if y.sum() > 20:
            stop = True
    return found


def in_turns(x):
    i, total = 0, x[0]
    while total.sum() < 40:
        j = 0
        while j < 2:
            total = total + x[i]
            j += 1
        i = 1 - i
    return total


@pytest.mark.parametrize("function", [counting, growing, listing, in_turns])
def test_a_later_trace_begins_with_what_loops_settled_on(function, attempts):
    before, first, results = traced(function, attempts)
    after, again, same = traced(function, attempts)
    assert after < before
    assert again == first
    assert all(map(np.array_equal, results, same))
    assert traced(function, attempts)[:2] == (after, first)


def keeping(x):
    y, t = x[0], 0
    while y.sum() < 40:
        y = y * 2
    return y + t


def more_than_is_needed(monkeypatch):
    """Say that every loop settled on open extents."""

    def kept(key, variables, seen):
        shape = seen(0, None).type.shape
        return CachedLoopState({0: loop_state_cache._changed(seen(0, None), ("open", [True] * len(shape), True))}, 3)

    monkeypatch.setattr(loop_state_cache, "cached", kept)


def test_what_a_loop_would_not_come_to_by_itself_is_not_taken(monkeypatch, attempts):
    count, first, _ = traced(keeping, attempts)
    with monkeypatch.context() as patched:
        more_than_is_needed(patched)
        more, again, _ = traced(keeping, attempts)
    assert (count, more) == (1, 2)
    assert again == first  # it carries tensors of the shape that it began with


def test_what_was_forgotten_is_neither_taken_nor_kept_again(attempts):
    before, first, _ = traced(counting, attempts)
    real = loop_state_cache.cached
    keys: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop_state_cache, "cached", lambda key, *args: keys.append(key) or real(key, *args))
        traced(counting, attempts)
    loop_state_cache.forget(keys[0])
    assert [traced(counting, attempts)[:2] for _ in range(2)] == [(before, first)] * 2


def trained(x, w):
    h, t = x[0], 0
    while t < x.shape[0]:
        h = h * w
        t += 1
    return h.sum()


def by_one_way(x, w):
    return trained(x, w)


def by_another_way(x, w):
    return trained(x, w)


def tensors(stop_gradient: bool) -> list[Any]:
    return [paddle.to_tensor(W), paddle.to_tensor(W[0], stop_gradient=stop_gradient)]


def test_each_way_to_a_loop_has_what_it_settled_on(attempts):
    counts: list[int] = []
    for _ in range(3):
        for function, stop in ((by_one_way, True), (by_another_way, False)):
            attempts.clear()
            paddle.jit.to_static(function, full_graph=True)(*tensors(stop))
            counts.append(len(attempts))
    assert counts[0] > counts[2] == counts[4] == 1
    assert counts[1] > counts[3] == counts[5] == 1


def test_what_has_changed_is_kept_anew_a_few_times(attempts):
    counts: list[int] = []
    found: list[bool] = []
    for stop in (True, False, False, True, True, False, False, False):
        attempts.clear()
        found.append(paddle.jit.to_static(trained, full_graph=True)(*tensors(stop)).stop_gradient)
        counts.append(len(attempts))
    assert found == [True, False, False, True, True, False, False, False]
    first, changed, same, back, settled, *rest = counts
    assert same == settled == 1 < first < back == changed
    assert rest == [changed, changed - 1, changed - 1]  # forgotten: traced as without a note from here on


def with_another(x, w, v):
    return trained(x, w), v * 2


def test_gradients_are_not_said_to_flow_because_they_were_said_to(attempts):
    for stop in (False, True):
        found, _ = paddle.jit.to_static(with_another)(*tensors(stop), paddle.to_tensor(W, stop_gradient=False))
        assert found.stop_gradient is stop


def swapping(x, w):
    a, b, t = x[0] * 1.0, x[1] * 1.0, 0
    while t < x.shape[0]:
        a, b = b, b * w.sum()
        t += 1
    return (a * b).sum()


def test_gradients_that_come_to_a_slot_by_another_one_are_found_in_one_turn(attempts):
    for _ in range(2):
        attempts.clear()
        found = paddle.jit.to_static(swapping, full_graph=True)(*tensors(False))
    assert len(attempts) == 1
    assert not found.stop_gradient


def picking(x):
    parts, i, y = [x, x * 2], 0, x
    while y.sum() < 40:
        y = y + parts[i][0]
        i = 1 - i
    return y


def test_a_number_that_the_body_needs_as_it_is(monkeypatch, attempts):
    _, first, results = traced(picking, attempts)
    monkeypatch.setattr(loop_state_cache, "cached", lambda key, variables, seen: CachedLoopState({1: Number("int")}, 0))
    _, again, same = traced(picking, attempts)
    assert again == first
    assert np.array_equal(results[0], same[0])


def writing(x):
    y, t = x * 1.0, 0
    while t < 2:
        y[t] = y[t] + t
        t += 1
    return y


def raising(x):
    y, t = x * 1.0, 0
    while y.sum() < 40:
        y = y + t
        t += 1
        if y[0, 0] < 0:
            raise ValueError("negative")
    return y


@pytest.mark.parametrize("function", [raising, writing])
def test_loops_that_write_tensors_or_raise_are_traced_as_ever(function, attempts, monkeypatch):
    kept: list[str] = []
    monkeypatch.setattr(loop_state_cache, "keep", lambda *args: kept.append(args[0]))
    before = traced(function, attempts)
    assert traced(function, attempts)[:2] == before[:2]
    assert kept == []


@pytest.mark.parametrize(
    "content",
    [
        7,
        ([(7, ("same",))], 0, 0),
        ([("x", ("same",))], 0, 0),
        ([(0, ("open", [True], 1))], 0, 0),
        ([(0, ("dance",))], 0, 0),
    ],
)
def test_content_that_does_not_fit_is_as_good_as_nothing(content):
    disk_cache.write("0" * 64, marshal.dumps(content))
    found = loop_state_cache.cached("0" * 64, {"x": 1}, lambda slot, owner: [Const(3)][slot])
    assert found is not None
    assert found.avals == {}


def test_without_a_folder_nothing_stands_for_a_loop(monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    assert loop_state_cache.key_of(Location("f.py", 3), ["x"], {0: Const(1)}) is None


@pytest.mark.parametrize(
    ("entering", "t"),
    [
        (Const(0), Number("int", (0, 1))),
        (Const(0), Number("int")),
        (Items(list, ()), ListOf(Number("float"))),
        (Number("bool"), Number("bool")),
    ],
)
def test_what_becomes_of_a_template_is_read_back(entering, t):
    assert loop_state_cache._changed(entering, loop_state_cache._difference(entering, t)) == t


def test_objects_of_this_process_are_not_kept():
    loop_state_cache.keep("1" * 64, {0: Const(None)}, {0: Const("x")}, {}, 0)
    loop_state_cache.keep("1" * 64, {("rng",): Number("int")}, {("rng",): Number("int")}, {}, 0)
    assert not disk_cache.has("1" * 64)


OUTSIDE = paddle.to_tensor(W[0], stop_gradient=False)


def taking_one_from_outside(x):
    h, t = x[0], 0
    while t < x.shape[0]:
        h = OUTSIDE
        t += 1
    return h


def taking_one_from_outside_in_turn(x):
    h, out = x[0], []
    for _ in range(x.shape[0]):
        out.append(h)
        h = OUTSIDE
    return out


@pytest.mark.parametrize("function", [taking_one_from_outside, taking_one_from_outside_in_turn])
def test_a_tensor_from_outside_is_carried_again(function, attempts):
    first, *same = [traced(function, attempts)[1] for _ in range(3)]
    assert same == [first, first]


def stale(*args):
    raise AttributeError("of a note")


def test_an_error_in_the_turn_drops_what_was_kept(attempts, monkeypatch):
    _, first, _ = traced(counting, attempts)
    monkeypatch.setattr(CachedLoopState, "is_confirmed", stale)
    assert traced(counting, attempts)[1] == first


def test_a_slot_that_the_loop_does_not_have_drops_what_was_kept(attempts, monkeypatch):
    _, first, _ = traced(counting, attempts)
    monkeypatch.setattr(loop_state_cache, "cached", lambda *args: CachedLoopState({99: Number("int")}, 0))
    assert traced(counting, attempts)[1] == first


def test_an_error_behind_the_loop_drops_what_was_kept(attempts, monkeypatch):
    count, first, _ = traced(counting, attempts)
    real = TracedLoop._finish
    with monkeypatch.context() as patched:
        finish = lambda loop, *args: (stale if loop.trace.loop_notes.used else real)(loop, *args)
        patched.setattr(TracedLoop, "_finish", finish)
        assert traced(counting, attempts)[1] == first
    assert traced(counting, attempts)[:2] == (count, first)  # nothing is kept of it any more
