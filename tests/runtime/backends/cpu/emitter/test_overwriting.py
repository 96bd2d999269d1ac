"""Next values of parameters take the memory of the values before, where nobody else holds that."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from tests.in_threads import in_threads

SIZE = 40


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "native")


class Training:
    """Two layers, an optimizer and a step of theirs, eager or static."""

    def __init__(self, optimizer: str = "Adam", *, static: bool = True, size: int = SIZE, **options: Any):
        paddle.seed(3)
        self.net = paddle.nn.Sequential(
            paddle.nn.Linear(size, size), paddle.nn.Tanh(), paddle.nn.Linear(size, size, bias_attr=False)
        )
        self.optimizer = getattr(paddle.optimizer, optimizer)(
            learning_rate=0.01, parameters=self.net.parameters(), **options
        )
        self.step: Callable[[Any], Any] = paddle.jit.to_static(self.run, full_graph=True) if static else self.run
        self.x = paddle.to_tensor(np.random.default_rng(0).normal(size=(3, size)).astype("float32"))

    def run(self, x: Any) -> Any:
        loss = (self.net(x) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)
        return loss

    def alone(self) -> Training:
        """Make two steps, and say that no tensor has views, which would have to see what is written."""
        stepped(self, self)
        for t in self.tensors():
            t.storage_version = None
        return self

    def tensors(self) -> list[Any]:
        """Return parameters and what the optimizer keeps for them, but its numbers."""
        state = [t for slots in self.optimizer._accumulators.values() for t in slots.values()]
        return [t for t in (*self.net.parameters(), *state) if t.ndim]

    def arrays(self) -> list[np.ndarray]:
        return [t.payload.copy() for t in self.tensors()]

    def places(self) -> list[int]:
        return [t.payload.ctypes.data for t in self.tensors()]


def stepped(*all: Training) -> None:
    for one in all:
        one.step(one.x)


def close(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)


OPTIMIZERS = {
    "SGD": {}, "Momentum": {}, "nesterov": {"use_nesterov": True}, "Adam": {}, "amsgrad": {"amsgrad": True},
    "AdamW": {"weight_decay": 0.1}, "Adagrad": {}, "RMSProp": {}, "Adadelta": {}, "Adamax": {}, "NAdam": {},
    "RAdam": {},
}  # fmt: skip
NAMES = {"nesterov": "Momentum", "amsgrad": "Adam"}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_all_stay_where_they_are_with_the_values_of_eager_mode(kind: str) -> None:
    static, eager = (Training(NAMES.get(kind, kind), static=s, **OPTIMIZERS[kind]) for s in (True, False))
    stepped(static, eager)
    places = static.places()
    for _ in range(4):
        stepped(static, eager)
    assert static.places() == places
    close(static.arrays(), eager.arrays())


CLIPS = {
    "global": paddle.nn.ClipGradByGlobalNorm(0.01), "norm": paddle.nn.ClipGradByNorm(0.01),
    "value": paddle.nn.ClipGradByValue(0.001),
}  # fmt: skip


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("size", [SIZE, 200])
def test_with_clipping_and_decay(clip: str, size: int) -> None:
    given = {"size": size, "grad_clip": CLIPS[clip], "weight_decay": 0.01}
    static, eager = (Training("Momentum", static=s, **given) for s in (True, False))
    stepped(static, eager)
    places = static.places()
    for _ in range(3):
        stepped(static, eager)
    assert static.places() == places
    close(static.arrays(), eager.arrays())


def test_any_number_of_threads_gives_the_same_bits() -> None:
    found: list[list[np.ndarray]] = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        training = Training(size=300)
        for _ in range(4):
            training.step(training.x)
        found.append(training.arrays())
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True))


def test_every_cpu(each_cpu: str) -> None:
    static, eager = (Training(static=s) for s in (True, False))
    for _ in range(3):
        stepped(static, eager)
    close(static.arrays(), eager.arrays())


# ---- somebody else holds the array ----------------------------------------------------------------------------------
HELD: dict[str, Callable[[Any], Any]] = {
    "the array": lambda t: t.payload,
    "a view of the array": lambda t: t.payload[3:],
    "a view of a view": lambda t: t.payload[3:].T[:2],
    "a buffer": lambda t: memoryview(t.payload),
    "a tensor on the array": lambda t: paddle.to_tensor(0.0).__class__(t.payload),
    "a list": lambda t: [t.payload],
}


@pytest.mark.parametrize("number", [0, 3, 4])
@pytest.mark.parametrize("kind", HELD)
def test_what_is_held_stays_as_it_was(kind: str, number: int) -> None:
    training = Training().alone()
    held = HELD[kind](training.tensors()[number])
    before = np.array(getattr(held, "payload", held))
    training.step(training.x)
    np.testing.assert_array_equal(np.array(getattr(held, "payload", held)), before)
    del held
    places = training.places()
    training.step(training.x)
    assert training.places() == places


def test_a_state_dict_that_is_held_follows_as_in_eager_mode() -> None:
    def followed(static: bool) -> list[bool]:
        training = Training(static=static)
        training.step(training.x)
        kept = {k: v for k, v in training.net.state_dict().items()}
        copies = {k: v.clone() for k, v in kept.items()}
        training.step(training.x)
        return [bool((kept[k] == p).all()) for k, p in training.net.named_parameters()] + [
            bool((copies[k] == p).any()) for k, p in training.net.named_parameters()
        ]

    assert followed(True) == followed(False) == [True] * 3 + [False] * 3


def test_memory_of_somebody_else_is_not_written() -> None:
    training = Training().alone()
    foreign = bytearray(np.ones((SIZE, SIZE), "float32").tobytes())
    training.net[0].weight.payload = np.frombuffer(foreign, "float32").reshape(SIZE, SIZE)
    before = bytes(foreign)
    training.step(training.x)
    assert bytes(foreign) == before


def test_a_read_only_array_is_not_written() -> None:
    training = Training().alone()
    weight = training.net[0].weight
    weight.payload = weight.payload.copy()
    weight.payload.flags.writeable = False
    place, before = weight.payload, weight.payload.copy()
    training.step(training.x)
    np.testing.assert_array_equal(place, before)


def test_one_array_as_two_parameters_is_not_written_twice() -> None:
    training, eager = Training().alone(), Training(static=False).alone()
    first, second = training.net[0].weight, training.net[2].weight
    shared = first.payload.copy()
    first.payload = second.payload = shared
    eager.net[0].weight.payload, eager.net[2].weight.payload = shared.copy(), shared.copy()
    before = shared.copy()
    stepped(training, eager)
    np.testing.assert_array_equal(shared, before)
    close([first.payload, second.payload], [eager.net[0].weight.payload, eager.net[2].weight.payload])


def test_a_loss_outside_keeps_the_parameters_that_it_saw() -> None:
    def gradient(static: bool) -> np.ndarray:
        training = Training(static=static)
        training.step(training.x)
        weight = training.net[0].weight
        outside = (weight * weight * 3).sum()
        kept = outside
        with paddle.no_grad():
            training_step = training.step
        training_step(training.x)
        del kept
        return weight.numpy() if outside is None else outside.numpy()

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-5)


# ---- errors, threads ------------------------------------------------------------------------------------------------
def test_an_error_leaves_all_as_it_was() -> None:
    training = Training()

    @paddle.jit.to_static(full_graph=True)
    def checked(x: Any, limit: Any) -> Any:
        loss = training.run(x)
        if loss > limit:
            raise ValueError("too large")
        return loss

    checked(training.x, paddle.to_tensor(1e9))
    before = training.arrays()
    with pytest.raises(ValueError, match="too large"):
        checked(training.x, paddle.to_tensor(-1.0))
    after, again = training.arrays(), Training(static=False)
    stepped(again, again)
    assert not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))  # eager mode has stepped, too
    close(after, again.arrays())


def test_arrays_go_when_their_tensors_go() -> None:
    training = Training()
    for _ in range(3):
        training.step(training.x)
    arrays = [weakref.ref(t.payload) for t in training.tensors()]
    del training
    gc.collect()
    assert not any(ref() is not None for ref in arrays)


@pytest.mark.parametrize("size", [300, 1000])
def test_who_reads_beside_sees_whole_parameters(size: int) -> None:
    weight = paddle.create_parameter([size, size], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = paddle.optimizer.SGD(learning_rate=1.0, parameters=[weight])

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any) -> Any:
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    minus = -paddle.ones([size, size])
    step(minus)
    step(minus)
    weight.storage_version = None
    done, torn = threading.Event(), list[float]()

    def read() -> None:
        while not done.is_set():
            array = weight.payload
            torn.extend({float(array[0, 0]), float(array[-1, -1])} if array[0, 0] != array[-1, -1] else ())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        step(minus)
    done.set()
    reader.join()
    assert not torn
    assert float(weight.payload[0, 0]) == 202


def test_steps_of_two_threads_at_once_leave_finite_parameters() -> None:
    training = Training(size=200)
    training.step(training.x)
    in_threads(*[lambda: [training.step(training.x) for _ in range(50)]] * 3)
    assert all(np.isfinite(array).all() for array in training.arrays())


def test_a_large_gradient_is_no_part_of_its_product() -> None:
    training = Training(size=300)
    training.x = paddle.ones([200, 300])
    for _ in range(2):
        training.step(training.x)
    places = training.places()
    for _ in range(2):
        training.step(training.x)
    assert training.places() == places
