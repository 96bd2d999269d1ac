"""Attributes of layers that begin with "_" and that projects read, as Paddle's layers have them."""

import numpy as np

import dy2st as paddle


def test_layers_keep_what_their_parameters_were_made_by():
    attr = paddle.ParamAttr(name="kept_w")
    linear = paddle.nn.Linear(2, 3, weight_attr=attr, bias_attr=False)
    assert linear._weight_attr is attr
    assert linear._bias_attr is False
    conv = paddle.nn.Conv2D(2, 3, 1, weight_attr=None, bias_attr=False)
    assert (conv._param_attr, conv._bias_attr, conv._stride) == (None, False, (1, 1))
    norm = paddle.nn.BatchNorm2D(3, bias_attr=False)
    assert (norm._weight_attr, norm._bias_attr, norm._num_features) == (None, False, 3)
    assert paddle.nn.Embedding(5, 2)._size == [5, 2]


class NamedPool(paddle.nn.AdaptiveAvgPool2D):
    def forward(self, x):
        size, layout = self._output_size, self._data_format
        return paddle.nn.functional.adaptive_avg_pool2d(x, output_size=size, data_format=layout, name=self._name)


def test_the_name_that_layers_of_the_library_keep():
    x = paddle.arange(16.0).reshape([1, 1, 4, 4])
    for call in (NamedPool(2), paddle.jit.to_static(NamedPool(2), full_graph=True)):
        assert call(x).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert paddle.nn.ReLU()._name is None
    assert not hasattr(paddle.nn.Layer(), "_name")


class Summed(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.convs = paddle.nn.LayerList([paddle.nn.Linear(3, 3) for _ in range(3)])
        self.steps = paddle.nn.Sequential(*(paddle.nn.Linear(3, 3) for _ in range(3)))

    def forward(self, x):
        y = self.convs[0](x)
        for conv in self.convs[1:]:
            y += conv(x)
        return self.steps[:2](y)


def test_slices_of_lists_of_layers_in_a_program():
    net = Summed()
    static = paddle.jit.to_static(net.forward, full_graph=True)
    for n in (2, 3, 4):
        x = paddle.rand([n, 3])
        assert paddle.allclose(static(x), net(x)).item()
    assert len(static.program_cache) == 1
    net.convs[2] = paddle.nn.Linear(3, 3)
    net.convs.append(paddle.nn.Linear(3, 3))
    assert paddle.allclose(static(x), net(x)).item()
    static(x).sum().backward()
    grads = [p.grad.numpy() for p in net.convs.parameters()]
    net.clear_gradients()
    net(x).sum().backward()
    for p, grad in zip(net.convs.parameters(), grads, strict=True):
        assert abs(p.grad.numpy() - grad).max() < 1e-5


def test_widths_of_padding_that_numpy_computed():
    width, x = (np.prod([5, 1]) - 1) // 2, paddle.arange(3.0).reshape([1, 1, 3])
    assert paddle.nn.Pad1D(width, mode="reflect")(x).tolist() == [[[2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0]]]
    assert paddle.nn.functional.pad(x, width).shape == [1, 1, 7]
