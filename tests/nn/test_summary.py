"""`summary`: rows of the layers, counts of parameters, nothing of the network changed."""

import pytest

import dy2st as paddle
from dy2st import nn


@pytest.mark.proves("summary")
def test_rows_and_counts(capsys):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias_attr=False))
    net[2].weight.stop_gradient = True
    assert paddle.summary(net, (None, 4)) == {"total_params": 21, "trainable_params": 15}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[3:6]] == [
        ["Linear-1", "[[1,", "4]]", "[1,", "3]", "15"],
        ["ReLU-2", "[[1,", "3]]", "[1,", "3]", "0"],
        ["Linear-3", "[[1,", "3]]", "[1,", "2]", "6"],
    ]
    assert lines[-2] == "Non-trainable params: 6"


def test_the_network_is_as_it_was(capsys):
    net = nn.Sequential(nn.BatchNorm1D(3), nn.Dropout())
    net[1].eval()
    before = net[0]._mean.tolist()
    paddle.summary(net, [[2, 3]])
    assert (net.training, net[0].training, net[1].training) == (True, True, False)
    assert net[0]._mean.tolist() == before
    assert not net[0]._forward_post_hooks
    assert "BatchNorm1D-1" in capsys.readouterr().out


def test_inputs_of_any_form(capsys):
    class Both(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(5, 2), nn.Linear(2, 1)

        def forward(self, ids, x):
            return {"y": self.out(self.table(ids) + x), "name": "both"}

    net = Both()
    want = {"total_params": 13, "trainable_params": 13}
    assert paddle.summary(net, [(3,), (3, 2)], dtypes=["int64", "float32"]) == want
    ids, x = paddle.to_tensor([1, 2]), paddle.ones([2, 2])
    assert paddle.summary(net, input=[ids, x]) == want
    assert paddle.summary(net, input={"ids": ids, "x": x}) == want
    assert paddle.summary(nn.ReLU(), input=x)["total_params"] == 0
    assert paddle.summary(nn.ReLU(), paddle.static.InputSpec([None, 2]))["total_params"] == 0


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: paddle.summary(3, (1,)), TypeError, "summary needs a Layer, not int"),
        (lambda: paddle.summary(nn.ReLU()), ValueError, "give one of input_size and input"),
        (lambda: paddle.summary(nn.ReLU(), [(1,), (2,)], dtypes=["int64"]), ValueError, "1 dtypes for 2 inputs"),
    ],
)
def test_what_it_needs_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
