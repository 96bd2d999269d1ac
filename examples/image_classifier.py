"""ResNet-18, ResNet-50 and MobileNetV2 on pictures of stripes: batch norm, weight decay, a warm-up, label smoothing.

Run it with `python3 examples/image_classifier.py --network resnet18`. The class of a picture is the direction of its
stripes; their width, colour, phase and the noise over them are random, so that there is always another picture.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import fit, report, training_step

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.vision import models

CLASSES = 4
NETWORKS = {"resnet18": models.resnet18, "resnet50": models.resnet50, "mobilenet_v2": models.mobilenet_v2}


def pictures(rng: np.random.Generator, count: int, size: int = 32) -> list[paddle.Tensor]:
    """Return pictures [count, 3, size, size] and the direction of their stripes, 0 to `CLASSES` - 1."""
    labels = rng.integers(0, CLASSES, count)
    angles = (labels + rng.uniform(-0.2, 0.2, count)) * np.pi / CLASSES
    width, phase = rng.uniform(2, 5, count), rng.uniform(0, 2 * np.pi, count)
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    across = x * np.cos(angles)[:, None, None] + y * np.sin(angles)[:, None, None]
    stripes = np.sin(across / width[:, None, None] * np.pi + phase[:, None, None])
    colours = rng.uniform(0.3, 1, (count, 3, 1, 1))
    noise = rng.normal(0, 0.3, (count, 3, size, size))
    return [paddle.to_tensor((stripes[:, None] * colours + noise).astype("float32")), paddle.to_tensor(labels)]


def network(name: str) -> paddle.nn.Layer:
    """Return the network of this name with fresh weights."""
    paddle.seed(0)
    return NETWORKS[name](num_classes=CLASSES)


def learning_rate(steps: int, highest: float = 0.02) -> paddle.optimizer.lr.LRScheduler:
    """Return a rate that goes up for a tenth of the steps and then down along half a cosine."""
    falling = paddle.optimizer.lr.CosineAnnealingDecay(highest, T_max=steps)
    return paddle.optimizer.lr.LinearWarmup(falling, max(1, steps // 10), start_lr=0.0, end_lr=highest)


def train(model: paddle.nn.Layer, steps: int, batch: int = 16, static: bool = True) -> list[float]:
    """Train the model; return the loss at each step."""
    rng, rate = np.random.default_rng(0), learning_rate(max(1, steps))
    sgd = paddle.optimizer.Momentum(
        rate,
        momentum=0.9,
        parameters=model.parameters(),
        weight_decay=paddle.regularizer.L2Decay(1e-4),
        grad_clip=paddle.nn.ClipGradByGlobalNorm(5.0),
    )
    smooth = paddle.nn.CrossEntropyLoss(label_smoothing=0.1)
    step = training_step(lambda x, labels: smooth(model(x), labels), sgd, static)
    losses: list[float] = []
    for _ in range(steps):
        losses += fit(step, [pictures(rng, batch)])
        rate.step()
    return losses


@paddle.no_grad()
def accuracy(model: paddle.nn.Layer, count: int = 64) -> float:
    """Return the part of `count` new pictures that the model puts into the right class."""
    model.eval()
    x, labels = pictures(np.random.default_rng(1), count)
    return float((F.softmax(model(x)).argmax(axis=1) == labels).astype("float32").mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=sorted(NETWORKS), default="resnet18")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    model = network(options.network)
    report(options.network, train(model, options.steps))
    print(f"accuracy on new pictures: {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
