"""The whole job on real images: train eagerly and as a Program, compare, save, reload without the source, draw.

Run it with `python3 dev.py demo`; the data set (1,797 images of handwritten digits) comes with scikit-learn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from model import ThinkTwice
from rich.console import Console
from rich.progress import track
from rich.syntax import Syntax
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import viz

BATCH = 64
RELOAD = """
import sys, numpy as np
import dy2st as paddle
try:
    import model
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("the model's source can be imported; this process should not see it")
net = paddle.jit.load(sys.argv[1])
net.eval()
data = np.load(sys.argv[2])
print(float((net(paddle.to_tensor(data["x"])).numpy().argmax(1) == data["y"]).mean()))
"""


def digits() -> tuple[np.ndarray, ...]:
    """Return training images, test images, training labels, test labels."""
    images, labels = load_digits(return_X_y=True)
    return train_test_split((images / 16).astype("float32"), labels.astype("int64"), test_size=0.25, random_state=0)


def train(net: paddle.nn.Layer, x: np.ndarray, y: np.ndarray, epochs: int, title: str) -> tuple[list[float], float]:
    """Train with Adam; return the loss of every step and the seconds that it took."""
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    order = np.random.default_rng(0)
    losses: list[float] = []
    steps = [s for _ in range(epochs) for s in np.array_split(order.permutation(len(x)), len(x) // BATCH)]
    start = time.perf_counter()
    for rows in track(steps, description=title):
        loss = F.cross_entropy(net(paddle.to_tensor(x[rows])), paddle.to_tensor(y[rows]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses, time.perf_counter() - start


def accuracy(net: paddle.nn.Layer, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of images that the network gets right."""
    net.eval()
    return float((net(paddle.to_tensor(x)).numpy().argmax(1) == y).mean())


def gradients(net: paddle.nn.Layer, x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the gradient of the loss at every parameter."""
    net.clear_gradients()
    F.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(y)).backward()
    return {name: p.grad.numpy() for name, p in net.named_parameters()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console()
    x, x_test, y, y_test = digits()

    nets, losses = {}, {}
    for mode in ("eager", "static"):
        paddle.seed(7)
        net = ThinkTwice()
        if mode == "static":
            spec = [paddle.static.InputSpec([None, 64], "float32", "images")]
            net = paddle.jit.to_static(net, input_spec=spec, full_graph=True)
        losses[mode], seconds = train(net, x, y, options.epochs, f"training, {mode}")
        nets[mode] = net
        console.print(f"{mode}: loss {losses[mode][0]:.4f} -> {losses[mode][-1]:.4f} in {seconds:.1f} s, "
                      f"{int(net.refined)} images thought over twice")  # fmt: skip

    static = nets["static"].forward
    console.rule("the source as written, and as converted")
    console.print(Syntax(Path(sys.modules["model"].__file__).read_text().partition("    def forward")[2], "python"))
    console.print(Syntax(static.code, "python"))
    console.rule("the Program")
    print(static.main_program)
    print(static.explain())

    console.rule("eager and static agree")
    table = Table("quantity", "largest difference")
    table.add_row("loss over all training steps", f"{np.abs(np.subtract(*losses.values())).max():.2e}")
    nets["static"].set_state_dict(nets["eager"].state_dict())
    pair = [gradients(nets[mode], x[:256], y[:256]) for mode in ("eager", "static")]
    for name in pair[0]:
        table.add_row(f"gradient of {name}", f"{np.abs(pair[0][name] - pair[1][name]).max():.2e}")
    console.print(table)

    path = options.out / "think_twice"
    before = accuracy(nets["static"], x_test, y_test)
    paddle.jit.save(nets["static"], str(path))
    with tempfile.TemporaryDirectory() as elsewhere:
        data = Path(elsewhere) / "test.npz"
        np.savez(data, x=x_test, y=y_test)
        run = subprocess.run([sys.executable, "-c", RELOAD, str(path.resolve()), str(data)], cwd=elsewhere, check=True,
                             capture_output=True, text=True)  # fmt: skip
    after = float(run.stdout)
    console.print(f"test accuracy {before:.4f}; reloaded in a process without the model's source: {after:.4f}")
    if before != after:
        raise SystemExit("the reloaded model differs")
    picture = options.out / "think_twice.html"
    viz.draw(static, picture)
    console.print(f"picture of the Program: {picture}")


if __name__ == "__main__":
    main()
