"""LeNet on handwritten digits: a data loader, a training step as one Program, a metric, a saved model.

Run it with `python3 examples/lenet.py`. The images come with scikit-learn; they are drawn larger to the 28 x 28 pixels
that LeNet was made for.
"""

from __future__ import annotations

import argparse

import numpy as np
from learning import report, training_step
from sklearn.datasets import load_digits

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.io import DataLoader, TensorDataset, random_split
from dy2st.vision.models import LeNet


def digits(count: int = 1797) -> TensorDataset:
    """Return images [1, 28, 28] from 0 to 1 and their labels."""
    images, labels = load_digits(return_X_y=True)
    small = paddle.to_tensor(images[:count].reshape(-1, 1, 8, 8) / 16, dtype="float32")
    return TensorDataset([F.interpolate(small, [28, 28], mode="bilinear"), paddle.to_tensor(labels[:count])])


def train(data: TensorDataset, epochs: int, static: bool = True) -> tuple[LeNet, list[float]]:
    """Return a trained network and the loss at each step."""
    paddle.seed(0)
    np.random.seed(0)  # the data loader shuffles with NumPy's numbers
    model = LeNet()
    adam = paddle.optimizer.Adam(0.002, parameters=model.parameters())
    step = training_step(lambda images, labels: F.cross_entropy(model(images), labels), adam, static)
    batches = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    return model, [float(step(images, labels)) for _ in range(epochs) for images, labels in batches]


@paddle.no_grad()
def accuracy(model: paddle.nn.Layer, data: TensorDataset) -> float:
    """Return the part of the images that the model reads right."""
    metric = paddle.metric.Accuracy()
    for images, labels in DataLoader(data, batch_size=256):
        metric.update(metric.compute(model(images), labels.unsqueeze(1)))
    return metric.accumulate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--save", metavar="FILE", help="save the trained model, with its Program")
    options = parser.parse_args()
    learn, check = random_split(digits(), [1347, 450])
    model, losses = train(learn, options.epochs)
    report("LeNet", losses)
    model.eval()
    print(f"accuracy on 450 other images: {accuracy(model, check):.3f}")
    if options.save:
        images = paddle.static.InputSpec([None, 1, 28, 28], "float32", "images")
        print(f"saved {paddle.jit.save(model, options.save, [images])}")


if __name__ == "__main__":
    main()
