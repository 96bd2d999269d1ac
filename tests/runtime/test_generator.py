"""The random generator: seeds, draws, states, threads."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.eager.rng import Generator
from tests.in_threads import in_threads


@pytest.mark.proves("seed manual_seed")
def test_the_same_seed_gives_the_same_numbers():
    paddle.seed(3)
    first = paddle.rand([4]).numpy()
    second = paddle.rand([4]).numpy()
    paddle.seed(3)
    np.testing.assert_array_equal(paddle.rand([4]).numpy(), first)
    assert (first != second).any()


@pytest.mark.proves("get_rng_state set_rng_state")
def test_a_state_is_kept_and_restored():
    paddle.seed(5)
    paddle.rand([3])
    state = paddle.get_rng_state()
    want = (paddle.randn([3]).numpy(), paddle.randint(0, 9, [3]).numpy())
    paddle.set_rng_state(state)
    got = (paddle.randn([3]).numpy(), paddle.randint(0, 9, [3]).numpy())
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.proves("get_cuda_rng_state set_cuda_rng_state")
def test_the_names_for_cuda_have_the_same_state():
    paddle.seed(5)
    assert paddle.get_cuda_rng_state() == paddle.get_rng_state()


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be an int from 0 to 2\\*\\*64 - 1, not"):
        paddle.seed(seed)


@pytest.mark.parametrize("state", [3, [], [3], [(1, 2, 3)], [(1.5, 0)], [(-1, 0)], [(0, -1)]])
def test_a_state_that_is_none_is_refused(state):
    before = paddle.get_rng_state()
    with pytest.raises((TypeError, ValueError), match="a random state is what get_rng_state\\(\\) gives"):
        paddle.set_rng_state(state)
    assert paddle.get_rng_state() == before


def test_no_two_threads_get_the_same_draw():
    paddle.seed(1)
    draws = []
    lock = threading.Lock()

    def work():
        mine = [paddle.rand([2]).numpy().tobytes() for _ in range(50)]
        with lock:
            draws.extend(mine)

    in_threads(*[work] * 4)
    assert len(set(draws)) == 200


def test_what_is_drawn_beside_the_run_of_a_program_is_drawn_once():
    generator, found = Generator(7), []

    def draw():
        found.append(generator.next()[1])
        with generator.run() as (_, first):
            generator.go_on_at(first + 5)
        found.extend([first, generator.next()[1]])

    with generator.run() as (seed, first):
        in_threads(draw)
        assert (seed, first, generator.get_state()) == (7, 0, (7, 0))
        generator.go_on_at(3)
    assert generator.next() == (7, 3)
    assert len({*found, 0, 1, 2, 3}) == 7
    assert max(found) < 2**63


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_no_two_threads_get_the_same_draw_from_a_static_function(backend, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    draws, barrier = [], threading.Barrier(4)

    @paddle.jit.to_static
    def draw():
        return paddle.rand([2])

    def work():
        barrier.wait()
        draws.extend([draw().numpy().tobytes() for _ in range(200)])

    in_threads(*[work] * 4)
    assert len(set(draws)) == 800


def test_a_generator_that_is_made_with_a_seed_begins_where_that_seed_begins():
    made = Generator(7)
    assert [made.next() for _ in range(2)] == [(7, 0), (7, 1)]
    assert made.manual_seed(7).next() == (7, 0)
