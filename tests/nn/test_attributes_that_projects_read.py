"""Attributes of layers that begin with "_" and that projects read, as Paddle's layers have them."""

import dy2st as paddle


def test_layers_keep_what_their_parameters_were_made_by():
    attr = paddle.ParamAttr(name="kept_w")
    linear = paddle.nn.Linear(2, 3, weight_attr=attr, bias_attr=False)
    assert linear._weight_attr is attr
    assert linear._bias_attr is False
    conv = paddle.nn.Conv2D(2, 3, 1, weight_attr=None, bias_attr=False)
    assert (conv._param_attr, conv._bias_attr, conv._stride) == (None, False, 1)
    norm = paddle.nn.BatchNorm2D(3, bias_attr=False)
    assert (norm._weight_attr, norm._bias_attr, norm._num_features) == (None, False, 3)
    assert paddle.nn.Embedding(5, 2)._size == [5, 2]
