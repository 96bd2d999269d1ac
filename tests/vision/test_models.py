"""Networks for images: shapes, names of their state, eager and static alike, a step that trains."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.vision import models

R = np.random.default_rng(0)


def count(model):
    return sum(int(np.prod(p.shape)) for p in model.parameters())


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (models.LeNet, 61610),
        (models.resnet18, 11689512),
        (lambda: models.mobilenet_v2(), 3504872),
    ],
)
@pytest.mark.proves("vision.models.resnet18")
def test_models_have_as_many_parameters_as_published(make, parameters):
    assert count(make()) == parameters


def test_names_of_the_state():
    names = list(models.resnet18(num_classes=2).state_dict())
    assert names[:6] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1._mean",
        "bn1._variance",
        "layer1.0.conv1.weight",
    ]
    assert "layer2.0.downsample.0.weight" in names
    assert names[-2:] == ["fc.weight", "fc.bias"]
    assert "features.3.weight" in models.LeNet().state_dict()


@pytest.mark.slow
def test_a_residual_network_is_the_same_eager_and_static():
    model = models.resnet18(num_classes=3)
    model.eval()
    x = paddle.to_tensor(R.normal(size=(2, 3, 32, 32)).astype("float32"))
    want = model(x).numpy()
    assert want.shape == (2, 3)
    static = paddle.jit.to_static(model, full_graph=True)
    np.testing.assert_allclose(static(x).numpy(), want, rtol=1e-4, atol=1e-4)


def test_a_bottleneck_network_gives_features_without_classes():
    model = models.ResNet(models.resnet.BottleneckBlock, 50, width=4, num_classes=0, with_pool=False)
    model.eval()
    assert model(paddle.ones([1, 3, 32, 32])).shape == [1, 2048, 1, 1]


def test_lenet_learns_a_batch():
    paddle.seed(1)
    model = models.LeNet(2)
    adam = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    x, y = paddle.to_tensor(R.normal(size=(8, 1, 28, 28)).astype("float32")), paddle.to_tensor([0, 1] * 4)
    losses = []
    for _ in range(10):
        loss = paddle.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.slow
def test_vgg_features_end_small():
    model = models.VGG(models.vgg.features(11, True), num_classes=0, with_pool=False)
    model.eval()
    assert model(paddle.ones([1, 3, 32, 32])).shape == [1, 512, 1, 1]


@pytest.mark.parametrize("name", ["resnet18", "vgg11", "mobilenet_v2"])
def test_nothing_is_downloaded(name):
    with pytest.raises(RuntimeError, match=rf"{name}\(pretrained=True\): nothing is downloaded here"):
        getattr(models, name)(pretrained=True)


def test_what_is_not_there_is_said():
    with pytest.raises(ValueError, match="depth must be one of 18, 34, 50"):
        models.ResNet(models.resnet.BasicBlock, 19)
    with pytest.raises(NotImplementedError, match="groups=2 is not supported"):
        models.ResNet(models.resnet.BottleneckBlock, 50, groups=2)
    with pytest.raises(ValueError, match="resnet18 and resnet34 have no other width"):
        models.ResNet(models.resnet.BasicBlock, 18, width=128)
