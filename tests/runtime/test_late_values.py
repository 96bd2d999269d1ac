"""Large new parameters get their initial values when somebody asks for them: the same ones, whenever that is."""

import copy
import pickle

import numpy as np
import pytest

import dy2st as paddle
from dy2st.functions.core import assigning
from dy2st.nn import create_parameter as making
from dy2st.runtime.eager.lazy_init import _late
from tests.in_threads import in_threads

SIDE = 200


def is_late(x):
    return _late(x) is not None


@pytest.fixture
def at_once(monkeypatch):
    """Return a function that makes something with all values drawn at once."""

    def make(what):
        with monkeypatch.context() as patched:
            patched.setattr(making, "LATE_FROM", 2**60)
            return what()

    return make


def model():
    paddle.seed(11)
    net = paddle.nn.Sequential(paddle.nn.Linear(SIDE, SIDE), paddle.nn.Conv2D(32, 64, 5), paddle.nn.Linear(SIDE, SIDE))
    return net, paddle.rand([3]).numpy()


def test_the_values_are_those_that_would_have_been_drawn_at_once(at_once):
    (now, drawn), (late, drawn_late) = at_once(model), model()
    assert is_late(late[0].weight)
    assert not is_late(now[0].weight)
    assert np.array_equal(drawn, drawn_late)
    paddle.seed(3)
    for a, b in zip(reversed(now.parameters()), reversed(late.parameters()), strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
        assert (a.shape, a.dtype, a.stop_gradient) == (b.shape, b.dtype, b.stop_gradient)
        assert not is_late(b)


@pytest.mark.parametrize(
    "initializer",
    [paddle.nn.initializer.Normal(1.0, 2.0), paddle.nn.initializer.Uniform(-2.0, 1.0),
     paddle.nn.initializer.TruncatedNormal(), paddle.nn.initializer.KaimingNormal(),
     paddle.nn.initializer.KaimingUniform(), paddle.nn.initializer.XavierNormal(),
     paddle.nn.initializer.Constant(2.0), paddle.nn.initializer.Orthogonal()],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_every_initializer_draws_as_many_tensors_as_it_says(initializer):
    paddle.seed(5)
    before = paddle.get_rng_state()[0][1]
    initializer.value((SIDE, SIDE), paddle.float32)
    assert not initializer.draws_once or paddle.get_rng_state()[0][1] == before + 1


def test_a_model_that_is_loaded_into_draws_nothing(monkeypatch):
    net, _ = model()
    state = {name: np.full(x.shape, 0.5, "float32") for name, x in net.state_dict().items()}
    fresh, _ = model()
    monkeypatch.setattr(paddle.nn.initializer.Uniform, "value", lambda *_: pytest.fail("it was drawn"))
    fresh.set_state_dict(state)
    assert all((x.numpy() == 0.5).all() for x in fresh.parameters())
    assert [x.inplace_version for x in fresh.parameters()] == [1] * len(fresh.parameters())


def test_a_write_that_fails_leaves_the_initial_values(at_once, monkeypatch):
    (now, _), (late, _) = at_once(model), model()
    x = late[0].weight

    def fail(*_):
        raise TypeError("not written")

    with monkeypatch.context() as patched:
        patched.setattr(assigning, "without_history", fail)
        with pytest.raises(TypeError, match="not written"):
            x.set_value(paddle.zeros([SIDE, SIDE]))
    with pytest.raises(ValueError, match=r"set_value: the value has shape \[2\]"):
        x.set_value(paddle.zeros([2]))
    assert np.array_equal(x.numpy(), now[0].weight.numpy())


def test_copies_have_the_same_values(at_once):
    now, _ = at_once(model)
    expected = now[0].weight.numpy()
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.detach(), lambda x: x.clone()):
        assert np.array_equal(copied(model()[0][0].weight).numpy(), expected)


def test_another_payload_stays():
    net, _ = model()
    x = net[0].weight
    x.payload = np.ones((SIDE, SIDE), "float32")
    view = x[0]
    x.set_value(np.full((SIDE, SIDE), 2.0, "float32"))
    assert view.numpy().tolist() == [2.0] * SIDE


def test_threads_get_one_and_the_same(monkeypatch):
    net, _ = model()
    found: list[int] = []
    in_threads(*[lambda: found.append(id(net[0].weight.payload))] * 6)
    assert len(set(found)) == 1


def test_what_is_current_later_does_not_matter(at_once):
    now, _ = at_once(model)
    net, _ = model()
    with paddle.amp.auto_cast(level="O2"), paddle.no_grad():
        assert np.array_equal(net[0].weight.numpy(), now[0].weight.numpy())
    net, _ = model()
    x = paddle.ones([2, SIDE])
    assert np.allclose(paddle.jit.to_static(net[0], full_graph=True)(x).numpy(), now[0](x).numpy(), rtol=1e-5)


def test_an_initializer_of_the_users_draws_at_once():
    class Twice(paddle.nn.initializer.Normal):
        def value(self, shape, dtype):
            return super().value(shape, dtype) + super().value(shape, dtype)

    assert not is_late(paddle.create_parameter([SIDE, SIDE], "float32", default_initializer=Twice()))


def test_no_other_tensor_lacks_a_payload():
    x = paddle.ones([2])
    del x.payload
    with pytest.raises(AttributeError, match="payload"):
        x.payload
