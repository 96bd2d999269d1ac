"""The state of optimizers through files: names as Paddle's, float32 twins of float16 parameters, the same next step."""

import numpy as np
import pytest

import dy2st as paddle


def trained(steps, multi_precision=True):
    linear = paddle.nn.Linear(2, 1, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False).to(dtype="float16")
    linear.weight.set_value(np.array([[1.0], [2.0]], "float16"))
    optimizer = paddle.optimizer.Momentum(0.01, parameters=linear.parameters(), multi_precision=multi_precision)
    more(linear, optimizer, steps)
    return linear, optimizer


def more(linear, optimizer, steps):
    for _ in range(steps):
        (linear(paddle.ones([1, 2], "float16")) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()


def test_twins_of_half_precision_stand_in_a_dict_of_their_own():
    _, optimizer = trained(1)
    state = optimizer.state_dict()
    assert set(state) == {"w_velocity_0", "master_weights"}
    assert list(state["master_weights"]) == ["w"]
    assert state["master_weights"]["w"].dtype == paddle.float32


def test_training_goes_on_after_loading_as_if_nothing_had_been(tmp_path):
    linear, optimizer = trained(3)
    paddle.save(optimizer.state_dict(), tmp_path / "m.pdopt")
    paddle.save(linear.state_dict(), tmp_path / "m.pdparams")
    other, again = trained(0)
    other.set_state_dict(paddle.load(tmp_path / "m.pdparams"))
    again.set_state_dict(paddle.load(tmp_path / "m.pdopt"))
    for net, o in ((linear, optimizer), (other, again)):
        more(net, o, 2)
    np.testing.assert_array_equal(other.weight.numpy(), linear.weight.numpy())
    masters = [o.state_dict()["master_weights"]["w"].numpy() for o in (optimizer, again)]
    np.testing.assert_array_equal(*masters)


@pytest.mark.parametrize(
    ("make", "slots"),
    [
        (paddle.optimizer.Momentum, {"velocity"}),
        (paddle.optimizer.Adam, {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}),
        (paddle.optimizer.Adamax, {"moment", "inf_norm", "beta1_pow_acc"}),
        (paddle.optimizer.Adadelta, {"_avg_squared_grad", "_avg_squared_update"}),
        (paddle.optimizer.Rprop, {"prevs", "learning_rates"}),
    ],
)
def test_slots_have_the_names_of_paddle(make, slots):
    linear = paddle.nn.Linear(2, 1, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False)
    optimizer = make(0.01, parameters=linear.parameters())
    linear(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert set(optimizer.state_dict()) == {f"w_{slot}_0" for slot in slots}
