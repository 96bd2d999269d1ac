"""Names that begin with "_" or lie off the documented paths, and that files of Paddle projects import."""

import tarfile
import zipfile

import numpy as np
import pytest

import dy2st as paddle


def test_the_package_is_under_its_own_name_and_layers_under_nn_layer():
    assert paddle.paddle is paddle
    from dy2st.nn.layer import Identity, Layer, Sigmoid

    assert (Identity, Sigmoid, Layer) == (paddle.nn.Identity, paddle.nn.Sigmoid, paddle.nn.Layer)
    from dy2st.nn.layer.layers import HookRemoveHelper

    hook = paddle.nn.Linear(1, 1).register_forward_post_hook(lambda *_: None)
    assert isinstance(hook, HookRemoveHelper)
    with pytest.raises(AttributeError, match=r"'dy2st\.nn\.layer' has no attribute 'Identitty'"):
        _ = paddle.nn.layer.Identitty


def test_masks_of_attention_become_what_is_added_to_scores():
    from dy2st.nn.layer.transformer import _convert_attention_mask

    assert _convert_attention_mask(None, "float32") is None
    scores = paddle.to_tensor([0.5, -2.0])
    assert _convert_attention_mask(scores, scores.dtype) is scores
    for mask in (paddle.to_tensor([True, False]), paddle.to_tensor([1, 0])):
        assert _convert_attention_mask(mask, "float32").tolist() == [0.0, -1e9]
    assert _convert_attention_mask(scores, "float64").tolist() == [0.5, -2.0]


def test_one_attribute_of_parameters_for_each_part():
    from dy2st.nn.layer.transformer import _convert_param_attr_to_list

    named = _convert_param_attr_to_list(paddle.ParamAttr(name="w", learning_rate=0.5), 2)
    assert [(attr.name, attr.learning_rate) for attr in named] == [("w_0", 0.5), ("w_1", 0.5)]
    assert _convert_param_attr_to_list(False, 3) == [False] * 3
    assert [attr.name for attr in _convert_param_attr_to_list(["a", None], 2)] == ["a", None]
    with pytest.raises(ValueError, match="3 attributes are given for 2 parts"):
        _convert_param_attr_to_list([None] * 3, 2)


class Doubled(paddle.nn.layer.conv._ConvNd):
    """A convolution with forward passes of its own, as projects derive them from the base class."""

    def __init__(self, transposed):
        super().__init__(2, 4, 3, transposed, 2, stride=2, padding=1, groups=2, data_format="NCHW")
        self.transposed = transposed

    def forward(self, x):
        conv = paddle.nn.functional.conv2d_transpose if self.transposed else paddle.nn.functional.conv2d
        how = {"stride": self._stride, "padding": self._padding, "dilation": self._dilation, "groups": self._groups}
        return conv(x * 2, self.weight, self.bias, **how)


@pytest.mark.parametrize("transposed", [False, True])
def test_layers_derived_from_the_base_of_convolutions(transposed):
    kind = paddle.nn.Conv2DTranspose if transposed else paddle.nn.Conv2D
    ours, theirs = Doubled(transposed), kind(2, 4, 3, stride=2, padding=1, groups=2)
    assert isinstance(theirs, paddle.nn.layer.conv._ConvNd)
    assert (theirs._stride, theirs._kernel_size, theirs._dilation) == ((2, 2), (3, 3), (1, 1))
    theirs.set_state_dict(ours.state_dict())
    x = paddle.rand([1, 2, 5, 5])
    for call in (ours, paddle.jit.to_static(ours, full_graph=True)):
        assert np.allclose(call(x).numpy(), theirs(x * 2).numpy(), atol=1e-6)
    assert isinstance(paddle.nn.InstanceNorm1D(2), paddle.nn.layer.norm._InstanceNormBase)


def test_archives_are_unpacked_beside_themselves(tmp_path):
    from dy2st.dataset.common import md5file

    from dy2st.utils.download import _decompress, _md5check

    (tmp_path / "a.txt").write_text("first")
    assert md5file(tmp_path / "a.txt") == "8b04d5e3775d298e78455efc5ca404d5"
    assert _md5check(str(tmp_path / "a.txt"))
    assert not _md5check(str(tmp_path / "a.txt"), "0" * 32)
    with tarfile.open(tmp_path / "one.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a.txt", "inner/a.txt")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("b.txt", "b")
        archive.writestr("c.txt", "c")
    assert _decompress(str(tmp_path / "one.tar.gz")) == str(tmp_path / "inner")
    assert (tmp_path / "inner/a.txt").read_text() == "first"
    assert _decompress(str(tmp_path / "two.zip")) == str(tmp_path / "two")
    assert (tmp_path / "two/c.txt").read_text() == "c"
    with pytest.raises(TypeError, match="neither a tar nor a zip archive"):
        _decompress(str(tmp_path / "a.txt"))
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.add(tmp_path / "a.txt", "../outside.txt")
    with pytest.raises(tarfile.OutsideDestinationError):
        _decompress(str(tmp_path / "bad.tar"))


def test_one_endpoint_of_each_host():
    from dy2st.utils.download import _get_unique_endpoints

    assert _get_unique_endpoints(["b:2", "a:9", "b:1"]) == {"a:9", "b:1"}


def test_versions_are_asked_of_the_release_whose_interface_this_is():
    assert paddle.utils.require_version("2.4", "3.9.0") is None
    with pytest.raises(RuntimeError, match=r"PaddlePaddle 4\.0 at least is wanted; the interface here is that of 3"):
        paddle.utils.require_version("4.0")
    with pytest.raises(RuntimeError, match=r"PaddlePaddle 1\.0 to 2\.1 is wanted"):
        paddle.utils.require_version("1.0", "2.1")
    with pytest.raises(ValueError, match=r"'2\.x' is not a version"):
        paddle.utils.require_version("2.x")
    with pytest.raises(TypeError, match="a version is a text, not 2"):
        paddle.utils.require_version(2)


def test_gathered_of_one_process():
    from dy2st.hapi.model import _all_gather

    assert _all_gather(paddle.to_tensor([[1, 2]])).tolist() == [[1, 2]]


def test_pictures_are_read_in_colour(tmp_path):
    image = pytest.importorskip("PIL.Image")
    from dy2st.vision.datasets.folder import pil_loader

    image.new("L", (2, 3), 7).save(tmp_path / "grey.png")
    assert np.asarray(pil_loader(str(tmp_path / "grey.png"))).tolist() == [[[7] * 3] * 2] * 3


def test_activations_are_found_by_looking_through_their_module():
    by_name = {name.lower(): name for name in vars(paddle.nn.layer.activation)}
    assert getattr(paddle.nn.layer.activation, by_name["relu"]) is paddle.nn.ReLU
    assert {"sigmoid", "hardswish", "leakyrelu"} <= by_name.keys()


def test_operators_that_take_attributes_as_pairs():
    x = paddle.to_tensor([1.0, 3.0, 2.0])
    values, places = paddle._legacy_C_ops.argsort(x, "axis", 0, "descending", True)
    assert (values.tolist(), places.tolist()) == ([3.0, 2.0, 1.0], [1, 2, 0])
    static = paddle.jit.to_static(lambda x: paddle._legacy_C_ops.argsort(x, "axis", 0), full_graph=True)
    assert static(x)[1].tolist() == [0, 2, 1]
    with pytest.raises(TypeError, match="argsort takes tensors, then the name and the value of each attribute"):
        paddle._legacy_C_ops.argsort(x, "axis")
    with pytest.raises(AttributeError, match="no_such_operator"):
        _ = paddle._legacy_C_ops.no_such_operator


def test_initializers_are_handed_the_block_of_a_parameter():
    weight = paddle.nn.Linear(2, 2).weight
    assert isinstance(weight.block, type(paddle.static.default_main_program().global_block()))
    paddle.nn.initializer.Constant(3.0)(weight, weight.block)
    assert weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
