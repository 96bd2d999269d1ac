"""Layers with weights."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from tests.peers.paddle_files.cases import R, case, f32, spec

IMAGE = [spec("image", [None, 1, 12, 12])]


@case(IMAGE, [f32(2, 1, 12, 12)], [f32(1, 1, 12, 12)])
class LeNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(3, 4, 3), nn.ReLU(), nn.AvgPool2D(2)
        )
        self.fc = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 5))

    def forward(self, image):
        return F.softmax(self.fc(paddle.flatten(self.features(image), 1)))


class Block(nn.Layer):
    def __init__(self, n: int, m: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2D(n, m, 3, stride, 1, bias_attr=False), nn.BatchNorm2D(m)
        self.conv2, self.bn2 = nn.Conv2D(m, m, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(m)
        self.down = nn.Sequential(nn.Conv2D(n, m, 1, stride, bias_attr=False), nn.BatchNorm2D(m)) if n != m else None

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


@case([spec("image", [None, 3, None, None])], [f32(2, 3, 16, 16)], [f32(1, 3, 13, 17)])
class ResNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 4, 7, 2, 3, bias_attr=False), nn.BatchNorm2D(4), nn.ReLU(),
                                  nn.MaxPool2D(3, 2, 1))  # fmt: skip
        self.body = nn.Sequential(Block(4, 4, 1), Block(4, 6, 2))
        self.pool, self.fc = nn.AdaptiveAvgPool2D(1), nn.Linear(6, 3)

    def forward(self, image):
        return self.fc(paddle.flatten(self.pool(self.body(self.stem(image))), 1))


@case([spec("image", [None, 3, None, None])], [f32(2, 3, 12, 12)], [f32(1, 3, 9, 10)])
class MobileNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(3, 6, 3, 2, 1), nn.BatchNorm2D(6), nn.ReLU6(),
            nn.Conv2D(6, 6, 3, 1, 1, groups=6), nn.BatchNorm2D(6), nn.Hardswish(), nn.Conv2D(6, 4, 1),
            nn.Conv2D(4, 4, 3, padding="SAME", dilation=2), nn.Hardsigmoid(), nn.AdaptiveAvgPool2D([2, 3]),
        )  # fmt: skip

    def forward(self, image):
        return self.body(image)


@case([spec("x", [None, 4, None, None])], [f32(2, 4, 6, 5)], [f32(3, 4, 3, 7)])
class Norms(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.group, self.instance, self.batch = nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.BatchNorm2D(4)
        self.layer, self.prelu = nn.LayerNorm(4), nn.PReLU(4)

    def forward(self, x):
        y = self.layer(paddle.transpose(x, [0, 2, 3, 1]))
        n = F.normalize(x, axis=1)
        return self.group(x), self.instance(x), self.batch(x), y, self.prelu(x), n


TOKENS = [spec("ids", [None, None], "int64"), spec("x", [None, None, 4])]


@case(TOKENS, [R.integers(0, 9, (2, 5)), f32(2, 5, 4)], [R.integers(0, 9, (3, 2)), f32(3, 2, 4)])
class Recurrent(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4, padding_idx=2)
        self.lstm, self.gru = nn.LSTM(4, 3, 2, "bidirect"), nn.GRU(6, 5)
        self.rnn = nn.SimpleRNN(5, 2, activation="relu")

    def forward(self, ids, x):
        y, (h, c) = self.lstm(self.embed(ids) + x)
        z, last = self.gru(y)
        w, _ = self.rnn(z)
        return y, h, c, z, last, w


@case([spec("x", [None, None, 8]), spec("mask", [None, 1, 1, None], "bool")],
      [f32(2, 5, 8), R.random((2, 1, 1, 5)) < 0.8], [f32(1, 3, 8), np.ones((1, 1, 1, 3), bool)])  # fmt: skip
class Transformer(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.1, "gelu"), 2)

    def forward(self, x, mask):
        return self.encoder(x, mask).mean(axis=1)


@case([spec("x", [None, 2, 6, 6]), spec("grid", [None, 4, 5, 2])], [f32(1, 2, 6, 6), f32(1, 4, 5, 2) * 0.5])
class Sampling(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Conv2DTranspose(2, 3, 3, 2, 1, output_padding=1)
        self.line, self.volume = nn.Conv1D(2, 3, 3), nn.Conv3D(2, 2, [1, 2, 2])

    def forward(self, x, grid):
        return (self.up(x), self.line(x[:, :, 0]), self.volume(x.unsqueeze(2)), F.grid_sample(x, grid),
                F.dropout(x, 0.5, training=False), F.dropout(x, 0.5, training=False, mode="downscale_in_infer"),
                F.channel_shuffle(x, 2), F.temporal_shift(x, 1, 0.2))  # fmt: skip


@case([spec("x", [None, 4]), spec("label", [None, 1], "int64")], [f32(3, 4), np.array([[1], [3], [0]])])
class Loss(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, label):
        y = self.fc(x)
        return (F.cross_entropy(y, label), F.mse_loss(y, x), F.binary_cross_entropy_with_logits(y, F.sigmoid(x)),
                F.smooth_l1_loss(y, x), F.kl_div(F.log_softmax(y), F.softmax(x)))  # fmt: skip
