"""Calls with an argument that the function reads from outside too, and that is written in place."""

import warnings

import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.errors import TraceError
from dy2st.jit.dispatch.fallback_warning import FallbackWarning

T = paddle.to_tensor


class Sum(nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", T([1.0, 2.0]))

    def forward(self, x):
        self.total.add_(x)
        return x + self.total

    def into(self, x):
        x.add_(self.total.sum())
        return self.total * 1.0


WAYS = {
    "itself": lambda layer: layer.total,
    "view": lambda layer: layer.total[:],
    "part": lambda layer: layer.total[1:],
}


@pytest.mark.parametrize("before", [0, 1, 2, 5])
@pytest.mark.parametrize("method", ["forward", "into"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_written_is_seen_under_both_names(way, method, before):
    eager, static = Sum(), Sum()
    call = paddle.jit.to_static(getattr(static, method))
    for _ in range(before):
        x = T([1.0, 1.0])
        assert call(x).tolist() == getattr(eager, method)(T([1.0, 1.0])).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(3):
            assert call(WAYS[way](static)).tolist() == getattr(eager, method)(WAYS[way](eager)).tolist()
            assert static.total.tolist() == eager.total.tolist()
    assert call(T([1.0, 1.0])).tolist() == getattr(eager, method)(T([1.0, 1.0])).tolist()


def test_the_reason_is_told():
    layer = Sum()
    call = paddle.jit.to_static(layer.forward)
    with pytest.warns(FallbackWarning, match="an argument shares memory with a tensor that the function also reads"):
        call(layer.total)
    whole = paddle.jit.to_static(Sum.forward, full_graph=True)
    with pytest.raises(TraceError, match="give it a clone"):
        whole(layer, layer.total)


def test_an_argument_that_is_read_only_may_be_state_too():
    layer = nn.Linear(2, 2)
    call = paddle.jit.to_static(lambda w, x: layer(x) + w, full_graph=True)
    x = T([[1.0, 2.0]])
    for _ in range(4):
        assert call(layer.weight, x).tolist() == (layer(x) + layer.weight).tolist()
