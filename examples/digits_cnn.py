"""A convolutional network reads handwritten digits: `paddle.Model` with callbacks, to 99 % of new images.

Run it with `python3 dev.py demo digits_cnn`. The 1,797 images of 8 x 8 pixels come with scikit-learn; a quarter of them
is for the test, some of the others say when to stop. Each epoch shifts those for training anew by up to a pixel.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from training import Curves, Goal, Keeper, run

import dy2st as paddle
from dy2st import nn

GOAL = Goal("accuracy", 0.99, patience=20, stops=False)
STEPS = 40
BATCH = 64


class Shifted(paddle.io.Dataset):
    """Images moved by up to a pixel; how far depends on the epoch and the image."""

    def __init__(self, images: np.ndarray, labels: np.ndarray):
        super().__init__()
        self.images, self.labels = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)]), labels
        self.moves = np.ones((len(images), 2), "int64")

    def start(self, epoch: int) -> None:
        """Draw the moves of an epoch."""
        self.moves = np.random.default_rng(epoch).integers(0, 3, self.moves.shape)

    def __getitem__(self, index):
        down, right = self.moves[index]
        return self.images[index, :, down : down + 8, right : right + 8], self.labels[index]

    def __len__(self):
        return len(self.images)


class Network(nn.Layer):
    """Scores [batch, 10] of images [batch, 1, 8, 8]."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2D(1, width, 3, padding=1), nn.BatchNorm2D(width), nn.ReLU()),
            *(nn.Conv2D(width, width, 3, padding=1), nn.BatchNorm2D(width), nn.ReLU(), nn.MaxPool2D(2)),
            *(nn.Conv2D(width, 2 * width, 3, padding=1), nn.BatchNorm2D(2 * width), nn.ReLU()),
        )
        self.dropout, self.scores = nn.Dropout(0.3), nn.Linear(32 * width, 10)

    def forward(self, images):
        return self.scores(self.dropout(self.features(images).flatten(1)))


class Keeping(paddle.callbacks.Callback):
    """Gives each epoch its random numbers, and at its end notes the figure, keeps it, and may end training."""

    def __init__(self, keeper: Keeper, data: Shifted, batches: paddle.io.DistributedBatchSampler):
        super().__init__()
        self.keeper, self.data, self.batches = keeper, data, batches
        self.done, self.before, self.start = len(keeper.curves.figures), keeper.curves.seconds, time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self.data.start(self.done)
        self.batches.set_epoch(self.done)
        paddle.seed(self.done)

    def on_train_batch_end(self, step, logs=None):
        self.keeper.curves.losses.append(float(np.mean(logs["loss"])))

    def on_eval_end(self, logs=None):
        self.done += 1
        self.keeper.curves.seconds = self.before + time.perf_counter() - self.start
        self.model.stop_training = self.keeper.keep(float(logs["acc"]))


def images() -> tuple[Shifted, paddle.io.Dataset, paddle.io.Dataset]:
    """Return the images for training, for stopping, and for the test."""
    data, labels = load_digits(return_X_y=True)
    data, labels = (data / 16).astype("float32").reshape(-1, 1, 8, 8), labels.astype("int64")[:, None]
    x, x_test, y, y_test = train_test_split(data, labels, test_size=0.25, random_state=0)
    x, x_stop, y, y_stop = train_test_split(x, y, test_size=0.1, random_state=0)
    stop, test = ([paddle.to_tensor(a) for a in part] for part in ((x_stop, y_stop), (x_test, y_test)))
    return Shifted(x, y), paddle.io.TensorDataset(stop), paddle.io.TensorDataset(test)


def recipe(folder: Path, steps: int, resume: bool = False) -> Curves:
    """Train for so many epochs at most; return the curves."""
    data, stop, test = images()
    batches = paddle.io.DistributedBatchSampler(data, BATCH, num_replicas=1, rank=0, shuffle=True)
    paddle.seed(0)
    with paddle.utils.unique_name.guard():
        network = paddle.jit.to_static(Network())
        rate = paddle.optimizer.lr.CosineAnnealingDecay(0.004, T_max=steps * len(batches))
        adam = paddle.optimizer.AdamW(rate, parameters=network.parameters(), weight_decay=0.01)
    keeper = Keeper({"network": network, "adam": adam}, GOAL, folder)
    if resume:
        keeper.resume()
    pixels = paddle.static.InputSpec([None, 1, 8, 8], "float32", "images")
    model = paddle.Model(network, pixels, paddle.static.InputSpec([None, 1], "int64", "labels"))
    model.prepare(adam, nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    keeping = Keeping(keeper, data, batches)
    loader = paddle.io.DataLoader(data, batch_sampler=batches)
    model.fit(loader, stop, batch_size=500, epochs=steps - keeping.done, verbose=1, callbacks=[keeping])
    keeper.take_best()
    keeper.curves.final = float(model.evaluate(test, batch_size=500, verbose=0)["acc"])
    return keeper.curves


if __name__ == "__main__":
    run(recipe, GOAL, "digits_cnn", STEPS)
