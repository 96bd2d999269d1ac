"""Fleets on both engines: order, bounds, shared arrays, errors and deaths; inference and search with them."""

import operator
import os
import signal
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.fleets import ActorDied, Fleet, Trial, best, draw, grid, predict, search
from dy2st.static import InputSpec
from tests.fleets import actor_work

ROOT = Path(__file__).parents[2]
NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: the extra `ray` (240 MB)")
PROCESSES = pytest.param("processes", id="processes")
ON_RAY = pytest.param("ray", id="ray", marks=[NEEDS_RAY, pytest.mark.slow])


@pytest.fixture(scope="session", autouse=True)
def path_of_actors() -> Iterator[None]:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    yield
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="session")
def cluster(path_of_actors: None) -> Iterator[None]:
    """Begin one small Ray for all tests of this process; nothing of it listens to other machines."""
    import ray

    ray.init(
        num_cpus=2, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=False,
        configure_logging=False, _node_ip_address="127.0.0.1",
    )  # fmt: skip
    yield
    ray.shutdown()


@pytest.fixture(params=[PROCESSES, ON_RAY])
def fleet(request: Any) -> Any:
    """Return what makes a fleet of two actors, on each of the engines."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return partial(Fleet, workers=2, engine=request.param)


def test_results_come_in_order(fleet: Any) -> None:
    with fleet(actor_work.slow_at_first) as actors:
        assert list(actors.map(range(20))) == list(range(20))
        assert list(actors.map([])) == []
        assert list(actors.map([7])) == [7]


def test_no_more_is_taken_than_there_is_room_for(fleet: Any) -> None:
    taken: list[int] = []

    def source() -> Iterator[int]:
        for i in range(40):
            taken.append(i)
            yield i

    with fleet(actor_work.slow_at_first, ahead=5) as actors:
        for given, result in enumerate(actors.map(source())):
            assert result == given
            assert len(taken) <= given + 1 + 5


def test_arrays_are_shared_and_prepared_once(fleet: Any) -> None:
    array = np.arange(50_000, dtype="float64")
    with fleet(actor_work.seen, actor_work.prepared) as actors:
        found = list(actors.map(range(12), array))
        assert [one[0] for one in found] == list(range(12))
        assert {one[1:3] for one in found} == {(False, False)}  # a view of memory that all read
        assert len({one[3:] for one in found}) <= 2
        assert [one[0] for one in actors.map(range(3), array + 1)] == [1, 2, 3]


def test_what_a_dead_actor_had_is_done_again(fleet: Any, tmp_path: Path) -> None:
    with fleet(actor_work.dies_once) as actors:
        assert list(actors.map(range(10), str(tmp_path))) == [i * i for i in range(10)]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_actor_that_is_killed_from_outside(fleet: Any) -> None:
    with fleet(actor_work.pid) as actors:
        results = actors.map(range(12))
        first = next(results)
        os.kill(first, signal.SIGKILL)
        rest = list(results)
    assert len(rest) == 11
    assert len({first, *rest}) == 3


def test_an_item_that_ends_every_actor(fleet: Any) -> None:
    with fleet(actor_work.dies_at_three, attempts=2) as actors:
        with pytest.raises(ActorDied, match="item 3: 2 actors died over it"):
            list(actors.map(range(6)))
        assert list(actors.map([1, 2])) == [1, 2]


def test_what_work_raises_names_the_item(fleet: Any) -> None:
    with fleet(actor_work.raises_at_three) as actors:
        with pytest.raises(KeyError, match="three") as caught:
            list(actors.map(range(6)))
        assert "in item 3 of a fleet" in caught.value.__notes__
        assert list(actors.map([1, 2])) == [1, 2]


def test_a_walk_that_is_left_early(fleet: Any) -> None:
    with fleet(actor_work.scaled) as actors:
        results = actors.map(range(1000), 2)
        assert next(results) == 0
        results.close()
        assert list(actors.map([3], 2)) == [6]


@pytest.mark.parametrize("options", [{"workers": 0}, {"attempts": 0}, {"ahead": 0}, {"engine": "threads"}])
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(ValueError, match=r"a fleet has one|engine is"):
        Fleet(operator.mul, **{"engine": "processes", **options})


def test_more_actors_than_the_cluster_has(request: Any) -> None:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: the extra `ray` (240 MB)")
    request.getfixturevalue("cluster")
    with pytest.raises(ValueError, match="9 actors take a CPU each"):
        Fleet(operator.mul, engine="ray", workers=9)


@pytest.mark.parametrize("engine", [PROCESSES, ON_RAY])
def test_batches_through_a_saved_model(engine: str, tmp_path: Path, request: Any) -> None:
    if engine == "ray":
        request.getfixturevalue("cluster")
    paddle.seed(1)
    layer = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2))
    path = paddle.jit.save(layer, tmp_path / "m", input_spec=[InputSpec([None, 4])])
    batches = [np.random.default_rng(i).normal(size=(1 + i, 4)).astype("float32") for i in range(6)]
    found = list(predict(path, batches, workers=2, engine=engine))
    for x, y in zip(batches, found, strict=True):
        np.testing.assert_allclose(y.numpy(), layer(paddle.to_tensor(x)).numpy(), rtol=1e-6)
    named = predict(paddle.jit.load(path), ({"input": x} for x in batches[:1]), workers=1, engine=engine)
    np.testing.assert_array_equal(next(named).numpy(), found[0].numpy())


@pytest.mark.parametrize("engine", [PROCESSES, ON_RAY])
def test_search(engine: str, request: Any) -> None:
    if engine == "ray":
        request.getfixturevalue("cluster")
    trials = list(search(actor_work.loss, grid(lr=[0.1, 0.2], depth=[1, 2, 3]), workers=2, engine=engine))
    assert [t.configuration["depth"] for t in trials] == [1, 2, 3] * 2
    assert trials[2].error == "ValueError: too deep"
    assert best(trials) == Trial({"lr": 0.1, "depth": 1}, 1.0)
    assert best(trials, highest=True).configuration == {"lr": 0.2, "depth": 2}
    data = np.full(1000, 3, "float32")
    found = search(actor_work.distance, draw(6, shift=[1.0, 3.0]), shared=data, workers=2, engine=engine)
    assert best(found) == Trial({"shift": 3.0}, 0.0)


def test_draws_are_those_of_the_seed() -> None:
    one = list(draw(50, 7, lr=(1e-4, 1e-1), depth=[2, 3]))
    assert one == list(draw(50, 7, lr=(1e-4, 1e-1), depth=[2, 3]))
    assert all(1e-4 <= c["lr"] <= 1e-1 and c["depth"] in (2, 3) for c in one)
    assert sum(c["lr"] < 3e-3 for c in one) > 10
    with pytest.raises(ValueError, match="no trial has reached a number"):
        best([Trial({}, error="x")])
