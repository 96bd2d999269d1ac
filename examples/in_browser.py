"""Four models in one page, without a server that computes: each is WebAssembly, made of one Program or two.

Run it with `python3 examples/in_browser.py`, then `python3 -m http.server -d demos` and open http://localhost:8000.

    digits    a small convolutional network reads what is drawn
    cart      a policy balances a pole; the world and its loop are in the Program
    writer    a recurrent network writes, a character a turn of a `while`
    field     a network learns Burgers' equation while you watch: derivatives, their gradient and Adam run in the page
"""

from __future__ import annotations

import argparse
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
from learning import report, training_step
from pinn import HEIGHT, NU, SPEED, Field, residual
from reinforce import Policy, fallen, move, train

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn
from dy2st.static import InputSpec

HERE = Path(__file__).parent
LETTERS = "\n abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;-'()"
"""What the writer knows; the first ends a sentence."""
POINTS = 64


class Digits(nn.Layer):
    """How likely an image [image, 1, 8, 8] is each digit."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2D(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2D(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
        )  # fmt: skip

    def forward(self, image):
        return F.softmax(self.net(image))


def digits(steps: int) -> Digits:
    """Return a network that has seen scikit-learn's digits, each moved by up to a pixel."""
    from sklearn.datasets import load_digits

    paddle.seed(0)
    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
    reader = Digits()
    adam = paddle.optimizer.Adam(2e-3, parameters=reader.parameters())
    step = training_step(lambda x, y: F.cross_entropy(reader.net(x), y), adam)
    losses: list[float] = []
    for _ in range(steps):
        at = rng.integers(0, len(images) - 200, 64)  # the last 200 are for the test
        moved = np.roll(images[at], rng.integers(-1, 2, 2), (2, 3))
        losses.append(float(step(paddle.to_tensor(moved), paddle.to_tensor(labels[at]))))
    report("digits", losses)
    reader.eval()
    right = reader(paddle.to_tensor(images[-200:])).argmax(axis=1).numpy() == labels[-200:]
    print(f"digits: {right.mean():.1%} of those that it has not seen")
    return reader


class Cart(nn.Layer):
    """A cart, its pole and who balances it."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    @paddle.jit.to_static(input_spec=[InputSpec([1, 4], name="state"), InputSpec([], "int64", name="ticks")])
    def forward(self, state, ticks):
        states = [state]
        while len(states) <= ticks and not fallen(state).any():
            state = move(state, self.policy(state).argmax(axis=1))
            states.append(state)
        return paddle.concat(states)


class Writer(nn.Layer):
    """A character after the other, by what came before."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.width = width
        self.letters = nn.Embedding(len(LETTERS), 48)
        self.gru = nn.GRU(48, width)
        self.scores = nn.Linear(width, len(LETTERS))

    def loss(self, text):
        """Return how unlikely each character of texts [text, character] was, behind those before it."""
        hidden, _ = self.gru(self.letters(text[:, :-1]))
        return F.cross_entropy(self.scores(hidden).reshape([-1, len(LETTERS)]), text[:, 1:].reshape([-1]))

    @paddle.jit.to_static(
        input_spec=[
            InputSpec([None], "int64", name="start"),
            InputSpec([], name="temperature"),
            InputSpec([], "int64", name="most"),
        ]
    )
    def forward(self, start, temperature, most):
        hidden, state = self.gru(self.letters(start.unsqueeze(0)))
        last = hidden[:, -1]
        written = [start[-1:]]
        while len(written) <= most:
            chances = F.softmax(self.scores(last) / temperature)
            letter = paddle.multinomial(chances, 1).reshape([1])
            written.append(letter)
            if letter[0] == 0:
                break
            hidden, state = self.gru(self.letters(letter.unsqueeze(0)), state)
            last = hidden[:, -1]
        return paddle.concat(written)[1:]


def writer(steps: int) -> Writer:
    """Return a network that has read this project's decisions."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    texts = [file.read_text(encoding="utf-8") for file in sorted((HERE.parent / "docs" / "decisions").glob("*.md"))]
    prose = [" ".join(part.split()) for text in texts for part in text.split("\n\n") if part[:1].isalpha()]
    known = np.array([LETTERS.index(c) for c in "\n".join(prose).replace(". ", ".\n") if c in LETTERS])
    author = Writer()
    adam = paddle.optimizer.Adam(4e-3, parameters=author.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    step = training_step(author.loss, adam)
    losses: list[float] = []
    for _ in range(steps):
        at = rng.integers(0, len(known) - 65, 32)
        losses.append(float(step(paddle.to_tensor(known[at[:, None] + np.arange(65)]))))
    report("writer", losses)
    author.eval()
    return author


class Learner(nn.Layer):
    """A field u(x, t) that learns the viscous Burgers equation (pinn.py) from points that it draws itself."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Field(20)
        self.adam = paddle.optimizer.Adam(5e-3, parameters=self.field.parameters())

    @paddle.jit.to_static(input_spec=[InputSpec([None, 1], name="x"), InputSpec([None, 1], name="t")])
    def forward(self, x, t):
        return self.field(x, t)

    @paddle.jit.to_static(input_spec=[])
    def learn(self):
        """Take a step of Adam and return the loss."""
        x, t = paddle.uniform([POINTS, 1], min=-1, max=1), paddle.uniform([POINTS, 1], min=0, max=1)
        at_start = paddle.concat([x, paddle.zeros_like(t)], axis=1)
        at_ends = paddle.concat([paddle.sign(x), t], axis=1)
        edge_x, edge_t = paddle.concat([at_start, at_ends]).split(2, axis=1)
        missed = residual(self.field, x, t)
        edge = self.field(edge_x, edge_t) - solution(edge_x, edge_t)
        loss = (missed * missed).mean() + 10 * (edge * edge).mean()
        loss.backward()
        self.adam.step()
        self.adam.clear_grad()
        return loss


def solution(x, t):
    """Return the solution of the equation, which the network is told at the start and at both ends."""
    return SPEED - HEIGHT * paddle.tanh(HEIGHT * (x - SPEED * t) / (2 * NU))


def learner() -> Learner:
    """Return a network that has taken one step, so that its optimizer has what it keeps."""
    paddle.seed(3)
    made = Learner()
    made.learn()
    return made


def build(folder: Path, *, episodes: int = 100, images: int = 1500, texts: int = 1000) -> None:
    """Train the models and write the page with their modules into a folder."""
    shutil.copytree(HERE / "browser", folder, dirs_exist_ok=True)
    policy, stood = train(episodes, limit=500)
    print(f"cart: poles stood {stood[0]:.0f} ticks, then {stood[-1]:.0f}")
    image = [InputSpec([None, 1, 8, 8], name="image")]
    for name, layer, spec in (
        ("digits", digits(images), image), ("cart", Cart(policy), None), ("writer", writer(texts), None),
        ("field", learner(), None),
    ):  # fmt: skip
        with warnings.catch_warnings():  # the gradients of points that a step has drawn are nobody's
            warnings.filterwarnings("ignore", "a loaded layer will not change the gradient of an argument")
            module = paddle.jit.export_library(layer, folder / name, spec, name=name, target="wasm32")
        print(f"{name}: {module.with_suffix('.wasm').stat().st_size / 1000:.0f} kB")
    (folder / "letters.json").write_text(json.dumps(LETTERS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demos"))
    build(parser.parse_args().folder)


if __name__ == "__main__":
    main()
