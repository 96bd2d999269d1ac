"""Where an operation raises by itself, a call leaves what eager mode had written until there."""

from typing import Any

import pytest

import dy2st as paddle


class Model(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.seen = 0, []
        self.register_buffer("mean", paddle.zeros([1]))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        for v in x:
            self.seen.append(v * 2)
            self.mean += v.detach()
            print("at", v)
            if v > 1:
                x = x[int(v) + 5]
        return x


def drawing(x):
    noise = paddle.rand([2])
    return (x + noise)[5]


totals = {"n": 0, "last": None}


def nested(x):
    totals["n"] += 1
    if x.sum() > 0:
        totals["last"] = x.sum().detach()
        x = x / (6 // (int(x.sum()) - 3))
    totals["n"] += 10
    return x


def trained(x):
    w = paddle.to_tensor([2.0], stop_gradient=False)
    (w * x).sum().backward()
    totals["last"] = w.grad
    return x[9]


@pytest.mark.parametrize("function", [Model(), drawing, nested, trained], ids=["layer", "random", "nested", "trained"])
def test_state_is_as_eager_leaves_it(function: Any) -> None:
    for values in ([1.0, 2.0], [-1.0, 0.5], [0.5, 0.25]):
        assert paddle.jit.verify(function, paddle.to_tensor(values)).check()


def test_it_is_printed_once_and_raised_at_the_users_line(capsys: pytest.CaptureFixture[str]) -> None:
    model = paddle.jit.to_static(Model(), full_graph=True)
    for turn in (1, 2, 3):
        with pytest.raises(IndexError, match="out of range") as caught:
            model(paddle.to_tensor([2.0, 3.0]))
        assert capsys.readouterr().out.count("at Tensor") == 1
        assert (model.calls, len(model.seen)) == (turn, turn)
        assert caught.traceback[-1].name == "forward"
