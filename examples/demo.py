"""The whole job on real images: train eagerly and as a Program, compare, save, reload without the source, draw.

Run it with `python3 dev.py demo`. The data set (1,797 images of handwritten digits) comes with scikit-learn.
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from model import ThinkTwice
from showing import heading, progress, side_by_side
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import viz

BATCH = 64
AGREE = 1e-4  # losses of 200 steps may differ by no more: sums in another order round otherwise
USE_SAVED = Path(__file__).with_name("use_saved.py")


@dataclass
class Data:
    """Images of 64 pixels from 0 to 1 and their labels, for training and for the test."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclass
class Trained:
    """A network and the loss at each step of its training."""

    net: ThinkTwice
    losses: np.ndarray
    seconds: float


def digits() -> Data:
    """Return scikit-learn's digits, a quarter of them for the test."""
    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, test_size=0.25, random_state=0)
    return Data(x.astype("float32"), y.astype("int64"), x_test.astype("float32"), y_test.astype("int64"))


def network(static: bool) -> ThinkTwice:
    """Return an untrained network; the same weights whichever way it runs."""
    paddle.seed(7)
    net = ThinkTwice()
    if not static:
        return net
    images = paddle.static.InputSpec([None, 64], "float32", "images")
    return paddle.jit.to_static(net, input_spec=[images], full_graph=True)


def train(net: ThinkTwice, data: Data, epochs: int, title: str) -> Trained:
    """Train with Adam, the same batches in the same order each time."""
    optimizer = paddle.optimizer.Adam(0.005, parameters=net.parameters())
    order = np.random.default_rng(0)
    batches = [rows for _ in range(epochs)
               for rows in np.array_split(order.permutation(len(data.x)), max(1, len(data.x) // BATCH))]  # fmt: skip
    losses: list[float] = []
    start = time.perf_counter()
    for rows in progress(batches, title):
        loss = loss_of(net, data.x[rows], data.y[rows])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return Trained(net, np.array(losses), time.perf_counter() - start)


def loss_of(net: ThinkTwice, x: np.ndarray, y: np.ndarray) -> paddle.Tensor:
    labels = paddle.to_tensor(y)
    return sum(F.cross_entropy(logits, labels) for logits in net(paddle.to_tensor(x)))


def accuracy(net: ThinkTwice, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of images that the network gets right."""
    net.eval()
    logits, _ = net(paddle.to_tensor(x))
    net.train()
    return float((logits.numpy().argmax(axis=1) == y).mean())


def gradients(net: ThinkTwice, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the gradient of the loss at every parameter."""
    net.clear_gradients()
    loss_of(net, x, y).backward()
    return {name: p.grad.numpy() for name, p in net.named_parameters()}


def differences(eager: Trained, static: Trained, data: Data) -> dict[str, float]:
    """Return how far static is from eager: the losses of the whole training, then each gradient at equal weights."""
    found = {f"loss, largest of {len(eager.losses)} steps": float(np.abs(eager.losses - static.losses).max())}
    twin = network(static=True)
    twin.set_state_dict(eager.net.state_dict())
    ours, theirs = (gradients(net, data.x[:256], data.y[:256]) for net in (eager.net, twin))
    return found | {f"gradient of {name}": float(np.abs(ours[name] - theirs[name]).max()) for name in ours}


def save_and_draw(net: ThinkTwice, folder: Path) -> tuple[Path, Path]:
    """Save the network and a picture of its Program; return both paths."""
    saved, picture = folder / "think_twice.dy2st", folder / "think_twice.html"
    paddle.jit.save(net, str(saved.with_suffix("")))
    viz.draw(net, picture)
    return saved, picture


def reloaded_accuracy(saved: Path, x: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy that a fresh process without the model's source gets from the saved file."""
    with tempfile.TemporaryDirectory() as elsewhere:
        data = Path(elsewhere) / "test.npz"
        np.savez(data, x=x, y=y)
        command = [sys.executable, "-P", str(USE_SAVED), str(saved.resolve().with_suffix("")), str(data)]
        library = {**os.environ, "PYTHONPATH": str(Path(paddle.__file__).parents[1])}
        done = subprocess.run(command, cwd=elsewhere, env=library, check=True, stdout=subprocess.PIPE, text=True)
        return float(done.stdout)


def show_training(title: str, trained: Trained, data: Data) -> None:
    before = int(trained.net.refined)
    right = accuracy(trained.net, data.x_test, data.y_test)
    twice = int(trained.net.refined) - before
    print(f"{title}: loss {trained.losses[0]:.4f} -> {trained.losses[-1]:.4f}, {len(trained.losses)} steps in "
          f"{trained.seconds:.1f} s; test accuracy {right:.4f}, "
          f"{twice} of {len(data.x_test)} images went through the second stage")  # fmt: skip


def show_conversion(net: ThinkTwice) -> None:
    print(heading("forward: as written | as converted"))
    print(side_by_side(textwrap.dedent(inspect.getsource(ThinkTwice.forward)), net.forward.code))
    print(heading("the Program"))
    print(net.forward.main_program)
    print(net.forward.explain())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = digits()

    print(heading("training"))
    eager = train(network(static=False), data, options.epochs, "eager ")
    static = train(network(static=True), data, options.epochs, "static")
    show_training("eager ", eager, data)
    show_training("static", static, data)
    show_conversion(static.net)

    print(heading("largest difference between eager and static"))
    found = differences(eager, static, data)
    for what, size in found.items():
        print(f"{what:<32} {size:.1e}")
    if max(found.values()) > AGREE:
        raise SystemExit(f"eager and static differ by more than {AGREE}")

    print(heading("files"))
    before = accuracy(static.net, data.x_test, data.y_test)
    saved, picture = save_and_draw(static.net, options.out)
    after = reloaded_accuracy(saved, data.x_test, data.y_test)
    print(f"{saved}: {saved.stat().st_size:,} bytes")
    print(f"test accuracy before saving {before:.4f}; reloaded in a process without the model's source {after:.4f}")
    if before != after:
        raise SystemExit("the reloaded model gives another accuracy")
    print(f"picture of the Program: {picture.resolve()}")


if __name__ == "__main__":
    main()
