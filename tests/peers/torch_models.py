"""Modules of torch whose weights and outputs are fixtures, and numbers that stand for the weights of large ones."""

import zlib
from typing import Any

import numpy as np


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values of a tensor of a large module, made of its name: the same for whoever asks.

    `RandomState` is the generator whose stream NumPy keeps as it is.
    """
    if name.endswith("num_batches_tracked"):
        return np.zeros(shape, "int64")
    drawn = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape).astype("float32")
    if len(shape) == 1:
        around_one = name.endswith(("running_var", "weight"))
        return (1 + 0.1 * np.tanh(drawn) if around_one else 0.1 * drawn).astype("float32")
    return drawn / np.float32(np.sqrt(np.prod(shape[1:])))


def drawn(*shape: int) -> np.ndarray:
    """Return an input."""
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("float32")


def lenet(nn: Any) -> Any:
    """Return LeNet under the names that dy2st has."""
    convolutions = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
    )
    whole = nn.Sequential()
    whole.add_module("features", convolutions)
    whole.add_module("flat", nn.Flatten())
    whole.add_module("fc", nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)))
    return whole


def resnet18(nn: Any) -> Any:
    """Return ResNet-18 under torchvision's names."""

    class Block(nn.Module):
        def __init__(self, inner: int, outer: int, stride: int):
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.downsample = None
            if stride != 1:
                self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x: Any) -> Any:
            around = x if self.downsample is None else self.downsample(x)
            y = self.bn1(self.conv1(x)).relu()
            return (self.bn2(self.conv2(y)) + around).relu()

    whole = nn.Sequential()
    whole.add_module("conv1", nn.Conv2d(3, 64, 7, 2, 3, bias=False))
    whole.add_module("bn1", nn.BatchNorm2d(64))
    whole.add_module("relu", nn.ReLU())
    whole.add_module("maxpool", nn.MaxPool2d(3, 2, 1))
    for number, (inner, outer) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), 1):
        stage = nn.Sequential(Block(inner, outer, 1 if number == 1 else 2), Block(outer, outer, 1))
        whole.add_module(f"layer{number}", stage)
    whole.add_module("avgpool", nn.AdaptiveAvgPool2d(1))
    whole.add_module("flat", nn.Flatten())
    whole.add_module("fc", nn.Linear(512, 1000))
    return whole


LARGE = {"lenet": (lenet, (2, 1, 28, 28)), "resnet18": (resnet18, (1, 3, 64, 64))}
"""Of these there are names, shapes and outputs; their weights are `numbers`."""


def small(nn: Any) -> dict[str, tuple[Any, tuple[np.ndarray, ...]]]:
    """Return modules whose weights are small enough to be kept, with inputs."""
    steps, plain = drawn(2, 5, 3), drawn(2, 5, 8)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    norms = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ConvTranspose2d(4, 4, 2), nn.InstanceNorm2d(4, affine=True),
        nn.PReLU(4), nn.BatchNorm2d(4), nn.LayerNorm(6),
    )  # fmt: skip
    return {
        "lstm": (nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (steps,)),
        "lstm_projected": (nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True, proj_size=2), (steps,)),
        "gru": (nn.GRU(3, 4, 2, batch_first=True), (steps,)),
        "rnn": (nn.RNN(3, 4, batch_first=True, bias=False), (steps,)),
        "encoder_layer": (encoder, (plain,)),
        "encoder": (nn.TransformerEncoder(encoder, 2, nn.LayerNorm(8), enable_nested_tensor=False), (plain,)),
        "decoder_layer": (nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), (plain, drawn(2, 3, 8))),
        "attention": (nn.MultiheadAttention(8, 2, kdim=6, vdim=4, batch_first=True),
                      (plain, drawn(2, 3, 6), drawn(2, 3, 4))),
        "norms": (norms, (drawn(2, 3, 7, 7),)),
        "bilinear": (nn.Bilinear(3, 4, 2), (drawn(5, 3), drawn(5, 4))),
    }  # fmt: skip
